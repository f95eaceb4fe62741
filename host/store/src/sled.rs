//! The embedded store, on sled. sled's word for durable is `flush`: nothing is acknowledged before it.
//!
//! The operation log is one tree; a record is durable before the answer. Its indexes are another tree, derived and a
//! little behind (`sled/index.rs`), because writing eight index keys an operation costs several times the record.

mod backup;
mod directory;
mod gate;
mod index;
mod keys;
mod log;
mod migrate;
mod partition;
mod posting;
mod query;
mod remove;
mod sums;
#[cfg(test)]
mod tests;
mod trees;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use parking_lot::Mutex;
use sled::{Batch, Db};

pub use self::backup::{BackupError, BackupReport};
use self::log::{Companies, CompanyState, Log};
use self::partition::{Partition, Used};
use self::query::Reader;
use self::trees::Trees;
use super::{Change, Commit, LogPage, Store, StoreError, Table, TablePage, TableWrite, Transacted};
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_types::{
    CompanyId, Operation, OperationError, OperationErrorCode, OperationFilter, OperationId, Outcome, Rollup, RollupKey,
};

/// How the embedded store is set up.
#[derive(Debug, Clone, Copy)]
pub struct SledOptions {
    /// Memory for pages, in bytes.
    pub cache_bytes: u64,
    /// The most records that share one flush.
    pub max_batch: usize,
}

impl Default for SledOptions {
    fn default() -> Self {
        Self { cache_bytes: 128 << 20, max_batch: 1_024 }
    }
}

/// The embedded store. One process at a time has a data directory.
pub struct SledStore {
    // In the order in which they end: the log hands its last records to the indexer, which then ends by itself.
    log: Option<Log>,
    indexer: Option<JoinHandle<()>>,
    trees: Trees,
    partitions: Mutex<HashMap<Vec<u8>, Used>>,
    companies: Companies,
    _lock: File,
}

fn failed(action: &'static str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Io { action, message: error.to_string() }
}

impl SledStore {
    /// Opens the store in `path`. What a crash left in progress is recorded as interrupted, and the indexes are
    /// brought up to the log, before this returns.
    ///
    /// # Errors
    /// Where the directory is not ours, too new, in use or not usable; it is left as it was.
    pub fn open(path: &Path, options: SledOptions) -> Result<Self, StoreError> {
        let (lock, format) = directory::take(path)?;
        let config = sled::Config::new()
            .path(path.join("store"))
            .cache_capacity(options.cache_bytes)
            .mode(sled::Mode::HighThroughput)
            // Flushing is our own business: a group at a time.
            .flush_every_ms(None);
        let trees = Trees::open(open_db(&config).map_err(|error| failed("opening the store", &error))?)?;
        migrate::forward(&trees, format)?;
        let companies = Companies::default();
        recover(&trees, &companies)?;
        if format < migrate::FORMAT {
            directory::write_format(path, migrate::FORMAT)?;
        }
        let (applied, incoming) = mpsc::channel();
        let log = Log::start(&trees, Arc::clone(&companies), applied, options.max_batch)?;
        let (index_trees, states) = (trees.clone(), Arc::clone(&companies));
        let indexer = std::thread::Builder::new()
            .name("memhost-index".to_owned())
            .spawn(move || index::run(&index_trees, &states, &incoming))
            .map_err(|error| failed("starting the index thread", &error))?;
        Ok(Self { log: Some(log), indexer: Some(indexer), trees, partitions: Mutex::default(), companies, _lock: lock })
    }

    /// Makes a store from a backup, in a directory that is empty or not there.
    ///
    /// # Errors
    /// Where the file is damaged, found before anything is written, or the directory is not empty.
    pub fn restore(backup: &Path, data_dir: &Path) -> Result<(), StoreError> {
        backup::restore(backup, data_dir)
    }

    /// Reads a backup to its end and compares its digest.
    ///
    /// # Errors
    /// Where it is damaged or not one.
    pub fn check_backup(backup: &Path) -> Result<(), BackupError> {
        backup::check(backup)
    }

    /// Gives room back that a stopped host's store no longer needs. Answers its bytes before and after.
    ///
    /// # Errors
    /// Where the directory is in use or there is no room for a second copy; then it is as it was.
    pub fn compact(data_dir: &Path) -> Result<(u64, u64), StoreError> {
        directory::compact(data_dir)
    }

