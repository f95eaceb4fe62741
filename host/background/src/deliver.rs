//! Hooks: accepting events, calling the bindings that take them, and trying again.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use std::time::Duration;

use crate::Background;
use crate::subscribers::subscribers;
use jiff::Timestamp;
use memhost_access::{Act, Caller, Denied};
use memhost_operations::Attempt;
use memhost_queues::Deliveries;
use memhost_queues::due_queue::Taken;
use memhost_queues::{RetryPolicy, wait_for};
use memhost_records::check_owner;
use memhost_registry::versions::binding_deleted;
use memhost_store::{StoreError, TableWrite};
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, CaptureRequest, CaptureResponse, Delivery, DeliveryStatus, HookEvent, HookKind,
    HookReceipt, OnBudget, OperationErrorCode, OperationId, OperationKind, Principal, Refusal,
    SourcePayload, SourceRef,
};

impl Background {
    /// Accepts an event. Its deliveries are on disk when this returns; `pre_run_hydrate` has also
    /// been answered by then.
    ///
    /// # Errors
    /// Where the event is invalid, or names a binding that does not exist. A provider's failure is
    /// no error here: the delivery has it.
    #[boxed]
    pub async fn deliver(
        self: Arc<Self>,
        caller: &Caller,
        mut event: HookEvent,
    ) -> Result<HookReceipt, ServiceError> {
        let bindings = self.takers(caller, &mut event).await?;
        if bindings.is_empty() {
            return self.not_taken(caller, event).await;
        }
        let deliveries: Vec<Delivery> = bindings
            .iter()
            .map(|binding| self.operations.delivery(caller, &event, binding))
            .collect();
        // The bearer of a run's token does not get what became of another run's event, and asking
        // for it leaves nothing.
        let is_own =
            |known: &Delivery| caller.run().is_none() || known.scope.run_id == event.scope.run_id;
        let Some(accepted) = self.deliveries.accept_if(deliveries, is_own).await? else {
            let denied = Denied::of_another_run();
            return Err(self
                .tenancy
                .deny(caller, OperationKind::Control, Some(&event.scope.company_id), &denied)
                .await);
        };
        let is_duplicate = !accepted.is_empty() && accepted.iter().all(|(_, is_new)| !is_new);
        let (deliveries, context) = match event.hook_kind {
            HookKind::PreRunHydrate => {
                // A task of its own: the deliveries end also if the caller goes away.
                let recalled = tokio::spawn(Arc::clone(&self).hydrate(event.clone(), accepted));
                let (deliveries, context) = recalled.await.map_err(ServiceError::host)??;
                (deliveries, Some(context))
            }
            _ => (self.settle(&event, accepted).await?, None),
        };
        Ok(HookReceipt {
            hook_id: event.hook_id,
            is_duplicate,
            deliveries,
            not_taken: None,
            context,
        })
    }

    /// Checks an event and stamps what the host knows of it. Answers the bindings that take it.
    pub(super) async fn takers(
        &self,
        caller: &Caller,
        event: &mut HookEvent,
    ) -> Result<Vec<Arc<Binding>>, ServiceError> {
        let may =
            caller.may_in(Act::Deliver, &mut event.scope).and_then(|()| caller.stamp_event(event));
        let may = may.and_then(|()| match event.replaces_source {
            true => caller.may_replace(&event.scope.company_id),
            false => Ok(()),
        });
        if let Err(denied) = may {
            let company = event.scope.company_id.clone();
            return Err(self
                .tenancy
                .deny(caller, OperationKind::Control, Some(&company), &denied)
                .await);
        }
        event.check()?;
        // Also of an event that nobody takes, whose record would need room.
        self.tenancy.check_quota(caller, OperationKind::Capture, &event.scope.company_id)?;
        check_owner(&event.scope, event.visibility.unwrap_or_default())?;
        if let (Some(source), Some(payload)) = (&event.source, &event.payload) {
            capture(event, source.clone(), payload.clone()).check()?;
        }
        if self.operations.ensure_default(caller, event).await? {
            return Ok(Vec::new());
        }
        Ok(subscribers(&self.bindings, event)?)
    }

