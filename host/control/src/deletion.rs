//! Removes what a deleted binding leaves: its provider's storage and files, its review items, and
//! records of an import that waited for it. `Bindings` keeps a mark until all of it is gone.

use memhost_queues::Reviews;
use memhost_queues::waiting;
use memhost_registry::bindings::Bindings;
use memhost_registry::versions::ServingBindings;
use memhost_store::Store;
use memhost_types::{Binding, CompanyId, Refusal};

/// Removes what a deleted binding has left, and then its mark. No call may use it any more. The
/// call can be repeated.
pub(crate) async fn finish(
    store: &dyn Store,
    (bindings, serving): (&Bindings, &ServingBindings),
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
    Ok(bindings.deletion_is_complete(binding).await?)
}

/// Finishes deletions that were cut short: those of a company, or all of them.
///
/// # Errors
/// Where something cannot be removed.
pub async fn finish_cut(
    store: &dyn Store,
    (bindings, serving): (&Bindings, &ServingBindings),
    company: Option<&CompanyId>,
) -> Result<(), Refusal> {
    for binding in bindings.deleted(company).await? {
        tracing::info!(company = %binding.company_id, binding = %binding.key, "what a deleted or \
            replaced binding has left is removed");
        finish(store, (bindings, serving), None, &binding).await?;
    }
    Ok(())
}
