//! Correct: changes a record that is there.

use crate::operations::guard::own_handles;
use crate::operations::prelude::*;
use crate::operations::privacy::private;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::Correction;
use memhost_types::{CorrectRequest, CorrectResponse};

impl Service {
    /// Corrects a record.
    ///
    /// # Errors
    /// As [`ServiceError`] says; `unsupported` where the provider does not export `correction`.
    #[boxed]
    pub async fn correct(&self, caller: &Caller, request: CorrectRequest) -> Result<CorrectResponse, ServiceError> {
        self.operate(caller, &mut Correct(request)).await
    }
}

struct Correct(CorrectRequest);

impl Step for Correct {
    const KIND: OperationKind = OperationKind::Correct;
    type Answer = Correction;
    type Response = CorrectResponse;

    asks_with!(0);

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        own_handles(serving, "handle", std::slice::from_ref(&self.0.handle))?;
        private(serving, &mut self.0)?;
        opened.keep_payload(serving, &self.0);
        Ok(())
    }

    async fn call(&self, serving: &Serving, id: OperationId) -> Result<Answer<Correction>, Failure> {
        serving.instances.correct(id, &self.0).await
    }

    fn completion(&self, answer: &Correction) -> Completion {
        Completion::records(vec![answer.record.clone()], &answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: Correction) -> Result<CorrectResponse, Refusal> {
        answered.queue_provider_review(&self.0.scope).await?;
        answered.discover_jobs(&self.0.scope).await?;
        let Correction { record, superseded, .. } = answer;
        Ok(CorrectResponse { operation_id: answered.id(), record, superseded, usage: answered.usage() })
    }
}
