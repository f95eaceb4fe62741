//! What goes on by itself: deliveries and jobs that are due, and old operations that go. It all enters where every caller
//! does, and so it is admitted, metered and audited in the same way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use crate::Service;
use memhost_store::StoreError;

/// At most so many deliveries, and so many jobs, are begun in one round.
const AT_ONCE: usize = 64;
/// However far off the next thing is, it is looked at this often: clocks are set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// What is too old is looked for this often.
const SWEEP: Duration = Duration::from_secs(600);

/// Begins; it ends by itself once the host is dropped.
pub(crate) fn start(service: &Arc<Service>) {
    let (weak, wake) = (Arc::downgrade(service), Arc::clone(&service.wake));
    tokio::spawn(async move {
        let mut next_sweep = tokio::time::Instant::now() + SWEEP;
        loop {
            let Some(service) = weak.upgrade().filter(|service| !service.is_shutting_down.load(Ordering::Relaxed))
            else {
                return;
            };
            let sleep = service.begin_due().unwrap_or_else(|error| {
                tracing::error!(%error, "what is due cannot be read");
                LONGEST_SLEEP
            });
            if tokio::time::Instant::now() >= next_sweep {
                next_sweep = tokio::time::Instant::now() + SWEEP;
                service.sweep_all();
                if let Err(error) = service.sweep_keys() {
                    tracing::error!(%error, "old idempotency keys could not be removed");
                }
            }
            drop(service);
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    });
}

impl Service {
    /// Nothing more is begun in the background: what is due waits for the next start. Resolves when what was begun has
    /// ended, or after `most`; then a crash could not take more.
    pub async fn shutdown(&self, most: Duration) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
        self.wake.notify_one();
        let until = tokio::time::Instant::now() + most;
        while self.hooks.in_flight() + self.jobs.in_flight() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Begins what is due; answers how long to wait for more.
    fn begin_due(self: &Arc<Self>) -> Result<Duration, StoreError> {
        let (deliveries, first) = self.hooks.take_due(AT_ONCE)?;
        for taken in deliveries {
            tokio::spawn(Arc::clone(self).attempt(taken));
        }
        let most = |job: &memhost_types::Job| {
            let binding = self.bindings.get(&job.company_id, &job.binding_key);
            binding.map_or(1, |binding| binding.limits.concurrent_jobs)
        };
        let (jobs, second) = self.jobs.take_due(AT_ONCE, most)?;
        for taken in jobs {
            tokio::spawn(Arc::clone(self).work_on(taken));
        }
        let now = self.clock.now();
        let wait = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let next = first.into_iter().chain(second).map(wait).min();
        // Where a round was full, the next one begins at once, and others get a turn between.
        Ok(next.unwrap_or(LONGEST_SLEEP).clamp(Duration::from_millis(1), LONGEST_SLEEP))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
