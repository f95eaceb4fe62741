//! What happens between a write and its answer, on a disk that is full or broken, and to a store
//! that does not open.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use memhost_types::LogLine;

use super::*;
use crate::{DiskLevel, DiskSeam, DiskStep, Store, TableWrite, company_key};

/// A disk that notes its steps, and fails when it is told to.
#[derive(Default)]
struct Seam {
    steps: Mutex<Vec<DiskStep>>,
    fails_at: Mutex<Option<DiskStep>>,
    /// 0 asks the system.
    free: AtomicU64,
    /// How long the disk takes.
    slow_ms: AtomicU64,
    /// The bytes that are free after the next flush; 0: no change.
    free_after_flush: AtomicU64,
}

impl DiskSeam for Seam {
    fn free(&self) -> Option<u64> {
        Some(self.free.load(Ordering::SeqCst)).filter(|free| *free > 0)
    }

    fn step(&self, step: DiskStep) -> io::Result<()> {
        self.steps.lock().push(step);
        if step == DiskStep::Sync {
            std::thread::sleep(Duration::from_millis(self.slow_ms.load(Ordering::SeqCst)));
            let after = self.free_after_flush.swap(0, Ordering::SeqCst);
            if after > 0 {
                self.free.store(after, Ordering::SeqCst);
            }
        }
        match *self.fails_at.lock() == Some(step) {
            true => Err(io::Error::from_raw_os_error(5)),
            false => Ok(()),
        }
    }
}

struct Opened {
    directory: TempDir,
    store: SledStore,
    seam: Arc<Seam>,
    deaths: Arc<AtomicU32>,
}

fn opened() -> Opened {
    opened_with(SledOptions::default().patience)
}

fn opened_with(patience: Duration) -> Opened {
    let directory = TempDir::new().unwrap();
    let (seam, deaths) = (Arc::new(Seam::default()), Arc::new(AtomicU32::new(0)));
    let counted = Arc::clone(&deaths);
    let options = SledOptions {
        seam: Some(Arc::clone(&seam) as Arc<dyn DiskSeam>),
        on_fatal: Some(Arc::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        })),
        patience,
        ..SledOptions::default()
    };
    let store = SledStore::open(directory.path(), options).unwrap();
    seam.steps.lock().clear();
    Opened { directory, store, seam, deaths }
}

fn write(store: &SledStore, kind: OperationKind, outcome: Outcome) -> Result<(), StoreError> {
    let made = operation(store, "acme", None, kind, outcome);
    block_on(store.write_operation(Arc::new(made), Vec::new()))
}

fn change(table: Table, name: &str, new: Option<&[u8]>) -> Vec<Change> {
    vec![Change::always(
        table,
        company_key(&company("acme"), name.as_bytes()),
        new.map(<[u8]>::to_vec),
    )]
}

fn transact(store: &SledStore, changes: &[Change]) -> Result<(), StoreError> {
    match block_on(store.transact(changes))? {
        Transacted::Done(commit) => block_on(commit),
        Transacted::Conflict(_) => panic!("a conflict"),
    }
}

#[test]
fn nobody_is_answered_before_the_disk_has_it() {
    use DiskStep::{Answer, Flush, Sync, Write};
    let Opened { directory: _directory, store, seam, .. } = opened();
    let taken = |what: &str| {
        let steps = std::mem::take(&mut *seam.steps.lock());
        // The indexer writes when it likes, and answers nobody.
        let mut written = steps.iter().position(|step| *step == Write).is_some();
        let mut synced = false;
        for step in &steps {
            match step {
                Write => written = true,
                Flush => {}
                Sync => synced = true,
                Answer => assert!(synced, "{what}: answered before the disk had it: {steps:?}"),
            }
        }
        assert!(written && steps.contains(&Answer) && steps.contains(&Flush), "{what}: {steps:?}");
        let last = |step| steps.iter().rposition(|found| *found == step);
        assert!(last(Sync) > last(Flush), "{what}: {steps:?}");
    };
    write(&store, OperationKind::Capture, Outcome::InProgress).unwrap();
    taken("an intent");
    write(&store, OperationKind::Capture, Outcome::Succeeded).unwrap();
    taken("a completion");
    transact(&store, &change(Table::Tokens, "token", Some(b"row"))).unwrap();
    taken("a transaction");
    let limit = StorageSize { bytes: 1 << 20, keys: 100 };
    let storage = Blocking::open(&store, b"acme\0binding", limit);
    storage
        .apply(vec![StorageWrite::Put(StorageEntry {
            key: b"k".to_vec(),
            value: vec![7; 300_000],
        })])
        .unwrap();
    block_on(store.commit()).unwrap();
    taken("a provider's storage");
    block_on(
        block_on(store.write_partition_state(b"acme\0binding", limit, b"state", Vec::new()))
            .unwrap(),
    )
    .unwrap();
    taken("the state of a partition");
    block_on(block_on(store.remove_partition(b"acme\0binding")).unwrap()).unwrap();
    taken("a removed partition");
}

