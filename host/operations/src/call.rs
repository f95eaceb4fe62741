//! One call of a provider: through the circuit breaker, to the build that serves now. Where a new
//! build fails, the build before is asked the same.

use std::sync::Arc;

use crate::Operations;
use crate::runner::Step;
use memhost_oplog::operation::{CallTrace, Ending, Intended};
use memhost_registry::plugins::Build as _;
use memhost_registry::versions::{Admitted, Serving, circuit_open};
use memhost_sandbox::{Answer, CallError, Failure};
use memhost_types::{OperationKind, ProviderError, Refusal};

/// The build that answered and its answer, or why there is none.
pub(crate) type Called<T> = Result<(Arc<Serving>, T), Refusal>;

impl Operations {
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
            // What is asked because the circuit is open must get through.
            let admitted = match S::KIND {
                OperationKind::Health => None,
                _ => Some(serving.breaker.admit().map_err(|wait| circuit_open(&serving, wait))?),
            };
            let mut failure = match step.call(&serving, id).await {
                Ok(answer) => {
                    let value = answered(intended, answer);
                    let is_counted = admitted.map(Admitted::succeeded).is_some();
                    if is_counted {
                        serving.proved();
                    }
                    return Ok((serving, value));
                }
                Err(failure) => failure,
            };
            if matches!(failure.error, CallError::Retired) {
                intended.add_metered(std::mem::take(&mut failure.metered));
                drop(admitted);
                serving = Box::pin(self.serving.get(&serving.binding)).await?;
                intended.set_version(serving.version.clone());
                continue;
            }
            if let Some(limit) = failure.error.limit() {
                self.oplog.metrics.limit_hit(limit);
            }
            let is_asked_again = failure.error.is_providers_fault() && admitted.is_some();
            if admitted.is_some_and(|admitted| note(admitted, &failure.error)) {
                self.serving.ask_health_soon(&serving);
                self.wake.notify_one();
            }
            if !is_asked_again {
                return Err(failed(intended, failure));
            }
            // The contract allows one repetition by the previous build. A write has the same effect
            // twice: it carries an operation id or names the records.
            if let Some(previous) = serving.previous() {
                let answer = match Box::pin(step.call(&previous, id)).await {
                    Ok(answer) => answer,
                    Err(second) => {
                        failure.metered.extend(second.metered);
                        failure.log.extend(second.log);
                        failure.provider_us += second.provider_us;
                        return Err(failed(intended, failure));
                    }
                };
                intended.add_metered(std::mem::take(&mut failure.metered));
                let value = answered(intended, answer);
                intended.add_call(failure.log, failure.provider_us);
                intended.set_version(previous.version.clone());
                let before = previous.plugin.version();
                let reason =
                    format!("a call failed that version {before} answered: {}", failure.error);
                let rolled_back = Box::pin(self.serving.roll_back(&serving, reason)).await;
                if let Err(refusal) = rolled_back {
                    tracing::error!(error = %refusal.error.message, "a version could not be rolled \
                        back");
                }
                return Ok((previous, value));
            }
            return Err(failed(intended, failure));
        }
    }
}

/// Takes what is known about a call out of the provider's answer.
fn answered<T>(intended: &mut Intended, answer: Answer<T>) -> T {
    let Answer { value, log, provider_us, metered, .. } = answer;
    intended.answered(CallTrace { log, provider_us, metered });
    value
}

/// A call gave no answer, and there will be no other.
fn failed(intended: &mut Intended, failure: Failure) -> Refusal {
    let Failure { error, log, provider_us, metered } = failure;
    intended.failed(CallTrace { log, provider_us, metered });
    Refusal::from(&error)
}

/// Tells the breaker how a call failed. Answers whether the circuit opens with it.
fn note(admitted: Admitted<'_>, error: &CallError) -> bool {
    match error {
        CallError::Provider(ProviderError::Unauthorized(_)) => admitted.shut_out(error.to_string()),
        CallError::Provider(ProviderError::Unavailable { .. }) => {
            admitted.failed(error.to_string())
        }
        error if error.is_providers_fault() => admitted.failed(error.to_string()),
        error => {
            if error.is_providers_answer() {
                admitted.succeeded();
            }
            false
        }
    }
}
