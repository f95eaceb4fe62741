//! Deliveries whose source or scope was forgotten, or whose source was replaced by something newer,
//! after their event happened.

use crate::Background;
use memhost_records::{Ownership, Since};
use memhost_store::{Lease, StoreError};
use memhost_types::{Delivery, DeliveryStatus, OperationErrorCode, Refusal, SourceRef};

impl Background {
    /// Whether the source or the scope of a delivery was forgotten, or the source replaced by a
    /// later event, after its own event happened. One that may have reached the provider is tried
    /// all the same: only that says which records it has made. If two replace one source, one
    /// waits.
    pub(super) async fn is_old(
        &self,
        delivery: &Delivery,
        source: &SourceRef,
    ) -> Result<(Option<Lease>, bool), StoreError> {
        let lock = match delivery.replaces_source {
            true => Some(self.operations.lock_source(source).await?),
            false => None,
        };
        let Ok(binding) = self.bindings.get(&delivery.company_id, &delivery.binding_key) else {
            return Ok((lock, false));
        };
        let since = Since::Happened(delivery.happened_at());
        let ownership = Ownership::of(&binding, &delivery.scope, delivery.visibility).ok();
        let owner = ownership.as_ref().and_then(Ownership::owner);
        let of = (&delivery.scope, source);
        let is_old = delivery.operation_id.is_none()
            && self.records.is_forgotten(&binding, of, owner, since).await?;
        Ok((lock, is_old))
    }

    /// Ends a delivery whose source or scope was forgotten, or whose source was replaced. Its
    /// material does not stay.
    pub(super) async fn give_up(&self, delivery: &Delivery) {
        let message = "its source or its scope was forgotten, or something newer took its place, \
                       before it was captured";
        let refusal = Refusal::new(OperationErrorCode::Outdated, message);
        let after = Delivery {
            status: DeliveryStatus::Discarded,
            payload: None,
            metadata: None,
            due_at: None,
            finished_at: Some(self.clock.now()),
            error: Some(refusal.error),
            ..delivery.clone()
        };
        if let Err(error) = self.deliveries.write(delivery, &after).await {
            tracing::error!(%error, delivery = %delivery.id.0, "a delivery could not be written");
        }
        if let Err(error) = self.tenancy.note_forgetting().await {
            tracing::error!(%error, "what was forgotten could not be noted");
        }
    }
}
