//! What lasts: backups, stores of versions before, sums, and what is thrown away.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use jiff::civil::date;

use super::*;
use crate::{TableWrite, company_key};
use memhost_types::{Rollup, RollupKey};

fn written(store: &SledStore, name: &str, agent: &str) -> Operation {
    let made = operation(store, name, Some(agent), OperationKind::Query, Outcome::Succeeded);
    block_on(store.write_operation(Arc::new(made.clone()), Vec::new())).unwrap();
    made
}

fn sums(store: &SledStore, name: &str) -> Vec<(RollupKey, Rollup)> {
    block_on(store.rollups(&company(name), date(1970, 1, 1), date(1970, 1, 2))).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    hex.as_bytes().chunks(2).map(digits).collect()
}

#[test]
fn a_stored_store_of_this_format_opens_and_a_newer_one_does_not() {
    let directory = TempDir::new().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/frozen/format-1.jsonl");
    let config = sled::Config::new().path(directory.path().join("store"));
    let db = super::super::disk::open_db(&config).unwrap();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let part = |name: &str| line[name].as_str().unwrap();
        db.open_tree(part("tree"))
            .unwrap()
            .insert(bytes(part("key")), bytes(part("value")))
            .unwrap();
    }
    db.flush().unwrap();
    drop(db);
    std::fs::write(directory.path().join("FORMAT"), "memhost-data 1\n").unwrap();
    std::fs::write(directory.path().join("LOCK"), "").unwrap();
    for _ in 0..2 {
        let store = open(directory.path());
        assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
        let captures =
            OperationFilter { kind: Some(OperationKind::Capture), ..OperationFilter::default() };
        assert_eq!(all(&store, "acme", &captures, 7).len(), 20);
        let agents =
            OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() };
        assert_eq!(all(&store, "acme", &agents, 7).len(), 20);
        let days =
            block_on(store.rollups(&company("acme"), date(2026, 1, 1), date(2030, 1, 1))).unwrap();
        assert_eq!(days.iter().map(|(_, row)| row.counts.operations).sum::<u64>(), 24);
        assert_eq!(
            block_on(store.scan(Table::Bindings, b"acme\0", None, 10)).unwrap().entries.len(),
            2
        );
        drop(store);
        assert_eq!(
            std::fs::read_to_string(directory.path().join("FORMAT")).unwrap(),
            "memhost-data 1\n"
        );
    }
    std::fs::write(directory.path().join("FORMAT"), "memhost-data 2\n").unwrap();
    let error = SledStore::open(directory.path(), SledOptions::default()).err().unwrap();
    assert!(matches!(error, StoreError::TooNew { found: 2, known: 1, .. }), "{error}");
}

#[test]
fn every_operation_is_summed_once_whether_or_not_it_is_indexed_again() {
    let directory = TempDir::new().unwrap();
    for round in 1..=3_u64 {
        let store = open(directory.path());
        (0..10).for_each(|_| drop(written(&store, "acme", "ada")));
        // Before the indexer took them, and after.
        for _ in 0..2 {
            let rows = sums(&store, "acme");
            assert_eq!(rows.len(), 1, "{rows:?}");
            let (key, row) = &rows[0];
            assert_eq!(
                (key.day, row.counts.queries, row.counts.empty_queries),
                (date(1970, 1, 1), 10 * round, 10 * round)
            );
            indexed(&store);
        }
        // As if it had crashed before the watermark was written.
        store
            .trees
            .index
            .insert(super::super::keys::watermark(&company("acme")), &0_u64.to_be_bytes())
            .unwrap();
    }
}

/// So many that copying them takes longer than a few writes.
const KEYS: u32 = 20_000;

