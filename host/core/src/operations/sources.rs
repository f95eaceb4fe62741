//! Forgetting and listing by source, in all bindings of a company, and replacing what came from a source before.

use std::collections::HashSet;

use async_recursion::async_recursion as boxed;
use jiff::SignedDuration;
use parking_lot::Mutex;

use crate::access::{Act, Denied};
use crate::operations::forget::forgotten;
use crate::operations::guard::partly;
use crate::operations::prelude::*;
use crate::operations::runner::Target;
use crate::records::{Owner, Records};
use crate::records::sources::Since;
use memhost_sandbox::ForgetAnswer;
use memhost_store::{self as store, Lease, LockKind, StoreError};
use memhost_types::{
    Binding, BindingKey, FieldError, ForgetEffect, ForgetRequest, ForgottenAt, ForgottenSources, MAX_SOURCE_RECORDS,
    RecordHandle, RecordId, RecordRow, Scope, SourceRecord, SourceRecords, SourceRef, SourceSelector, SourcesRequest, limits,
};

/// The most operations of one call at a binding; each forgets at most 1,000 records.
const MOST_ROUNDS: usize = 100;

impl Service {
    /// Forgets what came from sources, at every binding of the company, whoever may read it: what is there, what waits to
    /// be captured, and what comes later of material that was captured before. What is captured from them afterwards is
    /// kept. A binding that fails does not stop the others.
    ///
    /// # Errors
    /// Where a field is not valid, the caller may not forget or is confined to an agent or a person, or the store fails.
    #[boxed]
    pub async fn forget_sources(
        &self,
        caller: &Caller,
        mut request: SourcesRequest,
    ) -> Result<ForgottenSources, ServiceError> {
        let company = request.scope.company_id.clone();
        self.admit_sources(caller, OperationKind::Forget, &mut request).await?;
        let received = self.clock.now();
        let (mut bindings, mut is_complete) = (Vec::new(), true);
        for binding in self.bindings.list(&company) {
            let at = self.forget_sources_at(caller, &request, &binding.key).await?;
            is_complete &= at.error.is_none();
            bindings.push(at);
        }
        if bindings.is_empty() {
            // Whether the caller may do it, and that nothing is there, is said as for every operation.
            let key = self.bindings.resolve(&company, None, None).map(|found| found.binding.key.clone());
            let mut step = ForgetSources::new(self, &request, key.ok(), HashSet::new());
            self.operate(caller, &mut step).await?;
        }
        let discarded = self.discard_of_sources(caller, &request, received).await?;
        Ok(ForgottenSources { bindings, discarded, is_complete })
    }

    async fn admit_sources(
        &self,
        caller: &Caller,
        kind: OperationKind,
        request: &mut SourcesRequest,
    ) -> Result<(), ServiceError> {
        // Before the token's own run is filled in.
        let narrow = names_no_more_than_whose(&request.scope);
        let may = caller.may_in(Act::Operate(kind), &mut request.scope);
        if let Err(denied) = may.and_then(|()| is_for_all(caller, kind)) {
            return Err(self.deny(caller, kind, Some(&request.scope.company_id), &denied).await);
        }
        self.usable(caller, &request.scope.company_id).await?;
        request.check()?;
        Ok(narrow?)
    }

    async fn forget_sources_at(
        &self,
        caller: &Caller,
        request: &SourcesRequest,
        key: &BindingKey,
    ) -> Result<ForgottenAt, ServiceError> {
        let mut at =
            ForgottenAt { binding_key: key.clone(), operation_ids: Vec::new(), forgotten: 0, hidden: 0, error: None };
        let mut tried = HashSet::new();
        for _ in 0..MOST_ROUNDS {
            let mut step = ForgetSources::new(self, request, Some(key.clone()), tried);
            match self.operate(caller, &mut step).await {
                Ok((id, forgotten, hidden)) => {
                    at.operation_ids.push(id);
                    at.forgotten += forgotten;
                    at.hidden += hidden;
                }
                Err(ServiceError::Operation { error, .. }) if error.field.is_none() => {
                    at.error = Some(error.message);
                    return Ok(at);
                }
                Err(error) => return Err(error),
            }
            if step.is_last() {
                return Ok(at);
            }
            tried = step.tried;
        }
        at.error = Some("there are more records than one request forgets; send it again".to_owned());
        Ok(at)
    }

