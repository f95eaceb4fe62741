//! The embedded store, on sled. A write is durable after `Disk::flush`; nothing is acknowledged
//! before that.
//!
//! The operation log is one tree; a record is durable before the answer. Its indexes are in another
//! tree. They are derived and written a little later (`sled/index.rs`), because eight index keys
//! cost several times as much as a record.

mod backed_up;
mod backup;
mod compaction;
mod company_bytes;
mod cost_order;
mod disk;
mod fit;
mod gate;
mod index;
mod keys;
mod log;
mod named;
mod newest;
mod operations;
mod partition;
mod pool;
mod posting;
mod query;
mod remove;
mod repair;
mod row_cache;
mod state;
mod store;
mod sums;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod trees;
mod watch;

pub use self::backup::BackupError;
pub use self::repair::Repaired;
pub use self::store::{SledOptions, SledStore};