#[test]
fn a_backup_holds_what_was_stored_at_its_end_although_writing_went_on() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(&directory.path().join("data")));
    let change = |n: u32, value: &[u8]| Change {
        table: Table::Bindings,
        key: company_key(&company("acme"), &n.to_be_bytes()),
        expected: Expected::Anything,
        new: (!n.is_multiple_of(3) || value == b"old").then(|| value.to_vec()),
    };
    for n in 0..KEYS {
        drop(block_on(store.transact(&[change(n, b"old")])).unwrap());
    }
    let storage = Blocking::open(&*store, b"acme\0aaaaaaaaaaaaaaaa", size(1 << 20, 1_000));
    storage.apply(vec![put(b"k", b"old")]).unwrap();
    let (is_over, steps) = (AtomicBool::new(false), AtomicU32::new(0));
    let file = directory.path().join("backup");
    let (seen, at_the_end) = std::sync::mpsc::channel();
    let report = std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..KEYS).cycle() {
                drop(block_on(store.transact(&[change(n, b"new")])).unwrap());
                storage.apply(vec![put(b"k", &n.to_be_bytes())]).unwrap();
                // Each is waited for, and whoever waits writes nothing.
                if n % 64 == 0 {
                    written(&store, "acme", "ada");
                }
                steps.fetch_add(1, Ordering::Relaxed);
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        while steps.load(Ordering::Relaxed) < 3 {
            std::thread::yield_now();
        }
        let now = Arc::clone(&store);
        let at_the_end = Box::new(move || seen.send(everything(&now)).unwrap());
        let report = block_on(store.backup(&file, at_the_end)).unwrap();
        is_over.store(true, Ordering::Relaxed);
        report
    });
    assert!(report.keys > u64::from(KEYS) / 2 && report.copied_again > 0, "{report:?}");
    let restored = directory.path().join("restored");
    SledStore::restore(&file, &restored).unwrap();
    let store = open(&restored);
    assert_eq!(everything(&store), at_the_end.recv().unwrap());
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    // A second one does not go over it, and a damaged one is refused before anything is written.
    assert!(SledStore::restore(&file, &restored).is_err());
    let mut damaged = std::fs::read(&file).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    let error = SledStore::restore(&file, &directory.path().join("third")).unwrap_err().to_string();
    assert!(
        error.contains("not a whole backup") && !directory.path().join("third").exists(),
        "{error}"
    );
}

#[test]
fn two_backups_at_once_are_both_whole() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(&directory.path().join("data")));
    let change = |n: u32, value: u32| Change {
        table: Table::Bindings,
        key: company_key(&company("acme"), &n.to_be_bytes()),
        expected: Expected::Anything,
        new: Some(value.to_be_bytes().to_vec()),
    };
    for n in 0..KEYS {
        drop(block_on(store.transact(&[change(n, 0)])).unwrap());
    }
    let is_over = AtomicBool::new(false);
    let backup = |name: &str| {
        let (seen, at_the_end) = std::sync::mpsc::channel();
        let now = Arc::clone(&store);
        let file = directory.path().join(name);
        block_on(store.backup(&file, Box::new(move || seen.send(everything(&now)).unwrap())))
            .unwrap();
        at_the_end.recv().unwrap()
    };
    let ends = std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 1_u32.. {
                drop(
                    block_on(store.transact(&[change(step.wrapping_mul(7_919) % KEYS, step)]))
                        .unwrap(),
                );
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let two = [scope.spawn(|| backup("a")), scope.spawn(|| backup("b"))];
        let ends = two.map(|one| one.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        ends
    });
    for (name, end) in ["a", "b"].iter().zip(ends) {
        let restored = directory.path().join(format!("restored-{name}"));
        SledStore::restore(&directory.path().join(name), &restored).unwrap();
        assert!(everything(&open(&restored)) == end, "{name}");
    }
}

fn everything(store: &SledStore) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let entries = |(name, tree): (&'static str, &super::super::tree::Tree)| {
        let entry = move |entry: sled::Result<(sled::IVec, sled::IVec)>| {
            let (key, value) = entry.unwrap();
            (name.to_owned(), key.to_vec(), value.to_vec())
        };
        tree.iter().map(entry).collect::<Vec<_>>()
    };
    // Sums follow from the operations, a little later.
    store.trees.kept().filter(|(name, _)| *name != Table::Sums.name()).flat_map(entries).collect()
}

#[test]
fn a_compacted_store_holds_the_same_in_less() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let large = vec![7; 4_000];
    let storage = Blocking::open(&store, b"acme\0aaaaaaaaaaaaaaaa", size(1 << 30, 1_000_000));
    for n in 0..2_000_u32 {
        storage.apply(vec![put(&n.to_be_bytes(), &large)]).unwrap();
    }
    for n in 0..1_990_u32 {
        storage.apply(vec![StorageWrite::Delete(n.to_be_bytes().to_vec())]).unwrap();
    }
    written(&store, "acme", "ada");
    indexed(&store);
    let before = everything(&store);
    drop((storage, store));
    let (was, is) = SledStore::compact(directory.path()).unwrap();
    assert!(is < was, "{was} to {is}");
    let store = open(directory.path());
    assert_eq!(everything(&store), before);
    assert_eq!(all(&store, "acme", &OperationFilter::default(), 10), [1]);
    drop(store);
    // Cut off between its two steps.
    std::fs::rename(directory.path().join("store"), directory.path().join("store.before")).unwrap();
    assert_eq!(everything(&open(directory.path())), before);
}

