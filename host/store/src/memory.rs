//! A store in memory: for tests of the crates above, which need neither a directory nor a disk. It
//! passes the same suite as the embedded store. Everything is gone when it is dropped, so its
//! commits resolve at once.

mod partition;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;

use self::partition::{Entries, Partition, Rows};
use crate::partitions::SizeLimit;
use crate::{
    BackupReport, Change, ChangeFeed, Commit, Compacted, Coordination, CostsTrimmed, DiskLevel,
    DiskState, DueKind, Expected, Held, Lease, Leases, LocalLeases, LocalLocks, LockKind, LogPage,
    Maintenance, OperationLog, Partitions, Store, StoreError, Table, TablePage, TableWrite, Tables,
    Transacted, company_key, company_of, cost_number, cost_number_key, cost_numbers,
    costs_trimmed_key, decode, encode, encode_cost_place,
};
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{
    CompanyId, Operation, OperationFilter, OperationId, Outcome, Rollup, RollupKey,
};

/// A store in memory.
#[derive(Default)]
pub struct MemoryStore {
    content: Mutex<Content>,
    jobs: Arc<LocalLeases>,
    deliveries: Arc<LocalLeases>,
    locks: LocalLocks,
    /// The bytes at which new data of a company is refused; 0: never.
    quota: u64,
    /// How many of the next writes of operations fail.
    failing: AtomicUsize,
}

#[derive(Default)]
struct Content {
    tables: HashMap<Table, Rows>,
    logs: BTreeMap<CompanyId, Log>,
    partitions: BTreeMap<Vec<u8>, Arc<Mutex<Entries>>>,
    /// The host's own record of a partition.
    states: Rows,
    /// The last number of each closed company when it was closed.
    closed: HashMap<CompanyId, u64>,
}

/// The operations of a company.
#[derive(Default)]
struct Log {
    /// The last number that was given.
    last: u64,
    /// Each with its size in bytes.
    operations: BTreeMap<u64, (Arc<Operation>, usize)>,
    /// How many times each is counted in the sums.
    summed: HashMap<u64, u64>,
    sums: BTreeMap<RollupKey, Rollup>,
}

impl MemoryStore {
    /// An empty store that refuses new data of a company with `quota` bytes; 0: never.
    pub fn with_quota(quota: u64) -> Self {
        Self { quota, ..Self::default() }
    }

    /// Lets the next `count` writes of operations fail, as a disk does.
    pub fn fail_operations(&self, count: usize) {
        self.failing.store(count, Ordering::SeqCst);
    }

    fn log<T>(&self, company: &CompanyId, read: impl FnOnce(&Log) -> T) -> T {
        match self.content.lock().logs.get(company) {
            Some(log) => read(log),
            None => read(&Log::default()),
        }
    }
}

impl Content {
    fn row(&self, table: Table, key: &[u8]) -> Option<&Vec<u8>> {
        self.tables.get(&table)?.get(key)
    }

    fn put(&mut self, TableWrite { table, key, new }: TableWrite) {
        let rows = self.tables.entry(table).or_default();
        match new {
            Some(new) => drop(rows.insert(key, new)),
            None => drop(rows.remove(&key)),
        }
    }

    fn held(&self, company: &CompanyId) -> u64 {
        let prefix = company_key(company, b"");
        let counted = self.tables.iter().filter(|(table, _)| table.counts());
        let rows = counted.flat_map(|(_, rows)| below(rows, &prefix));
        let log = self.logs.get(company).into_iter().flat_map(|log| log.operations.values());
        let bytes = rows.map(|(key, value)| key.len() + value.len()).sum::<usize>()
            + log.map(|(_, bytes)| prefix.len() + 9 + bytes).sum::<usize>();
        bytes as u64
    }

    /// Refuses rows of a closed company.
    fn admit<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Result<(), StoreError> {
        match keys.filter_map(company_of).find(|company| self.closed.contains_key(company)) {
            Some(company) => Err(StoreError::Erased { company }),
            None => Ok(()),
        }
    }

    /// The rows that number the new cost events among these writes.
    fn cost_order(
        &self,
        company: &CompanyId,
        beside: &[TableWrite],
    ) -> Result<Vec<TableWrite>, StoreError> {
        let is_new = |write: &&TableWrite| {
            write.table == Table::CostEvents
                && write.new.is_some()
                && self.row(write.table, &write.key).is_none()
        };
        let mut rows = Vec::new();
        for (write, after) in beside.iter().filter(is_new).zip(1..) {
            let number = self.last_cost(company)? + after;
            let place = encode_cost_place(company, &write.key)?;
            let key = cost_number_key(company, number);
            rows.push(TableWrite::new(Table::CostOrder, key, Some(place)));
        }
        Ok(rows)
    }

