//! The memory operations, but for capture.

use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::operations::call::CallFailed;
use crate::operations::privacy::private;
use crate::operations::record::Completion;
use crate::operations::record::OpenOperation;
use crate::versions::serving::Serving;
use memhost_sandbox::Answer;
use memhost_store::TableWrite;
use memhost_types::{
    ContextBundle, CorrectRequest, CorrectResponse, FieldError, ForgetEffect, ForgetRequest, ForgetResponse,
    GetRequest, GetResponse, HookContext, JsonObject, ListPage, ListRequest, OperationKind, QueryDigest, QueryRequest,
    RecordHandle, Scope, Snippet, UpsertRequest, UpsertResponse, limits,
};

impl Service {
    /// Writes records as they are.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    pub async fn upsert(&self, caller: &Caller, request: UpsertRequest) -> Result<UpsertResponse, ServiceError> {
        self.upsert_with(caller, request, true).await
    }

    /// Writes records of another host. How they stand with their reviews comes with them.
    pub(crate) async fn import_upsert(&self, request: &UpsertRequest) -> Result<(), ServiceError> {
        self.upsert_with(&Caller::system(), request.clone(), false).await.map(drop)
    }

    async fn upsert_with(
        &self,
        caller: &Caller,
        mut request: UpsertRequest,
        is_curated: bool,
    ) -> Result<UpsertResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::RecordUpsert, &mut request.scope).await?;
        open.set_provenance(request.source.as_ref(), None);
        open.set_cited(request.records.iter().map(|record| record.metadata.as_ref()));
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let serving = match self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        if let Err(refusal) = private(&serving, &mut request) {
            return refuse(open, refusal).await;
        }
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
        let (request, asked) = (&request, Arc::clone(&serving));
        let mut called = self
            .run(&mut open, serving, |serving| async move { serving.instances.upsert(operation_id, request).await })
            .await;
        if let Ok(answer) = &mut called {
            if is_curated {
                self.curated(&asked.binding, &answer.value.records, request).await?;
            }
            answer.value.usage.extend(self.queue_provider_review(&asked, &request.scope, operation_id).await?);
            self.discover_jobs(&mut open, &asked, &request.scope).await?;
        }
        let answer = end(open, called, |answer| Completion {
            records: answer.records.clone(),
            record_count: answer.records.len(),
            usage: answer.usage.clone(),
            ..Completion::default()
        })
        .await?;
        Ok(UpsertResponse { operation_id, records: answer.records, usage: answer.usage })
    }

    /// Finds what fits, best first.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    pub async fn query(&self, caller: &Caller, request: QueryRequest) -> Result<ContextBundle, ServiceError> {
        self.query_for(caller, request, None).await
    }

    /// The same, for a hook.
    pub(crate) async fn query_for(
        &self,
        caller: &Caller,
        mut request: QueryRequest,
        hook: Option<&HookContext>,
    ) -> Result<ContextBundle, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Query, &mut request.scope).await?;
        open.set_provenance(None, hook);
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let serving = match self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        if let Err(refusal) = private(&serving, &mut request) {
            return refuse(open, refusal).await;
        }
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let (wanted, binding) = (request.top_k.unwrap_or(limits::DEFAULT_TOP_K), Arc::clone(&serving.binding));
        request.top_k = Some(self.with_hidden(&binding, wanted));
        let (request, asked) = (&request, Arc::clone(&serving));
        let mut called =
            self.run(&mut open, serving, |serving| async move { serving.instances.query(request).await }).await;
        if let Ok(answer) = &mut called {
            if binding.policy.review.is_none() {
                self.add_summary(&asked, request, answer).await;
            }
            self.hide(&binding, operation_id, &mut answer.value.snippets).await?;
            answer.value.snippets.truncate(wanted as usize);
            // Nobody can tell out of which records it was made.
            if binding.policy.review.is_some() {
                answer.value.profile_summary = None;
            }
        }
        let answer = end(open, called, |answer| Completion {
            records: first_handles(&answer.snippets),
            record_count: answer.snippets.len(),
            usage: answer.usage.clone(),
            ..Completion::default()
        })
        .await?;
        Ok(ContextBundle {
            operation_id,
            snippets: answer.snippets,
            profile_summary: answer.profile_summary,
            usage: answer.usage,
        })
    }

    /// One page of all records.
    ///
    /// # Errors
    /// As [`ServiceError`] says; a cursor that is not of this list is an invalid `cursor`.
    pub async fn list(&self, caller: &Caller, request: ListRequest) -> Result<ListPage, ServiceError> {
        self.list_with(caller, request, false).await
    }

    /// The same with what waits for a person: for whoever forgets or exports everything.
    pub(crate) async fn list_all(&self, caller: &Caller, request: ListRequest) -> Result<ListPage, ServiceError> {
        self.list_with(caller, request, true).await
    }

    async fn list_with(
        &self,
        caller: &Caller,
        mut request: ListRequest,
        shows_hidden: bool,
    ) -> Result<ListPage, ServiceError> {
        let mut open = self.begin(caller, OperationKind::List, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let serving = match self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        let digest = list_digest(&serving, &request.scope, request.metadata_filter.as_ref());
        let cursor = match self.provider_cursor(&digest, request.cursor.as_deref()) {
            Ok(cursor) => cursor,
            Err(error) => return refuse(open, error.into()).await,
        };
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let (request, binding) = (&request, Arc::clone(&serving.binding));
        let mut called = self
            .run(&mut open, serving, |serving| {
                let cursor = cursor.clone();
                async move { serving.instances.list(request, cursor).await }
            })
            .await;
        if let (Ok(answer), false) = (&mut called, shows_hidden) {
            self.hide(&binding, operation_id, &mut answer.value.items).await?;
        }
        let answer = end(open, called, |answer| Completion {
            records: first_handles(&answer.items),
            record_count: answer.items.len(),
            usage: answer.usage.clone(),
            ..Completion::default()
        })
        .await?;
        Ok(ListPage {
            operation_id,
            items: answer.items,
            next_cursor: answer.next.map(|cursor| self.cursors.seal(&digest, cursor.as_bytes())),
            truncated: answer.truncated,
            usage: answer.usage,
        })
    }

    /// One record, if it is there.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    pub async fn get(&self, caller: &Caller, mut request: GetRequest) -> Result<GetResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Get, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        let handles = std::slice::from_ref(&request.handle);
        let serving = match admitted.and_then(|serving| own_handles(serving, "handle", handles)) {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        let (request, binding) = (&request, Arc::clone(&serving.binding));
        let mut called =
            self.run(&mut open, serving, |serving| async move { serving.instances.get(request).await }).await;
        if let Ok(answer) = &mut called {
            let mut found: Vec<Snippet> = answer.value.0.take().into_iter().collect();
            self.hide(&binding, operation_id, &mut found).await?;
            answer.value.0 = found.pop();
        }
        let (record, usage) = end(open, called, |(record, usage)| Completion {
            records: record.iter().map(|record| record.handle.clone()).collect(),
            record_count: usize::from(record.is_some()),
            usage: usage.clone(),
            ..Completion::default()
        })
        .await?;
        Ok(GetResponse { operation_id, record, usage })
    }

    /// Makes records unreachable.
    ///
    /// # Errors
    /// As [`ServiceError`] says. A record that is not there is no error but an outcome.
    pub async fn forget(&self, caller: &Caller, mut request: ForgetRequest) -> Result<ForgetResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Forget, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        let serving = match admitted.and_then(|serving| own_handles(serving, "handles", &request.handles)) {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
        let request = &request;
        let called =
            self.run(&mut open, serving, |serving| async move { serving.instances.forget(request).await }).await;
        let answer = end(open, called, |answer| {
            let gone = answer.outcomes.iter().filter(|outcome| outcome.effect != ForgetEffect::NotFound);
            let records: Vec<RecordHandle> = gone.map(|outcome| outcome.handle.clone()).collect();
            Completion { record_count: records.len(), records, usage: answer.usage.clone(), ..Completion::default() }
        })
        .await?;
        Ok(ForgetResponse { operation_id, outcomes: answer.outcomes, usage: answer.usage })
    }

    /// Corrects a record.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `correction`.
    pub async fn correct(&self, caller: &Caller, mut request: CorrectRequest) -> Result<CorrectResponse, ServiceError> {
        let mut open = self.begin(caller, OperationKind::Correct, &mut request.scope).await?;
        let operation_id = open.id().map_err(closed)?;
        let checked = request.check();
        let admitted = self.admit(&mut open, checked, &request.scope, request.binding_key.as_ref()).await;
        let handles = std::slice::from_ref(&request.handle);
        let serving = match admitted.and_then(|serving| own_handles(serving, "handle", handles)) {
            Ok(serving) => serving,
            Err(refusal) => return refuse(open, refusal).await,
        };
        if let Err(refusal) = private(&serving, &mut request) {
            return refuse(open, refusal).await;
        }
        open.keep_payload(serving.binding.policy.retention.snapshots, &request);
        open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
        let (request, asked) = (&request, Arc::clone(&serving));
        let mut called = self
            .run(&mut open, serving, |serving| async move { serving.instances.correct(operation_id, request).await })
            .await;
        if let Ok(answer) = &mut called {
            answer.value.usage.extend(self.queue_provider_review(&asked, &request.scope, operation_id).await?);
            self.discover_jobs(&mut open, &asked, &request.scope).await?;
        }
        let answer = end(open, called, |answer| Completion {
            records: vec![answer.record.clone()],
            record_count: 1,
            usage: answer.usage.clone(),
            ..Completion::default()
        })
        .await?;
        Ok(CorrectResponse { operation_id, record: answer.record, superseded: answer.superseded, usage: answer.usage })
    }
}

