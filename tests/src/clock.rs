//! A clock that tests set, so that they need not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use memhost_ports::{Clock, SystemClock};

/// The system's clock plus an offset that tests set.
#[derive(Debug, Default)]
pub struct TestClock {
    ahead_ms: AtomicI64,
}

impl TestClock {
    /// A clock that shows the system's time.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets it forward, or back by a negative time.
    pub fn advance(&self, by: SignedDuration) {
        let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_millis(self.ahead_ms.load(Ordering::Relaxed));
        SystemClock.now().checked_add(ahead).unwrap_or(Timestamp::MAX)
    }

    fn random(&self) -> u128 {
        SystemClock.random()
    }
}
