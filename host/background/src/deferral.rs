//! Deferral: background work that hits a temporary refusal is rescheduled. It writes no operation
//! and uses no attempt, so a provider that is away for an hour does not fill the log.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Background;
use memhost_queues::wait_for;
use memhost_registry::versions::BreakerState;
use memhost_registry::versions::circuit_open;
use memhost_types::{
    Binding, BindingId, BindingKey, CompanyId, Job, OperationErrorCode, OperationKind, Refusal,
};

/// How long a call that is on trial is waited for.
const TRIAL: Duration = Duration::from_secs(1);
/// The most that is added to a wait at random.
const MOST_LATER: Duration = Duration::from_secs(10);

impl Background {
    /// Why a binding's provider would not be asked now, and how long to wait. None: ask it, or find
    /// out what else is wrong.
    pub(crate) async fn must_wait(
        &self,
        company: &CompanyId,
        key: &BindingKey,
        id: BindingId,
    ) -> Option<(Refusal, Duration)> {
        // A job has the binding's own id, and a delivery the one that it is known as.
        let is_it = |binding: &Arc<Binding>| binding.id == id || binding.known_as() == id;
        let binding = self.bindings.get(company, key).ok().filter(is_it)?;
        let refusal = match self.serving.get(&binding).await {
            _ if !binding.enabled => {
                let message = format!(
                    "the binding `{key}` is disabled; `memhost binding update {key} --enabled \
                     true` enables it"
                );
                Refusal::new(OperationErrorCode::BindingDisabled, message)
            }
            Err(refusal) if refusal.error.code == OperationErrorCode::ProviderLoading => refusal,
            Err(_) => return None,
            Ok(serving) => match serving.breaker.state() {
                BreakerState::Open { retry_after_ms } if retry_after_ms > 0 => {
                    circuit_open(&serving, Duration::from_millis(retry_after_ms))
                }
                // Another call is on trial.
                BreakerState::HalfOpen => circuit_open(&serving, TRIAL),
                BreakerState::Open { .. } | BreakerState::Closed => return None,
            },
        };
        let asked = refusal.error.retry_after_ms.map(Duration::from_millis);
        let wait = wait_for(refusal.error.code, asked, &self.retry);
        Some((refusal, wait))
    }

    /// Why a job waits for a budget, and until when. None: it may run, or something else is wrong.
    pub(crate) async fn waits_for_budget(&self, job: &Job) -> Option<(Refusal, Duration)> {
        let (company, key) = (&job.company_id, &job.binding_key);
        let binding = self.bindings.get(company, key).ok()?;
        if binding.id != job.binding_id {
            return None;
        }
        let serving = self.serving.get(&binding).await.ok()?;
        let over = self.operations.waits_for_budget(OperationKind::Extraction, &serving);
        let refusal = over.await.ok().flatten()?;
        let asked = refusal.error.retry_after_ms.map(Duration::from_millis);
        let wait = wait_for(refusal.error.code, asked, &self.retry);
        Some((refusal, wait))
    }

    /// The moment after a wait. Up to half of it, and at most some seconds, are drawn on top of it,
    /// so that what waits together does not come together.
    pub(crate) fn after_wait(&self, wait: Duration) -> Timestamp {
        #[allow(clippy::cast_precision_loss, reason = "a share of a wait")]
        let share = self.clock.random() as u64 as f64 / u64::MAX as f64;
        let wait = wait.saturating_add((wait / 2).min(MOST_LATER).mul_f64(share));
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_hours(1));
        let now = self.clock.now();
        now.checked_add(wait).unwrap_or(now)
    }
}