/// A record that nobody waits for is found at once, and is written with the next awaited one, which
/// does not wait for it to become old.
#[test]
fn records_that_nobody_waits_for_share_a_flush_with_the_next_one() {
    let Opened { directory: _directory, store, seam, .. } = opened_with(Duration::from_hours(1));
    for _ in 0..10 {
        let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
        let id = made.id;
        store.write_operation_later(Arc::new(made), Vec::new());
        assert!(block_on(store.operation(&company("acme"), id)).unwrap().is_some());
    }
    write(&store, OperationKind::Capture, Outcome::Succeeded).unwrap();
    let steps = seam.steps.lock().clone();
    assert_eq!(steps.iter().filter(|step| **step == DiskStep::Answer).count(), 1, "{steps:?}");
}

/// An erasure is answered by its own way.
#[test]
fn an_erasure_is_on_disk_before_its_answer() {
    let Opened { directory: _directory, store, seam, .. } = opened();
    write(&store, OperationKind::Query, Outcome::Succeeded).unwrap();
    indexed(&store);
    seam.steps.lock().clear();
    assert!(block_on(store.erase_company(&company("acme"))).unwrap() > 0);
    let steps = seam.steps.lock().clone();
    let last = |step| steps.iter().rposition(|found| *found == step);
    assert!(last(DiskStep::Sync) > last(DiskStep::Write), "{steps:?}");
}

#[test]
fn a_disk_that_fails_ends_the_store_and_every_call_says_so() {
    for step in [DiskStep::Write, DiskStep::Flush, DiskStep::Sync] {
        let Opened { directory, store, seam, deaths } = opened();
        write(&store, OperationKind::Query, Outcome::Succeeded).unwrap();
        *seam.fails_at.lock() = Some(step);
        let error = write(&store, OperationKind::Capture, Outcome::InProgress).unwrap_err();
        assert!(matches!(error, StoreError::Fatal { .. }), "{step:?}: {error}");
        assert!(error.to_string().contains("start the host again"), "{error}");
        // The disk works again, and nobody knows what it has.
        *seam.fails_at.lock() = None;
        let is_fatal = |error: StoreError| {
            assert!(matches!(error, StoreError::Fatal { .. }), "{step:?}: {error}");
        };
        is_fatal(write(&store, OperationKind::Query, Outcome::Succeeded).unwrap_err());
        is_fatal(transact(&store, &change(Table::Tokens, "token", Some(b"row"))).unwrap_err());
        is_fatal(block_on(store.get(Table::Tokens, b"key")).unwrap_err());
        is_fatal(block_on(store.scan(Table::Tokens, b"", None, 1)).unwrap_err());
        is_fatal(
            block_on(store.operations(&company("acme"), &OperationFilter::default(), None, 1))
                .unwrap_err(),
        );
        is_fatal(block_on(store.commit()).unwrap_err());
        is_fatal(block_on(store.verify()).unwrap_err());
        is_fatal(block_on(store.erase_company(&company("acme"))).unwrap_err());
        assert_eq!(deaths.load(Ordering::SeqCst), 1, "the program is told once");
        // It must not wait for what cannot be written.
        drop(store);
        drop(directory);
    }
}