    fn log(&self) -> Result<&Log, StoreError> {
        self.log.as_ref().ok_or_else(|| failed("writing", &"the store is closed"))
    }

    fn reader<'a>(&'a self, company: &'a CompanyId) -> Result<Reader<'a>, StoreError> {
        Ok(Reader { log: self.log()?, records: &self.trees.records, index: &self.trees.index, company })
    }

    fn partition(&self, partition: &[u8], limit: StorageSize) -> Result<Partition, StoreError> {
        let mut partitions = self.partitions.lock();
        let used = match partitions.get(partition) {
            Some(used) => Arc::clone(used),
            None => {
                let size = partition::measure(&self.trees.storage, partition);
                let used = Used::new(Mutex::new(size.map_err(|error| failed("reading", &error))?));
                partitions.insert(partition.to_vec(), Arc::clone(&used));
                used
            }
        };
        drop(partitions);
        Ok(Partition::new(self.trees.clone(), partition.to_vec(), limit, used))
    }
}

impl Drop for SledStore {
    fn drop(&mut self) {
        self.log = None;
        if let Some(indexer) = self.indexer.take() {
            let _ = indexer.join();
        }
        if let Err(error) = self.trees.db.flush() {
            tracing::error!(%error, "the last flush failed; unacknowledged writes may be lost");
        }
    }
}

