//! Correct: changes a record that is there.

use crate::operations::guard::{not_there, own_handles};
use crate::operations::prelude::*;
use crate::operations::privacy::private;
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::Correction;
use memhost_types::{CorrectRequest, CorrectResponse, RecordHandle, RecordRow, RecordWrite};

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
        self.operate(caller, &mut Correct { request, author, reader: Reader::default(), row: None, whose: None }).await
    }
}

struct Correct {
    request: CorrectRequest,
    author: Author,
    reader: Reader,
    /// What the host knows of the record as it is.
    row: Option<RecordRow>,
    whose: Option<Whose>,
}

impl Step for Correct {
    const KIND: OperationKind = OperationKind::Correct;
    type Answer = Correction;
    type Response = CorrectResponse;

    asks_with!(request);

    fn stamp(&mut self, caller: &Caller) -> Result<(), Denied> {
        self.reader = Reader::of(caller, &self.request.scope);
        Ok(())
    }

    async fn prepare(&mut self, host: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        let handle = &self.request.handle;
        own_handles(serving, "handle", std::slice::from_ref(handle))?;
        let (binding, record) = (&serving.binding, &handle.provider_record_id);
        if !host.records.may_read(binding, &self.reader, record).await? {
            return Err(not_there(record));
        }
        self.row = host.records.row(binding, record).await?;
        let whose = match &self.row {
            Some(row) => Whose::like(row),
            None => Whose::of(binding, &self.request.scope, None)?,
        };
        self.whose = Some(whose.by(&self.reader));
        private(serving, &mut self.request)?;
        opened.keep_payload(serving, &self.request);
        Ok(())
    }

    fn whose(&self) -> Option<&Whose> {
        self.whose.as_ref()
    }

    fn origin(&self, _: usize) -> Option<&RecordRow> {
        self.row.as_ref()
    }

    fn record(&self, _: usize) -> Option<&RecordWrite> {
        self.request.patch.record.as_ref()
    }

    fn handles(&self) -> &[RecordHandle] {
        std::slice::from_ref(&self.request.handle)
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