#[test]
fn old_operations_go_with_their_index_and_the_numbers_go_on() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let mut last = None;
    for number in 0..9_000 {
        let agent = if number % 2 == 0 { "ada" } else { "bob" };
        let made = operation(&store, "acme", Some(agent), OperationKind::Query, Outcome::Succeeded);
        last = Some(store.write_operation(Arc::new(made), Vec::new()));
    }
    block_on(last.unwrap()).unwrap();
    indexed(&store);
    written(&store, "acme2", "ada");
    assert_eq!(block_on(store.trim_operations(&company("acme"), 8_990)).unwrap(), 8_989);
    let ada = OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() };
    assert_eq!(all(&store, "acme", &ada, 3), [8_999, 8_997, 8_995, 8_993, 8_991]);
    assert_eq!(block_on(store.operation_range(&company("acme"))).unwrap(), Some((8_990, 9_000)));
    assert_eq!(
        sums(&store, "acme").iter().map(|(_, row)| row.counts.operations).sum::<u64>(),
        9_000
    );
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    // Never the newest one.
    indexed(&store);
    block_on(store.trim_operations(&company("acme"), u64::MAX)).unwrap();
    drop(store);
    let store = open(directory.path());
    assert_eq!(store.take_sequence(&company("acme")).unwrap(), 9_001);
    assert_eq!(all(&store, "acme2", &ada, 3), [1]);
}

#[test]
fn an_erased_company_leaves_nothing_and_its_namesakes_stay() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for name in ["acme", "acme2", "acm"] {
        written(&store, name, "ada");
        let key = company_key(&company(name), b"x");
        let change = Change {
            table: Table::Secrets,
            key,
            expected: Expected::Absent,
            new: Some(b"1".to_vec()),
        };
        drop(block_on(store.transact(&[change])).unwrap());
        let partition = company_key(&company(name), b"aaaaaaaaaaaaaaaa");
        let commit = block_on(store.write_partition_state(
            &partition,
            size(1_000, 10),
            b"state",
            vec![put(b"k", b"v")],
        ));
        block_on(commit.unwrap()).unwrap();
    }
    indexed(&store);
    assert!(block_on(store.erase_company(&company("acme"))).unwrap() >= 6);
    let left = |tree: &super::super::tree::Tree| {
        tree.iter().keys().filter(|key| find(key.as_ref().unwrap(), b"acme\0")).count()
    };
    assert_eq!(
        store.trees.kept().map(|(_, tree)| left(tree)).sum::<usize>() + left(&store.trees.index),
        0
    );
    let rest: Vec<String> =
        block_on(store.companies()).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(rest, ["acm", "acme2"]);
    assert_eq!(all(&store, "acme2", &OperationFilter::default(), 3), [1]);
    assert_eq!(Blocking::open(&store, b"acme2\0aaaaaaaaaaaaaaaa", size(9, 9)).used(), size(2, 1));
}

fn find(key: &[u8], part: &[u8]) -> bool {
    key.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_row_of_a_record_is_read_as_it_was_written_last() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let (acme, key) = (company("acme"), b"acme\0a row".as_slice());
    let read = || block_on(store.get(Table::Records, key)).unwrap();
    let put = |new: Option<&[u8]>| {
        let new = new.map(<[u8]>::to_vec);
        let change =
            Change { table: Table::Records, key: key.to_vec(), expected: Expected::Anything, new };
        drop(block_on(store.transact(&[change])).unwrap());
    };
    assert_eq!(read(), None);
    put(Some(b"1"));
    assert_eq!(read().as_deref(), Some(b"1".as_slice()));
    let made = operation(&store, "acme", None, OperationKind::Capture, Outcome::Succeeded);
    let beside = vec![TableWrite::new(Table::Records, key.to_vec(), Some(b"2".to_vec()))];
    block_on(store.write_operation(Arc::new(made), beside)).unwrap();
    assert_eq!(read().as_deref(), Some(b"2".as_slice()));
    put(None);
    assert_eq!(read(), None);
    put(Some(b"3"));
    assert_eq!(read().as_deref(), Some(b"3".as_slice()));
    block_on(store.close_company(&acme)).unwrap();
    block_on(store.erase_company(&acme)).unwrap();
    assert_eq!(read(), None);
}
