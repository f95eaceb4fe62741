//! Forgetting everything that a binding has at once, where its provider can do that.

use crate::prelude::*;
use crate::runner::Target;
use async_recursion::async_recursion as boxed;
use memhost_sandbox::{ErasureAnswer, OptionalInterface};
use memhost_types::{Binding, BindingKey, FieldError, ForgetEffect, OperationErrorCode, Scope};

/// The scope that a provider forgot at once.
pub struct ForgottenAtOnce {
    /// How many records, where the provider knows it.
    pub count: Option<u64>,
    /// Whether nothing of them is left anywhere.
    pub is_gone: bool,
}

impl Operations {
    /// Has a binding's provider forget everything in one call. None: it cannot, and its records
    /// have to be listed and forgotten. The caller lists them in any case, to see that none is
    /// left.
    ///
    /// # Errors
    /// Where no build serves the binding, or the operation fails.
    #[boxed]
    pub async fn forget_at_once(
        &self,
        caller: &Caller,
        binding: &Arc<Binding>,
    ) -> Result<Option<ForgottenAtOnce>, ServiceError> {
        let serving = self.serving.get(binding).await?;
        if !serving.plugin.component.exports(OptionalInterface::Erasure) {
            return Ok(None);
        }
        let mut step =
            Erase { scope: Scope::company(binding.company_id.clone()), key: binding.key.clone() };
        match self.operate(caller, &mut step).await {
            Ok(forgotten) => Ok(Some(forgotten)),
            // Its record says why.
            Err(ServiceError::Operation { error, .. })
                if error.code == OperationErrorCode::Unsupported =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

struct Erase {
    scope: Scope,
    key: BindingKey,
}

impl Step for Erase {
    const KIND: OperationKind = OperationKind::Forget;
    type Answer = ErasureAnswer;
    type Response = ForgottenAtOnce;

    fn target(&mut self) -> Target<'_> {
        (&mut self.scope, Some(&self.key))
    }

    fn check_fields(&self) -> Result<(), FieldError> {
        self.scope.check()
    }

    async fn call(
        &self,
        serving: &Serving,
        id: OperationId,
    ) -> Result<Answer<ErasureAnswer>, Failure> {
        serving.instances.forget_scope(id, &self.scope).await
    }

    fn completion(&self, answer: &ErasureAnswer) -> Completion {
        let record_count =
            answer.count.and_then(|count| usize::try_from(count).ok()).unwrap_or_default();
        Completion { record_count, ..Completion::usage(&answer.usage) }
    }

    async fn finish(
        &mut self,
        _: &mut Answered<'_>,
        answer: ErasureAnswer,
    ) -> Result<ForgottenAtOnce, Refusal> {
        Ok(ForgottenAtOnce { count: answer.count, is_gone: answer.effect == ForgetEffect::Hard })
    }
}
