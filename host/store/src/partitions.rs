//! Partitions: the private storage of each binding.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Commit, StoreError};
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};

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
