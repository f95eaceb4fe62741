//! The calls that every provider answers: each in the contract's types, on an instance that has its turn, its answer checked.

use tokio::time::timeout_at;

use super::Instances;
use crate::answer::{Answer, CaptureAnswer, ForgetAnswer, ListAnswer, QueryAnswer, RecordsAnswer};
use crate::convert;
use crate::error::Failure;
use crate::instance::Instance;
use memhost_types::{
    CaptureRequest, ForgetRequest, GetRequest, ListRequest, OperationId, QueryRequest, Snippet, UpsertRequest, Usage,
};

impl Instances {
    /// Takes in something that happened.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; the same for every call below.
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
    /// As [`CallError`](crate::CallError) says.
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
    /// As [`CallError`](crate::CallError) says.
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
    /// As [`CallError`](crate::CallError) says.
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
    /// As [`CallError`](crate::CallError) says.
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
    /// As [`CallError`](crate::CallError) says.
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

    /// What the provider says of a configuration: errors, each with a JSON Pointer. Meant for a set of instances
    /// without any grant.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says.
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