/// The directory is ours alone by now. Where sled's own lock is taken all the same, a store that this process has just
/// closed is still giving it back: sled's worker threads let go of it a moment after the drop.
fn open_db(config: &sled::Config) -> sled::Result<Db> {
    const TRIES: u32 = 500;
    for _ in 1..TRIES {
        match config.open() {
            Err(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock") => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
    config.open()
}

/// After a crash: what was at work is interrupted, and the indexes follow the log.
fn recover(trees: &Trees, companies: &Companies) -> Result<(), StoreError> {
    let records = &trees.records;
    for company in query::companies(records)? {
        let last = records.range(keys::record(&company, 0)..=keys::record(&company, u64::MAX)).next_back();
        let last = last.transpose().map_err(|error| failed("reading", &error))?;
        let last = last.and_then(|(key, _)| keys::sequence(&key)).unwrap_or(0);
        companies.lock().insert(company.clone(), CompanyState::after(last));
        for entry in records.scan_prefix(keys::intents(&company)) {
            let (key, _) = entry.map_err(|error| failed("reading", &error))?;
            if let Some(sequence) = keys::sequence(&key) {
                interrupt(records, &company, sequence)?;
            }
        }
        index::catch_up(trees, companies, &company)?;
    }
    trees.db.flush().map(drop).map_err(|error| failed("flushing", &error))
}

fn interrupt(records: &sled::Tree, company: &CompanyId, sequence: u64) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    batch.remove(keys::intent(company, sequence));
    let key = keys::record(company, sequence);
    if let Some(value) = records.get(&key).map_err(|error| failed("reading", &error))? {
        let mut operation: Operation = super::decode("operation", &value)?;
        if operation.outcome == Outcome::InProgress {
            operation.outcome = Outcome::Interrupted;
            operation.error = Some(OperationError {
                code: OperationErrorCode::Interrupted,
                message: "the host ended while the provider was at work; whether the write happened is not known: \
                          look for its records, and repeat it if they are missing"
                    .to_owned(),
                field: None,
                retry_after_ms: None,
            });
            batch.insert(key, super::encode("operation", &operation)?);
        }
    }
    records.apply_batch(batch).map_err(|error| failed("writing", &error))
}

impl Store for SledStore {
    fn next_sequence(&self, company: &CompanyId) -> Result<u64, StoreError> {
        self.log()?.next_sequence(company)
    }

    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        match self.log() {
            Ok(log) => log.write(operation, beside),
            Err(error) => Commit::failed(error),
        }
    }

    fn is_behind(&self, company: &CompanyId) -> bool {
        self.log().is_ok_and(|log| log.is_behind(company))
    }

    fn operation(&self, company: &CompanyId, id: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.reader(company)?.operation(id.sequence())?.filter(|operation| operation.id == id))
    }

    fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        self.reader(company)?.page(filter, before, limit)
    }

    fn is_settled(&self, company: &CompanyId) -> bool {
        self.companies.lock().get(company).is_none_or(|state| state.open.is_empty())
    }

    fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.operation_range(company)?.is_some() {
            let message = format!("{company} has operations already");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        self.companies.lock().remove(company);
        Ok(())
    }

    fn import_operation(&self, operation: Operation) -> Result<(), StoreError> {
        let log = self.log()?;
        log.give_out(&operation.company_id, operation.id.sequence())?;
        drop(log.write(Arc::new(operation), Vec::new()));
        Ok(())
    }

    fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        let last = self.companies.lock().get(company).map_or(0, CompanyState::last);
        let first = self.trees.records.range(keys::record(company, 0)..=keys::record(company, last)).next();
        let first = first.transpose().map_err(|error| failed("reading", &error))?;
        Ok(first.and_then(|(key, _)| Some((keys::sequence(&key)?, last))))
    }

    fn first_operation_at(&self, company: &CompanyId, moment: Timestamp) -> Result<u64, StoreError> {
        self.reader(company)?.first_at(moment)
    }

    fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError> {
        remove::operations(&self.trees, &self.companies, company, below)
    }

    fn rollups(&self, company: &CompanyId, since: Date, until: Date) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
        sums::rows(&self.trees, self.log()?, company, since, until)
    }

    fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError> {
        let mut all = query::companies(&self.trees.records)?;
        for table in Table::ALL.iter().filter(|table| !matches!(table, Table::Host | Table::Due)) {
            all.append(&mut query::companies(self.trees.table(*table))?);
        }
        Ok(all)
    }

    fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError> {
        // Its numbers go on: what is refused from now on does not stand in the place of something else.
        let erased = self.log()?.erase(company)?;
        self.partitions.lock().retain(|partition, _| !keys::is_of(partition, company));
        Ok(erased)
    }

    fn backup(&self, file: &Path, at_the_end: &mut dyn FnMut()) -> Result<BackupReport, StoreError> {
        backup::write(&self.trees, file, at_the_end)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.trees.table(table).get(key).map_err(|error| failed("reading", &error))?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn scan(&self, table: Table, prefix: &[u8], cursor: Option<&[u8]>, limit: usize) -> Result<TablePage, StoreError> {
        let mut page = TablePage::default();
        for entry in self.trees.table(table).range(cursor.unwrap_or(prefix).to_vec()..) {
            let (key, value) = entry.map_err(|error| failed("reading", &error))?;
            if !key.starts_with(prefix) {
                break;
            }
            if page.entries.len() == limit {
                page.next = Some(key.to_vec());
                break;
            }
            page.entries.push((key.to_vec(), value.to_vec()));
        }
        Ok(page)
    }

    fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError> {
        match self.trees.change(changes)? {
            None => Ok(Transacted::Done(self.commit())),
            Some(number) => Ok(Transacted::Conflict(number)),
        }
    }

    fn commit(&self) -> Commit {
        match self.log() {
            Ok(log) => log.commit(),
            Err(error) => Commit::failed(error),
        }
    }

    fn binding_storage(&self, partition: &[u8], limit: StorageSize) -> Result<Arc<dyn BindingStorage>, StoreError> {
        Ok(Arc::new(self.partition(partition, limit)?))
    }

    fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found =
            self.trees.storage.get(partition::state_key(partition)).map_err(|error| failed("reading", &error))?;
        Ok(found.map(|value| value.to_vec()))
    }

    fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError> {
        let partition = self.partition(partition, limit)?;
        partition.apply_with_state(writes, state).map_err(|error| failed("writing", &error))?;
        Ok(self.commit())
    }

    fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError> {
        remove::partition(&self.trees, partition)?;
        self.partitions.lock().remove(partition);
        Ok(self.commit())
    }

    fn verify(&self) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        for company in query::companies(&self.trees.records)? {
            let (records, index) = (&self.trees.records, &self.trees.index);
            findings.extend(index::verify(records, index, &self.companies, &company)?);
        }
        Ok(findings)
    }
}
