//! What a deleted binding leaves to be removed: its provider's storage and files, its review items,
//! and records of an import that waited for it. A mark says so. It is stored in one step with the
//! deletion and removed at the end, so that a deletion that was cut short is finished at the next
//! start, or when the company is erased.

use crate::companies::waiting;
use crate::review::Reviews;
use crate::versions::serving::ServingBindings;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{Binding, CompanyId, Refusal};

/// The prefix of the marks.
const DELETING: &[u8] = b"deleting\0";

fn key(binding: &Binding) -> Vec<u8> {
    [DELETING, &store::company_key(&binding.company_id, binding.id.0.as_bytes())].concat()
}

/// The change that marks a binding as deleted and not removed.
pub(crate) fn mark(binding: &Binding) -> Result<Change, StoreError> {
    Ok(Change::always(Table::Host, key(binding), Some(store::encode("deleted binding", binding)?)))
}

/// Removes what a deleted binding has left, and then its mark. No call may use it any more. The
/// call can be repeated.
pub(crate) async fn finish(
    store: &dyn Store,
    serving: &ServingBindings,
    reviews: Option<&Reviews>,
    binding: &Binding,
) -> Result<(), Refusal> {
    if let Some(reviews) = reviews {
        reviews.forget(binding.id);
    }
    Reviews::remove(store, &binding.company_id, binding.id).await?;
    waiting::remove(store, &binding.company_id, binding.id).await?;
    memhost_records::remove_binding(store, &binding.company_id, binding.id).await?;
    serving.remove_stored(binding).await?;
    store::write(store, &[Change::always(Table::Host, key(binding), None)]).await?;
    Ok(())
}

/// Finishes deletions that were cut short: those of a company, or all of them.
pub(crate) async fn finish_cut(
    store: &dyn Store,
    serving: &ServingBindings,
    company: Option<&CompanyId>,
) -> Result<(), Refusal> {
    let of_company = company.map(|company| store::company_key(company, b"")).unwrap_or_default();
    let mut marks = store::scan_all(store, Table::Host, &[DELETING, &of_company].concat());
    while let Some((_, binding)) = marks.next_row::<Binding>("deleted binding").await? {
        tracing::warn!(company = %binding.company_id, binding = %binding.key, "a deletion was cut \
            short; it is finished now");
        finish(store, serving, None, &binding).await?;
    }
    Ok(())
}
