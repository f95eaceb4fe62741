//! Forget: makes records unreachable.

use crate::operations::guard::own_handles;
use crate::operations::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::ForgetAnswer;
use memhost_types::{ForgetEffect, ForgetRequest, ForgetResponse};

impl Service {
    /// Makes records unreachable.
    ///
    /// # Errors
    /// As [`ServiceError`] says. A record that is not there is no error but an outcome.
    #[boxed]
    pub async fn forget(&self, caller: &Caller, request: ForgetRequest) -> Result<ForgetResponse, ServiceError> {
        self.operate(caller, &mut Forget(request)).await
    }
}

struct Forget(ForgetRequest);

impl Step for Forget {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ForgetAnswer;
    type Response = ForgetResponse;

    asks_with!(0);

    async fn prepare(&mut self, _: &Service, opened: &mut Opened, serving: &Arc<Serving>) -> Result<(), Refusal> {
        own_handles(serving, "handles", &self.0.handles)?;
        opened.keep_payload(serving, &self.0);
        Ok(())
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<ForgetAnswer>, Failure> {
        serving.instances.forget(&self.0).await
    }

    fn completion(&self, answer: &ForgetAnswer) -> Completion {
        let gone = answer.outcomes.iter().filter(|outcome| outcome.effect != ForgetEffect::NotFound);
        Completion::records(gone.map(|outcome| outcome.handle.clone()).collect(), &answer.usage)
    }

    async fn finish(&mut self, answered: &mut Answered<'_>, answer: ForgetAnswer) -> Result<ForgetResponse, Refusal> {
        Ok(ForgetResponse { operation_id: answered.id(), outcomes: answer.outcomes, usage: answer.usage })
    }
}