    /// What is known of the records that came from sources, in all bindings, of those that the caller may read.
    ///
    /// # Errors
    /// Where a field is not valid, the caller may not list records, or the store fails.
    #[boxed]
    pub async fn list_sources(
        &self,
        caller: &Caller,
        mut request: SourcesRequest,
    ) -> Result<SourceRecords, ServiceError> {
        let company = request.scope.company_id.clone();
        self.admit_sources(caller, OperationKind::List, &mut request).await?;
        let reader = Reader::of(caller, &request.scope);
        let waits = |row: &RecordRow| self.reviews.waits(row.binding_id, &row.handle.provider_record_id);
        let may_list = |row: &RecordRow| reader.may_read(row) && !waits(row);
        let mut records = Vec::new();
        for binding in self.bindings.list(&company) {
            let most = MAX_SOURCE_RECORDS + 1 - records.len();
            let rows = self.records.of_sources(&binding, &request.sources, most, may_list).await?;
            records.extend(rows.into_iter().filter_map(|row| {
                Some(SourceRecord {
                    binding_key: binding.key.clone(),
                    handle: row.handle,
                    source: row.source?,
                    scope: row.scope,
                    operation_id: row.operation_id,
                    created_at: row.created_at,
                    visibility: row.visibility,
                })
            }));
            if records.len() > MAX_SOURCE_RECORDS {
                break;
            }
        }
        let more = records.len() > MAX_SOURCE_RECORDS;
        records.truncate(MAX_SOURCE_RECORDS);
        Ok(SourceRecords { records, more })
    }

    /// Hold this while something replaces what came from a source before, so that of two revisions one waits.
    pub(crate) async fn lock_source(&self, source: &SourceRef) -> Result<Lease, StoreError> {
        let selector = SourceSelector::of(source).unwrap_or_default();
        let name = serde_json::to_vec(&selector).unwrap_or_default();
        self.store.lock(LockKind::Records, &store::company_key(&source.company_id, &name)).await
    }

    /// Forgets what an operation has just written, where its source was forgotten meanwhile. Answers which.
    pub(crate) async fn forget_arrived(
        &self,
        binding: &Binding,
        arrived: Vec<(RecordHandle, SourceRef)>,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<HashSet<RecordId>, Refusal> {
        let mut gone = Vec::new();
        for (handle, source) in arrived {
            if self.records.is_forgotten(binding, &source, owner, since).await? {
                gone.push(handle);
            }
        }
        self.forget_for_host(binding, gone.clone(), None).await?;
        Ok(gone.into_iter().map(|handle| handle.provider_record_id).collect())
    }

    /// Forgets records at a binding for the host itself; a record of the operation says so, or for whom and of which source.
    pub(crate) async fn forget_for_host(
        &self,
        binding: &Binding,
        gone: Vec<RecordHandle>,
        of: Option<(&str, &SourceRef)>,
    ) -> Result<(), Refusal> {
        for handles in gone.chunks(limits::MAX_ITEMS) {
            let request = ForgetRequest {
                binding_key: Some(binding.key.clone()),
                scope: Scope::company(binding.company_id.clone()),
                handles: handles.to_vec(),
            };
            let forgotten = self.forget_of(&Caller::system(), request, of).await;
            forgotten.map_err(|error| {
                let message = format!("what was forgotten meanwhile could not be forgotten here: {error}");
                Refusal::new(memhost_types::OperationErrorCode::Host, message)
            })?;
        }
        Ok(())
    }
}

/// Sources are compared with those of records, whatever these were written for: a narrower scope would promise more.
fn names_no_more_than_whose(scope: &Scope) -> Result<(), FieldError> {
    let Scope { project_id, run_id, issue_id, namespace, session_key, .. } = scope;
    let set = [
        ("scope.projectId", project_id),
        ("scope.runId", run_id),
        ("scope.issueId", issue_id),
        ("scope.namespace", namespace),
        ("scope.sessionKey", session_key),
    ];
    match set.into_iter().find(|(_, value)| value.is_some()) {
        Some((field, _)) => {
            Err(FieldError::new(field, "is set, and sources are not narrowed by it; leave it out, and name the source"))
        }
        None => Ok(()),
    }
}

/// A source is forgotten for everybody, so whoever is confined to an agent or a person may not do it.
fn is_for_all(caller: &Caller, kind: OperationKind) -> Result<(), Denied> {
    if kind != OperationKind::Forget || caller.agent().is_none() && caller.person().is_none() {
        return Ok(());
    }
    let whom = if caller.agent().is_some() { "agent" } else { "person" };
    Err(Denied::whole(format!(
        "this token acts for one {whom}, and a source is forgotten for the whole company; forget its records by handle, \
         or send this with the token of an operator or of a company's administrator"
    )))
}

/// Forgets what a binding has of sources, at most 1,000 records.
struct ForgetSources<'a> {
    host: &'a Service,
    request: SourcesRequest,
    key: Option<BindingKey>,
    /// Records that an earlier round has forgotten or hidden.
    tried: HashSet<RecordId>,
    found: Mutex<Result<Vec<RecordHandle>, StoreError>>,
    binding: Option<Arc<Serving>>,
}