    fn last_cost(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let rows = self.tables.get(&Table::CostOrder);
        let newest = rows.and_then(|rows| below(rows, &cost_numbers(company)).next_back());
        let present = newest.and_then(|(key, _)| cost_number(company, key)).unwrap_or(0);
        let trimmed = self.row(Table::CostOrder, &costs_trimmed_key(company));
        let trimmed = trimmed.map(|row| decode::<CostsTrimmed>("trimmed cost events", row));
        Ok(present.max(trimmed.transpose()?.map_or(0, |trimmed| trimmed.through)))
    }

    fn write(
        &mut self,
        operation: &Arc<Operation>,
        beside: Vec<TableWrite>,
    ) -> Result<(), StoreError> {
        let (company, number) = (&operation.company_id, operation.id.sequence());
        if self.closed.get(company).is_some_and(|last| number <= *last) {
            return Err(StoreError::Erased { company: company.clone() });
        }
        let rows = beside.iter().filter(|write| write.table.is_of_company());
        self.admit(rows.map(|write| write.key.as_slice()))?;
        let bytes = encode("operation", &**operation)?.len();
        let order = self.cost_order(company, &beside)?;
        beside.into_iter().chain(order).for_each(|write| self.put(write));
        let log = self.logs.entry(company.clone()).or_default();
        log.last = log.last.max(number);
        log.operations.insert(number, (Arc::clone(operation), bytes));
        if operation.outcome != Outcome::InProgress {
            let rows = match log.summed.insert(number, operation.count) {
                None => Rollup::of(operation),
                Some(before) => {
                    let more = operation.count.saturating_sub(before);
                    Rollup::again(operation, more).into_iter().collect()
                }
            };
            for (key, row) in rows {
                log.sums.entry(key).or_default().add(&row);
            }
        }
        Ok(())
    }
}

fn below<'a>(
    rows: &'a Rows,
    prefix: &[u8],
) -> impl DoubleEndedIterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> {
    let mut end = prefix.to_vec();
    // The first key behind all that begin with the prefix, none of which ends with 0xff.
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    rows.range(prefix.to_vec()..end)
}

impl Store for MemoryStore {
    fn commit(&self) -> Commit {
        Commit::done()
    }
}

#[async_trait]
impl Tables for MemoryStore {
    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.content.lock().row(table, key).cloned())
    }

    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        let content = self.content.lock();
        let (mut page, mut bytes) = (TablePage::default(), 0);
        let Some(rows) = content.tables.get(&table) else { return Ok(page) };
        for (key, value) in rows.range(cursor.unwrap_or(prefix).to_vec()..) {
            if !key.starts_with(prefix) {
                break;
            }
            if page.entries.len() == limit || bytes >= MAX_PAGE_BYTES {
                page.next = Some(key.clone());
                break;
            }
            bytes += key.len() + value.len();
            page.entries.push((key.clone(), value.clone()));
        }
        Ok(page)
    }

    async fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError> {
        let mut content = self.content.lock();
        let rows =
            changes.iter().filter(|change| change.new.is_some() && change.table.is_of_company());
        content.admit(rows.map(|change| change.key.as_slice()))?;
        let present = |change: &Change| content.row(change.table, &change.key);
        let is_met = |change: &Change| match &change.expected {
            Expected::Anything => true,
            Expected::Absent => present(change).is_none(),
            Expected::Value(value) => present(change) == Some(value),
        };
        if let Some(conflict) = changes.iter().position(|change| !is_met(change)) {
            return Ok(Transacted::Conflict(conflict));
        }
        let is_new = |change: &&Change| {
            change.new.is_some() && change.table.is_new_data() && present(change).is_none()
        };
        for company in changes.iter().filter(is_new).filter_map(|change| company_of(&change.key)) {
            let held = Held { bytes: content.held(&company), quota: self.quota };
            if held.level() != DiskLevel::Plenty {
                return Err(StoreError::CompanyFull { held: held.bytes, quota: held.quota });
            }
        }
        for Change { table, key, new, .. } in changes.iter().cloned() {
            content.put(TableWrite { table, key, new });
        }
        Ok(Transacted::Done(Commit::done()))
    }
}

