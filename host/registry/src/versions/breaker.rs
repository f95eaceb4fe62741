//! The circuit breaker of a binding. A provider that traps, times out or cannot reach the system
//! behind it several times in a row gets no calls for a pause. One refusal of its credentials is
//! enough, too. After the pause one call is let through. If it succeeds, the breaker closes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number of failures in a row that opens the breaker.
const FAILURES: u32 = 8;
/// How long it stays open the first time. The pause doubles after each failed trial.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest that it stays open.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum BreakerState {
    /// Calls go through.
    Closed,
    /// Calls are refused.
    #[serde(rename_all = "camelCase")]
    Open {
        /// Milliseconds until the next trial.
        retry_after_ms: u64,
    },
    /// One call is on trial, the others are refused.
    HalfOpen,
}

/// Refuses calls to a provider that keeps failing.
#[derive(Debug, Default)]
pub struct Breaker {
    /// False: nothing has failed since the last success, and the lock is not needed.
    is_troubled: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    failures: u32,
    /// Set while it is open.
    open: Option<Open>,
    /// Why the last call failed.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    until: Instant,
    pause: Duration,
    on_trial: bool,
}

/// A call that was let through. If it is dropped before it ended, the next call may be the trial.
pub struct Admitted<'a> {
    breaker: &'a Breaker,
    is_trial: bool,
}

impl Breaker {
    /// Lets a call through, or tells in how long another try makes sense.
    pub fn admit(&self) -> Result<Admitted<'_>, Duration> {
        self.admit_at(Instant::now)
    }

    fn admit_at(&self, now: impl FnOnce() -> Instant) -> Result<Admitted<'_>, Duration> {
        if !self.is_troubled.load(Ordering::Relaxed) {
            return Ok(Admitted { breaker: self, is_trial: false });
        }
        let mut inner = self.inner.lock();
        let Some(open) = &mut inner.open else {
            return Ok(Admitted { breaker: self, is_trial: false });
        };
        let now = now();
        if now < open.until {
            return Err(open.until - now);
        }
        if open.on_trial {
            return Err(FIRST_PAUSE);
        }
        open.on_trial = true;
        Ok(Admitted { breaker: self, is_trial: true })
    }

    /// The state now.
    pub fn state(&self) -> BreakerState {
        let inner = self.inner.lock();
        match inner.open {
            None => BreakerState::Closed,
            Some(Open { on_trial: true, .. }) => BreakerState::HalfOpen,
            Some(open) => {
                let left = open.until.saturating_duration_since(Instant::now());
                BreakerState::Open {
                    retry_after_ms: u64::try_from(left.as_millis()).unwrap_or(u64::MAX),
                }
            }
        }
    }

    /// How many calls failed in a row before it opened, or have so far.
    pub fn failures(&self) -> u32 {
        self.inner.lock().failures
    }

    /// Why the calls fail; `None`: the last one succeeded.
    pub fn reason(&self) -> Option<String> {
        self.inner.lock().reason.clone()
    }

    fn succeeded(&self, is_trial: bool) {
        let mut inner = self.inner.lock();
        // A call that began before the breaker opened does not close it.
        if is_trial || inner.open.is_none() {
            *inner = Inner::default();
            self.is_troubled.store(false, Ordering::Relaxed);
        }
    }

    /// Answers whether it opens with this failure.
    fn failed(&self, is_trial: bool, now: Instant, reason: String, opens_at: u32) -> bool {
        let mut inner = self.inner.lock();
        self.is_troubled.store(true, Ordering::Relaxed);
        inner.failures = inner.failures.saturating_add(1);
        inner.reason = Some(reason);
        let (pause, opens) = match (inner.open, is_trial) {
            (Some(open), true) => ((open.pause * 2).min(LONGEST_PAUSE), false),
            (Some(_), false) => return false,
            (None, _) if inner.failures >= opens_at => (FIRST_PAUSE, true),
            (None, _) => return false,
        };
        inner.open = Some(Open { until: now + pause, pause, on_trial: false });
        opens
    }
}

