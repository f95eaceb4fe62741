//! The calls of a provider: each in the contract's types, on an instance that has its turn, its answer checked.

use tokio::time::timeout_at;

use super::Instances;
use crate::contract::{
    BrowseRequest, CaptureRequest, CorrectRequest, ForgetRequest, GetRequest, ListRequest, OperationId, QueryRequest,
    Snippet, UpsertRequest, Usage, limits,
};
use crate::sandbox::answer::{
    Answer, BrowseAnswer, CaptureAnswer, Correction, ExplainAnswer, ForgetAnswer, JobAnswer, ListAnswer, QueryAnswer,
    RecordsAnswer,
};
use crate::sandbox::convert;
use crate::sandbox::error::Failure;
use crate::sandbox::instance::Instance;

impl Instances {
    /// Takes in something that happened.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; the same for every call below.
    pub async fn capture(&self, id: OperationId, request: &CaptureRequest) -> Result<Answer<CaptureAnswer>, Failure> {
        let request = convert::capture(id, request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called =
            timeout_at(call.deadline, exports.provider.paperclip_memory_provider().call_capture(store, &request)).await;
        self.finish(call, called, |answer| self.normalize.capture(answer))
    }

    /// Writes records as they are.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn upsert(&self, id: OperationId, request: &UpsertRequest) -> Result<Answer<RecordsAnswer>, Failure> {
        let count = request.records.len();
        let request = convert::upsert(id, request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called = timeout_at(
            call.deadline,
            exports.provider.paperclip_memory_provider().call_upsert_records(store, &request),
        )
        .await;
        self.finish(call, called, |answer| self.normalize.upsert(answer, count))
    }

    /// Finds what fits.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn query(&self, request: &QueryRequest) -> Result<Answer<QueryAnswer>, Failure> {
        let wire = convert::query(request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called =
            timeout_at(call.deadline, exports.provider.paperclip_memory_provider().call_query(store, &wire)).await;
        self.finish(call, called, |answer| self.normalize.query(answer, wire.top_k, &request.scope.company_id))
    }

    /// One page of all records. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn list(&self, request: &ListRequest, cursor: Option<String>) -> Result<Answer<ListAnswer>, Failure> {
        let wire = convert::list(request, cursor);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called =
            timeout_at(call.deadline, exports.provider.paperclip_memory_provider().call_list_records(store, &wire))
                .await;
        self.finish(call, called, |answer| self.normalize.list(answer, wire.limit, &request.scope.company_id))
    }

    /// One record.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn get(&self, request: &GetRequest) -> Result<Answer<(Option<Snippet>, Vec<Usage>)>, Failure> {
        let id = request.handle.provider_record_id.as_str().to_owned();
        let scope = convert::scope(&request.scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called =
            timeout_at(call.deadline, exports.provider.paperclip_memory_provider().call_get_record(store, &id, &scope))
                .await;
        self.finish(call, called, |answer| self.normalize.get(answer, &id, &request.scope.company_id))
    }

    /// Makes records unreachable.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn forget(&self, request: &ForgetRequest) -> Result<Answer<ForgetAnswer>, Failure> {
        let ids: Vec<String> =
            request.handles.iter().map(|handle| handle.provider_record_id.as_str().to_owned()).collect();
        let scope = convert::scope(&request.scope);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called =
            timeout_at(call.deadline, exports.provider.paperclip_memory_provider().call_forget(store, &ids, &scope))
                .await;
        self.finish(call, called, |answer| self.normalize.forget(answer, &ids))
    }

    /// Corrects a record, if the provider can.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; [`CallError::NoInterface`] where the component does not export `correction`.
    pub async fn correct(&self, id: OperationId, request: &CorrectRequest) -> Result<Answer<Correction>, Failure> {
        let request = convert::correct(id, request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(correction) = &exports.correction else {
            return Err(self.no_interface(call, "correction"));
        };
        let called =
            timeout_at(call.deadline, correction.paperclip_memory_correction().call_correct(store, &request)).await;
        self.finish(call, called, |answer| self.normalize.correct(answer))
    }

    /// Runs a query again and asks how it came to its answer, if the provider can tell.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; [`CallError::NoInterface`] where the component does not export `explain`.
    pub async fn explain(&self, request: &QueryRequest) -> Result<Answer<ExplainAnswer>, Failure> {
        let wire = convert::query(request);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(explain) = &exports.explain else {
            return Err(self.no_interface(call, "explain"));
        };
        let called =
            timeout_at(call.deadline, explain.paperclip_memory_explain().call_explain_query(store, &wire)).await;
        self.finish(call, called, |answer| self.normalize.explain(answer, wire.top_k))
    }

    /// The children of a node of the provider's own tree, if it has one. `cursor` is the provider's own.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; [`CallError::NoInterface`] where the component does not export `browse`.
    pub async fn browse(&self, request: &BrowseRequest, cursor: Option<&str>) -> Result<Answer<BrowseAnswer>, Failure> {
        let scope = convert::scope(&request.scope);
        let limit = request.limit.unwrap_or(limits::DEFAULT_LIMIT);
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(browse) = &exports.browse else {
            return Err(self.no_interface(call, "browse"));
        };
        let listing = browse.paperclip_memory_browse().call_list_children(store, &request.path, &scope, cursor, limit);
        let called = timeout_at(call.deadline, listing).await;
        self.finish(call, called, |answer| self.normalize.browse(answer, limit))
    }

    /// Works on a job, as far as one call gets, if the provider can.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; [`CallError::NoInterface`] where the component does not export `extraction`.
    pub async fn run_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_run_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.ran_job(answer, provider_job_id))
    }

    /// Asks how far a job is, without working on it.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn get_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_get_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.job(answer, provider_job_id))
    }

    /// Tells the provider that nobody wants a job any more.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn cancel_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(extraction) = &exports.extraction else {
            return Err(self.no_interface(call, "extraction"));
        };
        let called =
            timeout_at(call.deadline, extraction.paperclip_memory_extraction().call_cancel_job(store, provider_job_id))
                .await;
        self.finish(call, called, |answer| self.normalize.job(Some(answer), provider_job_id))
    }

    /// Brings what another version stored forward. Meant for instances whose storage keeps its writes back.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says; [`CallError::NoInterface`] where the component does not export `migration`.
    pub async fn migrate(&self, from_version: &str) -> Result<(), Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(migration) = &exports.migration else {
            return Err(self.no_interface(call, "migration"));
        };
        let called =
            timeout_at(call.deadline, migration.paperclip_memory_migration().call_migrate(store, from_version)).await;
        self.finish(call, called, Ok).map(drop)
    }

    /// What the provider says of a configuration: complaints, each with a JSON Pointer. Meant for a set of instances
    /// without any grant.
    ///
    /// # Errors
    /// As [`CallError`](crate::sandbox::CallError) says.
    pub async fn validate_config(&self, config: String) -> Result<Vec<(String, String)>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let called = timeout_at(
            call.deadline,
            exports.provider.paperclip_memory_provider().call_validate_config(store, &config),
        )
        .await;
        let called = called.map(|called| called.map(Ok));
        let answer = self.finish(call, called, |answer| {
            Ok(answer.err().unwrap_or_default().into_iter().map(|error| (error.pointer, error.message)).collect())
        })?;
        Ok(answer.value)
    }
}
