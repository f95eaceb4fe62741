//! Capture: the one operation that may be tried again with the same effect, be held back, and leave jobs.

use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::operations::call::CallFailed;
use crate::operations::pipeline::closed;
use crate::operations::pipeline::refuse_with;
use crate::operations::privacy::must_wait;
use crate::operations::privacy::private;
use crate::operations::record::Completion;
use crate::operations::record::OpenOperation;
use memhost_sandbox::CaptureAnswer;
use memhost_store::{StoreError, TableWrite};
use memhost_types::{
    CaptureRequest, CaptureResponse, Delivery, Held, OnBudget, OperationErrorCode, OperationId, OperationKind, Outcome,
};

/// What goes with an attempt to capture something. What it writes is written in one step with the operation's record.
pub(crate) trait Attempt: Sync {
    /// The id that the provider is told: the same for every attempt at one thing.
    fn told(&self, own: OperationId) -> OperationId {
        own
    }

    /// Whether somebody has looked at it already.
    fn is_approved(&self) -> bool {
        false
    }

    /// Whether the host has it on disk, and need not keep it a second time.
    fn is_kept(&self) -> bool {
        false
    }

    /// The provider is about to be called.
    fn begun(&self, _own: OperationId) -> Result<Vec<TableWrite>, StoreError> {
        Ok(Vec::new())
    }

    /// It has ended.
    fn ended(&self, _own: OperationId, _how: Result<&CaptureAnswer, &Refusal>) -> Result<Vec<TableWrite>, StoreError> {
        Ok(Vec::new())
    }
}

/// Somebody asks, and asks again by itself.
struct Once;

impl Attempt for Once {}

impl Service {
    /// Takes in something that happened. Where a budget is used up or somebody must look at it first, and the binding says
    /// so, the host keeps it and says where.
    ///
    /// # Errors
    /// As [`ServiceError`] says; the same for every operation.
    pub async fn capture(&self, caller: &Caller, request: CaptureRequest) -> Result<CaptureResponse, ServiceError> {
        self.capture_as(caller, request, &Once).await
    }

    pub(crate) async fn capture_as(
        &self,
        caller: &Caller,
        mut request: CaptureRequest,
        attempt: &impl Attempt,
    ) -> Result<CaptureResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Capture, &mut request.scope).await?;
        open.set_provenance(Some(&request.source), request.hook.as_ref());
        open.set_cited([request.metadata.as_ref(), request.payload.metadata.as_ref()].into_iter());
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let serving = match self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await {
            Ok(serving) => serving,
            Err(refusal) => return self.refuse_capture(caller, open, refusal, request, attempt).await,
        };
        if !attempt.is_approved() {
            if must_wait(&serving, &mut request) {
                let message = "there is personal data in it, and somebody must look at it before it leaves for another \
                               system; `memhost review list` shows it";
                let refusal = Refusal::new(OperationErrorCode::ReviewRequired, message);
                return self.refuse_capture(caller, open, refusal, request, attempt).await;
            }
            if let Err(refusal) = private(&serving, &mut request) {
                return self.refuse_capture(caller, open, refusal, request, attempt).await;
            }
        }
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let begun = attempt.begun(operation_id).map_err(ServiceError::Audit)?;
        open.write_intent(begun).await.map_err(ServiceError::Audit)?;
        let (told, asked) = (attempt.told(operation_id), &request);
        let called = self
            .run(&mut open, Arc::clone(&serving), |serving| async move { serving.instances.capture(told, asked).await })
            .await;
        let answer = match called {
            Ok(answer) => answer,
            Err(unanswered) => return give_up(open, unanswered, attempt).await,
        };
        let judged = self.judge_new(&serving, &request.scope, operation_id, &answer.value.records).await?;
        let jobs = self.new_jobs(&mut open, &serving, &answer.value.jobs).await?;
        open.leaves(answer.value.jobs.clone(), &jobs).map_err(ServiceError::Audit)?;
        let beside = attempt.ended(operation_id, Ok(&answer.value)).map_err(ServiceError::Audit)?;
        let CaptureAnswer { records, jobs: left, usage } = answer.value;
        let trace = Completion {
            records: records.clone(),
            record_count: records.len(),
            usage: usage.iter().cloned().chain(judged).collect(),
            log: answer.log,
            provider_us: Some(answer.provider_us),
            beside,
        };
        open.close(trace, None).await?;
        Ok(CaptureResponse { operation_id, records, jobs: left, held: None, usage })
    }

    /// A capture that the provider is not called with: it is kept where the binding says so, and refused otherwise.
    async fn refuse_capture(
        &self,
        caller: &Caller,
        open: OpenOperation,
        refusal: Refusal,
        request: CaptureRequest,
        attempt: &impl Attempt,
    ) -> Result<CaptureResponse, ServiceError> {
        let operation_id = open.id().map_err(closed)?;
        if attempt.is_kept() {
            let beside = attempt.ended(operation_id, Err(&refusal)).map_err(ServiceError::Audit)?;
            return refuse_with(open, refusal, beside).await;
        }
        let binding = open.operation().and_then(|operation| operation.binding_key.clone());
        let binding = binding.and_then(|key| self.bindings.get(&request.scope.company_id, &key).ok());
        let waits = |binding: &memhost_types::Binding| match refusal.error.code {
            OperationErrorCode::BudgetExceeded => binding.policy.on_budget == OnBudget::Queue,
            code => code == OperationErrorCode::ReviewRequired,
        };
        let Some(binding) = binding.filter(|binding| waits(binding)) else {
            return refuse_with(open, refusal, Vec::new()).await;
        };
        let delivery = self.kept(caller, &binding, operation_id, request, &refusal);
        let reason = refusal.error.message.clone();
        let beside = self.keep(&delivery).await?;
        let refusal = Refusal { outcome: Outcome::Held, ..refusal };
        open.close(Completion { beside, ..Completion::default() }, Some(refusal)).await?;
        self.wake.notify_one();
        let held = Some(Held { delivery_id: delivery.id, reason });
        Ok(CaptureResponse { operation_id, records: Vec::new(), jobs: Vec::new(), held, usage: Vec::new() })
    }

    /// What is written for a capture that the host keeps: its delivery, and its place in the review queue.
    async fn keep(&self, delivery: &Delivery) -> Result<Vec<TableWrite>, ServiceError> {
        let mut beside = crate::work::hooks::Hooks::writes(None, delivery).map_err(ServiceError::Audit)?;
        if let Some(item) = self.held_item(delivery) {
            let change = crate::review::Reviews::change(&item).map_err(ServiceError::Audit)?;
            beside.push(TableWrite { table: change.table, key: change.key, new: change.new });
        }
        Ok(beside)
    }
}

async fn give_up<T>(open: OpenOperation, unanswered: CallFailed, attempt: &impl Attempt) -> Result<T, ServiceError> {
    let CallFailed { refusal, log, provider_us } = unanswered;
    let operation_id = open.id().map_err(closed)?;
    let (error, outcome) = (refusal.error.clone(), refusal.outcome);
    let beside = attempt.ended(operation_id, Err(&refusal)).map_err(ServiceError::Audit)?;
    open.close(Completion { log, provider_us, beside, ..Completion::default() }, Some(refusal)).await?;
    Err(ServiceError::Operation { operation_id, outcome, error })
}
