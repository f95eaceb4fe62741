//! The embedded store itself: how it is opened, recovered and closed.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::backup::{self, BackupError};
use super::disk::{self, Disk};
use super::gate::OPERATIONS;
use super::log::Log;
use super::partition::{self, Partition, Used};
use super::query::{self, Reader};
use super::repair::{self, Repaired};
use super::row_cache::RowCache;
use super::state::{Applied, Companies, CompanyState};
use super::tree::KeyChange;
use super::trees::Trees;
use super::watch::Watch;
use super::{compaction, company_bytes, fit, index, keys};
use crate::directory;
use crate::error::failed;
use crate::reserve::{Need, Reserve};
use crate::{DiskSeam, LocalLeases, LocalLocks, OnFatal, StoreError, interrupted_at_start};
use memhost_ports::StorageSize;
use memhost_types::{CompanyId, Operation, Outcome};

/// How the embedded store is set up.
#[derive(Clone)]
pub struct SledOptions {
    /// Memory for pages, in bytes.
    pub cache_bytes: u64,
    /// The most records that share one flush.
    pub max_batch: usize,
    /// How long a record that nobody waits for may wait for others, such as that of a read with
    /// relaxed audit. A flush for each of them takes more processor time than the reads.
    pub patience: Duration,
    /// Disk space that is kept free, in bytes: with less, new data is refused. 0 turns this off;
    /// then a full disk ends the store.
    pub reserve_bytes: u64,
    /// What is kept of one company, in bytes, at which its new data is refused; see
    /// [`crate::Held`]. 0 turns this off.
    pub company_bytes: u64,
    /// Called once when the store can take no more calls.
    pub on_fatal: Option<OnFatal>,
    /// A seam that a test puts between the store and its disk.
    pub seam: Option<Arc<dyn DiskSeam>>,
}

impl Default for SledOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 128 << 20,
            max_batch: 1_024,
            patience: Duration::from_millis(5),
            reserve_bytes: 256 << 20,
            company_bytes: 16 << 30,
            on_fatal: None,
            seam: None,
        }
    }
}

/// The embedded store. One process at a time uses a data directory.
pub struct SledStore {
    // The fields are dropped in this order: the log passes its last records to the indexer, which
    // then ends.
    pub(super) log: Option<Log>,
    pub(super) indexer: Option<JoinHandle<()>>,
    pub(super) trees: Trees,
    pub(super) partitions: Mutex<HashMap<Vec<u8>, Used>>,
    pub(super) companies: Companies,
    pub(super) jobs: Arc<LocalLeases>,
    pub(super) deliveries: Arc<LocalLeases>,
    pub(super) locks: LocalLocks,
    pub(super) data_dir: PathBuf,
    pub(super) cache_bytes: u64,
    /// Also held by each call on a blocking thread: the directory stays ours until it has ended.
    pub(super) lock: Arc<File>,
    /// Last: it ends the process where the last flush does not end.
    _watch: Watch,
}

impl SledStore {
    /// Opens the store in `path`. Before this returns, operations that a crash left in progress are
    /// recorded as interrupted, and the indexes are updated from the log. Where they do not fit
    /// what was written since the store was closed last, they are made again.
    ///
    /// # Errors
    /// Where the directory is not one of memhost, is too new, in use or not usable; it is left
    /// unchanged.
    pub fn open(path: &Path, options: SledOptions) -> Result<Self, StoreError> {
        let lock = Arc::new(directory::take(path)?);
        let config = sled::Config::new()
            .path(path.join("store"))
            .cache_capacity(options.cache_bytes)
            .mode(sled::Mode::HighThroughput)
            // The commit thread flushes, one group at a time.
            .flush_every_ms(None);
        let opening = failed::<std::io::Error>("opening the store");
        let store = path.join("store");
        let reserve = Reserve::new(path, options.reserve_bytes, options.seam.clone());
        reserve.make_room_to_open();
        disk::prepare(&store).map_err(failed("opening the store"))?;
        let db = disk::open_db(&config).map_err(failed("opening the store"))?;
        let disk =
            Disk::open(db, &store, reserve, options.seam, options.on_fatal).map_err(opening)?;
        let mut trees = Trees::open(disk, options.company_bytes)?;
        trees.rows = Arc::new(RowCache::beside(options.cache_bytes));
        company_bytes::load(&trees)?;
        let companies = Companies::default();
        recover(&trees, &companies)?;
        let (applied, incoming) = mpsc::channel();
        let log = Log::start(
            &trees,
            Arc::clone(&companies),
            applied,
            (options.max_batch, options.patience),
        )?;
        let watch = Watch::start(&trees.disk, log.abandon())?;
        let (index_trees, states) = (trees.clone(), Arc::clone(&companies));
        let indexer = std::thread::Builder::new()
            .name("memhost-index".to_owned())
            .spawn(move || index::run(&index_trees, &states, &incoming))
            .map_err(failed("starting the index thread"))?;
        Ok(Self {
            log: Some(log),
            indexer: Some(indexer),
            trees,
            partitions: Mutex::default(),
            companies,
            jobs: Arc::default(),
            deliveries: Arc::default(),
            locks: LocalLocks::default(),
            data_dir: path.to_owned(),
            cache_bytes: options.cache_bytes,
            lock,
            _watch: watch,
        })
    }