impl Admitted<'_> {
    /// The provider answered, if only with an error.
    pub fn succeeded(self) {
        if self.breaker.is_troubled.load(Ordering::Relaxed) {
            self.breaker.succeeded(self.is_trial);
        }
        std::mem::forget(self);
    }

    /// It trapped, ran into a limit, or cannot reach the system behind it. Answers whether the
    /// breaker opens with this.
    pub fn failed(self, reason: String) -> bool {
        let opens = self.breaker.failed(self.is_trial, Instant::now(), reason, FAILURES);
        std::mem::forget(self);
        opens
    }

    /// The system behind it refuses its credentials: so it will every call. Answers whether the
    /// breaker opens with this.
    pub fn shut_out(self, reason: String) -> bool {
        let opens = self.breaker.failed(self.is_trial, Instant::now(), reason, 1);
        std::mem::forget(self);
        opens
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.is_trial
            && let Some(open) = &mut self.breaker.inner.lock().open
        {
            open.on_trial = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, times: u32) {
        for _ in 0..times {
            breaker.admit().unwrap().failed("it trapped".to_owned());
        }
    }

    #[test]
    fn it_opens_is_tried_once_and_closes() {
        let breaker = Breaker::default();
        fail(&breaker, FAILURES - 1);
        breaker.admit().unwrap().succeeded();
        fail(&breaker, FAILURES - 1);
        assert_eq!(
            breaker.state(),
            BreakerState::Closed,
            "a success in between starts the count anew"
        );
        let from_before = breaker.admit().unwrap();
        fail(&breaker, 1);
        from_before.succeeded();
        assert!(breaker.admit().is_err_and(|wait| wait <= FIRST_PAUSE));
        let later = || Instant::now() + FIRST_PAUSE;
        let trial = breaker.admit_at(later).unwrap();
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert!(breaker.admit_at(later).is_err(), "one trial at a time");
        trial.succeeded();
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert_eq!(breaker.reason(), None);
    }

    #[test]
    fn refused_credentials_open_it_at_once() {
        let breaker = Breaker::default();
        assert!(breaker.admit().unwrap().shut_out("no such key".to_owned()));
        assert!(breaker.admit().is_err());
        assert_eq!(breaker.reason().as_deref(), Some("no such key"));
    }

    #[test]
    fn a_failed_trial_doubles_the_pause_and_an_abandoned_one_frees_the_next() {
        let breaker = Breaker::default();
        fail(&breaker, FAILURES);
        let later = || Instant::now() + FIRST_PAUSE * 4;
        drop(breaker.admit_at(later).unwrap());
        assert!(!breaker.admit_at(later).unwrap().failed("again".to_owned()), "it was open before");
        let wait = breaker.admit().map(drop).unwrap_err();
        assert!(wait > FIRST_PAUSE && wait <= FIRST_PAUSE * 2, "{wait:?}");
    }

    #[test]
    fn the_pause_doubles_up_to_the_longest() {
        let breaker = Breaker::default();
        fail(&breaker, FAILURES);
        let mut pause = FIRST_PAUSE;
        for _ in 0..12 {
            let later = || Instant::now() + LONGEST_PAUSE * 2;
            breaker.admit_at(later).unwrap().failed("again".to_owned());
            pause = (pause * 2).min(LONGEST_PAUSE);
            let wait = breaker.admit().map(drop).unwrap_err();
            assert!(wait <= pause && wait > pause - FIRST_PAUSE, "{wait:?} of {pause:?}");
        }
        assert_eq!(pause, LONGEST_PAUSE);
    }

    #[test]
    fn calls_that_end_late_neither_open_it_again_nor_make_the_pause_longer() {
        let breaker = Breaker::default();
        let late: Vec<_> = (0..3).map(|_| breaker.admit().unwrap()).collect();
        fail(&breaker, FAILURES - 1);
        assert!(breaker.admit().unwrap().failed("it trapped".to_owned()), "it opens once");
        for call in late {
            assert!(!call.failed("late".to_owned()));
        }
        assert!(breaker.admit().is_err_and(|wait| wait <= FIRST_PAUSE));
        assert_eq!(breaker.failures(), FAILURES + 3);
    }

    #[test]
    fn the_state_says_how_long_to_wait_and_why() {
        let breaker = Breaker::default();
        assert_eq!((breaker.state(), breaker.reason()), (BreakerState::Closed, None));
        fail(&breaker, 1);
        assert_eq!(breaker.state(), BreakerState::Closed, "one failure opens nothing");
        assert_eq!(breaker.reason().as_deref(), Some("it trapped"));
        fail(&breaker, FAILURES - 1);
        let BreakerState::Open { retry_after_ms } = breaker.state() else { panic!("it is open") };
        assert!((1..=1_000).contains(&retry_after_ms), "{retry_after_ms}");
    }

    #[test]
    fn a_call_that_is_dropped_counts_as_nothing() {
        let breaker = Breaker::default();
        fail(&breaker, FAILURES - 1);
        drop(breaker.admit().unwrap());
        assert_eq!(breaker.failures(), FAILURES - 1);
        assert!(breaker.admit().is_ok());
    }
}
