//! Attacks on the store: each of these tests is red where a promise is broken.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::date;
use memhost_postgres::{PostgresOptions, PostgresStore};
use memhost_store::suite::{company, numbered, put, row, size};
use memhost_store::{
    Change, Expected, Maintenance, OperationLog, Partitions, Store, StoreError, Table, TableWrite,
    Tables, Transacted, company_key, next_sequence,
};
use memhost_types::{Operation, OperationFilter, OperationKind, Outcome};
use tokio_postgres::Client;

use crate::server;

async fn lanes(address: &str, lanes: usize, readers: usize) -> PostgresStore {
    let address = address.to_owned();
    PostgresStore::open(PostgresOptions { address, lanes, readers, company_bytes: 0 })
        .await
        .unwrap()
}

async fn op(store: &PostgresStore, name: &str, outcome: Outcome) -> Operation {
    let number = next_sequence(store, &company(name)).await.unwrap();
    numbered(name, None, OperationKind::Query, outcome, number)
}

async fn wrote(store: &PostgresStore, name: &str) -> Operation {
    let made = op(store, name, Outcome::Succeeded).await;
    store.write_operation(Arc::new(made.clone()), Vec::new()).await.unwrap();
    made
}

async fn done(store: &PostgresStore, changes: &[Change]) {
    let Transacted::Done(commit) = store.transact(changes).await.unwrap() else { panic!() };
    commit.await.unwrap();
}

