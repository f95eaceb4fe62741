//! One operation that forgets by source, at one binding.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::names_nobody;
use crate::operations::forget::{forgotten, settle};
use crate::operations::forgotten::Origin;
use crate::operations::guard::partly;
use crate::operations::prelude::*;
use crate::operations::runner::Target;
use memhost_records::Selection;
use memhost_sandbox::ForgetAnswer;
use memhost_store::StoreError;
use memhost_types::{
    Binding, BindingKey, FieldError, ForgetEffect, ForgetRequest, RecordHandle, RecordId,
    RecordRow, SourcesRequest, limits,
};

/// What one operation has found of sources.
#[derive(Default)]
struct Found {
    handles: Vec<RecordHandle>,
    /// Those of an import that had not reached the provider yet.
    waited: HashSet<RecordId>,
}

/// Forgets what a binding has of sources, at most 1,000 records.
pub(super) struct ForgetSources<'a> {
    host: &'a Service,
    request: SourcesRequest,
    key: Option<BindingKey>,
    /// Records that an earlier round has forgotten or hidden.
    pub(super) tried: HashSet<RecordId>,
    found: Mutex<Result<Found, StoreError>>,
    binding: Option<Arc<Serving>>,
}

impl<'a> ForgetSources<'a> {
    pub(super) fn new(
        host: &'a Service,
        request: &SourcesRequest,
        key: Option<BindingKey>,
        tried: HashSet<RecordId>,
    ) -> Self {
        Self {
            host,
            request: request.clone(),
            key,
            tried,
            found: Mutex::new(Ok(Found::default())),
            binding: None,
        }
    }

    /// Whether it found fewer records than it would have taken.
    pub(super) fn is_last(&self) -> bool {
        self.found.lock().as_ref().is_ok_and(|found| found.handles.len() < limits::MAX_ITEMS)
    }

    async fn find(&self, binding: &Binding) -> Result<Found, StoreError> {
        let is_new = |row: &RecordRow| !self.tried.contains(&row.handle.provider_record_id);
        let what = Selection::Sources(&self.request.sources);
        let rows = self.host.records.select(binding, what, limits::MAX_ITEMS, is_new).await?;
        let handles: Vec<RecordHandle> = rows.into_iter().map(|row| row.handle).collect();
        // Before the provider is asked: none of these is given to it any more.
        let waited = self.host.forget_waiting(binding, &handles).await?;
        Ok(Found { handles, waited })
    }
}

impl Step for ForgetSources<'_> {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ForgetAnswer;
    type Response = (OperationId, u32, u32);

    fn target(&mut self) -> Target<'_> {
        (&mut self.request.scope, self.key.as_ref())
    }

    /// A scope that is left out in part would be a larger one.
    fn names_exactly(&self) -> bool {
        true
    }

    /// It may read every row of the binding.
    fn wanted(&self) -> u32 {
        u32::MAX
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        self.request.check()
    }

    fn check(&self, _: &Service) -> Result<(), Refusal> {
        Ok(names_nobody(&self.request.scope)?)
    }

    async fn prepare(
        &mut self,
        _: &Service,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        opened.keep_payload(&serving.binding, &self.request);
        self.binding = Some(Arc::clone(serving));
        Ok(())
    }

    /// First it is remembered: what is written from here on is forgotten by whoever writes it.
    async fn intent(&mut self, host: &Service, id: OperationId) -> Result<Writes, Refusal> {
        let Some(serving) = &self.binding else { return Ok(Writes::default()) };
        Ok(host.remembered(&serving.binding, &self.request, id).await?.into())
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ForgetAnswer>, Failure> {
        let found = self.find(&serving.binding).await;
        let handles = found.as_ref().map(|found| found.handles.clone()).unwrap_or_default();
        *self.found.lock() = found;
        if handles.is_empty() {
            return Ok(Answer::without_call(ForgetAnswer::default()));
        }
        let request =
            ForgetRequest { binding_key: None, scope: self.request.scope.clone(), handles };
        serving.instances.forget(id, &request).await
    }

    fn completion(&self, answer: &ForgetAnswer) -> Completion {
        forgotten(answer)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        mut answer: ForgetAnswer,
    ) -> Result<(OperationId, u32, u32), Refusal> {
        let found = std::mem::replace(&mut *self.found.lock(), Ok(Found::default()))?;
        let (host, binding) = (answered.host, &answered.serving.binding);
        host.remove_traces_of(binding, &found.handles, Origin::Sources(&self.request.sources))
            .await?;
        settle(&mut answer, &found.waited);
        let count = |is: fn(ForgetEffect) -> bool| {
            let of = answer.outcomes.iter().filter(|outcome| is(outcome.effect)).count();
            u32::try_from(of).unwrap_or(u32::MAX)
        };
        let hidden =
            count(|effect| matches!(effect, ForgetEffect::Soft | ForgetEffect::HistoryKept));
        answered.remove_rows(&answer).await?;
        if let Some(rest) = answer.rest {
            return Err(partly("forgotten", answer.outcomes.len(), found.handles.len(), &rest));
        }
        self.tried.extend(found.handles.iter().map(|handle| handle.provider_record_id.clone()));
        *self.found.lock() = Ok(found);
        Ok((answered.id(), count(|effect| effect == ForgetEffect::Hard), hidden))
    }
}
