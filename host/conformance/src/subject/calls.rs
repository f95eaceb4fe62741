//! Calls on the binding's own instances. The host validates each answer as on a serving host.

use super::{Subject, answered};
use crate::verdict::{Stop, failed, skipped};
use memhost_sandbox::{
    Answer, BrowseAnswer, CallError, CaptureAnswer, Correction, ExplainAnswer, Failure, JobAnswer,
};
use memhost_types::{
    BrowseRequest, CaptureMode, CaptureRequest, CorrectRequest, CorrectionPatch, ForgetEffect,
    ForgetRequest, GetRequest, Intent, ListRequest, OperationId, Pages, QueryRequest, RecordHandle,
    RecordWrite, Scope, Snippet, SourceRef, UpsertRequest,
};

/// The most pages of a short list; one with more counts as endless.
pub(super) const MOST_PAGES: usize = 500;

pub(super) fn plain<T>(called: Result<Answer<T>, Failure>) -> Result<T, CallError> {
    let answer = called.map_err(|failure| failure.error)?;
    // A serving host answers the rest. A provider that is checked must not need that.
    match answer.left_out.into_iter().next() {
        Some(problem) => Err(CallError::BadAnswer(problem)),
        None => Ok(answer.value),
    }
}

impl Subject {
    /// Writes records, with the provider's own answer.
    pub(crate) async fn upsert(
        &self,
        scope: Scope,
        source: Option<SourceRef>,
        records: Vec<RecordWrite>,
    ) -> Result<Vec<RecordHandle>, CallError> {
        let request = UpsertRequest { binding_key: None, scope, source, records, visibility: None };
        let called = plain(self.instances().upsert(self.operation(), &request).await);
        self.settle().await;
        // What a part of a divided request could not do is an error, as on a serving host.
        called.and_then(|answer| answer.rest.map_or(Ok(answer.records), Err))
    }

    /// Writes records that later steps of the rule need.
    pub(crate) async fn put_all(
        &self,
        scope: Scope,
        records: Vec<RecordWrite>,
    ) -> Result<Vec<RecordHandle>, Stop> {
        answered("upsert-records", self.upsert(scope, None, records).await)
    }

    /// Creates a record of a text: by a curated write, or by a capture for providers that accept
    /// only captures.
    pub(crate) async fn put(&self, scope: Scope, text: &str) -> Result<RecordHandle, Stop> {
        let written = match self.put_all(scope.clone(), vec![self.write(text)]).await {
            Err(Stop::Skipped(_)) => {
                let request =
                    CaptureRequest { scope, ..self.capture_of(text, CaptureMode::CaptureRecord) };
                self.capture(self.operation(), &request).await?.records
            }
            written => written?,
        };
        match written.into_iter().next() {
            Some(handle) => Ok(handle),
            None => skipped("the provider creates no record at once"),
        }
    }

    pub(crate) async fn capture(
        &self,
        id: OperationId,
        request: &CaptureRequest,
    ) -> Result<CaptureAnswer, Stop> {
        answered("capture", self.try_capture(id, request).await)
    }

    /// Captures, with the provider's own answer.
    pub(crate) async fn try_capture(
        &self,
        id: OperationId,
        request: &CaptureRequest,
    ) -> Result<CaptureAnswer, CallError> {
        let called = plain(self.instances().capture(id, request).await);
        self.settle().await;
        called
    }

    pub(crate) fn question(&self, scope: Scope, text: &str) -> QueryRequest {
        QueryRequest {
            binding_key: None,
            scope,
            query: text.to_owned(),
            top_k: Some(20),
            intent: Intent::Answer,
            metadata_filter: None,
            token_budget: None,
            filter: None,
        }
    }

    pub(crate) async fn ask(&self, request: &QueryRequest) -> Result<Vec<Snippet>, Stop> {
        answered("query", self.try_ask(request).await)
    }

    /// Asks, with the provider's own answer.
    pub(crate) async fn try_ask(&self, request: &QueryRequest) -> Result<Vec<Snippet>, CallError> {
        plain(self.instances().query(request).await).map(|answer| answer.snippets)
    }

    /// The results of a query.
    pub(crate) async fn query(&self, scope: Scope, text: &str) -> Result<Vec<Snippet>, Stop> {
        self.ask(&self.question(scope, text)).await
    }

    pub(crate) fn listing(&self, scope: Scope, limit: u32) -> ListRequest {
        ListRequest {
            binding_key: None,
            scope,
            cursor: None,
            limit: Some(limit),
            metadata_filter: None,
            filter: None,
        }
    }