#[async_trait]
impl OperationLog for MemoryStore {
    fn take_sequence(&self, company: &CompanyId) -> Option<u64> {
        let mut content = self.content.lock();
        let log = content.logs.entry(company.clone()).or_default();
        log.last += 1;
        Some(log.last)
    }

    async fn reserve_sequences(&self, _company: &CompanyId) -> Result<(), StoreError> {
        Ok(())
    }

    fn return_sequence(&self, company: &CompanyId, sequence: u64) {
        if let Some(log) = self.content.lock().logs.get_mut(company)
            && log.last == sequence
        {
            log.last -= 1;
        }
    }

    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        let less = |count: usize| count.checked_sub(1);
        if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            let message = "a test lets it fail".to_owned();
            return Commit::failed(StoreError::Io { action: "writing", message });
        }
        match self.content.lock().write(&operation, beside) {
            Ok(()) => Commit::done(),
            Err(error) => Commit::failed(error),
        }
    }

    fn is_behind(&self, _company: &CompanyId) -> bool {
        false
    }

    fn is_settled(&self, company: &CompanyId) -> bool {
        let ended =
            |(operation, _): &(Arc<Operation>, usize)| operation.outcome != Outcome::InProgress;
        self.log(company, |log| log.operations.values().all(ended))
    }

    async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        let found = self.log(company, |log| log.operations.get(&id.sequence()).cloned());
        Ok(found.filter(|(found, _)| found.id == id).map(|(found, _)| Operation::clone(&found)))
    }

    async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        Ok(self.log(company, |log| {
            let (mut page, mut size) = (LogPage::default(), 0);
            let older = log.operations.range(..before.unwrap_or(u64::MAX)).rev();
            for (_, (operation, bytes)) in older.filter(|(_, (one, _))| filter.matches(one)) {
                if page.operations.len() == limit || size >= MAX_PAGE_BYTES {
                    page.next_before = page.operations.last().map(|last| last.id.sequence());
                    break;
                }
                size += bytes;
                page.operations.push(Operation::clone(operation));
            }
            page
        }))
    }

    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError> {
        let place = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
        Ok(self.log(company, |log| {
            let newest = log.operations.iter().rev();
            let mut kept = newest.filter(|(_, (one, _))| one.outcome != Outcome::Refused);
            kept.nth(place).map(|(number, _)| *number)
        }))
    }

    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(self.log(company, |log| {
            let (first, _) = log.operations.first_key_value()?;
            Some((*first, *log.operations.last_key_value()?.0))
        }))
    }

    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError> {
        Ok(self.log(company, |log| {
            let mut all = log.operations.iter();
            let first = all.find(|(_, (one, _))| one.started_at >= moment);
            first.map_or(log.last + 1, |(number, _)| *number)
        }))
    }

    async fn rollups(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
        Ok(self.log(company, |log| {
            let all = log.sums.iter().filter(|(key, _)| (since..=until).contains(&key.day));
            all.map(|(key, row)| (key.clone(), row.clone())).collect()
        }))
    }

    async fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError> {
        let mut content = self.content.lock();
        let Some(log) = content.logs.get_mut(company) else { return Ok(0) };
        let newest = log.operations.last_key_value().map(|(number, _)| *number);
        let before = log.operations.len();
        log.operations.retain(|number, (operation, _)| {
            *number >= below || Some(*number) == newest || operation.outcome == Outcome::InProgress
        });
        Ok((before - log.operations.len()) as u64)
    }

    async fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.operation_range(company).await?.is_some() {
            let message = format!("{company} has operations already");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        self.content.lock().logs.remove(company);
        Ok(())
    }

    fn check_sums(&self, _company: &CompanyId, _key: &[u8], _value: &[u8]) -> Option<u64> {
        None
    }

    async fn import_operation(&self, operation: Operation) -> Result<(), StoreError> {
        let number = operation.id.sequence();
        let mut content = self.content.lock();
        if content.logs.get(&operation.company_id).is_some_and(|log| log.last >= number) {
            let message = format!("the number {number} is taken");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        content.write(&Arc::new(operation), Vec::new())
    }
}

#[async_trait]
impl Partitions for MemoryStore {
    async fn binding_storage(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Arc<dyn BindingStorage>, StoreError> {
        Ok(Arc::new(self.partition(partition, limit)))
    }

    async fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.content.lock().states.get(partition).cloned())
    }

    async fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError> {
        self.partition(partition, limit)
            .write(writes)
            .map_err(|error| StoreError::Io { action: "writing", message: error.to_string() })?;
        self.content.lock().states.insert(partition.to_vec(), state.to_vec());
        Ok(Commit::done())
    }

    async fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError> {
        let mut content = self.content.lock();
        content.partitions.remove(partition);
        content.states.remove(partition);
        Ok(Commit::done())
    }
}

