//! An index of the rows by the time at which their records expire, so that what is due is found
//! without reading all rows; both are written in one step.

use std::collections::HashSet;

use jiff::Timestamp;
use uuid::Uuid;

use super::keys::prefix;
use memhost_store::{self as store, Store, StoreError, Table, TableWrite};
use memhost_types::{BindingId, CompanyId, RecordId, RecordRow};

/// Where the time is in a key, after the prefix: microseconds since 1970, in the order of bytes.
pub(super) const TIME_BYTES: usize = 8;

fn entry(row: &RecordRow) -> Option<Vec<u8>> {
    let record = &row.handle.provider_record_id;
    row.expires_at.map(|at| key_at(&row.company_id, row.binding_id, at, record))
}

pub(super) fn key_at(
    company: &CompanyId,
    binding: BindingId,
    at: Timestamp,
    record: &RecordId,
) -> Vec<u8> {
    [&prefix(company, binding)[..], &ordered(at), record.as_str().as_bytes()].concat()
}

pub(super) fn ordered(at: Timestamp) -> [u8; TIME_BYTES] {
    (at.as_microsecond().cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// Adds what changes when a row takes the place of another one.
pub(super) fn change(
    before: Option<&RecordRow>,
    after: Option<&RecordRow>,
    writes: &mut Vec<TableWrite>,
) {
    let (old, new) = (before.and_then(entry), after.and_then(entry));
    if old == new {
        return;
    }
    writes.extend(old.map(|key| TableWrite::new(Table::RecordExpiries, key, None)));
    writes.extend(new.map(|key| TableWrite::new(Table::RecordExpiries, key, Some(Vec::new()))));
}

/// The bindings below a prefix that have records which expire.
pub(super) async fn bindings(
    store: &dyn Store,
    prefix: &[u8],
) -> Result<HashSet<BindingId>, StoreError> {
    let (mut found, mut entries) =
        (HashSet::new(), store::scan_all(store, Table::RecordExpiries, prefix));
    while let Some((key, _)) = entries.next().await? {
        // The company's name ends with a zero byte.
        let rest = key.iter().position(|byte| *byte == 0).and_then(|end| key.get(end + 1..));
        let id = rest.and_then(|rest| rest.first_chunk::<16>());
        found.extend(id.map(|bytes| BindingId(Uuid::from_bytes(*bytes))));
    }
    Ok(found)
}