#[test]
fn a_full_disk_refuses_new_data_then_everything_and_goes_on_by_itself() {
    let Opened { directory: _directory, store, seam, deaths } = opened();
    let kept = |name: &str| change(Table::Tokens, name, Some(b"row"));
    transact(&store, &kept("old")).unwrap();
    let reserve = store.disk().reserve_bytes;
    let set = |free: u64| seam.free.store(free, Ordering::SeqCst);
    let is_full = |done: Result<(), StoreError>| match done {
        Err(StoreError::DiskFull { free, reserve: needed }) => assert!(free < needed),
        other => panic!("{other:?}"),
    };
    set(reserve - 1);
    is_full(write(&store, OperationKind::Capture, Outcome::InProgress));
    assert_eq!(store.disk().level, DiskLevel::Low);
    is_full(transact(&store, &kept("new")));
    let limit = StorageSize { bytes: 1 << 20, keys: 100 };
    let storage = Blocking::open(&store, b"acme\0binding", limit);
    let put =
        |bytes| vec![StorageWrite::Put(StorageEntry { key: b"k".to_vec(), value: vec![7; bytes] })];
    assert!(storage.apply(put(100_000)).is_err(), "a provider's storage is new data");
    // What is there can end, change and go, and reads are recorded.
    write(&store, OperationKind::Query, Outcome::Succeeded).unwrap();
    write(&store, OperationKind::Capture, Outcome::Succeeded).unwrap();
    write(&store, OperationKind::Forget, Outcome::InProgress).unwrap();
    storage.apply(put(100)).unwrap();
    transact(&store, &kept("old")).unwrap();
    transact(&store, &change(Table::Activity, "revoked", Some(b"who"))).unwrap();
    transact(&store, &change(Table::Tokens, "old", None)).unwrap();
    set(reserve / 4 - 1);
    write(&store, OperationKind::Forget, Outcome::InProgress).unwrap();
    assert_eq!(store.disk().level, DiskLevel::Spent);
    // sled must not be left writing to a full disk.
    set(reserve / 16 - 1);
    is_full(write(&store, OperationKind::Forget, Outcome::InProgress));
    is_full(write(&store, OperationKind::Query, Outcome::Succeeded));
    is_full(transact(&store, &change(Table::Tokens, "old", None)));
    set(reserve * 2);
    transact(&store, &kept("new")).unwrap();
    write(&store, OperationKind::Capture, Outcome::InProgress).unwrap();
    assert_eq!(store.disk().level, DiskLevel::Plenty);
    assert_eq!(deaths.load(Ordering::SeqCst), 0);
    let mut refused = Vec::new();
    for _ in 0..3 {
        set(reserve / 16 - 1);
        refused.push(write(&store, OperationKind::Query, Outcome::Succeeded).is_err());
        set(reserve * 2);
    }
    assert_eq!(refused, [true; 3]);
    // Numbers whose records were refused do not keep the index waiting.
    let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
    block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_is_written_to_a_disk_that_was_filled_during_a_flush() {
    let Opened { directory: _directory, store, seam, .. } = opened();
    let reserve = store.disk().reserve_bytes;
    seam.free.store(reserve * 2, Ordering::SeqCst);
    let storage = Blocking::open(&store, b"acme\0binding", StorageSize { bytes: 1 << 20, keys: 9 });
    let put =
        || vec![StorageWrite::Put(StorageEntry { key: b"k".to_vec(), value: vec![7; 300_000] })];
    seam.steps.lock().clear();
    seam.free_after_flush.store(reserve / 16 - 1, Ordering::SeqCst);
    let first_refused = (0..9).find(|_| storage.apply(put()).is_err());
    assert!(first_refused.is_some(), "there was a flush");
    let steps = seam.steps.lock().clone();
    let last = |step| steps.iter().rposition(|found| *found == step);
    assert!(
        last(DiskStep::Write) < last(DiskStep::Flush),
        "written after the disk was full: {steps:?}"
    );
}

#[test]
fn the_level_does_not_change_with_every_write() {
    let Opened { directory: _directory, store, seam, .. } = opened();
    let reserve = store.disk().reserve_bytes;
    let mut levels = Vec::new();
    for free in [reserve - 1, reserve + 1, reserve - 1, reserve * 9 / 8, reserve + 1] {
        seam.free.store(free, Ordering::SeqCst);
        let _ = write(&store, OperationKind::Capture, Outcome::InProgress);
        levels.push(store.disk().level);
    }
    assert_eq!(
        levels,
        [DiskLevel::Low, DiskLevel::Low, DiskLevel::Low, DiskLevel::Plenty, DiskLevel::Plenty]
    );
}

/// Long values are in files of their own.
fn blobs(directory: &Path) -> Vec<std::path::PathBuf> {
    let found = std::fs::read_dir(directory.join("store/blobs")).unwrap();
    found.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_store_that_does_not_open_is_repaired_with_everything_that_can_be_read() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for number in 0..50_u32 {
        transact(&store, &change(Table::Tokens, &format!("token {number}"), Some(b"row"))).unwrap();
        write(&store, OperationKind::Query, Outcome::Succeeded).unwrap();
    }
    let long = TableWrite::new(
        Table::Events,
        company_key(&company("acme"), b"long"),
        Some(vec![7; 400_000]),
    );
    transact(&store, &[Change::from(long)]).unwrap();
    drop(store);
    drop(open(directory.path()));
    let snapshot = std::fs::read_dir(directory.path().join("store"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let snapshots: Vec<_> =
        snapshot.filter(|path| path.to_string_lossy().contains("snap.")).collect();
    assert!(!snapshots.is_empty() && !blobs(directory.path()).is_empty());
    for path in snapshots {
        std::fs::write(path, b"what a disk has after a power failure").unwrap();
    }
    for path in blobs(directory.path()) {
        std::fs::write(path, b"").unwrap();
    }
    assert!(SledStore::open(directory.path(), SledOptions::default()).is_err());
    let repaired = SledStore::repair(directory.path()).unwrap();
    assert_eq!(repaired.saved[Table::Tokens.name()], 50);
    assert_eq!(repaired.saved["operations"], 50);
    assert!(repaired.lost.iter().any(|lost| lost.contains("snap.")), "{:?}", repaired.lost);
    // The long value is gone with its file, and this is said.
    assert!(
        repaired.lost.iter().any(|lost| lost.contains("blobs/") || lost.contains("`events`")),
        "{repaired:?}"
    );
    assert!(repaired.damaged.is_dir());
    let store = open(directory.path());
    assert_eq!(all(&store, "acme", &OperationFilter::default(), 100).len(), 50);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    let tokens = block_on(store.scan(Table::Tokens, b"", None, 100)).unwrap();
    assert_eq!(tokens.entries.len(), 50);
}

/// Whoever waits for a flush that never ends is answered when the store ends.
#[test]
fn those_who_wait_are_answered_when_the_database_does_not() {
    struct Stuck(AtomicBool, Mutex<Option<std::sync::mpsc::Receiver<()>>>);
    impl DiskSeam for Stuck {
        fn step(&self, step: DiskStep) -> io::Result<()> {
            if step == DiskStep::Flush && self.0.load(Ordering::SeqCst) {
                let held = self.1.lock().take();
                // Until the test ends.
                held.map(|held| held.recv());
            }
            Ok(())
        }
    }
    let directory = TempDir::new().unwrap();
    let (release, held) = std::sync::mpsc::channel();
    let stuck = Arc::new(Stuck(AtomicBool::new(false), Mutex::new(Some(held))));
    let options = SledOptions {
        seam: Some(Arc::clone(&stuck) as Arc<dyn DiskSeam>),
        ..SledOptions::default()
    };
    let store = SledStore::open(directory.path(), options).unwrap();
    stuck.0.store(true, Ordering::SeqCst);
    let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    let first = store.write_operation(Arc::new(made), Vec::new());
    let second = store.commit();
    while store.trees.disk.waiting().is_none() {
        std::thread::yield_now();
    }
    let third = store.commit();
    let error = store.trees.disk.fatal("flushing", &"the database does not answer");
    store.log.as_ref().unwrap().abandon().all(&error);
    for commit in [first, second, third] {
        assert!(matches!(block_on(commit), Err(StoreError::Fatal { .. })));
    }
    drop(store);
    drop(release);
}

/// A caller that writes again soon gets into the next group. Without the wait for it, those who
/// come back first are a group without the others, and each write waits for two flushes from then
/// on.
#[test]
fn callers_that_return_soon_share_each_flush() {
    const CALLERS: u64 = 8;
    const ROUNDS: usize = 20;
    let opened = opened();
    opened.seam.slow_ms.store(20, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for number in 0..CALLERS {
            let opened = &opened;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    write(&opened.store, OperationKind::Query, Outcome::Succeeded).unwrap();
                    // One half returns when the other half has waited for it, and both long before
                    // the flush would end.
                    std::thread::sleep(Duration::from_micros(200 + 1_000 * (number % 2)));
                }
            });
        }
    });
    let groups = opened.seam.steps.lock().iter().filter(|step| **step == DiskStep::Answer).count();
    assert!((ROUNDS..ROUNDS * 3 / 2).contains(&groups), "{groups} groups for {ROUNDS} rounds");
}

