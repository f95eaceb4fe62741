//! One call of a provider: past its circuit breaker, to the build that serves now, and to the one before it where a
//! new build fails what that one can do.

use std::sync::Arc;

use crate::Service;
use crate::error::Refusal;
use crate::operations::record::OpenOperation;
use crate::versions::serving::Serving;
use memhost_sandbox::{Answer, CallError, Failure};
use memhost_types::LogLine;

/// A call that gave no answer, with what is known about it.
pub(crate) struct CallFailed {
    pub(crate) refusal: Refusal,
    pub(crate) log: Vec<LogLine>,
    pub(crate) provider_us: Option<u64>,
}

impl From<Failure> for CallFailed {
    fn from(failure: Failure) -> Self {
        let refusal = Refusal::from(&failure.error);
        Self { refusal, log: failure.log, provider_us: Some(failure.provider_us) }
    }
}

impl From<Refusal> for CallFailed {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, log: Vec::new(), provider_us: None }
    }
}

impl Service {
    pub(crate) async fn run<T, F, Called>(
        &self,
        open: &mut OpenOperation,
        mut serving: Arc<Serving>,
        call: F,
    ) -> Result<Answer<T>, CallFailed>
    where
        F: Fn(Arc<Serving>) -> Called,
        Called: Future<Output = Result<Answer<T>, Failure>>,
    {
        loop {
            let admitted = match serving.breaker.admit() {
                Ok(admitted) => admitted,
                Err(wait) => return Err(circuit_open(&serving, wait).into()),
            };
            let mut failure = match call(Arc::clone(&serving)).await {
                Ok(mut answer) => {
                    open.used(std::mem::take(&mut answer.embedded));
                    admitted.succeeded();
                    serving.proved();
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            open.used(std::mem::take(&mut failure.embedded));
            if matches!(failure.error, CallError::Retired) {
                drop(admitted);
                serving = self.serving.get(&serving.binding).await?;
                open.set_version(&serving.plugin.component.description().version);
                continue;
            }
            if let Some(limit) = failure.error.limit() {
                self.recorder.metrics.limit_hit(limit);
            }
            if !failure.error.is_providers_fault() {
                if failure.error.is_providers_answer() {
                    admitted.succeeded();
                }
                return Err(failure.into());
            }
            admitted.failed();
            // Writes carry an operation id and are idempotent by it: the build before may be asked the same again.
            if let Some(previous) = serving.previous()
                && let Ok(mut answer) = call(Arc::clone(&previous)).await
            {
                open.used(std::mem::take(&mut answer.embedded));
                let before = &previous.plugin.component.description().version;
                let reason = format!("a call failed that version {before} could answer: {}", failure.error);
                if let Err(refusal) = self.serving.roll_back(&serving, reason).await {
                    tracing::error!(error = %refusal.error.message, "a version could not be rolled back");
                }
                open.set_version(before);
                return Ok(answer);
            }
            return Err(failure.into());
        }
    }
}

fn circuit_open(serving: &Serving, wait: std::time::Duration) -> Refusal {
    let (key, failures) = (&serving.binding.key, serving.breaker.failures());
    let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    let message = format!(
        "the provider of the binding `{key}` failed {failures} times in a row and is left alone for another {ms} ms; \
         `memhost binding reset {key}` tries it at once"
    );
    let mut refusal = Refusal::new(memhost_types::OperationErrorCode::Unavailable, message);
    refusal.error.retry_after_ms = Some(ms);
    refusal
}
