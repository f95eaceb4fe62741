//! Whether a binding can have anything: a binding that was never granted what its provider needs
//! holds nothing, and must not stand in the way of an export or an erasure.

use crate::Operations;
use async_recursion::async_recursion as boxed;
use memhost_tenancy::ServiceError;
use memhost_types::{Binding, OperationFilter, OperationKind, Outcome};

/// Kinds of operations after which a provider may have something.
const LEAVES_DATA: [OperationKind; 5] = [
    OperationKind::Capture,
    OperationKind::RecordUpsert,
    OperationKind::Correct,
    OperationKind::Import,
    OperationKind::Extraction,
];

impl Operations {
    /// Whether a provider can have nothing of a binding: it may make no requests, has stored
    /// nothing here, the host knows no record of it, and no operation has written one.
    ///
    /// # Errors
    /// Where the store or the directory cannot be read.
    #[boxed]
    pub async fn holds_no_data(&self, binding: &Binding) -> Result<bool, ServiceError> {
        if !binding.grants.http.is_empty()
            || self.records.has_any(binding).await?
            || !self.serving.stored_nothing(binding).await?
        {
            return Ok(false);
        }
        for kind in LEAVES_DATA {
            let filter = OperationFilter {
                kind: Some(kind),
                outcome: Some(Outcome::Succeeded),
                binding_id: Some(binding.known_as()),
                ..OperationFilter::default()
            };
            let mut before = None;
            loop {
                let page = self.store.operations(&binding.company_id, &filter, before, 1).await?;
                if !page.operations.is_empty() {
                    return Ok(false);
                }
                // An empty page may lead on.
                before = page.next_before;
                if before.is_none() {
                    break;
                }
            }
        }
        Ok(true)
    }
}