    /// Captures: the first attempt begins now. A caller that asked for it waits for the result.
    async fn settle(
        self: &Arc<Self>,
        event: &HookEvent,
        accepted: Vec<(Delivery, bool)>,
    ) -> Result<Vec<Delivery>, ServiceError> {
        self.wake.notify_one();
        let wait = Duration::from_millis(u64::from(event.wait_ms.unwrap_or(0)));
        let until = tokio::time::Instant::now() + wait;
        let mut deliveries = Vec::new();
        for (delivery, _) in accepted {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            deliveries.push(self.deliveries.wait(&delivery.company_id, delivery.id, left).await?);
        }
        Ok(deliveries)
    }

    /// Tries a delivery once.
    pub(crate) async fn attempt(self: Arc<Self>, taken: Taken<Delivery>) {
        let delivery = &taken.item;
        let (Some(source), Some(payload)) = (&delivery.source, &delivery.payload) else { return };
        let attempt = DeliveryAttempt { before: delivery, service: &self };
        let binding = self.bindings.get(&delivery.company_id, &delivery.binding_key);
        if !binding.is_ok_and(|binding| binding.known_as() == delivery.binding_id) {
            let after = attempt.failed(None, &binding_deleted(&delivery.binding_key));
            if let Err(error) = self.deliveries.write(delivery, &after).await {
                tracing::error!(%error, delivery = %delivery.id.0, "a delivery could not be \
                    written");
            }
            return;
        }
        if let Some((refusal, wait)) =
            self.must_wait(&delivery.company_id, &delivery.binding_key, delivery.binding_id).await
        {
            self.postpone(delivery, &refusal, wait).await;
            drop(taken);
            self.deliveries.moved();
            return;
        }
        let (_lock, is_old) = match self.is_old(delivery, source).await {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(%error, delivery = %delivery.id.0, "a delivery could not be tried");
                tokio::time::sleep(self.retry.first).await;
                return;
            }
        };
        if is_old {
            self.give_up(delivery).await;
            return;
        }
        let request = CaptureRequest {
            binding_key: Some(delivery.binding_key.clone()),
            scope: delivery.scope.clone(),
            source: source.clone(),
            payload: payload.clone(),
            hook: Some(delivery.hook.clone()),
            mode: delivery.mode,
            metadata: delivery.metadata.clone(),
            visibility: delivery.visibility,
            replaces_source: delivery.replaces_source,
        };
        match self.operations.capture_as(&Caller::worker(), request, &attempt).await {
            // Its record and the delivery's say how it ended.
            Ok(_) | Err(ServiceError::Operation { .. }) => {}
            // Nothing was recorded, so it is still due. The disk may need a moment.
            Err(error) => {
                tracing::error!(%error, delivery = %delivery.id.0, "a delivery could not be tried");
                tokio::time::sleep(self.retry.first).await;
            }
        }
        drop(taken);
        self.deliveries.moved();
    }
}

impl Background {
    /// Tries a delivery later, because its provider would not be asked now: that is no try, and
    /// leaves no operation.
    async fn postpone(&self, delivery: &Delivery, refusal: &Refusal, wait: Duration) {
        let due_at = Some(self.after_wait(wait));
        let after = Delivery { due_at, error: Some(refusal.error.clone()), ..delivery.clone() };
        if let Err(error) = self.deliveries.write(delivery, &after).await {
            tracing::error!(%error, delivery = %delivery.id.0, "a delivery that waits could not be \
                written");
            tokio::time::sleep(self.retry.first).await;
        }
    }
}

