//! A store that fails or waits on purpose: reads and changes of chosen tables, the next writes of
//! operations, and the locks of jobs.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use memhost_core::WrapStore;
use memhost_ports::{BindingStorage, StorageError, StoragePage, StorageSize, StorageWrite};
use memhost_store::{
    BackupReport, Change, ChangeFeed, Commit, Compacted, Coordination, DiskState, DueKind, Held,
    Lease, Leases, LockKind, LogPage, Maintenance, OperationLog, Partitions, Store, StoreError,
    Table, TablePage, TableWrite, Tables, Transacted, Writing,
};
use memhost_types::{
    CompanyId, Operation, OperationFilter, OperationId, Outcome, Rollup, RollupKey,
};
use tokio::sync::watch;

/// The faults of a store. At first nothing fails.
#[derive(Default)]
pub struct Faults {
    tables: Mutex<HashSet<Table>>,
    intents: AtomicU32,
    completions: AtomicU32,
    /// Whether [`Store::commit`] fails.
    breaks_commits: AtomicBool,
    /// Whether what a binding or a company has stored cannot be removed.
    keeps_stored: AtomicBool,
    /// How many more calls the storage of bindings answers; `u32::MAX`: all.
    storage_calls: AtomicU32,
    /// Whether the locks of jobs wait, and how many do.
    holds_jobs: watch::Sender<bool>,
    held: AtomicU32,
}

impl Faults {
    /// Faults, and the option of a host that has them.
    pub fn new() -> (Arc<Self>, WrapStore) {
        let faults = Arc::new(Self { storage_calls: u32::MAX.into(), ..Self::default() });
        let shared = Arc::clone(&faults);
        (
            faults,
            Arc::new(move |inner| Arc::new(FaultyStore { inner, faults: Arc::clone(&shared) })),
        )
    }

    /// Every read and change of a table fails. [`Table::Sums`] stands for the sums of what was
    /// spent.
    pub fn break_table(&self, table: Table) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).insert(table);
    }

    /// All tables work again.
    pub fn repair(&self) {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The next `count` writes of intents fail.
    pub fn break_intents(&self, count: u32) {
        self.intents.store(count, Ordering::SeqCst);
    }

    /// The next `count` writes of completions fail.
    pub fn break_completions(&self, count: u32) {
        self.completions.store(count, Ordering::SeqCst);
    }

    /// From now on nobody can wait until everything is on disk, until this is called with false.
    pub fn break_commits(&self, breaks: bool) {
        self.breaks_commits.store(breaks, Ordering::SeqCst);
    }

    /// From now on what a binding or a company has stored cannot be removed, as if the host ended
    /// before.
    pub fn keep_stored(&self, keeps: bool) {
        self.keeps_stored.store(keeps, Ordering::SeqCst);
    }

    fn removes(&self) -> Result<(), StoreError> {
        if self.keeps_stored.load(Ordering::SeqCst) { Err(broken()) } else { Ok(()) }
    }

    /// The storage of bindings answers so many more calls, and is away then, until this is called
    /// with `None`.
    pub fn lose_storage_after(&self, calls: Option<u32>) {
        self.storage_calls.store(calls.unwrap_or(u32::MAX), Ordering::SeqCst);
    }

    /// From now on a job that was admitted waits before its intent, until this is called with
    /// false.
    pub fn hold_jobs(&self, holds: bool) {
        self.holds_jobs.send_replace(holds);
    }

    /// How many times a job has waited.
    pub fn held(&self) -> u32 {
        self.held.load(Ordering::SeqCst)
    }

    fn check(&self, table: Table) -> Result<(), StoreError> {
        match self.tables.lock().unwrap_or_else(PoisonError::into_inner).contains(&table) {
            true => Err(broken()),
            false => Ok(()),
        }
    }

    fn takes_one(&self, is_completion: bool) -> bool {
        let left = if is_completion { &self.completions } else { &self.intents };
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }
}

fn broken() -> StoreError {
    StoreError::Io { action: "writing on purpose", message: "the disk is broken".to_owned() }
}

/// A binding's storage that goes away after some calls.
struct FaultyStorage {
    inner: Arc<dyn BindingStorage>,
    faults: Arc<Faults>,
}

impl FaultyStorage {
    fn call(&self) -> Result<(), StorageError> {
        let left = &self.faults.storage_calls;
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| match left {
            u32::MAX => Some(left),
            left => left.checked_sub(1),
        }) {
            Ok(_) => Ok(()),
            Err(_) => Err(StorageError::Unavailable("the store is away on purpose".to_owned())),
        }
    }
}

#[async_trait]
impl BindingStorage for FaultyStorage {
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.call()?;
        self.inner.get(key).await
    }

    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError> {
        self.call()?;
        self.inner.scan(prefix, cursor, limit).await
    }

    async fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError> {
        self.call()?;
        self.inner.apply(batch).await
    }

    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        self.call()?;
        self.inner.compare_and_swap(key, expected, new).await
    }

    fn used(&self) -> StorageSize {
        self.inner.used()
    }

    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage> {
        let (inner, faults) = (Arc::clone(&self.inner), Arc::clone(&self.faults));
        Arc::new(Self { inner: inner.for_instance(), faults })
    }

    fn begin_call(&self) {
        self.inner.begin_call();
    }
}

