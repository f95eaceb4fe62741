//! The calls of the required interface `provider`.

use super::answer::{Answer, CaptureAnswer, ForgetAnswer, ListAnswer, QueryAnswer, RecordsAnswer};
use super::contract::provider as wire;
use super::convert;
use super::declared::Parts;
use super::error::Failure;
use super::imports::GuestStore;
use super::instances::{Instances, call};
use super::normalize::Normalize;
use memhost_types::{
    CaptureRequest, ForgetRequest, GetRequest, ListRequest, OperationId, QueryRequest, Snippet,
    UpsertRequest, Usage,
};

impl Instances {
    /// Captures something that happened.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; the same for every call below.
    pub async fn capture(
        &self,
        id: OperationId,
        request: &CaptureRequest,
    ) -> Result<Answer<CaptureAnswer>, Failure> {
        let request = convert::capture(id, request);
        call!(self, wire.call_capture(&request), Normalize::capture).await
    }

    /// Writes records as they are.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn upsert(
        &self,
        id: OperationId,
        request: &UpsertRequest,
    ) -> Result<Answer<RecordsAnswer>, Failure> {
        let mut parts = Parts::of(id, &request.records, self.declarations().most_upserted());
        loop {
            let (id, records) = parts.next();
            let (asked, count) = (convert::upsert(id, request, records), records.len());
            let check = |checks: &Normalize, answer| checks.upsert(answer, count);
            let called = call!(self, wire.call_upsert_records(&asked), check).await;
            if let Some(whole) = parts.take(called)? {
                return Ok(whole);
            }
        }
    }

    /// Finds the records that fit a query, best first.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn query(&self, request: &QueryRequest) -> Result<Answer<QueryAnswer>, Failure> {
        match self.own_filter(request.metadata_filter.as_ref()) {
            Some(filter) => Box::pin(self.query_filtered(request, filter)).await,
            None => self.query_as_it_is(request).await,
        }
    }

    pub(super) async fn query_as_it_is(
        &self,
        request: &QueryRequest,
    ) -> Result<Answer<QueryAnswer>, Failure> {
        let (asked, company) = (convert::query(request), &request.scope.company_id);
        call!(self, wire.call_query(&asked), |checks, answer| checks.query(
            answer,
            asked.top_k,
            company
        ))
        .await
    }

    /// One page of all records. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn list(
        &self,
        request: &ListRequest,
        cursor: Option<String>,
    ) -> Result<Answer<ListAnswer>, Failure> {
        match self.own_filter(request.metadata_filter.as_ref()) {
            Some(filter) => Box::pin(self.list_filtered(request, cursor, filter)).await,
            None => self.list_as_it_is(request, cursor).await,
        }
    }

    pub(super) async fn list_as_it_is(
        &self,
        request: &ListRequest,
        cursor: Option<String>,
    ) -> Result<Answer<ListAnswer>, Failure> {
        let (asked, company) = (convert::list(request, cursor), &request.scope.company_id);
        call!(self, wire.call_list_records(&asked), |checks, answer| checks.list(
            answer,
            asked.limit,
            company
        ))
        .await
    }

    /// One record.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn get(
        &self,
        request: &GetRequest,
    ) -> Result<Answer<(Option<Snippet>, Vec<Usage>)>, Failure> {
        let (id, scope) =
            (request.handle.provider_record_id.as_str().to_owned(), convert::scope(&request.scope));
        let company = &request.scope.company_id;
        call!(self, wire.call_get_record(&id, &scope), |checks, answer| checks
            .get(answer, &id, company))
        .await
    }

    /// Makes records unreachable.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn forget(
        &self,
        id: OperationId,
        request: &ForgetRequest,
    ) -> Result<Answer<ForgetAnswer>, Failure> {
        let mut parts = Parts::of(id, &request.handles, self.declarations().most_forgotten());
        loop {
            let (id, handles) = parts.next();
            let asked = convert::forget(id, request, handles);
            let called = call!(self, wire.call_forget(&asked), |checks, answer| checks
                .forget(answer, &asked.ids))
            .await;
            if let Some(whole) = parts.take(called)? {
                return Ok(whole);
            }
        }
    }

    /// The provider's errors about a configuration, each with a JSON Pointer. `None` if it accepts
    /// the configuration. Meant for instances without any grant.
    ///
    /// # Errors
    /// As [`Instances::capture`].
    pub async fn validate_config(&self, config: String) -> Result<Vec<(String, String)>, Failure> {
        let answer = self.call(
            async |provider: &wire::Guest, store: &mut GuestStore| {
                provider.call_validate_config(store, &config).await.map(Ok)
            },
            |_, answer| {
                Ok(answer
                    .err()
                    .unwrap_or_default()
                    .into_iter()
                    .map(|error| (error.pointer, error.message))
                    .collect())
            },
        );
        Ok(answer.await?.value)
    }
}
