//! A provider's storage as a trait: the sandbox calls it, the store implements it, and neither
//! knows the other.

use std::sync::Arc;

use async_trait::async_trait;

/// One key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageEntry {
    /// 1 to 1,024 bytes.
    pub key: Vec<u8>,
    /// At most 4 MiB.
    pub value: Vec<u8>,
}

/// The size of a binding's storage, or its limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageSize {
    /// Bytes of keys and values together.
    pub bytes: u64,
    /// Number of keys.
    pub keys: u64,
}

/// One write of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorageWrite {
    /// Sets a value.
    Put(StorageEntry),
    /// Removes a key; a missing key is no error.
    Delete(Vec<u8>),
}

/// One page of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoragePage {
    /// In key order.
    pub entries: Vec<StorageEntry>,
    /// The key at which the next page begins, if more follow.
    pub next: Option<Vec<u8>>,
}

/// Why storage refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// A key, value, batch or total over its limit.
    #[error("{0}")]
    LimitExceeded(String),
    /// Nothing of the call was written.
    #[error("{0}")]
    Failed(String),
    /// The store cannot be used at the moment. Nothing of the call was written.
    #[error("{0}")]
    Unavailable(String),
}

/// The key-value store of one binding. See `storage` in `wit/host.wit` for ordering and limits.
///
/// The embedded store answers at once; a store over a network waits for its database. What a call
/// has written is seen by every later call of the same binding, whichever instance makes it.
#[async_trait]
pub trait BindingStorage: Send + Sync {
    /// The value at a key.
    ///
    /// # Errors
    /// Where the key is over its limit or the disk fails.
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError>;

    /// One page of the entries under a prefix, from `cursor` on; a limit of 0 means as many as a
    /// page may hold.
    ///
    /// # Errors
    /// Where the disk fails.
    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError>;

    /// All writes or none.
    ///
    /// # Errors
    /// Where a limit is reached or the disk fails; then nothing is written.
    async fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError>;

    /// Sets `key` to `new` (none deletes) if its value is `expected` (none: absent), and answers
    /// whether it did.
    ///
    /// # Errors
    /// Where a limit is reached or the disk fails; then nothing is written.
    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError>;

    /// The present size.
    fn used(&self) -> StorageSize;

    /// A handle for one instance of a guest, which makes one call after the other.
    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage>;

    /// The instance begins another call. Within a call nothing is written any more after something
    /// that it wrote was lost, such as where another host has taken the company over.
    fn begin_call(&self) {}
}
