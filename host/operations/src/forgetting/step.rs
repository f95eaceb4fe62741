//! One operation that forgets the records of sources or of a scope one by one, at one binding.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::wanted::{Gone, Wanted, What, number};
use crate::forget::{forgotten, settle};
use crate::guard::partly;
use crate::prelude::*;
use crate::runner::Target;
use memhost_sandbox::ForgetAnswer;
use memhost_store::StoreError;
use memhost_types::{
    BindingKey, FieldError, ForgetEffect, ForgetRequest, ListRequest, OperationErrorCode, Outcome,
    RecordHandle, RecordId, RecordRow, Scope, Snippet, SourcesRequest, limits,
};

/// Pages of the provider that are read to see what the host does not know.
const MOST_PAGES: usize = 1_000;

/// What one operation has found.
#[derive(Default)]
struct Found {
    handles: Vec<RecordHandle>,
    /// Those of an import that had not reached the provider yet.
    waited: HashSet<RecordId>,
    /// The provider's list did not end.
    is_endless: bool,
}

/// Why it cannot be said what is there.
enum Unknown {
    Store(StoreError),
    Call(Failure),
}

impl From<StoreError> for Unknown {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for Unknown {
    fn from(failure: Failure) -> Self {
        Self::Call(failure)
    }
}

/// Forgets what is wanted of a binding, at most 1,000 records: those that the host knows, and of a
/// scope then those that only the provider's list has.
pub(super) struct ForgetWanted<'a> {
    host: &'a Operations,
    wanted: Wanted,
    key: Option<BindingKey>,
    /// Records that an earlier round has forgotten or hidden.
    pub(super) tried: HashSet<RecordId>,
    found: Mutex<Result<Found, StoreError>>,
    binding: Option<Arc<Serving>>,
}

impl<'a> ForgetWanted<'a> {
    pub(super) fn new(
        host: &'a Operations,
        wanted: &Wanted,
        key: Option<BindingKey>,
        tried: HashSet<RecordId>,
    ) -> Self {
        let found = Mutex::new(Ok(Found::default()));
        Self { host, wanted: wanted.clone(), key, tried, found, binding: None }
    }

    /// Whether it found fewer records than it would have taken.
    pub(super) fn is_last(&self) -> bool {
        self.found.lock().as_ref().is_ok_and(|found| found.handles.len() < limits::MAX_ITEMS)
    }

    async fn find(
        &self,
        serving: &Serving,
        by: OperationId,
        calls: &mut Answer<ForgetAnswer>,
    ) -> Result<Found, Unknown> {
        let (host, binding) = (self.host, &serving.binding);
        let is_meant = |row: &RecordRow| {
            self.wanted.has(row, by) && !self.tried.contains(&row.handle.provider_record_id)
        };
        let what = self.wanted.selection();
        let rows = host.records.select(binding, what, limits::MAX_ITEMS, is_meant).await?;
        let mut found =
            Found { handles: rows.into_iter().map(|row| row.handle).collect(), ..Found::default() };
        if matches!(self.wanted.what, What::Scope) && found.handles.len() < limits::MAX_ITEMS {
            self.list(serving, calls, &mut found).await?;
        }
        // Before the provider is asked: none of these is given to it any more.
        found.waited = host.forget_waiting(binding, &found.handles).await?;
        Ok(found)
    }

    /// Adds what only the provider knows.
    async fn list(
        &self,
        serving: &Serving,
        calls: &mut Answer<ForgetAnswer>,
        found: &mut Found,
    ) -> Result<(), Unknown> {
        let Scope { company_id, agent_id, subject_id, namespace, .. } = self.wanted.scope.clone();
        let request = ListRequest {
            binding_key: None,
            scope: Scope { agent_id, subject_id, namespace, ..Scope::company(company_id) },
            cursor: None,
            limit: Some(limits::MAX_PAGE),
            metadata_filter: None,
            filter: None,
        };
        let (mut cursor, mut seen) = (None::<String>, HashSet::new());
        for _ in 0..MOST_PAGES {
            let page = calls.add(serving.instances.list(&request, cursor.clone()).await?);
            calls.metered.extend(page.usage.into());
            let mut items = page.items;
            self.host
                .records
                .keep_visible(&serving.binding, &self.wanted.reader, None, None, &mut items)
                .await?;
            for snippet in items {
                let is_new = seen.insert(snippet.handle.provider_record_id.clone());
                if is_new && self.is_only_there(serving, &snippet).await? {
                    found.handles.push(snippet.handle);
                }
                if found.handles.len() >= limits::MAX_ITEMS {
                    return Ok(());
                }
            }
            match page.next {
                None => return Ok(()),
                next if next == cursor => break,
                next => cursor = next,
            }
        }
        found.is_endless = true;
        Ok(())
    }

