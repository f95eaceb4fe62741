//! An index of the rows by the time at which their records expire, so that what is due is found
//! without reading all rows; both are written in one step.

use std::collections::HashMap;

use jiff::Timestamp;
use uuid::Uuid;

use super::keys::prefix;
use memhost_store::{self as store, Store, StoreError, Table, TableWrite};
use memhost_types::{BindingId, CompanyId, RecordId, RecordRow};

/// Where the time is in a key, after the prefix: microseconds since 1970, in the order of bytes.
const TIME_BYTES: usize = 8;

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

fn ordered(at: Timestamp) -> [u8; TIME_BYTES] {
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

/// The binding, the time and the record of an entry.
pub(super) fn parse(key: &[u8]) -> Option<(BindingId, Timestamp, RecordId)> {
    // The company's name ends with a zero byte.
    let rest = &key[key.iter().position(|byte| *byte == 0)? + 1..];
    let (binding, rest) = rest.split_first_chunk::<16>()?;
    let (at, record) = rest.split_first_chunk::<TIME_BYTES>()?;
    let micros = (u64::from_be_bytes(*at) ^ (1 << 63)).cast_signed();
    let record = std::str::from_utf8(record).ok()?.parse().ok()?;
    let at = Timestamp::from_microsecond(micros).ok()?;
    Some((BindingId(Uuid::from_bytes(*binding)), at, record))
}

/// The first time of each binding below a prefix.
pub(super) async fn first_times(
    store: &dyn Store,
    prefix: &[u8],
) -> Result<HashMap<BindingId, Timestamp>, StoreError> {
    let (mut found, mut entries) =
        (HashMap::new(), store::scan_all(store, Table::RecordExpiries, prefix));
    while let Some((key, _)) = entries.next().await? {
        if let Some((binding, at, _)) = parse(&key) {
            // The entries of a binding are in the order of time.
            found.entry(binding).or_insert(at);
        }
    }
    Ok(found)
}
