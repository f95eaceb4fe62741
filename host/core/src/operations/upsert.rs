//! Upsert: records as the caller writes them.

use crate::operations::prelude::*;
use crate::operations::privacy::private;
use crate::operations::sharing::scope_of_write;
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::RecordsAnswer;
use memhost_types::{UpsertRequest, UpsertResponse};

impl Service {
    /// Writes records as they are. A review policy holds what an agent writes; a person who may review writes past it.
    ///
    /// # Errors
    /// As [`ServiceError`] says.
    #[boxed]
    pub async fn upsert(&self, caller: &Caller, request: UpsertRequest) -> Result<UpsertResponse, ServiceError> {
        let author = Author::of(caller, &request.scope.company_id);
        self.upsert_as(caller, request, author).await
    }

    pub(crate) async fn upsert_as(
        &self,
        caller: &Caller,
        request: UpsertRequest,
        author: Author,
    ) -> Result<UpsertResponse, ServiceError> {
        self.operate(caller, &mut Upsert { request, author }).await
    }

    /// Writes records of another host. The state of their reviews came before them; what has none is judged.
    pub(crate) async fn import_upsert(&self, request: &UpsertRequest) -> Result<(), ServiceError> {
        let mut step = Upsert { request: request.clone(), author: Author::Judged };
        self.operate(&Caller::system(), &mut step).await.map(drop)
    }
}

struct Upsert {
    request: UpsertRequest,
    author: Author,
}

impl Step for Upsert {
    const KIND: OperationKind = OperationKind::RecordUpsert;
    type Answer = RecordsAnswer;
    type Response = UpsertResponse;

    asks_with!(request);

    fn stamp(&mut self, caller: &Caller) -> Result<(), Denied> {
        self.request.source.as_mut().map_or(Ok(()), |source| caller.stamp_source(source))
    }

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
        let scope = scope_of_write(&serving.binding, &self.request.scope);
        let request = UpsertRequest { scope, ..self.request.clone() };
        serving.instances.upsert(id, &request).await
    }

    fn completion(&self, answer: &RecordsAnswer) -> Completion {
        Completion::records(answer.records.clone(), &answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: RecordsAnswer) -> Result<UpsertResponse, Refusal> {
        // The jobs are found even where the records could not be judged.
        let judged = answered.judge_new(&self.request.scope, &answer.records, &self.author).await;
        answered.discover_jobs(&self.request.scope).await?;
        judged?;
        Ok(UpsertResponse { operation_id: answered.id(), records: answer.records, usage: answered.usage() })
    }
}
