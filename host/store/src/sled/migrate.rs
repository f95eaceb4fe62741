//! From each format to the next one. A store of a version before is what `tests/frozen` holds.
//!
//! A migration may be cut off anywhere and begin again: the format is written when everything else is on disk.

use super::failed;
use super::trees::Trees;
use crate::StoreError;

/// The format that this version writes.
pub(super) const FORMAT: u32 = 2;

/// Brings a store of format `found` forward.
pub(super) fn forward(trees: &Trees, found: u32) -> Result<(), StoreError> {
    if found < 2 {
        // 2 finds operations by session and hook, too, and keeps sums. Both are derived: opening makes them from the log.
        trees.index.clear().map_err(|error| failed("migrating", &error))?;
    }
    Ok(())
}
