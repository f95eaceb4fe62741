//! The delivery of an event to a binding, and of a capture that the host keeps.

use std::time::Duration;

use crate::Operations;
use memhost_access::Caller;
use memhost_ports::new_id;
use memhost_queues::{Deliveries, Reviews};
use memhost_store::{StoreError, TableWrite};
use memhost_types::{
    Binding, CaptureRequest, Delivery, DeliveryId, DeliveryStatus, HookEvent, HookKind,
    OperationErrorCode, OperationId, Refusal,
};

impl Operations {
    /// A delivery of an event to a binding.
    pub fn delivery(&self, caller: &Caller, event: &HookEvent, binding: &Binding) -> Delivery {
        let now = self.clock.now();
        Delivery {
            id: DeliveryId(new_id(&*self.clock)),
            company_id: binding.company_id.clone(),
            binding_id: binding.known_as(),
            binding_key: binding.key.clone(),
            hook: caller.hook_of(event),
            principal: caller.principal().clone(),
            scope: event.scope.clone(),
            source: event.source.clone(),
            payload: event.payload.clone(),
            mode: event.mode,
            metadata: event.metadata.clone(),
            visibility: event.visibility,
            replaces_source: event.replaces_source,
            replaces_of_everybody: event.replaces_source && caller.is_for_everybody(),
            status: DeliveryStatus::Pending,
            attempts: 0,
            received_at: now,
            // Recall is not tried again: its caller does not wait for it.
            due_at: (event.hook_kind != HookKind::PreRunHydrate).then_some(now),
            finished_at: None,
            operation_id: None,
            last_operation_id: None,
            records: Vec::new(),
            jobs: Vec::new(),
            recall: None,
            error: None,
        }
    }

    /// A capture that the host keeps: a delivery of its own.
    pub fn kept(
        &self,
        caller: &Caller,
        binding: &Binding,
        operation_id: OperationId,
        request: CaptureRequest,
        refusal: &Refusal,
    ) -> Delivery {
        let is_held = refusal.error.code == OperationErrorCode::ReviewRequired;
        let now = self.clock.now();
        let wait = refusal.error.retry_after_ms.map(Duration::from_millis).unwrap_or_default();
        let reopens =
            jiff::SignedDuration::try_from(wait).ok().and_then(|wait| now.checked_add(wait).ok());
        let event = HookEvent {
            hook_kind: request
                .hook
                .as_ref()
                .map_or(HookKind::ManualCapture, |hook| hook.hook_kind.clone()),
            hook_id: format!("capture-{operation_id}"),
            triggered_at: request.hook.as_ref().map_or(now, |hook| hook.triggered_at),
            actor_agent_id: request.hook.as_ref().and_then(|hook| hook.actor_agent_id.clone()),
            heartbeat_run_id: request.hook.as_ref().and_then(|hook| hook.heartbeat_run_id.clone()),
            binding_key: None,
            scope: request.scope,
            source: Some(request.source),
            payload: Some(request.payload),
            mode: request.mode,
            metadata: request.metadata,
            visibility: request.visibility,
            replaces_source: request.replaces_source,
            query: None,
            top_k: None,
            token_budget: None,
            deadline_ms: None,
            wait_ms: None,
        };
        Delivery {
            status: if is_held { DeliveryStatus::Held } else { DeliveryStatus::Pending },
            due_at: if is_held { None } else { Some(reopens.unwrap_or(now)) },
            error: Some(refusal.error.clone()),
            ..self.delivery(caller, &event, binding)
        }
    }

    /// What is written for a delivery to be as it is now: its rows, and its place in the review
    /// queue where it is held.
    ///
    /// # Errors
    /// Where a row cannot be encoded.
    pub fn delivery_rows(
        &self,
        before: Option<&Delivery>,
        after: &Delivery,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let mut rows = Deliveries::writes(before, after)?;
        if let Some(item) = self.held_item(after) {
            rows.push(Reviews::row(&item)?);
        }
        Ok(rows)
    }
}
