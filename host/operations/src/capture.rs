//! Capture: the one operation that may be tried again with the same effect, be held back, and leave
//! jobs.

use crate::prelude::*;
use crate::privacy::{must_wait, private, redact_approved, redact_secrets, refuse_secrets};
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use jiff::Timestamp;
use memhost_records::{Since, check_owner};
use memhost_sandbox::CaptureAnswer;
use memhost_store::{StoreError, TableWrite};
use memhost_types::{
    Binding, CaptureRequest, CaptureResponse, Delivery, FieldError, Held, JsonObject, OnBudget,
    OperationErrorCode, Outcome, Principal, Replacement, Visibility,
};

/// What goes with an attempt to capture something. Its rows are written in one step with the
/// operation's record.
pub trait Attempt: Sync {
    /// The operation id that the provider gets: the same for every attempt.
    fn told(&self, own: OperationId) -> OperationId {
        own
    }

    /// The sender of the event. `None`: the caller.
    fn sender(&self) -> Option<&Principal> {
        None
    }

    /// Whether a person has approved it already.
    fn is_approved(&self) -> impl Future<Output = bool> + Send {
        std::future::ready(false)
    }

    /// Whether the host has it on disk, and need not keep it a second time.
    fn is_kept(&self) -> bool {
        false
    }

    /// Whether a replacement also takes records that are private to others. `None`: if the caller
    /// may take them.
    fn replaces_of_everybody(&self) -> Option<bool> {
        None
    }

    /// When the event happened. `None`: now.
    fn happened_at(&self) -> Option<Timestamp> {
        None
    }

    /// The provider is about to be called.
    fn begun(&self, _own: OperationId) -> Result<Vec<TableWrite>, StoreError> {
        Ok(Vec::new())
    }

    /// It has ended.
    fn ended(
        &self,
        _own: OperationId,
        _how: Result<&CaptureResponse, &Refusal>,
    ) -> Result<Vec<TableWrite>, StoreError> {
        Ok(Vec::new())
    }
}

/// The attempt of a caller that asks again by itself.
struct Once;

impl Attempt for Once {}

impl Operations {
    /// Captures something that happened. Where a budget is used up or a person must look at it
    /// first, and the binding says so, the host keeps it and says where.
    ///
    /// # Errors
    /// As [`ServiceError`] says; the same for every operation.
    #[boxed]
    pub async fn capture(
        &self,
        caller: &Caller,
        request: CaptureRequest,
    ) -> Result<CaptureResponse, ServiceError> {
        let _lock = match request.replaces_source {
            true => Some(self.lock_source(&request.source).await?),
            false => None,
        };
        self.capture_as(caller, request, &Once).await
    }

    /// The same for an attempt that is part of something else.
    ///
    /// # Errors
    /// As [`Operations::capture`].
    #[boxed]
    pub async fn capture_as(
        &self,
        caller: &Caller,
        request: CaptureRequest,
        attempt: &impl Attempt,
    ) -> Result<CaptureResponse, ServiceError> {
        let response = self.operate(caller, &mut Capture::new(caller, request, attempt)).await?;
        if response.held.is_some() {
            self.wake.notify_one();
        }
        Ok(response)
    }

    /// The binding that keeps what it refuses for this reason.
    fn keeping_binding(&self, opened: &Opened, refusal: &Refusal) -> Option<Arc<Binding>> {
        let operation = opened.operation();
        let binding =
            self.bindings.get(&operation.company_id, operation.binding_key.as_ref()?).ok()?;
        let keeps = match refusal.error.code {
            OperationErrorCode::BudgetExceeded => binding.policy.on_budget == OnBudget::Queue,
            code => code == OperationErrorCode::ReviewRequired,
        };
        keeps.then_some(binding)
    }
}

struct Capture<'a, A> {
    caller: &'a Caller,
    request: CaptureRequest,
    attempt: &'a A,
    /// Made where the host keeps the capture instead of calling the provider.
    kept: Option<Delivery>,
    ownership: Option<Ownership>,
    /// The records that it replaces.
    replaces: Option<Replacement>,
    /// When its event happened. `None`: now.
    happened_at: Option<Timestamp>,
    /// Who made it, as the policies of the binding answer it.
    created_by: Option<String>,
}

