//! Forget: makes records unreachable.

use crate::guard::{may_change, own_handles, partly};
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ForgetAnswer;
use memhost_store::StoreError;
use memhost_tenancy::reader_of;
use memhost_types::{
    Binding, ForgetEffect, ForgetOutcome, ForgetRequest, ForgetResponse, Principal, RecordHandle,
    RecordId, Scope, SourceRef,
};
use std::collections::HashSet;

impl Operations {
    /// Makes records unreachable.
    ///
    /// # Errors
    /// As [`ServiceError`] says. A record that is not there is no error but an outcome.
    #[boxed]
    pub async fn forget(
        &self,
        caller: &Caller,
        request: ForgetRequest,
    ) -> Result<ForgetResponse, ServiceError> {
        self.forget_of(caller, request, None).await
    }

    /// The same, where the host does it for somebody, of a source: its operation names both.
    #[boxed]
    pub(crate) async fn forget_of(
        &self,
        caller: &Caller,
        request: ForgetRequest,
        of: Option<(&Principal, &SourceRef)>,
    ) -> Result<ForgetResponse, ServiceError> {
        if let Some(binding) = self.waits_as_a_whole(&request).await? {
            return self.forget_only_waiting(caller, request, &binding).await;
        }
        let of = of.map(|(principal, source)| (principal.clone(), source.clone()));
        self.operate(caller, &mut Forget { of, ..Forget::new(request) }).await
    }

    /// The binding that answers, where its provider has nothing yet because its records wait for a
    /// decision.
    async fn waits_as_a_whole(
        &self,
        request: &ForgetRequest,
    ) -> Result<Option<Arc<Binding>>, ServiceError> {
        let Scope { company_id, agent_id, .. } = &request.scope;
        if request.check().is_err() || self.tenancy.closed(company_id).is_some() {
            return Ok(None);
        }
        let resolved =
            self.bindings.resolve(company_id, agent_id.as_ref(), request.binding_key.as_ref());
        match resolved.map(|resolution| resolution.binding) {
            Ok(binding) if self.waiting.has(&binding) && self.never_served(&binding).await? => {
                Ok(Some(binding))
            }
            _ => Ok(None),
        }
    }

    async fn forget_only_waiting(
        &self,
        caller: &Caller,
        mut request: ForgetRequest,
        binding: &Binding,
    ) -> Result<ForgetResponse, ServiceError> {
        let mut opened =
            self.begin(caller, OperationKind::Forget, &mut request.scope, true).await?;
        opened.set_binding(binding);
        let reader = reader_of(caller, &request.scope);
        let mut known = Vec::new();
        for handle in &request.handles {
            if self.records.may_read(binding, &reader, &handle.provider_record_id).await? {
                known.push(handle.clone());
            }
        }
        let guard = self.policies.guard(caller.principal(), binding);
        let records = known.iter().map(|handle| &handle.provider_record_id);
        if let Err(refusal) = may_change(self, &guard, binding, records).await {
            return Err(opened.refuse(refusal).await.into());
        }
        let mut ending = opened.write_intent(Vec::new()).await?.called();
        let waited = self.forget_waiting(binding, &known).await?;
        self.remove_traces(binding, &known).await?;
        self.tenancy.note_forgetting().await?;
        let is_gone = |handle: &RecordHandle| waited.contains(&handle.provider_record_id);
        let gone: Vec<RecordHandle> =
            request.handles.iter().filter(|handle| is_gone(handle)).cloned().collect();
        ending.set_records(gone.clone(), gone.len());
        let outcome = |handle: RecordHandle| {
            let effect = if is_gone(&handle) { ForgetEffect::Hard } else { ForgetEffect::NotFound };
            ForgetOutcome { handle, effect }
        };
        let outcomes = request.handles.into_iter().map(outcome).collect();
        let answer = ForgetResponse { operation_id: ending.id(), outcomes, usage: Vec::new() };
        let removed = gone.iter().map(|handle| &handle.provider_record_id);
        ending.change_rows(self.records.remove(binding, removed).await?);
        Ok(ending.complete(Ended::Succeeded(answer), Vec::new()).await.into_result()?)
    }
}

/// The forgotten records that an operation names.
pub(super) fn forgotten(answer: &ForgetAnswer) -> Completion {
    let gone = answer.outcomes.iter().filter(|outcome| outcome.effect != ForgetEffect::NotFound);
    Completion::records(gone.map(|outcome| outcome.handle.clone()).collect(), &answer.usage)
}

