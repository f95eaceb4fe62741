//! Finding operations by the records that they name.

use super::super::keys;
use super::*;
use memhost_types::RecordHandle;

pub(super) fn handle(provider: &str, id: &str) -> RecordHandle {
    RecordHandle {
        provider_key: provider.parse().unwrap(),
        provider_record_id: id.parse().unwrap(),
    }
}

pub(super) fn naming(provider: &str, id: &str) -> OperationFilter {
    let RecordHandle { provider_key, provider_record_id } = handle(provider, id);
    OperationFilter {
        provider_key: Some(provider_key),
        provider_record_id: Some(provider_record_id),
        ..OperationFilter::default()
    }
}

/// Writes an operation that returned these records of `p`.
fn returned(store: &SledStore, ids: &[&str]) -> crate::Commit {
    let mut made = operation(store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    made.records = ids.iter().map(|id| handle("p", id)).collect();
    store.write_operation(Arc::new(made), Vec::new())
}

/// Writes 9,000 operations: each has ten records, and every thousandth the rare one.
fn many(store: &SledStore) {
    let mut last = None;
    for number in 0..9_000 {
        let mut ids: Vec<String> =
            (0..9).map(|n| format!("record {}", (number * 9 + n) % 5_000)).collect();
        ids.push(if number % 1_000 == 0 { "rare".to_owned() } else { "often".to_owned() });
        last = Some(returned(store, &ids.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    block_on(last.unwrap()).unwrap();
}

fn rare() -> Vec<u64> {
    (0..9).rev().map(|thousand| thousand * 1_000 + 1).collect()
}

fn keys_below(store: &SledStore, prefix: &[u8]) -> usize {
    store.trees.index.scan_prefix(prefix).count()
}

/// Waits until the whole blocks are sorted, which is done a little after their operations are
/// indexed.
fn sorted(store: &SledStore, blocks: std::ops::Range<u64>) {
    indexed(store);
    for _ in 0..3_000 {
        if blocks
            .clone()
            .all(|block| keys_below(store, &keys::named_rows(&company("acme"), block)) == 0)
        {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("blocks are not sorted");
}

fn nothing() -> Vec<String> {
    Vec::new()
}

#[test]
fn operations_are_found_by_a_record_over_several_blocks() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    many(&store);
    // Before and after they are indexed, and after the blocks are sorted.
    assert_eq!(all(&store, "acme", &naming("p", "rare"), 4), rare());
    indexed(&store);
    assert_eq!(all(&store, "acme", &naming("p", "rare"), 4), rare());
    sorted(&store, 0..2);
    assert_eq!(all(&store, "acme", &naming("p", "rare"), 4), rare());
    assert_eq!(all(&store, "acme", &naming("p", "often"), 1_000).len(), 8_991);
    assert_eq!(all(&store, "acme", &naming("p", "record 17"), 7).len(), 17);
    assert!(all(&store, "acme", &naming("q", "rare"), 4).is_empty(), "another provider's");
    assert!(all(&store, "acm", &naming("p", "rare"), 4).is_empty(), "another company's");
    for block in 0..2 {
        let parts = keys_below(&store, &keys::named_in(&company("acme"), block));
        assert!((1..=64).contains(&parts), "a block of 4,096 operations has {parts} keys");
    }
    drop(store);
    let store = open(directory.path());
    assert_eq!(all(&store, "acme", &naming("p", "rare"), 4), rare());
    assert_eq!(block_on(store.verify()).unwrap(), nothing());
    // With their operations the entries go.
    block_on(store.trim_operations(&company("acme"), 8_500)).unwrap();
    assert_eq!(all(&store, "acme", &naming("p", "rare"), 4), Vec::<u64>::new());
    assert_eq!(all(&store, "acme", &naming("p", "often"), 1_000).len(), 501);
    assert_eq!(keys_below(&store, &keys::named_in(&company("acme"), 0)), 0);
    assert_eq!(keys_below(&store, &keys::named_in(&company("acme"), 1)), 0);
    assert_eq!(block_on(store.verify()).unwrap(), nothing());
}

#[test]
fn ids_of_one_checksum_are_two_records() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    assert_eq!(crc32fast::hash(b"plumless"), crc32fast::hash(b"buckeroo"));
    for ids in [["plumless", "x"].as_slice(), &["buckeroo"], &["plumless", "buckeroo"]] {
        block_on(returned(&store, ids)).unwrap();
    }
    for _ in 0..2 {
        assert_eq!(all(&store, "acme", &naming("p", "plumless"), 1), [3, 1]);
        assert_eq!(all(&store, "acme", &naming("p", "buckeroo"), 1), [3, 2]);
        indexed(&store);
    }
}

#[test]
fn what_is_indexed_again_is_neither_lost_nor_there_twice() {
    let directory = TempDir::new().unwrap();
    let mut store = open(directory.path());
    // A later write of the first operation of a row continues the row.
    block_on(returned(&store, &["a"])).unwrap();
    block_on(returned(&store, &["b"])).unwrap();
    indexed(&store);
    let filter = OperationFilter::default();
    let first = block_on(store.operations(&company("acme"), &filter, Some(2), 1))
        .unwrap()
        .operations
        .remove(0);
    block_on(store.write_operation(Arc::new(first.clone()), Vec::new())).unwrap();
    // And so it does in a block that is sorted already.
    many(&store);
    sorted(&store, 0..2);
    let changed = Operation { records: vec![handle("p", "a"), handle("p", "late")], ..first };
    block_on(store.write_operation(Arc::new(changed), Vec::new())).unwrap();
    let found =
        |store: &SledStore| ["a", "b", "late"].map(|id| all(store, "acme", &naming("p", id), 4));
    for _ in 0..2_000 {
        if found(&store) == [vec![1], vec![2], vec![1]] {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(found(&store), [vec![1], vec![2], vec![1]]);
    sorted(&store, 0..2);
    assert_eq!(block_on(store.verify()).unwrap(), nothing());
    // After a crash before the watermark was written, and with an index of before this one had
    // records.
    for prefix in [b"acme\0-".as_slice(), b"acme\0n"] {
        for key in store.trees.index.scan_prefix(prefix).keys() {
            store.trees.index.remove(key.unwrap()).unwrap();
        }
        store.trees.index.remove(keys::watermark(&company("acme"))).unwrap();
        store.trees.index.insert(b"acme\0w", &9_002_u64.to_be_bytes()).unwrap();
        drop(store);
        store = open(directory.path());
        assert_eq!(found(&store), [vec![1], vec![2], vec![1]]);
        assert_eq!(all(&store, "acme", &naming("p", "rare"), 4).len(), 9);
        assert_eq!(keys_below(&store, &keys::named_rows(&company("acme"), 0)), 0);
        assert_eq!(block_on(store.verify()).unwrap(), nothing());
    }
}

#[test]
fn numbers_that_are_far_apart_are_no_work() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let mut made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    made.records = vec![handle("p", "a")];
    block_on(store.write_operation(Arc::new(made.clone()), Vec::new())).unwrap();
    let far = OperationId::new(5_000, OperationId::MAX_SEQUENCE, 7);
    block_on(store.import_operation(Operation { id: far, ..made })).unwrap();
    for _ in 0..2 {
        assert_eq!(all(&store, "acme", &naming("p", "a"), 1), [OperationId::MAX_SEQUENCE, 1]);
        indexed(&store);
    }
    assert_eq!(block_on(store.verify()).unwrap(), nothing());
}

#[test]
fn damage_is_reported() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    block_on(returned(&store, &["a"])).unwrap();
    indexed(&store);
    let key = keys::named_row(&company("acme"), 0, 1);
    let finding = || {
        let findings = block_on(store.verify()).unwrap();
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings[0].clone()
    };
    let row = store.trees.index.remove(&key).unwrap().unwrap();
    assert!(finding().contains("does not fit the log"));
    assert!(all(&store, "acme", &naming("p", "a"), 1).is_empty());
    store.trees.index.insert(keys::named_part(&company("acme"), 9, 0), row).unwrap();
    assert_eq!(
        block_on(store.verify()).unwrap().len(),
        2,
        "missing in one block, and too much in another"
    );
    store.trees.index.remove(keys::named_part(&company("acme"), 9, 0)).unwrap();
    store.trees.index.insert(&key, &[1, 2, 3]).unwrap();
    assert!(finding().contains("damaged"));
    let error =
        block_on(store.operations(&company("acme"), &naming("p", "a"), None, 1)).unwrap_err();
    assert!(error.to_string().contains("verify"), "{error}");
}