impl<'a, A: Attempt> Capture<'a, A> {
    fn new(caller: &'a Caller, request: CaptureRequest, attempt: &'a A) -> Self {
        let (kept, ownership, replaces, happened_at, created_by) = (None, None, None, None, None);
        Self { caller, request, attempt, kept, ownership, replaces, happened_at, created_by }
    }

    /// When the event happened that a caller captures directly, as far as it says so.
    fn told_at(&self, received_at: Timestamp) -> Option<Timestamp> {
        self.request.hook.as_ref().map(|hook| hook.triggered_at.min(received_at))
    }

    /// The earlier records of the source, which are to be forgotten.
    fn replacement(&self, opened: &Opened) -> Option<Replacement> {
        let operation = opened.operation();
        let of_everybody = self.attempt.replaces_of_everybody();
        self.request.replaces_source.then(|| Replacement {
            operation_id: self.attempt.told(operation.id),
            principal: operation.principal.clone(),
            happened_at: self.happened_at.unwrap_or(operation.started_at),
            of_everybody: of_everybody.unwrap_or_else(|| self.caller.is_for_everybody()),
        })
    }
}

impl<A: Attempt> Capture<'_, A> {
    /// Refuses the event of a caller that is older than a forgetting of its source or its scope, or
    /// than what took its place. Deliveries are looked at before they are tried.
    async fn check_age(
        &self,
        host: &Operations,
        serving: &Serving,
        ownership: &Ownership,
    ) -> Result<(), Refusal> {
        let (None, Some(at)) = (self.attempt.happened_at(), self.happened_at) else {
            return Ok(());
        };
        let of = (&self.request.scope, &self.request.source);
        let since = Since::Happened(at);
        match host.records.is_forgotten(&serving.binding, of, ownership.owner(), since).await? {
            false => Ok(()),
            true => {
                let message = "its source or its scope was forgotten, or something newer took its \
                               place, after this event happened; there is nothing to do";
                Err(Refusal::new(OperationErrorCode::Outdated, message))
            }
        }
    }
}

