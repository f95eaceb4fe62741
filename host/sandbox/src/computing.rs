//! How long a call computes: the guest, and the host for it, there and on other threads. The time
//! is that which the system gave the threads while they worked for the call. Time in which a call
//! waits does not count.
//!
//! The clock of a thread is a call to the system, and most calls of a provider take microseconds.
//! So until a call has spent a tenth of its budget, at most 10 ms, each step counts by elapsed
//! time, capped at that amount. This is more than the thread computed if it waited for a file or
//! for a processor.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::ticker::Ticker;

/// Elapsed time counts until a call has spent this part of its budget.
const ROUGH_PART: u32 = 10;
/// The most that this part may be.
const MAX_ROUGH: Duration = Duration::from_millis(10);
/// The cap of one step where this part is shorter. A guest yields within this time.
const MAX_STEP: Duration = Duration::from_millis(2);

/// A call computed for longer than its budget.
#[derive(Debug, thiserror::Error)]
#[error("computed for longer than its budget")]
pub(super) struct CpuBudgetSpent;

/// The time that one call has spent.
#[derive(Debug, Clone)]
pub(super) struct Computing {
    nanos: Arc<AtomicU64>,
    ticker: Arc<Ticker>,
}

impl Computing {
    /// Nothing yet.
    pub(super) fn new(ticker: &Arc<Ticker>) -> Self {
        Self { nanos: Arc::default(), ticker: Arc::clone(ticker) }
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        self.nanos.store(0, Ordering::Relaxed);
    }

    /// Adds what another thread computed for the call.
    pub(super) fn add(&self, time: Duration) {
        self.nanos.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether it is more than a budget.
    pub(super) fn has_spent(&self, budget: Duration) -> bool {
        self.spent() > budget
    }

    fn spent(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// Runs a part of a call. A guest yields at every tick of the epoch but the first, so a call
    /// ends about a tick after its budget, or after the longest call of the host.
    pub(super) async fn within<T>(
        &self,
        budget: Duration,
        part: impl Future<Output = T>,
    ) -> Result<T, CpuBudgetSpent> {
        let mut part = pin!(part);
        let rough = MAX_ROUGH.min(budget / ROUGH_PART);
        std::future::poll_fn(|context| {
            let ticking = self.ticker.ticking();
            let (began, before) = (Instant::now(), (self.spent() >= rough).then(time_of_thread));
            let polled = part.as_mut().poll(context);
            self.add(match before {
                Some(before) => time_of_thread().saturating_sub(before),
                None => began.elapsed().min(rough.max(MAX_STEP)),
            });
            drop(ticking);
            match polled {
                Poll::Ready(done) => Poll::Ready(Ok(done)),
                Poll::Pending if self.has_spent(budget) => Poll::Ready(Err(CpuBudgetSpent)),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Runs what the host does for a call in a task of its own.
    pub(super) async fn counted<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        std::future::poll_fn(|context| {
            let before = time_of_thread();
            let polled = part.as_mut().poll(context);
            self.add(time_of_thread().saturating_sub(before));
            polled
        })
        .await
    }
}

/// How long this thread has computed, by the system's count.
pub(super) fn time_of_thread() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that holds its thread and computes nothing, as one that reads a file.
    #[tokio::test]
    async fn a_thread_that_waits_counts_a_little_at_first_and_then_nothing() {
        let computing = Computing::new(&Arc::new(Ticker::start(|| true).unwrap()));
        let budget = Duration::from_millis(100);
        for _ in 0..3 {
            let wait = async { std::thread::sleep(Duration::from_millis(50)) };
            computing.within(budget, wait).await.unwrap();
            assert!(computing.has_spent(Duration::from_millis(9)));
            assert!(!computing.has_spent(Duration::from_millis(15)));
        }
    }

    #[tokio::test]
    async fn work_counts_and_waiting_does_not() {
        let computing = Computing::new(&Arc::new(Ticker::start(|| true).unwrap()));
        let wait = tokio::time::sleep(Duration::from_millis(50));
        computing.within(Duration::from_millis(25), wait).await.unwrap();
        let work = async {
            loop {
                let until = time_of_thread() + Duration::from_millis(1);
                while time_of_thread() < until {}
                tokio::task::yield_now().await;
            }
        };
        let spent: Result<(), _> = computing.within(Duration::from_millis(25), work).await;
        assert!(spent.is_err());
        computing.begin();
        computing
            .counted(async {
                let until = time_of_thread() + Duration::from_millis(30);
                while time_of_thread() < until {}
            })
            .await;
        assert!(computing.has_spent(Duration::from_millis(25)));
        computing.begin();
        computing.add(Duration::from_secs(1));
        assert!(
            computing.within(Duration::from_millis(25), tokio::task::yield_now()).await.is_err()
        );
    }
}
