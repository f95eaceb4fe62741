//! The embedded store against plain models.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::SledOptions;
use super::store::SledStore;
use crate::suite::{Blocking, all, block_on, company, make, operation, put, row, size};
use crate::{
    Change, Expected, Maintenance, OperationLog, Partitions, StoreError, Table, Tables, Transacted,
};
use memhost_ports::{StorageEntry, StorageSize, StorageWrite};
use memhost_types::{Operation, OperationFilter, OperationId, OperationKind, Outcome};

mod compaction;
mod durable;
mod erasing;
mod held;
mod keeping;
mod named;
mod pages;
mod verify;

fn open(path: &Path) -> SledStore {
    SledStore::open(path, SledOptions::default()).unwrap()
}

/// Waits until nothing is known in memory only.
fn indexed(store: &SledStore) {
    for _ in 0..30_000 {
        if store.companies.lock().values().all(|state| state.open.is_empty()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("operations are not indexed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn filters_answer_as_a_plain_scan_does(
        plan in prop::collection::vec(
            (
                0..2_usize, prop::option::of(0..3_usize), 0..3_usize, 0..2_usize,
                prop::collection::vec(0..4_usize, 0..3),
            ),
            1..80,
        ),
        settle in 0..80_usize,
        restart: bool,
        page in 1..7_usize,
        since in 0..90_i64,
        length in 0..90_i64,
    ) {
        let directory = TempDir::new().unwrap();
        let mut store = open(directory.path());
        let kinds = [OperationKind::Query, OperationKind::List, OperationKind::Get];
        let outcomes = [Outcome::Succeeded, Outcome::Failed];
        let mut model: BTreeMap<&str, Vec<Operation>> = BTreeMap::new();
        for (number, (who, agent, kind, outcome, records)) in plan.iter().enumerate() {
            let name = ["acme", "acme2"][*who];
            let agent = agent.map(|agent| ["ada", "bob", "ad"][agent]);
            let mut made = operation(&store, name, agent, kinds[*kind], outcomes[*outcome]);
            made.provider_key = (*outcome == 0).then(|| "p".parse().unwrap());
            let mut handles = records.iter().map(
                |record| named::handle(["p", "q"][record / 2], ["a", "b"][record % 2])
            );
            made.cited = handles.next().into_iter().collect();
            made.records = handles.collect();
            block_on(store.write_operation(Arc::new(made.clone()), Vec::new())).unwrap();
            model.entry(name).or_default().push(made);
            if number == settle {
                indexed(&store);
                if restart {
                    drop(store);
                    store = open(directory.path());
                }
            }
        }
        let at = |second: i64| Some(jiff::Timestamp::from_second(second).unwrap());
        let filters = [
            OperationFilter::default(),
            OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() },
            OperationFilter {
                kind: Some(OperationKind::List), outcome: Some(Outcome::Failed),
                ..OperationFilter::default()
            },
            OperationFilter {
                binding_key: Some("default".parse().unwrap()), since: at(since),
                until: at(since + length), ..OperationFilter::default()
            },
            OperationFilter { since: at(since), ..OperationFilter::default() },
            OperationFilter {
                provider_key: Some("p".parse().unwrap()), ..OperationFilter::default()
            },
            OperationFilter {
                provider_record_id: Some("a".parse().unwrap()), ..OperationFilter::default()
            },
            OperationFilter { since: at(since), ..named::naming("q", "b") },
            OperationFilter {
                agent_id: Some("ada".to_owned()), kind: Some(OperationKind::List),
                ..named::naming("p", "a")
            },
        ];
        for name in ["acme", "acme2"] {
            for filter in &filters {
                let expected: Vec<u64> = model.get(name).into_iter().flatten().rev()
                    .filter(|operation| filter.matches(operation))
                    .map(|operation| operation.id.sequence())
                    .collect();
                prop_assert_eq!(all(&store, name, filter, page), expected, "{} {:?}", name, filter);
            }
        }
        prop_assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn a_facet_over_several_blocks_is_found_without_its_neighbours() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let mut last = None;
    for number in 0..9_000 {
        let agent = if number % 1_000 == 0 { "rare" } else { "often" };
        let made = operation(&store, "acme", Some(agent), OperationKind::Query, Outcome::Succeeded);
        last = Some(store.write_operation(Arc::new(made.clone()), Vec::new()));
    }
    block_on(last.unwrap()).unwrap();
    let rare = OperationFilter { agent_id: Some("rare".to_owned()), ..OperationFilter::default() };
    let expected: Vec<u64> = (0..9).rev().map(|thousand| thousand * 1_000 + 1).collect();
    assert_eq!(all(&store, "acme", &rare, 4), expected);
    indexed(&store);
    assert_eq!(all(&store, "acme", &rare, 4), expected);
    drop(store);
    let store = open(directory.path());
    assert_eq!(all(&store, "acme", &rare, 4), expected);
    assert!(block_on(store.verify()).unwrap().is_empty());
}

#[test]
fn a_queue_that_the_disk_does_not_empty_is_told_of_and_is_one_companys() {
    let directory = TempDir::new().unwrap();
    let options = SledOptions { max_batch: 1, ..SledOptions::default() };
    let store = SledStore::open(directory.path(), options).unwrap();
    let mut last = None;
    for _ in 0..1_000 {
        let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
        last = Some(store.write_operation(Arc::new(made), Vec::new()));
    }
    assert!(store.is_behind(&company("acme")) && !store.is_behind(&company("other")));
    block_on(last.unwrap()).unwrap();
    indexed(&store);
    assert!(!store.is_behind(&company("acme")));
}

#[test]
fn what_was_at_work_is_interrupted_after_a_crash() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let intent = operation(&store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    let mut done = operation(&store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(store.write_operation(Arc::new(intent.clone()), Vec::new())).unwrap();
    block_on(store.write_operation(Arc::new(done.clone()), Vec::new())).unwrap();
    done.outcome = Outcome::Succeeded;
    block_on(store.write_operation(Arc::new(done.clone()), Vec::new())).unwrap();
    drop(store);
    let store = open(directory.path());
    let found = block_on(store.operation(&company("acme"), intent.id)).unwrap().unwrap();
    assert_eq!(found.outcome, Outcome::Interrupted);
    assert!(found.error.unwrap().message.contains("not known"));
    assert_eq!(
        block_on(store.operation(&company("acme"), done.id)).unwrap().unwrap().outcome,
        Outcome::Succeeded
    );
    let filter =
        OperationFilter { outcome: Some(Outcome::Interrupted), ..OperationFilter::default() };
    assert_eq!(all(&store, "acme", &filter, 10), [intent.id.sequence()]);
    // The next number is behind all that were used.
    assert!(store.take_sequence(&company("acme")).unwrap() > done.id.sequence());
}

#[test]
fn a_damaged_index_is_reported() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
    block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
    indexed(&store);
    let key = super::keys::chunk(&super::keys::facet(&company("acme"), b'a', "ada"), 0);
    store.trees.index.remove(&key).unwrap();
    let findings = block_on(store.verify()).unwrap();
    assert!(findings.len() == 1 && findings[0].contains("missing"), "{findings:?}");
    store.trees.index.insert(&key, &[9, 9, 9]).unwrap();
    assert!(block_on(store.verify()).unwrap()[0].contains("damaged"));
}

#[test]
fn a_second_opening_is_refused() {
    let directory = TempDir::new().unwrap();
    let first = open(directory.path());
    let error = SledStore::open(directory.path(), SledOptions::default()).err().unwrap();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(first);
    open(directory.path());
}

#[test]
fn the_size_of_a_partition_lasts() {
    let directory = TempDir::new().unwrap();
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    let storage = |store: &SledStore| Blocking::open(store, partition, size(1_000, 100));
    let store = open(directory.path());
    let writing = storage(&store);
    writing.apply(vec![put(b"k", b"v"), put(b"l", b"w")]).unwrap();
    assert!(writing.compare_and_swap(b"l", Some(b"w"), Some(b"longer")).unwrap());
    drop((writing, store));
    assert_eq!(storage(&open(directory.path())).used(), size(2 + 7, 2));
}