impl<A: Attempt> Step for Capture<'_, A> {
    const KIND: OperationKind = OperationKind::Capture;
    type Answer = CaptureAnswer;
    type Response = CaptureResponse;

    asks_with!(request);

    fn check_first(&self) -> Result<(), FieldError> {
        check_owner(&self.request.scope, self.request.visibility.unwrap_or_default())
    }

    fn stamp(&mut self, caller: &Caller) -> Result<(), Denied> {
        if self.request.replaces_source {
            caller.may_replace(&self.request.scope.company_id)?;
        }
        caller.stamp_source(&mut self.request.source)?;
        self.request.hook.as_mut().map_or(Ok(()), |hook| caller.stamp_hook(hook))
    }

    fn describe(&self, opened: &mut Opened) {
        let request = &self.request;
        opened.set_provenance(Some(&request.source), request.hook.as_ref());
        if let Some(sender) = self.attempt.sender() {
            opened.set_principal(sender);
        }
        opened.note_context(request.metadata.as_ref());
        opened.note_context(request.payload.metadata.as_ref());
        let told = self.attempt.told(opened.id());
        opened.set_told(told);
        opened
            .set_cited([request.metadata.as_ref(), request.payload.metadata.as_ref()].into_iter());
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        let ownership =
            Ownership::of(&serving.binding, &self.request.scope, self.request.visibility)?;
        let started_at = opened.operation().started_at;
        self.happened_at = self.attempt.happened_at().or_else(|| self.told_at(started_at));
        self.check_age(host, serving, &ownership).await?;
        self.replaces = self.replacement(opened);
        let CaptureRequest { scope, payload, metadata, .. } = &mut self.request;
        // A provider may prefer what the request says to what the payload says.
        let own = metadata.is_some().then_some(metadata);
        let metadata = own.into_iter().chain([&mut payload.metadata]);
        let guard = host.policies.guard(&opened.operation().principal, &serving.binding);
        self.created_by = guard.stamp(scope, metadata).into_iter().flatten().next();
        let happened_at = self.happened_at;
        if ownership.visibility() == Visibility::Company {
            redact_secrets(&mut self.request);
            refuse_secrets(&mut self.request)?;
        }
        self.ownership = Some(ownership.of_material(happened_at, self.replaces.clone()));
        if !self.attempt.is_approved().await {
            if must_wait(serving, &mut self.request) {
                let message = "there is personal data in it, and a person must look at it before \
                               it leaves for another \
                               system; `memhost review list` shows it";
                return Err(Refusal::new(OperationErrorCode::ReviewRequired, message));
            }
            private(serving, &mut self.request)?;
        } else {
            redact_approved(serving, &mut self.request);
        }
        opened.keep_payload(&serving.binding, &self.request);
        Ok(())
    }

    fn metadata(&self) -> Vec<&JsonObject> {
        [&self.request.payload.metadata, &self.request.metadata].into_iter().flatten().collect()
    }

    fn ownership(&self) -> Option<&Ownership> {
        self.ownership.as_ref()
    }

    fn created_by(&self, _: usize) -> Option<&str> {
        self.created_by.as_deref()
    }

    async fn intent(&mut self, _: &Operations, id: OperationId) -> Result<Writes, Refusal> {
        Ok(self.attempt.begun(id)?.into())
    }

    fn since(&self) -> Option<Since> {
        self.happened_at.map(Since::Happened)
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<CaptureAnswer>, Failure> {
        let scope = self
            .ownership
            .as_ref()
            .map_or_else(|| self.request.scope.clone(), |own| own.scope(&self.request.scope));
        let request = CaptureRequest { scope, ..self.request.clone() };
        serving.instances.capture(self.attempt.told(id), &request).await
    }

    fn completion(&self, answer: &CaptureAnswer) -> Completion {
        Completion::records(answer.records.clone(), &answer.usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: CaptureAnswer,
    ) -> Result<CaptureResponse, Refusal> {
        let CaptureAnswer { records, jobs, .. } = answer;
        answered.ending.set_jobs(jobs.clone());
        // Only this answer names the jobs: they are registered even where the records could not be
        // judged.
        let judged = answered.judge_new(&self.request.scope, &records, &Author::Judged).await;
        answered.register_jobs(&jobs, self.replaces.as_ref()).await?;
        judged?;
        let in_review = answered.in_review(&records).await?;
        if let Some(by) = &self.replaces {
            let (host, binding, request) =
                (answered.host, &answered.serving.binding, &self.request);
            host.replace_if_any_counts(binding, &request.source, &request.scope, by, &records)
                .await?;
        }
        Ok(CaptureResponse {
            operation_id: answered.id(),
            records,
            jobs,
            held: None,
            in_review,
            usage: answered.usage(),
        })
    }

    fn refused(
        &mut self,
        host: &Operations,
        opened: &Opened,
        refusal: Refusal,
    ) -> Ended<CaptureResponse> {
        let binding =
            (!self.attempt.is_kept()).then(|| host.keeping_binding(opened, &refusal)).flatten();
        let Some(binding) = binding else { return Ended::Failed(refusal) };
        let operation_id = opened.id();
        let delivery =
            host.kept(self.caller, &binding, operation_id, self.request.clone(), &refusal);
        let held = Some(Held { delivery_id: delivery.id, reason: refusal.error.message.clone() });
        self.kept = Some(delivery);
        let (records, jobs, in_review) = (Vec::new(), Vec::new(), Vec::new());
        let response =
            CaptureResponse { operation_id, records, jobs, held, in_review, usage: Vec::new() };
        Ended::Held(response, Refusal { outcome: Outcome::Held, ..refusal })
    }

    async fn writes(
        &mut self,
        host: &Operations,
        ending: &mut Ending,
        ended: &Ended<CaptureResponse>,
    ) -> Result<Writes, Refusal> {
        let own = ending.id();
        let rows = match ended {
            Ended::Succeeded(response) => self.attempt.ended(own, Ok(response))?,
            Ended::Failed(refusal) => self.attempt.ended(own, Err(refusal))?,
            Ended::Held(..) => {
                let rows = self
                    .kept
                    .as_ref()
                    .map(|delivery| host.delivery_rows(None, delivery))
                    .transpose()?;
                rows.unwrap_or_default()
            }
        };
        Ok(rows.into())
    }
}
