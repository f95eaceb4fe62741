//! What every implementation of [`Store`] does, as tests that each of them passes. What is
//! particular to the embedded store, such as a crash, is tested beside it.

use std::sync::Arc;

use jiff::civil::date;

use crate::{
    Change, DiskLevel, Expected, Store, StoreError, Table, TableWrite, Transacted, company_key,
    cost_number, cost_numbers, next_sequence,
};
use memhost_ports::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
use memhost_types::{
    CompanyId, Operation, OperationFilter, OperationId, OperationKind, Outcome, Principal, Scope,
};

/// The behaviours, as tests of one store. `$open` gets the quota of each company in bytes, 0 for
/// none, and a test; it makes an empty store and gives it to the test.
#[macro_export]
macro_rules! store_suite {
    ($open:path) => {
        $crate::store_suite!($open,
            a_transaction_happens_as_a_whole_or_not_at_all(0),
            a_page_of_a_table_ends_when_it_is_large(0),
            what_was_written_last_is_seen_at_once_and_other_companies_never(0),
            a_page_of_operations_goes_on_where_the_one_before_ended(0),
            what_is_written_beside_an_operation_is_there_with_it(0),
            an_event_that_is_written_again_keeps_its_number(0),
            old_operations_go_and_sums_and_numbers_stay(0),
            imported_operations_keep_their_numbers(0),
            a_number_that_was_not_used_is_given_again(0),
            partitions_are_private_paged_and_limited(0),
            a_limit_holds_for_all_threads_together(0),
            the_hosts_record_of_a_partition_is_written_with_it_or_not(0),
            a_company_at_its_quota_gets_no_new_rows_and_others_do(1_000),
            what_a_company_has_grows_and_shrinks_with_its_rows(0),
            an_erased_company_leaves_nothing_and_its_namesakes_stay(0),
            nothing_is_written_of_a_closed_company_but_what_begins_later(0),
        );
    };
    ($open:path, $($test:ident($quota:literal)),+ $(,)?) => {
        $(#[test] fn $test() { $open($quota, $crate::suite::$test); })+
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, SledOptions, SledStore};

    mod memory {
        store_suite!(super::in_memory);
    }

    mod sled {
        store_suite!(super::on_disk);
    }

    fn in_memory(quota: u64, test: fn(&dyn Store)) {
        test(&MemoryStore::with_quota(quota));
    }

    fn on_disk(quota: u64, test: fn(&dyn Store)) {
        let directory = tempfile::TempDir::new().unwrap();
        let options = SledOptions { company_bytes: quota, ..SledOptions::default() };
        test(&SledStore::open(directory.path(), options).unwrap());
    }
}

pub fn company(name: &str) -> CompanyId {
    name.parse().unwrap()
}

pub fn operation(
    store: &dyn Store,
    company_name: &str,
    agent: Option<&str>,
    kind: OperationKind,
    outcome: Outcome,
) -> Operation {
    let sequence = block_on(next_sequence(store, &company(company_name))).unwrap();
    numbered(company_name, agent, kind, outcome, sequence)
}

/// An operation with this number, which began so many seconds after 1970.
pub fn numbered(
    company_name: &str,
    agent: Option<&str>,
    kind: OperationKind,
    outcome: Outcome,
    sequence: u64,
) -> Operation {
    let company_id = company(company_name);
    let started = i64::try_from(sequence).unwrap() * 1_000;
    Operation {
        id: OperationId::new(u64::try_from(started).unwrap(), sequence, 7),
        company_id: company_id.clone(),
        kind,
        outcome,
        principal: Principal::Operator,
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
        outgoing: Vec::new(),
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

pub fn all(store: &dyn Store, name: &str, filter: &OperationFilter, page: usize) -> Vec<u64> {
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

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// The private storage of a binding, for tests that are not async.
#[derive(Clone)]
pub struct Blocking(Arc<dyn BindingStorage>);

impl Blocking {
    pub fn open(store: &dyn Store, partition: &[u8], limit: StorageSize) -> Self {
        Self(block_on(store.binding_storage(partition, limit)).unwrap())
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        block_on(self.0.get(key))
    }

    pub fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError> {
        block_on(self.0.scan(prefix, cursor, limit))
    }

    pub fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError> {
        block_on(self.0.apply(batch))
    }

    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        block_on(self.0.compare_and_swap(key, expected, new))
    }

    pub fn used(&self) -> StorageSize {
        self.0.used()
    }

    pub fn begin_call(&self) {
        self.0.begin_call();
    }
}

fn next(store: &dyn Store, company: &CompanyId) -> u64 {
    block_on(next_sequence(store, company)).unwrap()
}

pub fn size(bytes: u64, keys: u64) -> StorageSize {
    StorageSize { bytes, keys }
}

pub fn put(key: &[u8], value: &[u8]) -> StorageWrite {
    StorageWrite::Put(StorageEntry { key: key.to_vec(), value: value.to_vec() })
}

pub fn row(name: &str, table: Table, key: &[u8], value: Option<&[u8]>) -> Change {
    Change::always(table, company_key(&company(name), key), value.map(<[u8]>::to_vec))
}

pub fn make(store: &dyn Store, changes: &[Change]) -> Result<(), StoreError> {
    block_on(store.transact(changes)).map(drop)
}

pub fn a_transaction_happens_as_a_whole_or_not_at_all(store: &dyn Store) {
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

pub fn a_page_of_a_table_ends_when_it_is_large(store: &dyn Store) {
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

pub fn what_was_written_last_is_seen_at_once_and_other_companies_never(store: &dyn Store) {
    let made = operation(store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
    let commit = store.write_operation(Arc::new(made.clone()), Vec::new());
    assert_eq!(block_on(store.operation(&company("acme"), made.id)).unwrap().unwrap(), made);
    assert_eq!(all(store, "acme", &OperationFilter::default(), 10), [1]);
    assert_eq!(block_on(store.operation(&company("acm"), made.id)).unwrap(), None);
    assert!(all(store, "acm", &OperationFilter::default(), 10).is_empty());
    block_on(commit).unwrap();
    let forged = OperationId::new(1, made.id.sequence(), 8);
    assert_eq!(block_on(store.operation(&company("acme"), forged)).unwrap(), None);
}

fn written(store: &dyn Store, name: &str, agent: &str, outcome: Outcome) -> Operation {
    let made = operation(store, name, Some(agent), OperationKind::Query, outcome);
    block_on(store.write_operation(Arc::new(made.clone()), Vec::new())).unwrap();
    made
}

pub fn a_page_of_operations_goes_on_where_the_one_before_ended(store: &dyn Store) {
    for number in 0..20 {
        let agent = if number % 3 == 0 { "ada" } else { "bob" };
        let outcome = if number % 4 == 0 { Outcome::Refused } else { Outcome::Succeeded };
        written(store, "acme", agent, outcome);
    }
    let ada = OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() };
    for page in [1, 2, 3, 100] {
        let every = all(store, "acme", &OperationFilter::default(), page);
        assert_eq!(every, (1..=20).rev().collect::<Vec<_>>());
        assert_eq!(all(store, "acme", &ada, page), [19, 16, 13, 10, 7, 4, 1]);
    }
    let acme = company("acme");
    // Refusals have the numbers 1, 5, 9, 13 and 17.
    for (count, oldest) in [(1, Some(20)), (4, Some(16)), (15, Some(2)), (16, None)] {
        assert_eq!(block_on(store.newest_operations(&acme, count)).unwrap(), oldest, "{count}");
    }
    // The operation with number n begins at second n.
    let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    for (second, first) in [(0, 1), (7, 7), (20, 20), (99, 21)] {
        assert_eq!(block_on(store.first_operation_at(&acme, at(second))).unwrap(), first);
    }
    assert_eq!(block_on(store.operation_range(&company("other"))).unwrap(), None);
}

pub fn what_is_written_beside_an_operation_is_there_with_it(store: &dyn Store) {
    let mut done = operation(store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    let intent = store.write_operation(Arc::new(done.clone()), Vec::new());
    done.outcome = Outcome::Succeeded;
    let key = company_key(&company("acme"), b"job");
    let beside =
        vec![TableWrite { table: Table::Jobs, key: key.clone(), new: Some(b"queued".to_vec()) }];
    block_on(store.write_operation(Arc::new(done.clone()), beside)).unwrap();
    block_on(intent).unwrap();
    assert_eq!(
        block_on(store.operation(&company("acme"), done.id)).unwrap().unwrap().outcome,
        Outcome::Succeeded
    );
    assert_eq!(
        block_on(store.get(Table::Jobs, &key)).unwrap().as_deref(),
        Some(b"queued".as_slice())
    );
}

fn event(name: &str) -> TableWrite {
    TableWrite::new(
        Table::CostEvents,
        company_key(&company("acme"), name.as_bytes()),
        Some(b"{}".to_vec()),
    )
}

/// A record is written a second time where nobody knows whether the first time has worked.
pub fn an_event_that_is_written_again_keeps_its_number(store: &dyn Store) {
    let made = Arc::new(operation(store, "acme", None, OperationKind::Capture, Outcome::Succeeded));
    for beside in
        [vec![event("a")], vec![event("a"), event("b")], vec![event("b")], vec![event("c")]]
    {
        block_on(store.write_operation(Arc::clone(&made), beside)).unwrap();
    }
    let rows =
        block_on(store.scan(Table::CostOrder, &cost_numbers(&company("acme")), None, 10)).unwrap();
    let numbers: Vec<_> =
        rows.entries.iter().map(|(key, _)| cost_number(&company("acme"), key)).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
}
pub fn old_operations_go_and_sums_and_numbers_stay(store: &dyn Store) {
    let acme = company("acme");
    (0..10).for_each(|_| drop(written(store, "acme", "ada", Outcome::Succeeded)));
    // What is not indexed yet stays.
    while !store.is_settled(&acme) {
        std::thread::yield_now();
    }
    assert_eq!(block_on(store.trim_operations(&acme, 8)).unwrap(), 7);
    assert_eq!(block_on(store.operation_range(&acme)).unwrap(), Some((8, 10)));
    assert_eq!(all(store, "acme", &OperationFilter::default(), 2), [10, 9, 8]);
    // What has not ended stays, and so does the newest one.
    let unended = operation(store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(store.write_operation(Arc::new(unended), Vec::new())).unwrap();
    written(store, "acme", "ada", Outcome::Succeeded);
    block_on(store.trim_operations(&acme, u64::MAX)).unwrap();
    assert_eq!(all(store, "acme", &OperationFilter::default(), 3), [12, 11]);
    let sums = block_on(store.rollups(&acme, date(1970, 1, 1), date(1970, 1, 2))).unwrap();
    assert_eq!(sums.iter().map(|(_, row)| row.counts.operations).sum::<u64>(), 11);
    let later = block_on(store.rollups(&acme, date(1971, 1, 1), date(1971, 1, 2))).unwrap();
    assert!(later.is_empty(), "{later:?}");
    assert_eq!(next(store, &acme), 13);
}

pub fn imported_operations_keep_their_numbers(store: &dyn Store) {
    let acme = company("acme");
    let first = operation(store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    let numbered = |number| Operation { id: OperationId::new(1_000, number, 7), ..first.clone() };
    block_on(store.begin_numbers(&acme)).unwrap();
    for number in [3, 7] {
        block_on(store.import_operation(numbered(number))).unwrap();
    }
    block_on(store.commit()).unwrap();
    assert!(block_on(store.import_operation(numbered(7))).is_err());
    assert_eq!(all(store, "acme", &OperationFilter::default(), 9), [7, 3]);
    assert_eq!(next(store, &acme), 8);
    assert!(block_on(store.begin_numbers(&acme)).is_err());
}

pub fn a_number_that_was_not_used_is_given_again(store: &dyn Store) {
    let acme = company("acme");
    let number = next(store, &acme);
    store.return_sequence(&acme, number);
    assert_eq!(next(store, &acme), number);
    assert_eq!(next(store, &company("other")), 1);
}

pub fn partitions_are_private_paged_and_limited(store: &dyn Store) {
    let a = Blocking::open(store, b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 100));
    let b = Blocking::open(store, b"acme\0bbbbbbbbbbbbbbbb", size(1_000, 100));
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
    assert!(a.compare_and_swap(b"l", Some(b"w"), Some(b"longer")).unwrap());
    assert_eq!(a.used(), size(4 + 2 + 5, 2));
    let sum = |partition: &[u8]| Blocking::open(store, partition, size(1_000, 100)).used();
    assert_eq!(
        (sum(b"acme\0aaaaaaaaaaaaaaaa"), sum(b"acme\0bbbbbbbbbbbbbbbb")),
        (size(11, 2), size(7, 1))
    );
    // Keys are limited, too, and deleting makes room.
    let few = Blocking::open(store, b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 3));
    few.apply(vec![put(b"m", b"")]).unwrap();
    let over = few.compare_and_swap(b"n", None, Some(b"")).unwrap_err();
    assert!(over.to_string().contains("storageKeys"), "{over}");
    few.apply(vec![StorageWrite::Delete(b"m".to_vec()), put(b"n", b"")]).unwrap();
    assert_eq!(few.used().keys, 3);
}

pub fn a_limit_holds_for_all_threads_together(store: &dyn Store) {
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    let written: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8_u8)
            .map(|thread| {
                let handle = Blocking::open(store, partition, size(500, 100));
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
    let handle = Blocking::open(store, partition, size(500, 100));
    assert_eq!(handle.used(), size(500, 50));
}
pub fn the_hosts_record_of_a_partition_is_written_with_it_or_not(store: &dyn Store) {
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    assert_eq!(block_on(store.partition_state(partition)).unwrap(), None);
    let write = |state: &[u8], writes| {
        let written = block_on(store.write_partition_state(partition, size(20, 9), state, writes));
        written.map(|commit| block_on(commit).unwrap())
    };
    write(b"one", vec![put(b"k", b"v")]).unwrap();
    assert!(write(b"two", vec![put(b"k", &[0; 30])]).is_err());
    let state = || block_on(store.partition_state(partition)).unwrap();
    assert_eq!(state().as_deref(), Some(b"one".as_slice()));
    let storage = Blocking::open(store, partition, size(20, 9));
    assert_eq!(storage.scan(b"", None, 0).unwrap().entries.len(), 1);
    drop(storage);
    block_on(block_on(store.remove_partition(partition)).unwrap()).unwrap();
    let storage = Blocking::open(store, partition, size(20, 9));
    assert_eq!((state(), storage.used()), (None, size(0, 0)));
}

pub fn a_company_at_its_quota_gets_no_new_rows_and_others_do(store: &dyn Store) {
    make(store, &[row("acme", Table::Deliveries, b"a", Some(&[1; 1_000]))]).unwrap();
    assert_eq!(store.held(&company("acme")).unwrap().level(), DiskLevel::Low);
    for table in [Table::Events, Table::Deliveries, Table::Reviews, Table::Jobs, Table::Waiting] {
        let refused = make(store, &[row("acme", table, b"b", Some(b"1"))]);
        assert!(
            matches!(refused, Err(StoreError::CompanyFull { quota: 1_000, .. })),
            "{table:?}: {refused:?}"
        );
    }
    // What changes or removes something, what a deletion writes, and what ends an operation.
    make(store, &[row("acme", Table::Deliveries, b"a", Some(&[1; 1_100]))]).unwrap();
    make(store, &[row("acme", Table::Activity, b"a", Some(b"1"))]).unwrap();
    let done = operation(store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    let beside = vec![TableWrite::new(
        Table::Reviews,
        company_key(&company("acme"), b"r"),
        Some(b"1".to_vec()),
    )];
    block_on(store.write_operation(Arc::new(done), beside)).unwrap();
    make(store, &[row("other", Table::Events, b"b", Some(b"1"))]).unwrap();
    make(
        store,
        &[row("acme", Table::Deliveries, b"a", None), row("acme", Table::Events, b"x", None)],
    )
    .unwrap();
    make(store, &[row("acme", Table::Events, b"b", Some(b"1"))]).unwrap();
}

pub fn what_a_company_has_grows_and_shrinks_with_its_rows(store: &dyn Store) {
    let held = |name: &str| store.held(&company(name)).unwrap().bytes;
    make(store, &[row("acme", Table::Events, b"a", Some(&[1; 500]))]).unwrap();
    assert_eq!(held("acme"), 500 + 6);
    make(store, &[row("acme", Table::Events, b"a", Some(&[1; 50]))]).unwrap();
    // What counts as nobody's.
    make(store, &[row("acme", Table::Sums, b"s", Some(&[1; 99]))]).unwrap();
    assert_eq!((held("acme"), held("acm")), (50 + 6, 0));
    written(store, "acme", "ada", Outcome::Succeeded);
    assert!(held("acme") > 200, "{}", held("acme"));
    block_on(store.erase_company(&company("acme"))).unwrap();
    assert_eq!(held("acme"), 0);
}

pub fn an_erased_company_leaves_nothing_and_its_namesakes_stay(store: &dyn Store) {
    for name in ["acme", "acme2", "acm"] {
        written(store, name, "ada", Outcome::Succeeded);
        make(store, &[row(name, Table::Secrets, b"x", Some(b"1"))]).unwrap();
        let partition = company_key(&company(name), b"aaaaaaaaaaaaaaaa");
        let commit = block_on(store.write_partition_state(
            &partition,
            size(1_000, 10),
            b"state",
            vec![put(b"k", b"v")],
        ));
        block_on(commit.unwrap()).unwrap();
    }
    assert!(block_on(store.erase_company(&company("acme"))).unwrap() >= 4);
    let all_companies = block_on(store.companies()).unwrap();
    assert_eq!(all_companies, ["acm", "acme2"].map(company).into());
    assert!(all(store, "acme", &OperationFilter::default(), 3).is_empty());
    assert_eq!(all(store, "acme2", &OperationFilter::default(), 3), [1]);
    let used = |partition: &[u8]| Blocking::open(store, partition, size(9, 9)).used();
    assert_eq!(used(b"acme2\0aaaaaaaaaaaaaaaa"), size(2, 1));
    assert_eq!(used(b"acme\0aaaaaaaaaaaaaaaa"), size(0, 0));
    assert_eq!(next(store, &company("acme")), 2, "its numbers go on");
}

pub fn nothing_is_written_of_a_closed_company_but_what_begins_later(store: &dyn Store) {
    written(store, "acme", "ada", Outcome::Succeeded);
    let (limit, prefix) =
        (StorageSize { bytes: 1_000, keys: 10 }, company_key(&company("acme"), b"binding\0"));
    let storage = Blocking::open(store, &prefix, limit);
    let in_progress = operation(store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    block_on(store.close_company(&company("acme"))).unwrap();
    let row = |name: &str| {
        [Change::always(Table::Events, company_key(&company(name), b"e"), Some(b"text".to_vec()))]
    };
    assert!(matches!(block_on(store.transact(&row("acme"))), Err(StoreError::Erased { .. })));
    let ended = block_on(store.write_operation(Arc::new(in_progress), Vec::new()));
    assert!(matches!(ended, Err(StoreError::Erased { .. })), "{ended:?}");
    let entry = StorageEntry { key: b"k".to_vec(), value: b"v".to_vec() };
    assert!(storage.apply(vec![StorageWrite::Put(entry)]).is_err());
    drop(block_on(store.transact(&row("other"))).unwrap());
    assert!(block_on(store.erase_company(&company("acme"))).unwrap() > 0);
    let rows = |name: &str| {
        let prefix = company_key(&company(name), b"");
        block_on(store.scan(Table::Events, &prefix, None, 9)).unwrap().entries.len()
    };
    assert_eq!((rows("acme"), rows("other")), (0, 1));
    // A refusal.
    written(store, "acme", "ada", Outcome::Succeeded);
    assert_eq!(all(store, "acme", &OperationFilter::default(), 9), [3]);
}