impl<'a> ForgetSources<'a> {
    fn new(host: &'a Service, request: &SourcesRequest, key: Option<BindingKey>, tried: HashSet<RecordId>) -> Self {
        Self { host, request: request.clone(), key, tried, found: Mutex::new(Ok(Vec::new())), binding: None }
    }

    /// Whether it found fewer records than it would have taken.
    fn is_last(&self) -> bool {
        self.found.lock().as_ref().is_ok_and(|found| found.len() < limits::MAX_ITEMS)
    }
}

impl Step for ForgetSources<'_> {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ForgetAnswer;
    type Response = (OperationId, u32, u32);

    fn target(&mut self) -> Target<'_> {
        (&mut self.request.scope, self.key.as_ref())
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        self.request.check()
    }

    fn check(&self, _: &Service) -> Result<(), Refusal> {
        let scope = &self.request.scope;
        let field = match (&scope.agent_id, &scope.subject_id) {
            (Some(_), _) => "scope.agentId",
            (_, Some(_)) => "scope.subjectId",
            _ => return Ok(()),
        };
        let message =
            "is set, and a source is forgotten for the whole company; leave it out, or forget records by handle";
        Err(FieldError::new(field, message).into())
    }

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        opened.keep_payload(serving, &self.request);
        self.binding = Some(Arc::clone(serving));
        Ok(())
    }

    /// First it is remembered: what is written from here on is forgotten by whoever writes it.
    async fn intent(&mut self, host: &Service, id: OperationId) -> Result<Writes, Refusal> {
        let Some(serving) = &self.binding else { return Ok(Writes::default()) };
        let now = host.clock.now();
        let before = now.checked_add(SignedDuration::from_nanos(1)).unwrap_or(now);
        let rows = host.records.forgets(&serving.binding, &self.request.sources, id, before, now).await?;
        Ok(rows.into())
    }

    async fn call(&self, serving: &Serving, id: OperationId) -> Result<Answer<ForgetAnswer>, Failure> {
        let is_new = |row: &memhost_types::RecordRow| !self.tried.contains(&row.handle.provider_record_id);
        let found =
            self.host.records.of_sources(&serving.binding, &self.request.sources, limits::MAX_ITEMS, is_new).await;
        let found = found.map(|rows| rows.into_iter().map(|row| row.handle).collect::<Vec<_>>());
        let handles = found.as_ref().ok().cloned().unwrap_or_default();
        *self.found.lock() = found;
        if handles.is_empty() {
            return Ok(Answer::without_call(ForgetAnswer::default()));
        }
        let request = ForgetRequest { binding_key: None, scope: self.request.scope.clone(), handles };
        serving.instances.forget(id, &request).await
    }

    fn completion(&self, answer: &ForgetAnswer) -> Completion {
        forgotten(answer)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: ForgetAnswer,
    ) -> Result<(OperationId, u32, u32), Refusal> {
        let found = std::mem::replace(&mut *self.found.lock(), Ok(Vec::new()))?;
        let (host, binding) = (answered.host, &answered.serving.binding);
        host.forget_waiting(binding, &found).await?;
        host.remove_traces_of(binding, &found, &self.request.sources).await?;
        let count = |is: fn(ForgetEffect) -> bool| {
            let of = answer.outcomes.iter().filter(|outcome| is(outcome.effect)).count();
            u32::try_from(of).unwrap_or(u32::MAX)
        };
        let hidden = count(|effect| matches!(effect, ForgetEffect::Soft | ForgetEffect::HistoryKept));
        // What is only hidden is still there, and stays whose it is.
        let gone = answer.outcomes.iter().filter(|outcome| outcome.effect == ForgetEffect::Hard);
        let rows = gone.map(|outcome| Records::remove(binding, &outcome.handle.provider_record_id)).collect();
        answered.ending.write_beside(rows);
        if let Some(rest) = answer.rest {
            return Err(partly("forgotten", answer.outcomes.len(), found.len(), &rest));
        }
        self.tried.extend(found.iter().map(|handle| handle.provider_record_id.clone()));
        *self.found.lock() = Ok(found);
        Ok((answered.id(), count(|effect| effect == ForgetEffect::Hard), hidden))
    }
}
