//! The keys of rows. All keys of a binding are below its id.

use memhost_store as store;
use memhost_types::{BindingId, CompanyId, RecordId, RecordRow};

/// The beginning of every key of a binding.
pub(super) fn prefix(company: &CompanyId, binding: BindingId) -> Vec<u8> {
    store::company_key(company, binding.0.as_bytes())
}

/// The key of a record's row.
pub(super) fn key(company: &CompanyId, binding: BindingId, record: &RecordId) -> Vec<u8> {
    [&prefix(company, binding)[..], record.as_str().as_bytes()].concat()
}

/// The key of a row.
pub(super) fn key_of(row: &RecordRow) -> Vec<u8> {
    key(&row.company_id, row.binding_id, &row.handle.provider_record_id)
}