fn capture(event: &HookEvent, source: SourceRef, payload: SourcePayload) -> CaptureRequest {
    CaptureRequest {
        binding_key: None,
        scope: event.scope.clone(),
        source,
        payload,
        hook: Some(event.context()),
        mode: event.mode,
        metadata: event.metadata.clone(),
        visibility: event.visibility,
        replaces_source: event.replaces_source,
    }
}

/// One attempt at a delivery.
struct DeliveryAttempt<'a> {
    before: &'a Delivery,
    service: &'a Background,
}

impl DeliveryAttempt<'_> {
    fn failed(&self, own: Option<OperationId>, refusal: &Refusal) -> Delivery {
        let (before, service) = (self.before, self.service);
        let retry: &RetryPolicy = &service.retry;
        let attempts = before.attempts + 1;
        let asked = refusal.error.retry_after_ms.map(Duration::from_millis);
        let code = refusal.error.code;
        let policy = service.bindings.get(&before.company_id, &before.binding_key);
        let queues = policy.is_ok_and(|binding| binding.policy.on_budget == OnBudget::Queue);
        let (status, attempts, due_at) = match code {
            // The binding keeps what exceeds its budget until the budget resets. A wait is no
            // failed attempt.
            code if code.is_a_wait() || (code == OperationErrorCode::BudgetExceeded && queues) => {
                let at = service.after_wait(wait_for(code, asked, retry));
                (DeliveryStatus::Pending, before.attempts, Some(at))
            }
            OperationErrorCode::ReviewRequired => (DeliveryStatus::Held, before.attempts, None),
            code if code.is_worth_another_try() => {
                match retry.next(&*service.clock, attempts, asked) {
                    Some(at) => (DeliveryStatus::Pending, attempts, Some(at)),
                    None => (DeliveryStatus::Dead, attempts, None),
                }
            }
            _ => (DeliveryStatus::Dead, attempts, None),
        };
        Delivery {
            status,
            attempts,
            due_at,
            finished_at: (status == DeliveryStatus::Dead).then(|| service.clock.now()),
            operation_id: before.operation_id.or(own),
            last_operation_id: own,
            error: Some(refusal.error.clone()),
            ..before.clone()
        }
    }
}

impl Attempt for DeliveryAttempt<'_> {
    fn sender(&self) -> Option<&Principal> {
        Some(&self.before.principal)
    }

    fn told(&self, own: OperationId) -> OperationId {
        self.before.operation_id.unwrap_or(own)
    }

    async fn is_approved(&self) -> bool {
        self.service.operations.is_approved(self.before).await
    }

    fn is_kept(&self) -> bool {
        true
    }

    fn replaces_of_everybody(&self) -> Option<bool> {
        Some(self.before.replaces_of_everybody)
    }

    fn happened_at(&self) -> Option<Timestamp> {
        Some(self.before.happened_at())
    }

    fn begun(&self, own: OperationId) -> Result<Vec<TableWrite>, StoreError> {
        match self.before.operation_id {
            Some(_) => Ok(Vec::new()),
            // After a crash from here on, the next attempt tells the provider the same id.
            None => Deliveries::writes(
                Some(self.before),
                &Delivery { operation_id: Some(own), ..self.before.clone() },
            ),
        }
    }

    fn ended(
        &self,
        own: OperationId,
        how: Result<&CaptureResponse, &Refusal>,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let after = match how {
            Ok(response) => Delivery {
                status: DeliveryStatus::Delivered,
                attempts: self.before.attempts + 1,
                due_at: None,
                finished_at: Some(self.service.clock.now()),
                operation_id: Some(self.told(own)),
                last_operation_id: Some(own),
                payload: None,
                metadata: None,
                records: response.records.clone(),
                jobs: response.jobs.clone(),
                error: None,
                ..self.before.clone()
            },
            Err(refusal) => self.failed(Some(own), refusal),
        };
        self.service.operations.delivery_rows(Some(self.before), &after)
    }
}
