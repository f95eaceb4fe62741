//! Correct: changes a record that is there.

use crate::operations::guard::own_handles;
use crate::operations::prelude::*;
use crate::operations::privacy::private;
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::Correction;
use memhost_types::{CorrectRequest, CorrectResponse, RecordHandle};

impl Service {
    /// Corrects a record. A review policy holds what an agent makes of it; a person who may review writes past it.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `correction`.
    #[boxed]
    pub async fn correct(&self, caller: &Caller, request: CorrectRequest) -> Result<CorrectResponse, ServiceError> {
        let author = Author::of(caller, &request.scope.company_id);
        self.correct_as(caller, request, author).await
    }

    pub(crate) async fn correct_as(
        &self,
        caller: &Caller,
        request: CorrectRequest,
        author: Author,
    ) -> Result<CorrectResponse, ServiceError> {
        self.operate(caller, &mut Correct { request, author }).await
    }
}

struct Correct {
    request: CorrectRequest,
    author: Author,
}

impl Step for Correct {
    const KIND: OperationKind = OperationKind::Correct;
    type Answer = Correction;
    type Response = CorrectResponse;

    asks_with!(request);

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        own_handles(serving, "handle", std::slice::from_ref(&self.request.handle))?;
        private(serving, &mut self.request)?;
        opened.keep_payload(serving, &self.request);
        Ok(())
    }

    async fn call(&self, serving: &Serving, id: OperationId) -> Result<Answer<Correction>, Failure> {
        serving.instances.correct(id, &self.request).await
    }

    fn completion(&self, answer: &Correction) -> Completion {
        // The record that holds now, then the one that it replaced.
        let replaced = answer.superseded.iter().filter(|old| **old != answer.record);
        let records = [&answer.record].into_iter().chain(replaced).cloned().collect();
        Completion { record_count: 1, ..Completion::records(records, &answer.usage) }
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: Correction) -> Result<CorrectResponse, Refusal> {
        // Before the new text is judged: what the host has of the record is the text before.
        let before: Vec<RecordHandle> = answer.superseded.iter().chain([&self.request.handle]).cloned().collect();
        answered.host.remove_traces(&answered.serving.binding, &before).await?;
        answered.note_correction();
        // The jobs are found even where the record could not be judged.
        let records = std::slice::from_ref(&answer.record);
        let judged = answered.judge_new(&self.request.scope, records, &self.author).await;
        answered.discover_jobs(&self.request.scope).await?;
        judged?;
        let Correction { record, superseded, .. } = answer;
        Ok(CorrectResponse { operation_id: answered.id(), record, superseded, usage: answered.usage() })
    }
}
