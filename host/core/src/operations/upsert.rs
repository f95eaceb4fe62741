//! Upsert: records as the caller writes them.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::RecordsAnswer;
use memhost_types::{UpsertRequest, UpsertResponse};

impl Service {
    /// Writes records as they are.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn upsert(&self, caller: &Caller, request: UpsertRequest) -> Result<UpsertResponse, ServiceError> {
        self.operate(caller, &mut Upsert { request, is_curated: true }).await
    }

    /// Writes records of another host. The state of their reviews comes with them.
    pub(crate) async fn import_upsert(&self, request: &UpsertRequest) -> Result<(), ServiceError> {
        let mut step = Upsert { request: request.clone(), is_curated: false };
        self.operate(&Caller::system(), &mut step).await.map(drop)
    }
}

struct Upsert {
    request: UpsertRequest,
    /// Whether the caller answers for the records: the review policy holds none of them then.
    is_curated: bool,
}

impl Step for Upsert {
    const KIND: OperationKind = OperationKind::RecordUpsert;
    type Answer = RecordsAnswer;
    type Response = UpsertResponse;

    asks_with!(request);

    fn describe(&self, opened: &mut Opened) {
        opened.set_provenance(self.request.source.as_ref(), None);
        opened.set_cited(self.request.records.iter().map(|record| record.metadata.as_ref()));
    }

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        private(serving, &mut self.request)?;
        opened.keep_payload(serving, &self.request);
        Ok(())
    }

    async fn call(&self, serving: &Serving, id: OperationId) -> Result<Answer<RecordsAnswer>, Failure> {
        serving.instances.upsert(id, &self.request).await
    }

    fn completion(&self, answer: &RecordsAnswer) -> Completion {
        Completion::records(answer.records.clone(), &answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: RecordsAnswer) -> Result<UpsertResponse, Refusal> {
        if self.is_curated {
            answered.host.curated(&answered.serving.binding, &answer.records, &self.request).await?;
        }
        answered.queue_provider_review(&self.request.scope).await?;
        answered.discover_jobs(&self.request.scope).await?;
        Ok(UpsertResponse { operation_id: answered.id(), records: answer.records, usage: answered.usage() })
    }
}