/// Says of records that waited to be written that they are gone: the provider never had them.
pub(super) fn settle(answer: &mut ForgetAnswer, waited: &HashSet<RecordId>) {
    for outcome in &mut answer.outcomes {
        if outcome.effect == ForgetEffect::NotFound
            && waited.contains(&outcome.handle.provider_record_id)
        {
            outcome.effect = ForgetEffect::Hard;
        }
    }
}

impl Answered<'_> {
    /// Removes the rows of records that are gone. A record that is only hidden is still there, and
    /// keeps its owner.
    pub(super) async fn remove_rows(&mut self, answer: &ForgetAnswer) -> Result<(), StoreError> {
        let gone = answer.outcomes.iter().filter(|outcome| outcome.effect == ForgetEffect::Hard);
        let gone = gone.map(|outcome| &outcome.handle.provider_record_id);
        let changes = self.host.records.remove(&self.serving.binding, gone).await?;
        self.ending.change_rows(changes);
        Ok(())
    }
}

struct Forget {
    request: ForgetRequest,
    /// Records of an import that had not reached the provider yet.
    waited: HashSet<RecordId>,
    /// The handles of the request that the caller may not know of are not among these.
    known: Vec<RecordHandle>,
    /// For whom the host does it, and of which source.
    of: Option<(Principal, SourceRef)>,
}

impl Forget {
    fn new(request: ForgetRequest) -> Self {
        Self { request, waited: HashSet::new(), known: Vec::new(), of: None }
    }
}

impl Step for Forget {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ForgetAnswer;
    type Response = ForgetResponse;

    asks_with!(request);

    fn describe(&self, opened: &mut Opened) {
        if let Some((principal, source)) = &self.of {
            opened.set_principal(principal);
            opened.set_provenance(Some(source), None);
        }
    }

    fn handles(&self) -> &[RecordHandle] {
        &self.request.handles
    }

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        own_handles(serving, "handles", &self.request.handles)?;
        opened.keep_payload(&serving.binding, &self.request);
        // First: what is given to the provider from here on is forgotten there.
        for handle in &self.request.handles {
            if host
                .records
                .may_read(&serving.binding, opened.reader(), &handle.provider_record_id)
                .await?
            {
                self.known.push(handle.clone());
            }
        }
        let known = self.known.iter().map(|handle| &handle.provider_record_id);
        let guard = host.policies.guard(&opened.operation().principal, &serving.binding);
        may_change(host, &guard, &serving.binding, known).await?;
        self.waited = host.forget_waiting(&serving.binding, &self.known).await?;
        Ok(())
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ForgetAnswer>, Failure> {
        if self.known.is_empty() {
            return Ok(Answer::without_call(ForgetAnswer::default()));
        }
        let request = ForgetRequest { handles: self.known.clone(), ..self.request.clone() };
        serving.instances.forget(id, &request).await
    }

    fn completion(&self, answer: &ForgetAnswer) -> Completion {
        forgotten(answer)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        mut answer: ForgetAnswer,
    ) -> Result<ForgetResponse, Refusal> {
        settle(&mut answer, &self.waited);
        // Also of those that are not found: an earlier attempt may have ended between the provider
        // and this.
        let gone: Vec<RecordHandle> =
            answer.outcomes.iter().map(|outcome| outcome.handle.clone()).collect();
        let binding = &answered.serving.binding;
        answered.host.remove_traces(binding, &gone).await?;
        answered.remove_rows(&answer).await?;
        if let Some(rest) = answer.rest {
            return Err(partly("forgotten", gone.len(), self.known.len(), &rest));
        }
        // One outcome for each handle, in the order of the request. What the caller may not know of
        // is not there.
        let mut known = answer.outcomes.into_iter().peekable();
        let outcomes = self.request.handles.iter().map(|handle| {
            known.next_if(|outcome| outcome.handle == *handle).unwrap_or_else(|| ForgetOutcome {
                handle: handle.clone(),
                effect: ForgetEffect::NotFound,
            })
        });
        Ok(ForgetResponse {
            operation_id: answered.id(),
            outcomes: outcomes.collect(),
            usage: answered.usage(),
        })
    }
}
