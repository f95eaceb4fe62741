//! Calls about the store as a whole. They may take long; an implementation keeps them off the
//! executor's threads.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DiskState, Held, StoreError};
use memhost_types::CompanyId;

/// The contents of a backup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupReport {
    /// Keys of the store.
    pub keys: u64,
    /// Those that were written while they were copied, and were copied again at the end.
    pub copied_again: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// The space that a compaction freed: the bytes of the store's files before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
}

/// How a store writes to its database, since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Writing {
    /// Batches that were committed.
    pub batches: u64,
    /// Items in them.
    pub items: u64,
    /// The time that committed batches took together, in microseconds.
    pub batch_us: u64,
    /// Tries that failed and were repeated.
    pub tried_again: u64,
    /// Items that were refused because another host had taken over.
    pub refused: u64,
    /// Items that could not be written in time.
    pub given_up: u64,
    /// Items that wait at present.
    pub waiting: u64,
}

/// Maintenance of a store.
#[async_trait]
pub trait Maintenance: Send + Sync {
    /// Every company that has operations, private storage, or a record in one of the tables.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError>;

    /// Writes no row of a company any more, and no record of an operation that has a number by now:
    /// both fail with [`StoreError::Erased`]. Operations that begin later are refusals, and their
    /// records are written. Writes that are in progress have ended when this returns. It holds
    /// until the store is opened again.
    ///
    /// # Errors
    /// Where the store takes no more calls.
    async fn close_company(&self, company: &CompanyId) -> Result<(), StoreError>;

    /// Removes everything of a company from every table, the log and the private storages. Answers
    /// how many keys were removed. What is written meanwhile stays, so close the company first,
    /// unless something else stops its writers.
    ///
    /// # Errors
    /// Where the disk fails; some of it may be removed then, and the call can be repeated.
    async fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError>;

    /// Writes everything that is stored into a file, as of the moment at which `at_the_end` is
    /// called. Nothing is written to the store during that call; operations continue for the rest
    /// of the time. Derived indexes are left out.
    ///
    /// # Errors
    /// Where the file cannot be written.
    async fn backup(
        &self,
        file: &Path,
        at_the_end: Box<dyn FnOnce() + Send>,
    ) -> Result<BackupReport, StoreError>;

    /// Removes from the disk what was removed or overwritten, while the store is in use. `stop` is
    /// asked now and then whether to give up; then the answer is none and nothing has changed.
    ///
    /// # Errors
    /// Where the disk has no room for a second copy, or fails. Nothing has changed then.
    async fn compact(
        &self,
        stop: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Option<Compacted>, StoreError>;

    /// How much room the disk has. This never waits.
    fn disk(&self) -> DiskState;

    /// How it writes to its database. `None`: it has none. This never waits.
    fn writing(&self) -> Option<Writing> {
        None
    }

    /// How much is kept of a company, which every write changes in its own transaction. Every
    /// operation asks for it, so it waits neither for the disk nor for transactions. A transaction
    /// with a new row of a company that has reached its quota is refused with
    /// [`StoreError::CompanyFull`], where a deletion needs no such row.
    ///
    /// # Errors
    /// Where the store is closed.
    fn held(&self, company: &CompanyId) -> Result<Held, StoreError>;

    /// Compares everything that is stored with its indexes. Answers one line for each difference.
    ///
    /// # Errors
    /// Where reading fails.
    async fn verify(&self) -> Result<Vec<String>, StoreError>;

    /// Compares a part of a company's log, from an operation's number on, with what is derived from
    /// it, and makes again what does not fit. Answers one line for each difference, and where the
    /// next part begins; `None`: that was the last one.
    ///
    /// # Errors
    /// Where reading or writing fails.
    async fn mend_part(
        &self,
        company: &CompanyId,
        from: u64,
    ) -> Result<(Vec<String>, Option<u64>), StoreError>;
}

/// Compares the logs of all companies with what is derived from them, and makes again what does not
/// fit. Answers one line for each difference.
///
/// # Errors
/// Where reading or writing fails.
pub async fn mend(store: &dyn Maintenance) -> Result<Vec<String>, StoreError> {
    let mut mended = Vec::new();
    for company in store.companies().await? {
        let mut next = Some(0);
        while let Some(from) = next {
            let (found, behind) = store.mend_part(&company, from).await?;
            mended.extend(found);
            next = behind;
        }
    }
    Ok(mended)
}
