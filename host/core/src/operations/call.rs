//! One call of a provider: past its circuit breaker, to the build that serves now, and to the one before it where a
//! new build fails what that one can do.

use std::sync::Arc;
use std::time::Duration;

use crate::Service;
use crate::error::Refusal;
use crate::operations::record::{Ending, Intended};
use crate::operations::runner::Step;
use crate::versions::serving::Serving;
use memhost_sandbox::CallError;
use memhost_types::OperationErrorCode;

/// The build that answered, with its answer; or why there is none.
pub(crate) type Called<T> = Result<(Arc<Serving>, T), Refusal>;

impl Service {
    pub(crate) async fn call<S: Step>(
        &self,
        step: &S,
        mut intended: Intended,
        serving: Arc<Serving>,
    ) -> (Ending, Called<S::Answer>) {
        let called = self.try_call(step, &mut intended, serving).await;
        (intended.called(), called)
    }

    async fn try_call<S: Step>(
        &self,
        step: &S,
        intended: &mut Intended,
        mut serving: Arc<Serving>,
    ) -> Called<S::Answer> {
        let id = intended.id();
        loop {
            let admitted = serving.breaker.admit().map_err(|wait| circuit_open(&serving, wait))?;
            let mut failure = match step.call(&serving, id).await {
                Ok(answer) => {
                    let value = intended.answered(answer);
                    admitted.succeeded();
                    serving.proved();
                    return Ok((serving, value));
                }
                Err(failure) => failure,
            };
            if matches!(failure.error, CallError::Retired) {
                intended.add_embedded(std::mem::take(&mut failure.embedded));
                drop(admitted);
                serving = self.serving.get(&serving.binding).await?;
                intended.set_version(&serving);
                continue;
            }
            if let Some(limit) = failure.error.limit() {
                self.recorder.metrics.limit_hit(limit);
            }
            if !failure.error.is_providers_fault() {
                if failure.error.is_providers_answer() {
                    admitted.succeeded();
                }
                return Err(intended.failed(failure));
            }
            admitted.failed();
            // Writes carry an operation id and are idempotent by it: the build before may be asked the same again.
            if let Some(previous) = serving.previous()
                && let Ok(answer) = step.call(&previous, id).await
            {
                intended.add_embedded(std::mem::take(&mut failure.embedded));
                let value = intended.answered(answer);
                intended.set_version(&previous);
                let before = &previous.plugin.component.description().version;
                let reason = format!("a call failed that version {before} could answer: {}", failure.error);
                if let Err(refusal) = self.serving.roll_back(&serving, reason).await {
                    tracing::error!(error = %refusal.error.message, "a version could not be rolled back");
                }
                return Ok((previous, value));
            }
            return Err(intended.failed(failure));
        }
    }
}

fn circuit_open(serving: &Serving, wait: Duration) -> Refusal {
    let (key, failures) = (&serving.binding.key, serving.breaker.failures());
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    let message = format!(
        "the provider of the binding `{key}` failed {failures} times in a row and is left alone for another {ms} ms; \
         `memhost binding reset {key}` tries it at once"
    );
    let mut refusal = Refusal::new(OperationErrorCode::Unavailable, message);
    refusal.error.retry_after_ms = Some(ms);
    refusal
}
