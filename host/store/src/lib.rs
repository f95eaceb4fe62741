//! What lasts: the operation log, and tables of small records that change together. `store/sled` is the embedded
//! default; nothing outside it may name a sled type.
//!
//! Durability: a write is on disk when its [`Commit`] says so. Commits are shared: whoever waits at the same time
//! waits for one flush.

mod page;
mod sled;
mod table;
mod value;

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use jiff::Timestamp;
use jiff::civil::Date;
use tokio::sync::oneshot;

pub use self::page::{Found, matching};
pub use self::sled::{BackupError, BackupReport, SledOptions, SledStore};
pub use self::table::{DueKind, Table, company_key, due_at, due_key, due_prefix, newest_first};
pub use self::value::{decode, encode, unchanged};
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_types::{CompanyId, Operation, OperationFilter, OperationId, Rollup, RollupKey};

/// What can go wrong below.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The data directory holds something that is not ours.
    #[error("{path} is not a memhost data directory: {found}; choose an empty directory or one that memhost made")]
    NotOurs {
        /// The directory.
        path: String,
        /// What is in the way.
        found: String,
    },
    /// The data directory was written by a newer version.
    #[error("{path} has format {found}, and this version of memhost reads up to {known}; run a newer memhost")]
    TooNew {
        /// The directory.
        path: String,
        /// Its format version.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// Another process has the data directory.
    #[error("{path} is in use by another process; stop that one, or talk to it over HTTP with --url")]
    InUse {
        /// The directory.
        path: String,
    },
    /// The disk or the database failed.
    #[error("{action} failed: {message}; nothing was acknowledged, check disk space and permissions")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        message: String,
    },
    /// A stored value cannot be read.
    #[error("the stored {what} cannot be read: {message}")]
    Corrupt {
        /// What it was.
        what: String,
        /// What is wrong with it.
        message: String,
    },
}

/// Resolves when what was written is on disk, or could not be. Dropping it does not undo the write.
#[must_use = "a write is only acknowledged when its commit resolves"]
#[derive(Debug)]
pub struct Commit(oneshot::Receiver<Result<(), StoreError>>);

impl Commit {
    pub(crate) fn pair() -> (oneshot::Sender<Result<(), StoreError>>, Self) {
        let (sender, receiver) = oneshot::channel();
        (sender, Self(receiver))
    }

    /// A write that did not even begin.
    pub fn failed(error: StoreError) -> Self {
        let (sender, commit) = Self::pair();
        let _ = sender.send(Err(error));
        commit
    }
}

impl Future for Commit {
    type Output = Result<(), StoreError>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|received| {
            received.unwrap_or_else(|_| {
                Err(StoreError::Io { action: "writing", message: "the store was closed meanwhile".to_owned() })
            })
        })
    }
}

/// One change of a table, made only if the present value is the expected one.
#[derive(Debug, Clone)]
pub struct Change {
    /// Where.
    pub table: Table,
    /// Which record.
    pub key: Vec<u8>,
    /// What must be there for the whole transaction to happen.
    pub expected: Expected,
    /// What will be there; none deletes.
    pub new: Option<Vec<u8>>,
}

/// One record of a table that is written together with an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableWrite {
    /// Where.
    pub table: Table,
    /// Which record.
    pub key: Vec<u8>,
    /// What will be there; none deletes.
    pub new: Option<Vec<u8>>,
}

impl From<TableWrite> for Change {
    fn from(write: TableWrite) -> Self {
        Self { table: write.table, key: write.key, expected: Expected::Anything, new: write.new }
    }
}

/// A condition on a record's present value.
#[derive(Debug, Clone)]
pub enum Expected {
    /// No condition.
    Anything,
    /// There is no such record.
    Absent,
    /// Exactly this value.
    Value(Vec<u8>),
}

/// What became of a transaction.
#[derive(Debug)]
pub enum Transacted {
    /// All changes were made.
    Done(Commit),
    /// Nothing was changed: the change at this index found something else than it expected.
    Conflict(usize),
}

/// One page of a table's records.
#[derive(Debug, Clone, Default)]
pub struct TablePage {
    /// Keys and values, in key order.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where the next page begins.
    pub next: Option<Vec<u8>>,
}

/// One page of the log, newest first.
#[derive(Debug, Clone, Default)]
pub struct LogPage {
    /// At most as many as asked for.
    pub operations: Vec<Operation>,
    /// Pass it as `before` to go on; none: these were the last ones.
    pub next_before: Option<u64>,
}