/// A group is written in pieces. What was written before the disk was full is in the log and in the
/// index, and is acknowledged; the rest is refused.
#[test]
fn a_group_of_which_a_part_has_no_room_is_written_in_part() {
    let Opened { directory: _directory, store, seam, .. } = opened();
    let reserve = store.disk().reserve_bytes;
    seam.free.store(reserve * 2, Ordering::SeqCst);
    seam.slow_ms.store(200, Ordering::SeqCst);
    let done: Vec<bool> = std::thread::scope(|scope| {
        let first = scope.spawn(|| write(&store, OperationKind::Query, Outcome::Succeeded));
        // While the first one is brought to the disk, the others become a group.
        while !seam.steps.lock().contains(&DiskStep::Sync) {
            std::thread::yield_now();
        }
        let writers: Vec<_> = (0..8)
            .map(|_| {
                let mut made =
                    operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
                made.log = vec![LogLine { level: "info".to_owned(), text: "x".repeat(60_000) }];
                let store = &store;
                scope.spawn(move || {
                    block_on(store.write_operation(Arc::new(made), Vec::new())).is_ok()
                })
            })
            .collect();
        first.join().unwrap().unwrap();
        // The flush of the first one is over; the next one is in the middle of the group.
        seam.free_after_flush.store(reserve / 16 - 1, Ordering::SeqCst);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    seam.free.store(reserve * 2, Ordering::SeqCst);
    assert!(done.contains(&true) && done.contains(&false), "{done:?}");
    indexed(&store);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    let page = block_on(store.operations(&company("acme"), &OperationFilter::default(), None, 100))
        .unwrap();
    assert_eq!(page.operations.len(), 1 + done.iter().filter(|done| **done).count(), "{done:?}");
}
