//! The removal of rows that are too old, for tables whose keys have the time of a row, newest
//! first.

use jiff::Timestamp;
use uuid::Uuid;

use crate::change::{Change, Expected};
use crate::error::StoreError;
use crate::scan::scan_all;
use crate::table::{Table, company_key};
use crate::whole::Store;
use memhost_types::CompanyId;

/// Rows that are removed in one step.
const AT_ONCE: usize = 200;

/// What becomes of a row that is old.
pub enum Old {
    /// It stays as it is.
    Stays,
    /// Its value is replaced.
    Replaced(Vec<u8>),
    /// It goes, with these rows beside it.
    Removed(Vec<Change>),
}

/// Goes through a company's rows of a table, below a prefix, that are older than `cutoff`. Answers
/// how many were changed or removed; durable when this returns.
///
/// # Errors
/// Where a row cannot be read or written; those before it are gone then.
pub async fn sweep(
    store: &dyn Store,
    (table, prefix): (Table, &[u8]),
    company: &CompanyId,
    cutoff: Timestamp,
    old: impl Fn(&[u8]) -> Result<Old, StoreError> + Send + Sync,
) -> Result<u64, StoreError> {
    let ms = u64::try_from(cutoff.as_millisecond()).unwrap_or(0);
    let newest = Uuid::from_u128(u128::from(ms) << 80).into_bytes().map(|byte| !byte);
    let prefix = company_key(company, prefix);
    let from = [&prefix[..], &newest[..]].concat();
    let (mut changes, mut count) = (Vec::new(), 0);
    let mut rows = scan_all(store, table, &prefix).from(Some(&from));
    while let Some((key, value)) = rows.next().await? {
        let (new, beside) = match old(&value)? {
            Old::Stays => continue,
            Old::Replaced(new) => (Some(new), Vec::new()),
            Old::Removed(beside) => (None, beside),
        };
        count += 1;
        // What somebody changes at this moment stays until the next time.
        let row = Change { table, key, expected: Expected::Value(value), new };
        changes.push([vec![row], beside].concat());
        if changes.len() >= AT_ONCE {
            write(store, &mut changes).await?;
        }
    }
    write(store, &mut changes).await?;
    Ok(count)
}

async fn write(store: &dyn Store, changes: &mut Vec<Vec<Change>>) -> Result<(), StoreError> {
    for change in changes.drain(..) {
        drop(store.transact(&change).await?);
    }
    store.commit().await
}