fn first_handles(snippets: &[Snippet]) -> Vec<RecordHandle> {
    snippets.iter().take(limits::MAX_RECORDED_HANDLES).map(|found| found.handle.clone()).collect()
}

/// A handle of another provider names nothing here, whatever its record id.
fn own_handles(serving: Arc<Serving>, field: &str, handles: &[RecordHandle]) -> Result<Arc<Serving>, Refusal> {
    let own = &serving.binding.provider_key;
    match handles.iter().find(|handle| handle.provider_key != *own) {
        None => Ok(serving),
        Some(foreign) => Err(FieldError::new(
            field,
            format!(
                "is a record of the provider `{}`, and the binding `{}` is served by `{own}`; name the binding that \
                 the record came from",
                foreign.provider_key, serving.binding.key
            ),
        )
        .into()),
    }
}

fn list_digest(serving: &Serving, scope: &Scope, filter: Option<&JsonObject>) -> QueryDigest {
    let scope = serde_json::to_vec(scope).unwrap_or_default();
    let filter = serde_json::to_vec(&filter).unwrap_or_default();
    let binding = &serving.binding;
    QueryDigest::new([
        b"list".as_slice(),
        binding.company_id.as_str().as_bytes(),
        binding.id.0.as_bytes(),
        &scope,
        &filter,
    ])
}

