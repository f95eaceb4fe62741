//! The whole of a store.

use crate::commit::Commit;
use crate::coordination::Coordination;
use crate::maintenance::Maintenance;
use crate::operations::OperationLog;
use crate::partitions::Partitions;
use crate::tables::Tables;

/// A whole store.
///
/// Reads, scans and transactions are async because another implementation asks a database over a
/// network. sled answers short calls at once, on the caller's thread, and moves long ones to a
/// blocking thread.
pub trait Store: OperationLog + Tables + Partitions + Maintenance + Coordination + 'static {
    /// Resolves when everything that was written before this call, to any part of the store, is on
    /// disk.
    fn commit(&self) -> Commit;
}
