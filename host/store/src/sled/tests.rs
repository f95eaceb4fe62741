//! The embedded store against plain models.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::{SledOptions, SledStore};
use crate::{
    Change, Expected, Maintenance, OperationLog, Partitions, StoreError, Table, Tables, Transacted,
};
use memhost_ports::{StorageEntry, StorageError, StorageSize, StorageWrite};
use memhost_types::{
    CompanyId, Operation, OperationFilter, OperationId, OperationKind, Outcome, Scope,
};

mod compaction;
mod cost_order;
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

fn company(name: &str) -> CompanyId {
    name.parse().unwrap()
}

fn operation(
    store: &SledStore,
    company_name: &str,
    agent: Option<&str>,
    kind: OperationKind,
    outcome: Outcome,
) -> Operation {
    let company_id = company(company_name);
    let sequence = store.take_sequence(&company_id).unwrap();
    let started = i64::try_from(sequence).unwrap() * 1_000;
    Operation {
        id: OperationId::new(u64::try_from(started).unwrap(), sequence, 7),
        company_id: company_id.clone(),
        kind,
        outcome,
        principal: "operator".to_owned(),
        binding_key: Some("default".parse().unwrap()),
        binding_id: None,
        provider_key: None,
        provider_version: None,
        scope: Scope {
            agent_id: agent.map(|agent| agent.parse().unwrap()),
            ..Scope::company(company_id)
        },
        source: None,
        hook: None,
        started_at: jiff::Timestamp::from_millisecond(started).unwrap(),
        finished_at: None,
        latency_us: None,
        provider_us: None,
        visibility: memhost_types::Visibility::Company,
        record_count: 0,
        records: Vec::new(),
        jobs: Vec::new(),
        usage: Vec::new(),
        attribution_mode: None,
        cost_event_ids: Vec::new(),
        error: None,
        log: Vec::new(),
        cited: Vec::new(),
        payload: None,
        count: 1,
    }
}

fn all(store: &SledStore, name: &str, filter: &OperationFilter, page: usize) -> Vec<u64> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let next = block_on(store.operations(&company(name), filter, before, page)).unwrap();
        assert!(next.operations.len() <= page);
        found.extend(next.operations.iter().map(|operation| operation.id.sequence()));
        match next.next_before {
            Some(next) => before = Some(next),
            None => return found,
        }
    }
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

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
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
                    .filter(
                        |operation| filter.matches(operation)
                    ).map(|operation| operation.id.sequence()).collect();
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
fn an_unwritten_tail_is_seen_at_once_and_other_companies_never() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
    let commit = store.write_operation(Arc::new(made.clone()), Vec::new());
    assert_eq!(block_on(store.operation(&company("acme"), made.id)).unwrap().unwrap(), made);
    assert_eq!(all(&store, "acme", &OperationFilter::default(), 10), [1]);
    assert_eq!(block_on(store.operation(&company("acm"), made.id)).unwrap(), None);
    assert!(all(&store, "acm", &OperationFilter::default(), 10).is_empty());
    block_on(commit).unwrap();
    let forged = OperationId::new(1, made.id.sequence(), 8);
    assert_eq!(block_on(store.operation(&company("acme"), forged)).unwrap(), None);
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
fn a_transaction_happens_as_a_whole_or_not_at_all() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let change = |table, key: &[u8], expected, new: &[u8]| Change {
        table,
        key: key.to_vec(),
        expected,
        new: Some(new.to_vec()),
    };
    let both = [
        change(Table::Bindings, b"a", Expected::Absent, b"1"),
        change(Table::Targets, b"a", Expected::Anything, b"1"),
    ];
    let Transacted::Done(commit) = block_on(store.transact(&both)).unwrap() else { panic!() };
    block_on(commit).unwrap();
    let again = [
        change(Table::Targets, b"a", Expected::Value(b"1".to_vec()), b"2"),
        change(Table::Bindings, b"a", Expected::Absent, b"2"),
    ];
    assert!(matches!(block_on(store.transact(&again)).unwrap(), Transacted::Conflict(1)));
    assert_eq!(
        block_on(store.get(Table::Targets, b"a")).unwrap().as_deref(),
        Some(b"1".as_slice())
    );
    let page = block_on(store.scan(Table::Bindings, b"", None, 10)).unwrap();
    assert_eq!(page.entries, [(b"a".to_vec(), b"1".to_vec())]);
}