/// The store. Calls other than waiting for a [`Commit`] are short and block only where the disk must be read.
pub trait Store: Send + Sync + 'static {
    /// The number of the company's next operation, from 1. Never given twice while the store is open. After a crash a
    /// number whose record was never written may be given again; the id that carries it is another one.
    ///
    /// # Errors
    /// Where the log's end cannot be read.
    fn next_sequence(&self, company: &CompanyId) -> Result<u64, StoreError>;

    /// Writes an operation's record. The first write of an id appends; a second one replaces it, which only a
    /// completion after an intent does. A record whose outcome is `in_progress` when the store is opened the next
    /// time is rewritten as `interrupted`. It is encoded on the log's own thread, so that the caller does not wait
    /// for that. `beside` is written in the same step: all of it and the record, or nothing.
    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit;

    /// Whether the disk is behind with this company's operations: whoever does not wait for its own commits should wait
    /// for one now, or what is queued grows without end and all companies wait for it.
    fn is_behind(&self, company: &CompanyId) -> bool;

    /// One operation.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn operation(&self, company: &CompanyId, id: OperationId) -> Result<Option<Operation>, StoreError>;

    /// Operations that match, newest first, from below `before` on. What was written before this call began is seen,
    /// whether or not it is on disk yet.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError>;

    /// Whether every operation of a company that has begun has ended and is on disk and indexed.
    fn is_settled(&self, company: &CompanyId) -> bool;

    /// Lets a company that has no operations begin its numbers anew, so that those of another host fit.
    ///
    /// # Errors
    /// Where it has operations.
    fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError>;

    /// Takes in an operation that another host recorded, under its own number, which is behind all that there are.
    ///
    /// # Errors
    /// Where its number is taken or the disk fails.
    fn import_operation(&self, operation: Operation) -> Result<(), StoreError>;

    /// The number of a company's first and last operation that are still there; none where it has none.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError>;

    /// The number of the first operation that began at or after a moment; one behind the last where there is none.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn first_operation_at(&self, company: &CompanyId, moment: Timestamp) -> Result<u64, StoreError>;

    /// Throws the operations below a number away, with their indexes. Sums stay. Those at work stay, and so does the
    /// newest one, so that no number is given twice. Answers how many went.
    ///
    /// # Errors
    /// Where the disk fails; then some of them may be gone.
    fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError>;

    /// The sums over a company's operations that began on these days, both included, one row a key.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn rollups(&self, company: &CompanyId, since: Date, until: Date) -> Result<Vec<(RollupKey, Rollup)>, StoreError>;

    /// Every company that has operations or private storage, or a record in one of the tables.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError>;

    /// Removes everything of a company from every table, the log and the private storages. Nothing of it may be at work.
    /// Answers how many keys went.
    ///
    /// # Errors
    /// Where the disk fails; then some of it may be gone, and it can be called again.
    fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError>;

    /// Writes everything that is stored into a file, as of the moment at which `at_the_end` is called: nothing is written
    /// to the store meanwhile. Derived indexes are left out. Operations go on for the rest of the time.
    ///
    /// # Errors
    /// Where the file cannot be written.
    fn backup(&self, file: &Path, at_the_end: &mut dyn FnMut()) -> Result<BackupReport, StoreError>;

    /// One record of a table.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Records of a table under a prefix, in key order, at most `limit` of them, from `cursor` on.
    ///
    /// # Errors
    /// Where they cannot be read.
    fn scan(&self, table: Table, prefix: &[u8], cursor: Option<&[u8]>, limit: usize) -> Result<TablePage, StoreError>;

    /// Makes all changes or none.
    ///
    /// # Errors
    /// Where the disk fails; then nothing was changed.
    fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError>;

    /// Resolves when everything that was written before this call, to whatever part, is on disk.
    fn commit(&self) -> Commit;

    /// The private storage of one binding. `partition` begins with the company and never comes back once its binding
    /// is deleted; `limit` is what the binding may take.
    ///
    /// # Errors
    /// Where its present size cannot be read.
    fn binding_storage(&self, partition: &[u8], limit: StorageSize) -> Result<Arc<dyn BindingStorage>, StoreError>;

    /// What the host keeps of a partition, such as which version serves it.
    ///
    /// # Errors
    /// Where it cannot be read.
    fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Sets what the host keeps of a partition, together with writes to it, all or nothing. No key may be written
    /// twice. Not limited as a guest's batch is.
    ///
    /// # Errors
    /// Where the partition's limit is reached or the disk fails; then nothing is written.
    fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError>;

    /// Removes a partition with everything in it. Nothing may use it any more.
    ///
    /// # Errors
    /// Where the disk fails; then some of it may be gone, and it can be called again.
    fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError>;

    /// Checks everything that is stored against its indexes and reports what does not fit, one line a finding.
    ///
    /// # Errors
    /// Where reading fails.
    fn verify(&self) -> Result<Vec<String>, StoreError>;
}
