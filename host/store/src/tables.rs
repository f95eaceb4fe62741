//! Tables of small records.

use async_trait::async_trait;

use crate::{Change, StoreError, Table, TablePage, Transacted};

/// The tables.
#[async_trait]
pub trait Tables: Send + Sync {
    /// One record of a table.
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Records of a table under a prefix, in key order, at most `limit` of them, from `cursor` on.
    /// A page ends before that with the record that makes it larger than
    /// [`memhost_types::limits::MAX_PAGE_BYTES`]. To read all of them, use [`crate::scan_all`].
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError>;

    /// Makes all changes or none. The conditions hold against the writes of every process.
    ///
    /// # Errors
    /// Where the disk fails; then nothing was changed.
    async fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError>;
}

/// Makes all changes or none. They are on disk when this returns. Answers whether they were made.
///
/// # Errors
/// Where the disk fails.
pub async fn write(store: &dyn Tables, changes: &[Change]) -> Result<bool, StoreError> {
    match store.transact(changes).await? {
        Transacted::Done(commit) => commit.await.map(|()| true),
        Transacted::Conflict(_) => Ok(false),
    }
}
