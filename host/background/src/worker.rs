//! Background work: due deliveries, due jobs, and the removal of old operations. It calls
//! operations as every caller does: they are admitted, metered and recorded in the same way.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use crate::deliver_batch::size_of_material;
use crate::{Background, fit};
use memhost_executor::in_turn;
use memhost_queues::deliveries::MOST_OF_A_BINDING;
use memhost_queues::due_queue::Taken;
use memhost_store::{DiskLevel, StoreError};
use memhost_types::{CompanyId, Delivery, Job};

/// Deliveries, and jobs, that this host works on at a time.
const AT_ONCE: usize = 64;
/// Deliveries of one binding that follow each other without a round in between.
const IN_A_ROW: usize = 64;
/// The longest wait between two rounds, because the clock may be set.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);
/// How long due work waits for room on the disk.
const FULL: Duration = Duration::from_secs(5);
/// Time between two removals of old operations.
const SWEEP: Duration = Duration::from_secs(600);

/// Starts background work; it ends once the host is dropped.
fn start(service: &Arc<Background>) {
    let (weak, wake) = (Arc::downgrade(service), Arc::clone(&service.wake));
    memhost_executor::spawn(async move {
        let mut next_sweep = tokio::time::Instant::now() + SWEEP;
        loop {
            let Some(service) =
                weak.upgrade().filter(|service| !service.is_shutting_down.load(Ordering::Relaxed))
            else {
                return;
            };
            let sleep = service.begin_due().await.unwrap_or_else(|error| {
                tracing::error!(%error, "due deliveries and jobs cannot be read");
                LONGEST_SLEEP
            });
            let sleep = sleep.min(service.write_ended_refusals().await);
            service.compact_if_due();
            service.operations.ask_open_circuits();
            let other =
                [service.oplog.compaction.wait(service.clock.now()), service.waiting.wait()];
            let sleep = other
                .into_iter()
                .flatten()
                .fold(sleep, Duration::min)
                .max(Duration::from_millis(1));
            if tokio::time::Instant::now() >= next_sweep {
                next_sweep = tokio::time::Instant::now() + SWEEP;
                service.tenancy.sweep_all();
                service.forget_expired();
                service.tenancy.keep_tokens().await;
                if let Err(error) = service.operations.sweep_keys().await {
                    tracing::error!(%error, "old idempotency keys could not be removed");
                }
            }
            if service.waiting.is_time() {
                let service = Arc::clone(&service);
                memhost_executor::spawn(async move {
                    service.operations.take_all_waiting().await;
                });
            }
            drop(service);
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    });
}

impl Background {
    /// Starts background work. It ends once this is dropped.
    pub fn start(self: &Arc<Self>) {
        start(self);
        fit::start(self);
    }

    /// Has providers forget what has expired, unless they are still being asked.
    fn forget_expired(self: &Arc<Self>) {
        let Ok(turn) = Arc::clone(&self.forgetting).try_lock_owned() else { return };
        let service = Arc::clone(self);
        memhost_executor::spawn(async move {
            let goes_on = || !service.is_shutting_down.load(Ordering::Relaxed);
            service.operations.forget_expired(&goes_on).await;
            drop(turn);
        });
    }

    /// Starts no more background work; due work waits for the next start. Resolves when the work in
    /// progress has ended, or after `most`, and the number of refusals is written.
    #[boxed]
    pub async fn shutdown(&self, most: Duration) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
        self.wake.notify_one();
        let until = tokio::time::Instant::now() + most;
        while self.deliveries.in_flight() + self.jobs.in_flight() > 0
            && tokio::time::Instant::now() < until
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if let Err(error) = self.oplog.write_refusals(true).await {
            tracing::error!(%error, "the number of refusals could not be written");
        }
        self.tenancy.write_last_uses().await;
    }

    /// Writes how many refusals there were in the minutes that have ended. Answers how long to wait
    /// for the next ones.
    async fn write_ended_refusals(&self) -> Duration {
        if let Err(error) = self.oplog.write_refusals(false).await {
            tracing::error!(%error, "the number of refusals could not be written");
        }
        let now = self.clock.now();
        let until =
            self.oplog.refusals.due_at(now).map(|at| Duration::try_from(at.duration_since(now)));
        until.and_then(Result::ok).unwrap_or(LONGEST_SLEEP).max(Duration::from_millis(1))
    }

    /// Starts due work; answers how long to wait for more.
    async fn begin_due(self: &Arc<Self>) -> Result<Duration, StoreError> {
        if self.store.disk().level != DiskLevel::Plenty {
            return Ok(FULL);
        }
        let most = |delivery: &Delivery| self.most_of_a_binding(&delivery.company_id);
        let (deliveries, first) = self.deliveries.take_due(AT_ONCE, most).await?;
        for taken in deliveries {
            memhost_executor::spawn(Arc::clone(self).attempt_in_a_row(taken));
        }
        let most = |job: &Job| {
            if self.is_closed(&job.company_id) {
                return 0;
            }
            let binding = self.bindings.get(&job.company_id, &job.binding_key);
            binding.map_or(1, |binding| binding.limits.concurrent_jobs as usize)
        };
        let (jobs, second) = self.jobs.take_due(AT_ONCE, most).await?;
        // A job has no material of its own, and its guest lets others run.
        for taken in jobs {
            memhost_executor::spawn(Arc::clone(self).work_on(taken));
        }
        let now = self.clock.now();
        let wait = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
        let next = first.into_iter().chain(second).map(wait).min();
        // A round that stopped early is followed by the next one at once; other tasks run in
        // between.
        Ok(next.unwrap_or(LONGEST_SLEEP).clamp(Duration::from_millis(1), LONGEST_SLEEP))
    }
}

impl Background {
    /// Tries a delivery, then those of its binding that are due behind it.
    async fn attempt_in_a_row(self: Arc<Self>, mut taken: Taken<Delivery>) {
        for _ in 0..IN_A_ROW {
            let Some(place) = taken.place() else { break };
            let (company, bytes) = (taken.item.company_id.clone(), size_of_material(&taken.item));
            in_turn(company.as_str(), bytes, Arc::clone(&self).attempt(taken)).await;
            if self.is_shutting_down.load(Ordering::Relaxed)
                || self.store.disk().level != DiskLevel::Plenty
            {
                break;
            }
            let most = self.most_of_a_binding(&company);
            match self.deliveries.take_next(&place, AT_ONCE, most).await {
                Ok(Some(next)) => taken = next,
                // The round that follows reports a store that fails.
                Ok(None) | Err(_) => break,
            }
        }
        self.wake.notify_one();
    }

    fn most_of_a_binding(&self, company: &CompanyId) -> usize {
        if self.is_closed(company) { 0 } else { MOST_OF_A_BINDING }
    }

    /// Whether a company is being restored: what is written to it could be gone afterwards.
    fn is_closed(&self, company: &CompanyId) -> bool {
        self.tenancy.is_importing(company)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}