#[test]
fn a_page_of_a_table_ends_when_it_is_large() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for number in 0..12_u8 {
        let new = Some(vec![number; 1 << 20]);
        let row =
            Change { table: Table::Activity, key: vec![number], expected: Expected::Absent, new };
        let Transacted::Done(commit) = block_on(store.transact(&[row])).unwrap() else { panic!() };
        block_on(commit).unwrap();
    }
    let (mut from, mut counts) = (None, Vec::new());
    loop {
        let page = block_on(store.scan(Table::Activity, b"", from.as_deref(), 100)).unwrap();
        counts.push(page.entries.len());
        match page.next {
            Some(next) => from = Some(next),
            None => break,
        }
    }
    assert_eq!(counts, [4, 4, 4]);
    let mut page = crate::FoundPage::new(100);
    while !page.is_full() {
        page.add(Some(()), 1 << 20);
    }
    assert_eq!(page.last().0.len(), 4);
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

fn size(bytes: u64, keys: u64) -> StorageSize {
    StorageSize { bytes, keys }
}

fn put(key: &[u8], value: &[u8]) -> StorageWrite {
    StorageWrite::Put(StorageEntry { key: key.to_vec(), value: value.to_vec() })
}

#[test]
fn partitions_are_private_paged_and_limited() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let a = block_on(store.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 100))).unwrap();
    let b = block_on(store.binding_storage(b"acme\0bbbbbbbbbbbbbbbb", size(1_000, 100))).unwrap();
    a.apply(vec![put(b"k1", b"v1"), put(b"k2", b"v2"), put(b"l", b"w")]).unwrap();
    b.apply(vec![put(b"k1", b"other")]).unwrap();
    assert_eq!(a.get(b"k1").unwrap().as_deref(), Some(b"v1".as_slice()));
    let page = a.scan(b"k", None, 1).unwrap();
    assert_eq!((page.entries.len(), page.next.as_deref()), (1, Some(b"k2".as_slice())));
    let page = a.scan(b"k", page.next.as_deref(), 1).unwrap();
    assert_eq!((page.entries[0].value.as_slice(), page.next), (b"v2".as_slice(), None));
    assert_eq!(a.scan(b"", None, 0).unwrap().entries.len(), 3);
    let before = a.used();
    let over = a.apply(vec![put(b"x", b"small"), put(b"big", &[0; 2_000])]).unwrap_err();
    assert!(
        matches!(&over, StorageError::LimitExceeded(message) if message.contains("storageBytes")),
        "{over}"
    );
    assert_eq!((a.used(), a.get(b"x").unwrap()), (before, None));
    assert!(a.compare_and_swap(b"k1", Some(b"v1"), Some(b"v3")).unwrap());
    assert!(!a.compare_and_swap(b"k1", Some(b"v1"), None).unwrap());
    a.apply(vec![StorageWrite::Delete(b"k1".to_vec()), put(b"k2", b""), put(b"k2", b"xy")])
        .unwrap();
    assert_eq!(a.used(), size(4 + 2, 2));
    assert!(a.get(b"").is_err() && a.get(&[0; 1_025]).is_err());
    // The sum lasts, whichever way it was changed.
    assert!(a.compare_and_swap(b"l", Some(b"w"), Some(b"longer")).unwrap());
    assert_eq!(a.used(), size(4 + 2 + 5, 2));
    drop((a, b, store));
    let store = open(directory.path());
    let sum = |partition: &[u8]| {
        block_on(store.binding_storage(partition, size(1_000, 100))).unwrap().used()
    };
    assert_eq!(
        (sum(b"acme\0aaaaaaaaaaaaaaaa"), sum(b"acme\0bbbbbbbbbbbbbbbb")),
        (size(11, 2), size(7, 1))
    );
    // Keys are limited, too, and deleting makes room.
    let few = block_on(store.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 3))).unwrap();
    few.apply(vec![put(b"m", b"")]).unwrap();
    let over = few.compare_and_swap(b"n", None, Some(b"")).unwrap_err();
    assert!(over.to_string().contains("storageKeys"), "{over}");
    few.apply(vec![StorageWrite::Delete(b"m".to_vec()), put(b"n", b"")]).unwrap();
    assert_eq!(few.used().keys, 3);
}

#[test]
fn a_limit_holds_for_all_threads_together() {
    let directory = TempDir::new().unwrap();
    let store = Arc::new(open(directory.path()));
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|thread| {
                let handle = block_on(store.binding_storage(partition, size(500, 100))).unwrap();
                scope.spawn(move || {
                    (0..20_u8)
                        .filter(|n| handle.apply(vec![put(&[thread, *n], &[0; 8])]).is_ok())
                        .count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(written, 50);
    let handle = block_on(store.binding_storage(partition, size(500, 100))).unwrap();
    assert_eq!(handle.used(), size(500, 50));
    drop((handle, store));
    assert_eq!(
        block_on(open(directory.path()).binding_storage(partition, size(500, 100))).unwrap().used(),
        size(500, 50)
    );
}