    /// Makes a store from a backup, in a directory that is empty or does not exist.
    ///
    /// # Errors
    /// Where the file is damaged, found before anything is written, or the directory is not empty.
    pub fn restore(backup: &Path, data_dir: &Path) -> Result<(), StoreError> {
        backup::restore(backup, data_dir)
    }

    /// Reads a backup to its end and compares its digest, and its log with its sums. Answers one
    /// line for each difference.
    ///
    /// # Errors
    /// Where it is damaged or not a backup.
    pub fn check_backup(backup: &Path) -> Result<Vec<String>, BackupError> {
        backup::check(backup)
    }

    /// Frees disk space that a stopped host's store no longer needs. Answers its bytes before and
    /// after.
    ///
    /// # Errors
    /// Where the directory is in use or there is no disk space for a second copy; the store is
    /// unchanged then.
    pub fn compact(data_dir: &Path) -> Result<(u64, u64), StoreError> {
        compaction::of_stopped_host(data_dir)
    }

    /// Replaces the store of a stopped host, which does not open or whose pages cannot all be read,
    /// by one with everything that can be read. The damaged store stays in the data directory.
    ///
    /// # Errors
    /// Where the directory is in use, there is no room for two copies, or nothing can be read; the
    /// store is unchanged then.
    pub fn repair(data_dir: &Path) -> Result<Repaired, StoreError> {
        repair::repair(data_dir)
    }

    pub(super) fn log(&self) -> Result<&Log, StoreError> {
        self.trees.disk.alive()?;
        self.log.as_ref().ok_or_else(|| failed("writing")("the store is closed"))
    }

