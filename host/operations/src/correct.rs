//! Correct: changes a record that is there.

use crate::guard::{may_change, not_there, own_handles};
use crate::prelude::*;
use crate::privacy::private;
use crate::review::change;
use crate::review::written::Author;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::{Correction, OptionalInterface};
use memhost_types::{
    CorrectRequest, CorrectResponse, HeldChange, Outcome, RecordHandle, RecordRow, RecordWrite,
    ReviewItem,
};

impl Operations {
    /// Corrects a record. A review policy holds what an agent makes of it; a person who may review
    /// writes past it.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `correction`.
    #[boxed]
    pub async fn correct(
        &self,
        caller: &Caller,
        request: CorrectRequest,
    ) -> Result<CorrectResponse, ServiceError> {
        let author = Author::of(caller, &request.scope.company_id);
        self.correct_as(caller, request, author).await
    }

    pub(crate) async fn correct_as(
        &self,
        caller: &Caller,
        request: CorrectRequest,
        author: Author,
    ) -> Result<CorrectResponse, ServiceError> {
        let mut step = Correct { request, author, row: None, ownership: None, held: None };
        self.operate(caller, &mut step).await
    }
}

struct Correct {
    request: CorrectRequest,
    author: Author,
    /// The present row of the record.
    row: Option<RecordRow>,
    ownership: Option<Ownership>,
    /// Where it waits for a person.
    held: Option<ReviewItem>,
}

impl Step for Correct {
    const KIND: OperationKind = OperationKind::Correct;
    type Answer = Correction;
    type Response = CorrectResponse;

    asks_with!(request);

    async fn prepare(
        &mut self,
        host: &Operations,
        opened: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        let handle = self.request.handle.clone();
        own_handles(serving, "handle", std::slice::from_ref(&handle))?;
        let (binding, record) = (&serving.binding, &handle.provider_record_id);
        if !host.records.may_read(binding, opened.reader(), record).await? {
            return Err(not_there(record));
        }
        let guard = host.policies.guard(&opened.operation().principal, binding);
        may_change(host, &guard, binding, std::iter::once(record)).await?;
        self.row = host.records.row(binding, record).await?;
        // A change without metadata may keep those of before.
        let metadata = self.request.patch.record.iter_mut().map(|record| &mut record.metadata);
        let scope = self.row.as_ref().map_or(&self.request.scope, |row| &row.scope);
        guard.stamp(scope, metadata.filter(|metadata| metadata.is_some()));
        self.ownership = Some(match &self.row {
            Some(row) => Ownership::like(row),
            None => Ownership::of(binding, &self.request.scope, None)?,
        });
        private(serving, &mut self.request)?;
        opened.keep_payload(&serving.binding, &self.request);
        if !serving.plugin.component.exports(OptionalInterface::Correction) {
            return Ok(());
        }
        let patch = &self.request.patch;
        if let Some(verdict) =
            host.holds_change(binding, &self.author, record, patch.record.as_ref()).await?
        {
            let change = HeldChange::Correction(Box::new(patch.clone()));
            self.held = Some(host.change_item(binding, opened.id(), &handle, verdict, change));
            return Err(change::waits());
        }
        Ok(())
    }

    fn ownership(&self) -> Option<&Ownership> {
        self.ownership.as_ref()
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

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<Correction>, Failure> {
        serving.instances.correct(id, &self.request).await
    }

    fn completion(&self, answer: &Correction) -> Completion {
        // The record that holds now, then the one that it replaced.
        let replaced = answer.superseded.iter().filter(|old| **old != answer.record);
        let records = [&answer.record].into_iter().chain(replaced).cloned().collect();
        Completion { record_count: 1, ..Completion::records(records, &answer.usage) }
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: Correction,
    ) -> Result<CorrectResponse, Refusal> {
        // Before the new text is judged: what the host has of the record is the text before.
        let before: Vec<RecordHandle> =
            answer.superseded.iter().chain([&self.request.handle]).cloned().collect();
        answered.host.remove_traces(&answered.serving.binding, &before).await?;
        answered.note_correction();
        // The jobs are found even where the record could not be judged.
        let records = std::slice::from_ref(&answer.record);
        let judged = answered.judge_new(&self.request.scope, records, &self.author).await;
        answered.discover_jobs(&self.request.scope).await?;
        judged?;
        let in_review = answered.in_review(records).await?;
        let Correction { record, superseded, .. } = answer;
        Ok(CorrectResponse {
            operation_id: answered.id(),
            record,
            superseded,
            in_review,
            usage: answered.usage(),
        })
    }

    fn refused(
        &mut self,
        _: &Operations,
        opened: &Opened,
        refusal: Refusal,
    ) -> Ended<CorrectResponse> {
        let Some(held) = &self.held else { return Ended::Failed(refusal) };
        let response = CorrectResponse {
            operation_id: opened.id(),
            record: self.request.handle.clone(),
            superseded: None,
            in_review: change::in_review(held).into_iter().collect(),
            usage: Vec::new(),
        };
        Ended::Held(response, Refusal { outcome: Outcome::Held, ..refusal })
    }

    async fn writes(
        &mut self,
        host: &Operations,
        ending: &mut Ending,
        ended: &Ended<CorrectResponse>,
    ) -> Result<Writes, Refusal> {
        let (Ended::Held(..), Some(held)) = (ended, &self.held) else {
            return Ok(Writes::default());
        };
        ending.set_records(vec![self.request.handle.clone()], 1);
        Ok(host.reviews.plan(std::slice::from_ref(held))?.into())
    }
}