struct FaultyStore {
    inner: Arc<dyn Store>,
    faults: Arc<Faults>,
}

#[async_trait]
impl OperationLog for FaultyStore {
    fn take_sequence(&self, company: &CompanyId) -> Option<u64> {
        self.inner.take_sequence(company)
    }

    fn return_sequence(&self, company: &CompanyId, sequence: u64) {
        self.inner.return_sequence(company, sequence);
    }

    async fn reserve_sequences(&self, company: &CompanyId) -> Result<(), StoreError> {
        self.inner.reserve_sequences(company).await
    }

    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        let is_completion = operation.outcome != Outcome::InProgress;
        if self.faults.takes_one(is_completion) {
            return Commit::failed(broken());
        }
        self.inner.write_operation(operation, beside)
    }

    fn is_behind(&self, company: &CompanyId) -> bool {
        self.inner.is_behind(company)
    }

    fn is_settled(&self, company: &CompanyId) -> bool {
        self.inner.is_settled(company)
    }

    async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        self.inner.operation(company, id).await
    }

    async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        self.inner.operations(company, filter, before, limit).await
    }

    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError> {
        self.inner.newest_operations(company, count).await
    }

    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        self.inner.operation_range(company).await
    }

    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError> {
        self.inner.first_operation_at(company, moment).await
    }

    async fn rollups(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
        self.faults.check(Table::Sums)?;
        self.inner.rollups(company, since, until).await
    }

    async fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError> {
        self.inner.trim_operations(company, below).await
    }

    async fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError> {
        self.inner.begin_numbers(company).await
    }

    fn check_sums(&self, company: &CompanyId, key: &[u8], value: &[u8]) -> Option<u64> {
        self.inner.check_sums(company, key, value)
    }

    async fn import_operation(&self, operation: Operation) -> Result<(), StoreError> {
        self.inner.import_operation(operation).await
    }
}

#[async_trait]
impl Tables for FaultyStore {
    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.faults.check(table)?;
        self.inner.get(table, key).await
    }

    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        self.faults.check(table)?;
        self.inner.scan(table, prefix, cursor, limit).await
    }

    async fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError> {
        changes.iter().try_for_each(|change| self.faults.check(change.table))?;
        self.inner.transact(changes).await
    }
}

#[async_trait]
impl Partitions for FaultyStore {
    async fn binding_storage(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Arc<dyn BindingStorage>, StoreError> {
        let inner = self.inner.binding_storage(partition, limit).await?;
        Ok(Arc::new(FaultyStorage { inner, faults: Arc::clone(&self.faults) }))
    }

    async fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.partition_state(partition).await
    }

    async fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError> {
        self.inner.write_partition_state(partition, limit, state, writes).await
    }

    async fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError> {
        self.faults.removes()?;
        self.inner.remove_partition(partition).await
    }
}

#[async_trait]
impl Maintenance for FaultyStore {
    async fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError> {
        self.inner.companies().await
    }

    async fn close_company(&self, company: &CompanyId) -> Result<(), StoreError> {
        self.inner.close_company(company).await
    }

    async fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError> {
        self.faults.removes()?;
        self.inner.erase_company(company).await
    }

    async fn backup(
        &self,
        file: &Path,
        at_the_end: Box<dyn FnOnce() + Send>,
    ) -> Result<BackupReport, StoreError> {
        self.inner.backup(file, at_the_end).await
    }

    async fn compact(
        &self,
        stop: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Option<Compacted>, StoreError> {
        self.inner.compact(stop).await
    }

    fn disk(&self) -> DiskState {
        self.inner.disk()
    }

    fn writing(&self) -> Option<Writing> {
        self.inner.writing()
    }

    fn held(&self, company: &CompanyId) -> Result<Held, StoreError> {
        self.inner.held(company)
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.inner.verify().await
    }

    async fn mend_part(
        &self,
        company: &CompanyId,
        from: u64,
    ) -> Result<(Vec<String>, Option<u64>), StoreError> {
        self.inner.mend_part(company, from).await
    }
}

#[async_trait]
impl Coordination for FaultyStore {
    fn leases(&self, kind: DueKind) -> Arc<dyn Leases> {
        self.inner.leases(kind)
    }

    async fn lock(&self, kind: LockKind, key: &[u8]) -> Result<Lease, StoreError> {
        let mut holds = self.faults.holds_jobs.subscribe();
        if kind == LockKind::Job && *holds.borrow() {
            self.faults.held.fetch_add(1, Ordering::SeqCst);
            // The sender lives as long as the store.
            let _ = holds.wait_for(|holds| !holds).await;
        }
        self.inner.lock(kind, key).await
    }

    fn is_home(&self, company: &CompanyId) -> bool {
        self.inner.is_home(company)
    }

    fn is_hosts_home(&self) -> bool {
        self.inner.is_hosts_home()
    }

    async fn token_elsewhere(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.token_elsewhere(digest).await
    }

    fn changes(&self) -> Option<Box<dyn ChangeFeed>> {
        self.inner.changes()
    }
}

impl Store for FaultyStore {
    fn commit(&self) -> Commit {
        match self.faults.breaks_commits.load(Ordering::SeqCst) {
            true => Commit::failed(broken()),
            false => self.inner.commit(),
        }
    }
}