/// How many sessions wait for a lock.
async fn wait_for_locks(watching: &Client, most: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND wait_event_type = 'Lock'";
    let until = Instant::now() + Duration::from_secs(5);
    while watching.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < most {
        assert!(Instant::now() < until, "nothing waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Holds up the lane of a company with a write of a row that somebody else has.
async fn hold_up(store: &PostgresStore, address: &str, name: &str) -> Client {
    done(store, &[row(name, Table::Events, b"gate", Some(b"1"))]).await;
    let client = server::client(address).await;
    client
        .batch_execute("BEGIN; SELECT 1 FROM entries WHERE key = 'gate' FOR UPDATE")
        .await
        .unwrap();
    drop(store.transact(&[row(name, Table::Events, b"gate", Some(b"2"))]).await.unwrap());
    let watching = server::client(address).await;
    wait_for_locks(&watching, 1).await;
    client
}

async fn summed(store: &PostgresStore, name: &str) -> u64 {
    let day = date(1970, 1, 1);
    let rows = store.rollups(&company(name), day, day).await.unwrap();
    rows.iter().filter(|(key, _)| key.origin.is_none()).map(|(_, row)| row.counts.operations).sum()
}

macro_rules! attack {
    ($name:ident, $address:ident, $body:block) => {
        #[test]
        fn $name() {
            server::runtime().block_on(async {
                let Some($address) = server::database().await else { return };
                let within = Duration::from_secs(60);
                tokio::time::timeout(within, async { $body }).await.expect("it hangs");
            });
        }
    };
}

// `Task::write` goes on after `NotHome` without forgetting what `attempt` remembered.
attack!(sums_are_counted_twice_where_another_company_of_the_batch_was_lost, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    wrote(&first, "lost").await;
    wrote(&first, "kept").await;
    let (lost, kept) = (
        op(&first, "lost", Outcome::Succeeded).await,
        op(&first, "kept", Outcome::Succeeded).await,
    );
    let gate = hold_up(&first, &address, "gate").await;
    second.operation_range(&company("lost")).await.unwrap();
    let event = TableWrite::new(
        Table::CostEvents,
        company_key(&company("kept"), b"event"),
        Some(b"{}".to_vec()),
    );
    let lost = first.write_operation(Arc::new(lost), Vec::new());
    let kept = first.write_operation(Arc::new(kept), vec![event]);
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(lost.await.is_err());
    kept.await.unwrap();
    let order =
        first.scan(Table::CostOrder, &company_key(&company("kept"), b""), None, 10).await.unwrap();
    let number = memhost_store::cost_number(&company("kept"), &order.entries[0].0);
    assert_eq!((summed(&first, "kept").await, number), (2, Some(1)));
});

// A record whose number another home gave to another operation fails the whole batch.
attack!(a_late_record_of_one_company_takes_the_writes_of_others, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    let mut late = op(&first, "acme", Outcome::Succeeded).await;
    late.id = memhost_types::OperationId::new(1, late.id.sequence(), 99);
    wrote(&second, "acme").await;
    let lost = first.transact(&[row("acme", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(lost) = lost else { panic!() };
    assert!(lost.await.is_err());
    // It takes the company over again.
    first.operation_range(&company("acme")).await.unwrap();
    let innocent = op(&first, "innocent", Outcome::Succeeded).await;
    let gate = hold_up(&first, &address, "gate").await;
    let late = first.write_operation(Arc::new(late), Vec::new());
    let innocent = first.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(late.await.is_err());
    innocent.await.unwrap();
});

// A key that the index refuses.
attack!(a_key_that_postgres_refuses_takes_the_writes_of_others, address, {
    let store = lanes(&address, 1, 8).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let mut random = Vec::new();
    while random.len() < 4_000 {
        random.extend_from_slice(uuid_bytes(random.len()).as_slice());
    }
    drop(store.get(Table::Events, &company_key(&company("hostile"), b"a")).await.unwrap());
    done(&store, &[row("hostile", Table::Events, b"a", Some(b"1"))]).await;
    let gate = hold_up(&store, &address, "gate").await;
    let hostile = store.transact(&[row("hostile", Table::Events, &random, Some(b"1"))]).await;
    let innocent = store.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    let hostile = match hostile {
        Ok(Transacted::Done(commit)) => commit.await,
        _ => Ok(()),
    };
    innocent.await.unwrap();
    hostile.unwrap();
});

fn uuid_bytes(seed: usize) -> Vec<u8> {
    let mut state = seed as u64 ^ 0x9e37_79b9_7f4a_7c15;
    (0..64)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

// What was closed is open again after the company was loaded again.
attack!(a_closed_company_stays_closed_after_it_is_loaded_again, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    done(&first, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    let acme = company("acme");
    first.close_company(&acme).await.unwrap();
    first.erase_company(&acme).await.unwrap();
    second.operation_range(&acme).await.unwrap();
    // A refusal, which is written of a closed company, finds that another one is the home.
    let refusal = op(&first, "acme", Outcome::Refused).await;
    assert!(first.write_operation(Arc::new(refusal), Vec::new()).await.is_err());
    let written = first.transact(&[row("acme", Table::Events, b"a", Some(b"2"))]).await;
    assert!(matches!(written, Err(StoreError::Erased { .. })), "it was written");
});

// A guest's handle goes on after what it wrote before was lost, and so does its operation.
attack!(a_handle_and_an_operation_do_not_outlive_a_lost_write, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    let running = op(&first, "acme", Outcome::Succeeded).await;
    let storage = first.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 10)).await.unwrap();
    second.operation_range(&company("acme")).await.unwrap();
    storage.apply(vec![put(b"record", b"text")]).await.unwrap();
    assert!(first.commit().await.is_err());
    // The same call of the same guest goes on.
    let second_write = storage.apply(vec![put(b"index", b"record")]).await;
    let ended = first.write_operation(Arc::new(running), Vec::new()).await;
    storage.begin_call();
    let (record, index) =
        (storage.get(b"record").await.unwrap(), storage.get(b"index").await.unwrap());
    assert!(
        record.is_some() || (index.is_none() && second_write.is_err() && ended.is_err()),
        "record {record:?} index {index:?}, {second_write:?}, the operation: {ended:?}"
    );
});

// Erasing, and a refusal whose sums the lane remembers.
attack!(erased_sums_do_not_come_back, address, {
    let store = lanes(&address, 1, 8).await;
    let acme = company("acme");
    for _ in 0..5 {
        wrote(&store, "acme").await;
    }
    store.close_company(&acme).await.unwrap();
    let refusal = op(&store, "acme", Outcome::Refused).await;
    let client = server::client(&address).await;
    let watching = server::client(&address).await;
    client
        .batch_execute("BEGIN; SELECT 1 FROM companies WHERE name = 'acme' FOR UPDATE")
        .await
        .unwrap();
    let erasing = tokio::spawn({
        let store = store.clone();
        async move { store.erase_company(&company("acme")).await }
    });
    wait_for_locks(&watching, 1).await;
    let written = store.write_operation(Arc::new(refusal), Vec::new());
    client.batch_execute("COMMIT").await.unwrap();
    erasing.await.unwrap().unwrap();
    written.await.unwrap();
    assert_eq!((summed(&store, "acme").await, store.verify().await.unwrap()), (1, vec![]));
});

// Erasing, and a refusal that is written between two of its statements.
attack!(held_is_exact_after_a_refusal_beside_an_erasure, address, {
    let store = lanes(&address, 1, 8).await;
    wrote(&store, "acme").await;
    store.close_company(&company("acme")).await.unwrap();
    let refusal = op(&store, "acme", Outcome::InProgress).await;
    let client = server::client(&address).await;
    let watching = server::client(&address).await;
    client.batch_execute("BEGIN; SELECT 1 FROM operations FOR UPDATE").await.unwrap();
    let erasing = tokio::spawn({
        let store = store.clone();
        async move { store.erase_company(&company("acme")).await }
    });
    wait_for_locks(&watching, 1).await;
    let written = store.write_operation(Arc::new(refusal), Vec::new());
    client.batch_execute("COMMIT").await.unwrap();
    erasing.await.unwrap().unwrap();
    written.await.unwrap();
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
});

// A slow read of one company.
attack!(a_slow_read_of_one_company_does_not_hold_up_the_writes_of_others, address, {
    let store = lanes(&address, 1, 8).await;
    let mut storages = Vec::new();
    for name in ["slow", "other"] {
        wrote(&store, name).await;
        let partition = company_key(&company(name), b"aaaaaaaaaaaaaaaa");
        storages.push(store.binding_storage(&partition, size(1_000, 10)).await.unwrap());
    }
    let client = server::client(&address).await;
    let watching = server::client(&address).await;
    client.batch_execute("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let reading = tokio::spawn({
        let store = store.clone();
        async move {
            let filter = OperationFilter { keeps_text: true, ..OperationFilter::default() };
            store.operations(&company("slow"), &filter, None, 10).await
        }
    });
    wait_for_locks(&watching, 1).await;
    storages[0].apply(vec![put(b"k", b"v")]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    storages[1].apply(vec![put(b"k", b"v")]).await.unwrap();
    let sql = "SELECT count(*) FROM entries WHERE kind = 100";
    let mut count = 0;
    for _ in 0..300 {
        count = watching.query_one(sql, &[]).await.unwrap().get::<_, i64>(0);
        if count == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.batch_execute("COMMIT").await.unwrap();
    reading.await.unwrap().unwrap();
    assert_eq!(count, 2, "the other company's write waited for the reader");
});

// A statement that waits is waited for without end.
attack!(what_cannot_be_written_within_ten_seconds_is_given_up, address, {
    let store = lanes(&address, 1, 8).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "gate").await;
    let written = store.write_operation(Arc::new(innocent), Vec::new());
    let ended = tokio::time::timeout(Duration::from_secs(25), written).await;
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(ended.is_ok(), "it is neither written nor given up after 25 seconds");
});

// A row beside an operation overtakes the one that waits in another lane.
attack!(a_row_beside_an_operation_is_not_overwritten_by_an_earlier_one, address, {
    let store = lanes(&address, 4, 8).await;
    // Companies 1 and 2 have different lanes.
    for name in ["one", "two"] {
        done(&store, &[row(name, Table::Events, b"a", Some(b"0"))]).await;
    }
    let key = |text: &str| Change {
        table: Table::Bindings,
        key: text.as_bytes().to_vec(),
        expected: Expected::Anything,
        new: Some(b"old".to_vec()),
    };
    let made = op(&store, "one", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "two").await;
    let transacted =
        store.transact(&[key("host"), row("two", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(older) = transacted else { panic!() };
    let beside = TableWrite::new(Table::Bindings, b"host".to_vec(), Some(b"new".to_vec()));
    let newer = store.write_operation(Arc::new(made), vec![beside]);
    // It cannot follow the row that waits in another lane, so it is refused as a whole.
    assert!(matches!(newer.await, Err(StoreError::Corrupt { .. })));
    gate.batch_execute("COMMIT").await.unwrap();
    older.await.unwrap();
    let found = store.get(Table::Bindings, b"host").await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&found), "old");
});

// The host's own rows: what was built on a lost write is kept.
attack!(a_row_of_the_host_that_was_built_on_a_lost_one_is_not_kept, address, {
    let (store, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    let change = |key: &[u8], expected, new: &[u8]| Change {
        table: Table::Host,
        key: key.to_vec(),
        expected,
        new: Some(new.to_vec()),
    };
    done(&store, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    second.operation_range(&company("acme")).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let lost = store
        .transact(&[
            change(b"first", Expected::Absent, b"1"),
            row("acme", Table::Events, b"a", Some(b"2")),
        ])
        .await
        .unwrap();
    let built =
        store.transact(&[change(b"first", Expected::Value(b"1".to_vec()), b"2")]).await.unwrap();
    gate.batch_execute("COMMIT").await.unwrap();
    let (Transacted::Done(lost), Transacted::Done(built)) = (lost, built) else { panic!() };
    assert!(lost.await.is_err());
    let built = built.await;
    assert!(built.is_err(), "its condition was a value that never was in the database");
    assert_eq!(store.get(Table::Host, b"first").await.unwrap(), None);
});

// One connection for reading.
attack!(one_connection_for_reading_is_enough, address, {
    let store = lanes(&address, 1, 1).await;
    done(&store, &[row("acme", Table::Events, b"a", Some(b"0"))]).await;
    let mut tasks = Vec::new();
    let steps = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    for task in 0..8 {
        let (store, steps) = (store.clone(), Arc::clone(&steps));
        tasks.push(tokio::spawn(async move {
            for n in 0..50 {
                steps.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let change = row("acme", Table::Events, &[task, n], Some(b"1"));
                drop(store.transact(&[change]).await.unwrap());
                let key = company_key(&company("acme"), b"a");
                store.get(Table::Events, &key).await.unwrap();
                let name = format!("new-{task}-{n}");
                next_sequence(&store, &company(&name)).await.unwrap();
            }
        }));
    }
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    let count = || steps.load(std::sync::atomic::Ordering::Relaxed);
    if tokio::time::timeout(Duration::from_secs(15), all).await.is_err() {
        let before = count();
        tokio::time::sleep(Duration::from_secs(5)).await;
        panic!("{before} of 400 steps were made in 15 seconds, and {} in 20", count());
    }
});

// An import's row of sums and an operation in one batch.
attack!(imported_sums_and_a_new_operation_in_one_batch_are_both_counted, address, {
    let (source, store) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    for _ in 0..5 {
        wrote(&source, "acme").await;
    }
    let prefix = company_key(&company("acme"), b"r");
    let page = source.scan(Table::Sums, &prefix, None, 10).await.unwrap();
    let made = op(&store, "bcme", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "gate").await;
    let rows: Vec<Change> = page
        .entries
        .into_iter()
        .map(|(key, value)| row("bcme", Table::Sums, &key[5..], Some(&value)))
        .collect();
    assert!(!rows.is_empty());
    drop(store.transact(&rows).await.unwrap());
    let written = store.write_operation(Arc::new(made), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    written.await.unwrap();
    assert_eq!(summed(&store, "bcme").await, 6);
});

// A moment between two microseconds.
attack!(until_a_moment_between_two_microseconds, address, {
    let store = lanes(&address, 1, 8).await;
    let mut made = op(&store, "acme", Outcome::Succeeded).await;
    made.started_at = jiff::Timestamp::from_nanosecond(1_000_000_300).unwrap();
    store.write_operation(Arc::new(made.clone()), Vec::new()).await.unwrap();
    let until = jiff::Timestamp::from_nanosecond(1_000_000_700).unwrap();
    let filter = OperationFilter { until: Some(until), ..OperationFilter::default() };
    assert!(filter.matches(&made));
    let found = store.operations(&company("acme"), &filter, None, 10).await.unwrap();
    assert_eq!(found.operations.len(), 1);
    let first = store.first_operation_at(&company("acme"), until).await.unwrap();
    assert_eq!(first, 2);
});

// A removed partition is seen until its commit.
attack!(a_removed_partition_is_gone_at_once, address, {
    let store = lanes(&address, 1, 8).await;
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    store
        .write_partition_state(partition, size(1_000, 10), b"state", vec![put(b"k", b"v")])
        .await
        .unwrap()
        .await
        .unwrap();
    let removed = store.remove_partition(partition).await.unwrap();
    let found = store.partition_state(partition).await.unwrap();
    removed.await.unwrap();
    assert_eq!(found, None);
});

// Trimming beside writes.
attack!(held_is_exact_after_trimming_beside_writes, address, {
    let store = lanes(&address, 1, 8).await;
    wrote(&store, "acme").await;
    let trimming = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..300 {
                store.trim_operations(&company("acme"), u64::MAX).await.unwrap();
            }
        }
    });
    let mut commits = Vec::new();
    while !trimming.is_finished() {
        let made = op(&store, "acme", Outcome::Succeeded).await;
        commits.push(store.write_operation(Arc::new(made), Vec::new()));
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    trimming.await.unwrap();
    for commit in commits {
        commit.await.unwrap();
    }
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
});

// Values that wait have no bound in bytes.
attack!(what_waits_is_bounded_in_bytes, address, {
    let store = lanes(&address, 1, 8).await;
    let storage =
        store.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1 << 40, 1 << 30)).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let mut taken = 0;
    let writing = async {
        for n in 0..24_u8 {
            let writes = (0..3).map(|m| put(&[n, m], &vec![n; 4 << 20])).collect();
            storage.apply(writes).await.unwrap();
            taken += 12;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(5), writing).await;
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(ended.is_err(), "{taken} MiB were taken while nothing was written");
});

// A commit that arrives after its connection broke.
attack!(a_commit_that_arrives_late_is_counted_once, address, {
    let (front, back) = address.split_once('@').unwrap();
    let (directory, database) = back.split_once('/').unwrap();
    let real = format!("{}/.s.PGSQL.5432", directory.replace("%2F", "/"));
    let ours = std::env::temp_dir().join(format!("memhost-proxy-{}", std::process::id()));
    std::fs::create_dir_all(&ours).unwrap();
    let socket = ours.join(".s.PGSQL.5432");
    let _ = std::fs::remove_file(&socket);
    let listener = tokio::net::UnixListener::bind(&socket).unwrap();
    let armed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let proxy = tokio::spawn(proxy(listener, real, Arc::clone(&armed)));
    let shown = ours.display().to_string().replace('/', "%2F");
    let store = lanes(&format!("{front}@{shown}/{database}"), 1, 8).await;
    wrote(&store, "acme").await;
    let made = op(&store, "acme", Outcome::Succeeded).await;
    armed.store(true, std::sync::atomic::Ordering::SeqCst);
    store.write_operation(Arc::new(made), Vec::new()).await.unwrap();
    assert!(!armed.load(std::sync::atomic::Ordering::SeqCst));
    let found = (summed(&store, "acme").await, store.verify().await.unwrap());
    proxy.abort();
    let _ = std::fs::remove_dir_all(&ours);
    assert_eq!(found, (2, vec![]));
});

/// Passes bytes on. When it is armed, it breaks the connection of the first `COMMIT`, which the
/// server gets half a second later.
async fn proxy(
    listener: tokio::net::UnixListener,
    real: String,
    armed: Arc<std::sync::atomic::AtomicBool>,
) {
    while let Ok((ours, _)) = listener.accept().await {
        let (real, armed) = (real.clone(), Arc::clone(&armed));
        tokio::spawn(async move {
            let theirs = tokio::net::UnixStream::connect(&real).await.unwrap();
            let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
            loop {
                tokio::select! {
                    ready = ours.readable() => {
                        ready.unwrap();
                        let Ok(count) = ours.try_read(&mut a) else { continue };
                        if count == 0 { return; }
                        let is_commit = a[..count].windows(7).any(|part| part == b"COMMIT\0");
                        if is_commit && armed.swap(false, std::sync::atomic::Ordering::SeqCst) {
                            drop(ours);
                            tokio::time::sleep(Duration::from_millis(500)).await;
                            send(&theirs, &a[..count]).await;
                            tokio::time::sleep(Duration::from_millis(500)).await;
                            return;
                        }
                        send(&theirs, &a[..count]).await;
                    }
                    ready = theirs.readable() => {
                        ready.unwrap();
                        let Ok(count) = theirs.try_read(&mut b) else { continue };
                        if count == 0 { return; }
                        send(&ours, &b[..count]).await;
                    }
                }
            }
        });
    }
}

async fn send(stream: &tokio::net::UnixStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        if stream.writable().await.is_err() {
            return;
        }
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

// A call that is no write finds that another one is the home: the lane has not noticed.
attack!(sums_that_another_home_has_changed_are_read_again, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    wrote(&first, "acme").await;
    second.operation_range(&company("acme")).await.unwrap();
    wrote(&second, "acme").await;
    wrote(&second, "acme").await;
    let open = op(&second, "acme", Outcome::InProgress).await;
    second.write_operation(Arc::new(open), Vec::new()).await.unwrap();
    assert!(first.trim_operations(&company("acme"), 0).await.is_err());
    // It takes the company over again, and writes that the last one was cut short.
    assert_eq!(first.operation_range(&company("acme")).await.unwrap(), Some((1, 4)));
    assert_eq!(summed(&first, "acme").await, 4);
});

attack!(a_row_that_the_database_refuses_takes_the_writes_of_no_other, address, {
    let store = lanes(&address, 1, 8).await;
    done(&store, &[row("hostile", Table::Events, b"a", Some(b"1"))]).await;
    let innocent = op(&store, "innocent", Outcome::Succeeded).await;
    let client = server::client(&address).await;
    let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                   $$ BEGIN RAISE EXCEPTION 'not this one'; END $$; \
                   CREATE TRIGGER refuse BEFORE INSERT ON entries FOR EACH ROW \
                   WHEN (NEW.key = 'poison') EXECUTE FUNCTION refuse()";
    client.batch_execute(trigger).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let hostile = row("hostile", Table::Events, b"poison", Some(b"1"));
    let Transacted::Done(hostile) = store.transact(&[hostile]).await.unwrap() else { panic!() };
    let innocent = store.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    let refused = hostile.await;
    assert!(matches!(refused, Err(StoreError::Refused { .. })), "{refused:?}");
    innocent.await.unwrap();
});

attack!(a_number_that_was_given_before_the_company_was_lost_is_not_given_again, address, {
    let (first, second) = (lanes(&address, 1, 8).await, lanes(&address, 1, 8).await);
    let given = op(&first, "acme", Outcome::Succeeded).await.id.sequence();
    second.operation_range(&company("acme")).await.unwrap();
    let lost = first.transact(&[row("acme", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(lost) = lost else { panic!() };
    assert!(lost.await.is_err());
    assert_eq!(next_sequence(&first, &company("acme")).await.unwrap(), given + 1);
});