#[async_trait]
impl Maintenance for MemoryStore {
    async fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError> {
        let content = self.content.lock();
        let tables = content.tables.iter();
        let of_companies = tables.filter(|(table, _)| table.is_of_company());
        let rows = of_companies.flat_map(|(_, rows)| rows.keys());
        let keys = rows.chain(content.partitions.keys()).filter_map(|key| company_of(key));
        let logs = content.logs.iter().filter(|(_, log)| !log.operations.is_empty());
        Ok(keys.chain(logs.map(|(company, _)| company.clone())).collect())
    }

    async fn close_company(&self, company: &CompanyId) -> Result<(), StoreError> {
        let mut content = self.content.lock();
        let last = content.logs.get(company).map_or(0, |log| log.last);
        content.closed.insert(company.clone(), last);
        let prefix = company_key(company, b"");
        let own = content.partitions.iter().filter(|(key, _)| key.starts_with(&prefix));
        own.for_each(|(_, entries)| entries.lock().is_closed = true);
        Ok(())
    }

    async fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let mut content = self.content.lock();
        let prefix = company_key(company, b"");
        let mut removed = 0;
        let mut keep = |is_kept: bool| {
            removed += u64::from(!is_kept);
            is_kept
        };
        for (table, rows) in &mut content.tables {
            match table {
                Table::Host => {}
                // A kind and a time stand before the key of the company.
                Table::Due => {
                    rows.retain(|key, _| {
                        keep(!key.get(9..).is_some_and(|key| key.starts_with(&prefix)))
                    });
                }
                _ => rows.retain(|key, _| keep(!key.starts_with(&prefix))),
            }
        }
        content.states.retain(|key, _| keep(!key.starts_with(&prefix)));
        content.partitions.retain(|key, entries| {
            let is_kept = !key.starts_with(&prefix);
            entries.lock().rows.iter().for_each(|_| {
                keep(is_kept);
            });
            is_kept
        });
        if let Some(log) = content.logs.get_mut(company) {
            log.operations.iter().for_each(|_| {
                keep(false);
            });
            // Its numbers continue.
            *log = Log { last: log.last, ..Log::default() };
        }
        Ok(removed)
    }

    async fn backup(
        &self,
        _file: &Path,
        _at_the_end: Box<dyn FnOnce() + Send>,
    ) -> Result<BackupReport, StoreError> {
        let message = "a store in memory has no backup".to_owned();
        Err(StoreError::Io { action: "writing the backup", message })
    }

    async fn compact(
        &self,
        _stop: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Option<Compacted>, StoreError> {
        Ok(None)
    }

    fn disk(&self) -> DiskState {
        DiskState::default()
    }

    fn held(&self, company: &CompanyId) -> Result<Held, StoreError> {
        Ok(Held { bytes: self.content.lock().held(company), quota: self.quota })
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    async fn mend_part(
        &self,
        _company: &CompanyId,
        _from: u64,
    ) -> Result<(Vec<String>, Option<u64>), StoreError> {
        Ok((Vec::new(), None))
    }
}

#[async_trait]
impl Coordination for MemoryStore {
    fn leases(&self, kind: DueKind) -> Arc<dyn Leases> {
        match kind {
            DueKind::Job => Arc::clone(&self.jobs) as Arc<dyn Leases>,
            DueKind::Delivery => Arc::clone(&self.deliveries) as Arc<dyn Leases>,
        }
    }

    async fn lock(&self, kind: LockKind, key: &[u8]) -> Result<Lease, StoreError> {
        Ok(self.locks.lock(kind, key).await)
    }

    fn changes(&self) -> Option<Box<dyn ChangeFeed>> {
        None
    }
}

impl MemoryStore {
    fn partition(&self, partition: &[u8], limit: StorageSize) -> Partition {
        let mut content = self.content.lock();
        let is_closed = company_of(partition).is_some_and(|of| content.closed.contains_key(&of));
        let entries = Arc::clone(content.partitions.entry(partition.to_vec()).or_default());
        entries.lock().is_closed = is_closed;
        Partition { entries, limit: SizeLimit(limit) }
    }
}