    /// Runs a call that reads or writes much, off the executor's threads.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        call: impl FnOnce(&Trees, &Companies) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.trees.disk.alive()?;
        let (trees, companies, lock) =
            (self.trees.clone(), Arc::clone(&self.companies), Arc::clone(&self.lock));
        let done = tokio::task::spawn_blocking(move || {
            let long_reads = Arc::clone(&trees.long_reads);
            let reading = long_reads.read();
            let done = call(&trees, &companies);
            drop(reading);
            drop((trees, lock));
            done
        });
        done.await.map_err(failed(action))?
    }

    pub(super) fn reader<'a>(&'a self, company: &'a CompanyId) -> Result<Reader<'a>, StoreError> {
        Ok(Reader {
            log: self.log()?,
            records: &self.trees.records,
            index: &self.trees.index,
            company,
        })
    }

    pub(super) fn partition(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Partition, StoreError> {
        let mut partitions = self.partitions.lock();
        let used = match partitions.get(partition) {
            Some(used) => Arc::clone(used),
            None => {
                let size = partition::measure(&self.trees.storage, partition);
                let used = Used::new(Mutex::new(size.map_err(failed("reading"))?));
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
        if self.trees.disk.alive().is_err() {
            // sled would wait in its own drop for what cannot be written.
            std::mem::forget(self.trees.clone());
            return;
        }
        if let Some(indexer) = self.indexer.take() {
            let _ = indexer.join();
        }
        let companies = self.companies.lock();
        let settled = companies.iter().filter(|(company, state)| {
            // Everything of it is compared and indexed, and it was not erased.
            let records = keys::record(company, 0)..=keys::record(company, u64::MAX);
            !state.is_uncompared
                && state.open.is_empty()
                && self.trees.records.range(records).next().is_some()
        });
        let settled: Vec<_> =
            settled.map(|(company, state)| (company.clone(), state.last)).collect();
        drop(companies);
        if let Err(error) = index::set_compared(&self.trees, settled) {
            tracing::warn!(%error, "the next start compares more of the log than it must");
        }
        if let Err(error) = self.trees.disk.flush() {
            tracing::error!(%error, "the last flush failed; unacknowledged writes may be lost");
        }
    }
}

/// After a crash: records operations in progress as interrupted, updates the indexes from the log,
/// and compares them with it.
fn recover(trees: &Trees, companies: &Companies) -> Result<(), StoreError> {
    let (records, mut compared) = (&trees.records, Vec::new());
    for company in query::companies(OPERATIONS, records)? {
        let last =
            records.range(keys::record(&company, 0)..=keys::record(&company, u64::MAX)).next_back();
        let last = last.transpose().map_err(failed("reading"))?;
        let last = last.and_then(|(key, _)| keys::sequence(&key)).unwrap_or(0);
        companies.lock().insert(company.clone(), CompanyState::after(last));
        let mut interrupted = Vec::new();
        for entry in records.scan_prefix(keys::intents(&company)) {
            let (key, _) = entry.map_err(failed("reading"))?;
            if let Some(sequence) = keys::sequence(&key) {
                interrupted.extend(interrupt(trees, &company, sequence)?);
            }
        }
        let is_new = index::stored_watermark(trees, &company)? == 0;
        catch_up(trees, companies, &company)?;
        if !interrupted.is_empty() {
            // The watermark may be above them: the index does not wait for an operation whose end
            // the disk did not take.
            index::add(trees, companies, &interrupted)?;
        }
        // A new index was just made from the log. What cannot be compared, for example because the
        // disk is full, is compared by the next start.
        let fits = if is_new { Ok(()) } else { compare(trees, companies, &company, last) };
        match fits {
            Ok(()) => compared.push((company, last)),
            Err(error) => {
                tracing::error!(%error, %company, "an index could not be compared");
                companies.lock().entry(company).or_default().is_uncompared = true;
            }
        }
    }
    if let Err(error) = index::set_compared(trees, compared) {
        tracing::warn!(%error, "the next start compares more of the log than it must");
    }
    trees.disk.flush()
}

/// Updates the index from the log. Where it is damaged, it is made again first.
fn catch_up(trees: &Trees, companies: &Companies, company: &CompanyId) -> Result<(), StoreError> {
    let Err(error) = index::catch_up(trees, companies, company) else { return Ok(()) };
    if !matches!(error, StoreError::Corrupt { .. }) {
        return Err(error);
    }
    tracing::error!(%error, %company, "an index is damaged");
    let from = index::stored_watermark(trees, company)? / keys::BLOCK;
    mend(trees, companies, company, &(from..fit::EVERY.end))?;
    index::catch_up(trees, companies, company)
}

/// Makes the index fit what was written since the store was closed, or opened, last.
fn compare(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    last: u64,
) -> Result<(), StoreError> {
    let first = index::compared(trees, company)? + 1;
    if first > last {
        return Ok(());
    }
    mend(trees, companies, company, &(first / keys::BLOCK..last / keys::BLOCK + 1))
}

fn mend(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    blocks: &Range<u64>,
) -> Result<(), StoreError> {
    for mended in fit::mend(trees, companies, company, blocks)? {
        tracing::warn!(mended, "an index was made again from the log");
    }
    Ok(())
}

/// Records an operation as interrupted, if it is in progress. Answers what the index has of it.
fn interrupt(
    trees: &Trees,
    company: &CompanyId,
    sequence: u64,
) -> Result<Option<Applied>, StoreError> {
    let (records, mut interrupted) = (&trees.records, None);
    let mut changes: Vec<KeyChange> = vec![(keys::intent(company, sequence).into(), None)];
    let key = keys::record(company, sequence);
    if let Some(value) = records.get(&key).map_err(failed("reading"))? {
        let mut operation: Operation = match crate::decode("operation", &value) {
            Ok(operation) => operation,
            // The rest starts; `memhost store verify` names it.
            Err(error) => {
                tracing::error!(%error, %company, sequence, "an operation in progress is damaged");
                return Ok(None);
            }
        };
        if operation.outcome == Outcome::InProgress {
            interrupted_at_start(&mut operation);
            changes.push((key.into(), Some(crate::encode("operation", &operation)?.into())));
            interrupted = Some(Applied::of(&operation));
        }
    }
    let _writing = trees.enter(Need::Present, 0)?;
    trees.transact(&changes, &[])?;
    Ok(interrupted)
}
