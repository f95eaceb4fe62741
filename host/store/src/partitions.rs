//! Partitions: the private storage of each binding.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Commit, StoreError};
use memhost_ports::{BindingStorage, StorageEntry, StorageError, StorageSize, StorageWrite};
use memhost_types::limits;

/// The private storage of bindings.
#[async_trait]
pub trait Partitions: Send + Sync {
    /// The private storage of one binding. `partition` begins with the company and is never used
    /// again once its binding is deleted. The binding may store at most `limit`.
    ///
    /// # Errors
    /// Where its present size cannot be read.
    async fn binding_storage(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Arc<dyn BindingStorage>, StoreError>;

    /// The host's own record of a partition, such as which version serves it.
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Sets the host's own record of a partition, together with writes to the partition, all or
    /// nothing. No key may occur twice. The limits of a guest's batch do not apply.
    ///
    /// # Errors
    /// Where the partition's limit is reached or the disk fails; then nothing is written.
    async fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError>;

    /// Removes a partition with its content. Nothing may use it any more.
    ///
    /// # Errors
    /// Where the disk fails; some of it may be removed then, and the call can be repeated.
    async fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError>;
}

fn too_much(message: String) -> StorageError {
    StorageError::LimitExceeded(message)
}

/// Checks a key of a partition: it has 1 to 1,024 bytes.
///
/// # Errors
/// Where it has none or more.
pub fn check_key(key: &[u8]) -> Result<(), StorageError> {
    if key.is_empty() || key.len() > limits::MAX_STORAGE_KEY_BYTES {
        let max = limits::MAX_STORAGE_KEY_BYTES;
        return Err(too_much(format!("a key is {} bytes; the limit is 1 to {max}", key.len())));
    }
    Ok(())
}

/// Checks a value of a partition: it has at most 4 MiB.
///
/// # Errors
/// Where it has more.
pub fn check_value(value: &[u8]) -> Result<(), StorageError> {
    if value.len() > limits::MAX_STORAGE_VALUE_BYTES {
        let max = limits::MAX_STORAGE_VALUE_BYTES;
        return Err(too_much(format!("a value is {} bytes; the limit is {max}", value.len())));
    }
    Ok(())
}

/// Checks a guest's batch: its keys and values, their number and their sum.
///
/// # Errors
/// Where one of them is over its limit.
pub fn check_batch(writes: &[StorageWrite]) -> Result<(), StorageError> {
    if writes.len() > limits::MAX_STORAGE_BATCH {
        let max = limits::MAX_STORAGE_BATCH;
        return Err(too_much(format!("a batch has {} writes; the limit is {max}", writes.len())));
    }
    let mut bytes = 0;
    for write in writes {
        let (key, value) = match write {
            StorageWrite::Put(StorageEntry { key, value }) => (key, value.as_slice()),
            StorageWrite::Delete(key) => (key, [].as_slice()),
        };
        check_key(key)?;
        check_value(value)?;
        bytes += key.len() + value.len();
    }
    if bytes > limits::MAX_STORAGE_BATCH_BYTES {
        let max = limits::MAX_STORAGE_BATCH_BYTES;
        return Err(too_much(format!("a batch has {bytes} bytes; the limit is {max}")));
    }
    Ok(())
}

/// The most that a binding may store.
#[derive(Debug, Clone, Copy)]
pub struct SizeLimit(pub StorageSize);

impl SizeLimit {
    /// Checks a new total. A binding that is over a lowered limit may still delete.
    ///
    /// # Errors
    /// Where the total is over the limit and more than is used.
    pub fn check(&self, total: StorageSize, used: StorageSize) -> Result<(), StorageError> {
        let over = |total, used, limit| total > limit && total > used;
        if over(total.bytes, used.bytes, self.0.bytes) {
            let (total, most) = (total.bytes, self.0.bytes);
            return Err(too_much(format!(
                "the binding's storage would take {total} bytes; the limit `storageBytes` is {most}"
            )));
        }
        if over(total.keys, used.keys, self.0.keys) {
            let (total, most) = (total.keys, self.0.keys);
            return Err(too_much(format!(
                "the binding's storage would have {total} keys; the limit `storageKeys` is {most}"
            )));
        }
        Ok(())
    }
}
