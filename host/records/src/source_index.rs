//! An entry for each field by which the source of a record can be named, so that the records of a
//! source are found without reading all rows of their binding. An entry may be of a record that has
//! another source now, or is gone; who reads looks at the row. A row is never without its entries:
//! both are written in one step.

use memhost_store::{self as store, Table, TableWrite};
use memhost_types::{BindingId, CompanyId, RecordRow, SourceSelector};

/// The beginning of the keys of what a source's field names: a name of equal length for each, so
/// that none is the beginning of another one.
pub(super) fn prefix(
    company: &CompanyId,
    binding: BindingId,
    (name, value): (&str, &str),
) -> Vec<u8> {
    let digest = blake3::hash(&[name.as_bytes(), b"\0", value.as_bytes()].concat());
    store::company_key(company, &[binding.0.as_bytes(), &digest.as_bytes()[..16]].concat())
}

fn entries(row: &RecordRow) -> impl Iterator<Item = Vec<u8>> {
    let record = row.handle.provider_record_id.as_str().as_bytes();
    let things = row.source.iter().flat_map(SourceSelector::things_of);
    things.map(move |thing| [&prefix(&row.company_id, row.binding_id, thing)[..], record].concat())
}

/// Adds what changes when a row takes the place of another one.
pub(super) fn change(
    before: Option<&RecordRow>,
    after: Option<&RecordRow>,
    writes: &mut Vec<TableWrite>,
) {
    let old: Vec<Vec<u8>> = before.into_iter().flat_map(entries).collect();
    let new: Vec<Vec<u8>> = after.into_iter().flat_map(entries).collect();
    let gone = old.iter().filter(|key| !new.contains(key)).cloned();
    writes.extend(gone.map(|key| TableWrite::new(Table::RecordSources, key, None)));
    let come = new.into_iter().filter(|key| !old.contains(key));
    writes.extend(come.map(|key| TableWrite::new(Table::RecordSources, key, Some(Vec::new()))));
}