    /// One page and its next cursor. `cursor` is the provider's own.
    pub(crate) async fn page(
        &self,
        request: &ListRequest,
        cursor: Option<String>,
    ) -> Result<(Vec<Snippet>, Option<String>), Stop> {
        let page = answered("list-records", plain(self.instances().list(request, cursor).await))?;
        if page.truncated {
            return skipped("`list-records` answers that it cannot continue");
        }
        Ok((page.items, page.next))
    }

    /// Every record of a list.
    pub(crate) async fn list_of(&self, request: &ListRequest) -> Result<Vec<Snippet>, Stop> {
        all_pages("list-records", |cursor| self.page(request, cursor)).await
    }

    /// Every record of a scope.
    pub(crate) async fn list(&self, scope: Scope) -> Result<Vec<Snippet>, Stop> {
        self.list_of(&self.listing(scope, 100)).await
    }

    pub(crate) async fn get(
        &self,
        scope: Scope,
        handle: &RecordHandle,
    ) -> Result<Option<Snippet>, Stop> {
        let request = GetRequest { binding_key: None, scope, handle: handle.clone() };
        answered("get-record", plain(self.instances().get(&request).await))
            .map(|(record, _)| record)
    }

    /// A record that must exist.
    pub(crate) async fn got(&self, handle: &RecordHandle) -> Result<Snippet, Stop> {
        match self.get(self.scope(), handle).await? {
            Some(record) => Ok(record),
            None => failed(format!(
                "`get-record` has no `{}`, which was just written",
                handle.provider_record_id
            )),
        }
    }

    pub(crate) async fn forget(
        &self,
        scope: Scope,
        handles: &[RecordHandle],
    ) -> Result<Vec<ForgetEffect>, Stop> {
        let request = ForgetRequest { binding_key: None, scope, handles: handles.to_vec() };
        let called = plain(self.instances().forget(self.operation(), &request).await);
        self.settle().await;
        let called = called.and_then(|answer| answer.rest.map_or(Ok(answer.outcomes), Err));
        let outcomes = answered("forget", called)?;
        Ok(outcomes.into_iter().map(|outcome| outcome.effect).collect())
    }

    /// Replaces a record, with the provider's own answer.
    pub(crate) async fn correct(
        &self,
        id: OperationId,
        scope: Scope,
        handle: &RecordHandle,
        record: RecordWrite,
    ) -> Result<Correction, CallError> {
        let patch = CorrectionPatch { instruction: None, record: Some(record) };
        let request = CorrectRequest { binding_key: None, scope, handle: handle.clone(), patch };
        let called = plain(self.instances().correct(id, &request).await);
        self.settle().await;
        called
    }

    pub(crate) async fn explain(&self, request: &QueryRequest) -> Result<ExplainAnswer, Stop> {
        answered("explain-query", plain(self.instances().explain(request).await))
    }

    /// One page of a node's children, with the provider's own answer.
    pub(crate) async fn browse(
        &self,
        scope: Scope,
        path: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<BrowseAnswer, CallError> {
        let request = BrowseRequest {
            binding_key: None,
            scope,
            path: path.to_owned(),
            cursor: None,
            limit: Some(limit),
        };
        plain(self.instances().browse(&request, cursor).await)
    }

    pub(crate) async fn run_job(&self, id: &str) -> Result<JobAnswer, Stop> {
        let called = plain(self.instances().run_job(id).await);
        self.settle().await;
        answered("run-job", called)
    }

    pub(crate) async fn get_job(&self, id: &str) -> Result<JobAnswer, Stop> {
        answered("get-job", plain(self.instances().get_job(id).await))
    }

    pub(crate) async fn cancel_job(&self, id: &str) -> Result<JobAnswer, Stop> {
        answered("cancel-job", plain(self.instances().cancel_job(id).await))
    }

    pub(crate) async fn retry_job(&self, id: &str) -> Result<JobAnswer, Stop> {
        answered("retry-job", plain(self.instances().retry_job(id).await))
    }

    pub(crate) async fn migrate(&self, from: &str) -> Result<(), Stop> {
        answered("migrate", self.instances().migrate(from).await.map_err(|failure| failure.error))
    }
}

/// The items of all pages of a list of the provider. Fails where the list has no end.
pub(crate) async fn all_pages<T, Page>(
    what: &str,
    page: impl Fn(Option<String>) -> Page,
) -> Result<Vec<T>, Stop>
where
    Page: Future<Output = Result<(Vec<T>, Option<String>), Stop>>,
{
    let (mut all, mut pages) = (Vec::new(), Pages::default());
    for _ in 0..MOST_PAGES {
        let Some(cursor) = pages.next() else { return Ok(all) };
        let (items, next) = page(cursor).await?;
        all.extend(items);
        pages.go_on(next);
    }
    match pages.next() {
        None => Ok(all),
        Some(_) => {
            failed(format!("`{what}` does not end: {MOST_PAGES} pages have {} items", all.len()))
        }
    }
}