    /// Whether the host knows nothing of a record, and the provider says that it was for the scope.
    /// What has a row was decided by that.
    async fn is_only_there(
        &self,
        serving: &Serving,
        snippet: &Snippet,
    ) -> Result<bool, StoreError> {
        let record = &snippet.handle.provider_record_id;
        let is_within = snippet.scope.as_ref().is_some_and(|scope| self.wanted.scope.covers(scope));
        // A time in the future is wrong, so it proves nothing.
        let now = self.host.clock.now();
        let is_later = snippet.created_at.is_some_and(|at| at > self.wanted.received && at <= now);
        if !is_within || is_later || self.tried.contains(record) {
            return Ok(false);
        }
        Ok(self.host.records.row(&serving.binding, record).await?.is_none())
    }
}

impl Step for ForgetWanted<'_> {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ForgetAnswer;
    type Response = Gone;

    fn target(&mut self) -> Target<'_> {
        (&mut self.wanted.scope, self.key.as_ref())
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
        self.wanted.scope.check()
    }

    fn check(&self, _: &Operations) -> Result<(), Refusal> {
        Ok(self.wanted.check()?)
    }

    async fn prepare(
        &mut self,
        _: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        let scope = self.wanted.scope.clone();
        match self.wanted.what.clone() {
            What::Sources(sources) => {
                opened.keep_payload(&serving.binding, &SourcesRequest { scope, sources });
            }
            What::Scope => opened.keep_payload(&serving.binding, &scope),
        }
        self.binding = Some(Arc::clone(serving));
        Ok(())
    }

    /// First it is remembered, of a scope by the first operation: what is written from here on is
    /// forgotten by whoever writes it.
    async fn intent(&mut self, host: &Operations, id: OperationId) -> Result<Writes, Refusal> {
        let (Some(serving), None) = (&self.binding, self.wanted.by) else {
            return Ok(Writes::default());
        };
        Ok(host.remembered(&serving.binding, &self.wanted, id).await?.into())
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ForgetAnswer>, Failure> {
        let mut calls = Answer::without_call(ForgetAnswer::default());
        let found = match self.find(serving, id, &mut calls).await {
            Ok(found) => Ok(found),
            Err(Unknown::Store(error)) => Err(error),
            Err(Unknown::Call(failure)) => return Err(calls.into_failure(failure)),
        };
        let handles = found.as_ref().map(|found| found.handles.clone()).unwrap_or_default();
        *self.found.lock() = found;
        if handles.is_empty() {
            return Ok(calls);
        }
        // The rows say whose they are: the provider sees every record in the scope of the company.
        let scope = Scope::company(self.wanted.scope.company_id.clone());
        match serving
            .instances
            .forget(id, &ForgetRequest { binding_key: None, scope, handles })
            .await
        {
            Ok(answer) => {
                calls.value = calls.add(answer);
                Ok(calls)
            }
            Err(failure) => Err(calls.into_failure(failure)),
        }
    }

    fn completion(&self, answer: &ForgetAnswer) -> Completion {
        forgotten(answer)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        mut answer: ForgetAnswer,
    ) -> Result<Gone, Refusal> {
        let found = std::mem::replace(&mut *self.found.lock(), Ok(Found::default()))?;
        let (operation_id, host, binding) =
            (answered.id(), answered.host, &answered.serving.binding);
        let origin = self.wanted.origin(operation_id);
        host.remove_traces_of(binding, &found.handles, origin).await?;
        settle(&mut answer, &found.waited);
        let count = |is: fn(ForgetEffect) -> bool| {
            number(answer.outcomes.iter().filter(|outcome| is(outcome.effect)).count())
        };
        let hidden =
            count(|effect| matches!(effect, ForgetEffect::Soft | ForgetEffect::HistoryKept));
        let forgotten = count(|effect| effect == ForgetEffect::Hard);
        answered.remove_rows(&answer).await?;
        if let Some(rest) = answer.rest {
            return Err(partly("forgotten", answer.outcomes.len(), found.handles.len(), &rest));
        }
        if found.is_endless {
            let message = format!(
                "the list of the provider of the binding `{}` does not end, so it cannot be said \
                 that nothing is left; \
                 report it to the provider's author",
                binding.key
            );
            return Err(Refusal {
                outcome: Outcome::Failed,
                ..Refusal::new(OperationErrorCode::BadAnswer, message)
            });
        }
        self.tried.extend(found.handles.iter().map(|handle| handle.provider_record_id.clone()));
        *self.found.lock() = Ok(found);
        Ok(Gone { operation_id, forgotten, hidden })
    }
}
