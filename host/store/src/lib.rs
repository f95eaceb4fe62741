//! Persistent state: the operation log, and tables of small records that change together. `sled` is
//! the embedded default; no type of sled appears outside of `store/src/sled`.
//!
//! Another implementation provides the five traits that [`Store`] joins: [`OperationLog`],
//! [`Tables`], [`Partitions`], [`Maintenance`] and [`Coordination`], and passes the suite of tests.
//!
//! Durability: a write is on disk, and survives a power failure, when its [`Commit`] says so.
//! Callers that wait at the same time share one flush.

mod change;
mod commit;
mod compaction_mark;
mod coordination;
mod cost_order;
mod directory;
mod disk;
mod error;
mod maintenance;
mod memory;
mod operations;
mod partitions;
mod posting;
mod quota;
mod reserve;
mod scan;
mod sled;
#[cfg(any(test, feature = "suite"))]
#[allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
pub mod suite;
mod sum_rows;
mod sweep;
mod table;
mod tables;
mod value;
mod whole;

pub use self::change::{Change, Expected, TablePage, TableWrite, Transacted};
pub use self::commit::Commit;
pub use self::compaction_mark::CompactionMark;
pub use self::coordination::{
    ChangeFeed, Coordination, Lease, Leases, LocalLeases, LocalLocks, LockKind,
};
pub use self::cost_order::{
    CostsTrimmed, cost_number, cost_number_key, cost_numbers, cost_place, costs_trimmed_key,
    encode_cost_place,
};
pub use self::directory::lock_directory;
pub use self::disk::{DiskLevel, DiskSeam, DiskState, DiskStep, OnFatal};
pub use self::error::StoreError;
pub use self::maintenance::{BackupReport, Compacted, Maintenance, Writing, mend};
pub use self::memory::MemoryStore;
pub use self::operations::{
    LogPage, OperationLog, TIME_SLACK, interrupted_at_start, next_sequence,
};
pub use self::partitions::{Partitions, SizeLimit, check_batch, check_key, check_value};
pub use self::posting::{BLOCK, Posting};
pub use self::quota::Held;
pub use self::scan::{Found, FoundPage, OperationScan, Scan, matching, scan_all, scan_operations};
pub use self::sled::{BackupError, Repaired, SledOptions, SledStore};
pub use self::sum_rows::{
    MOST_SUM_ROWS, check_sum_row, other_sums, sum_key, summed_count, summed_count_key, summed_key,
    sums_prefix,
};
pub use self::sweep::{Old, sweep};
pub use self::table::{
    DueKind, Table, company_key, company_of, due_at, due_key, due_prefix, newest_first,
};
pub use self::tables::{Tables, write};
pub use self::value::{decode, encode, unchanged};
pub use self::whole::Store;