pub(crate) async fn refuse<T>(open: OpenOperation, refusal: Refusal) -> Result<T, ServiceError> {
    refuse_with(open, refusal, Vec::new()).await
}

/// The same, with what is to be written in one step with the record.
pub(crate) async fn refuse_with<T>(
    open: OpenOperation,
    refusal: Refusal,
    beside: Vec<TableWrite>,
) -> Result<T, ServiceError> {
    let error = refusal.error.clone();
    let operation_id = open.id().map_err(closed)?;
    let outcome = refusal.outcome;
    open.close(Completion { beside, ..Completion::default() }, Some(refusal)).await?;
    Err(ServiceError::Operation { operation_id, outcome, error })
}

/// Records how a call ended and passes its value on.
pub(crate) async fn end<T>(
    open: OpenOperation,
    called: Result<Answer<T>, CallFailed>,
    trace: impl FnOnce(&T) -> Completion,
) -> Result<T, ServiceError> {
    match called {
        Ok(answer) => {
            let trace = Completion { log: answer.log, provider_us: Some(answer.provider_us), ..trace(&answer.value) };
            open.close(trace, None).await?;
            Ok(answer.value)
        }
        Err(CallFailed { refusal, log, provider_us }) => {
            let (error, outcome) = (refusal.error.clone(), refusal.outcome);
            let operation_id = open.id().map_err(closed)?;
            open.close(Completion { log, provider_us, ..Completion::default() }, Some(refusal)).await?;
            Err(ServiceError::Operation { operation_id, outcome, error })
        }
    }
}

pub(crate) fn closed(refusal: Refusal) -> ServiceError {
    ServiceError::Field(FieldError::new("operation", refusal.error.message))
}
