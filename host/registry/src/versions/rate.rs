//! The limit of calls per second of a binding, by the generic cell rate algorithm: one number, no
//! queue.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Limits calls per second. A burst has at most the calls of one second.
#[derive(Debug)]
pub struct Rate {
    /// The time between two calls; `None`: there is no limit.
    interval: Option<Duration>,
    /// When the last of the calls so far would have come if they came evenly.
    even: Mutex<Instant>,
}

/// The state of a binding's rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateState {
    /// The limit.
    pub per_second: u32,
    /// Calls that are allowed now.
    pub left: u32,
    /// The time until the whole limit is available again.
    pub full_in: Duration,
}

impl Rate {
    /// 0 for no limit.
    pub fn new(per_second: u32) -> Self {
        let interval = (per_second > 0).then(|| Duration::from_secs(1) / per_second);
        Self { interval, even: Mutex::new(Instant::now()) }
    }

    /// Takes one call, or answers how long to wait.
    pub fn take(&self) -> Result<(), Duration> {
        let Some(interval) = self.interval else { return Ok(()) };
        self.take_at(interval, Instant::now())
    }

    /// The state; `None`: there is no limit.
    pub fn state(&self) -> Option<RateState> {
        Some(self.state_at(self.interval?, Instant::now()))
    }

    fn state_at(&self, interval: Duration, now: Instant) -> RateState {
        let full_in = self.even.lock().saturating_duration_since(now);
        let room = Duration::from_secs(1).saturating_sub(full_in);
        let whole = |time: Duration| {
            u32::try_from(time.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
        };
        RateState { per_second: whole(Duration::from_secs(1)), left: whole(room), full_in }
    }

    fn take_at(&self, interval: Duration, now: Instant) -> Result<(), Duration> {
        let mut even = self.even.lock();
        let next = (*even).max(now) + interval;
        let ahead = next - now;
        if ahead > Duration::from_secs(1) {
            return Err(ahead - Duration::from_secs(1));
        }
        *even = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_calls_goes_through_and_then_one_at_a_time() {
        let (rate, now) = (Rate::new(10), Instant::now());
        let interval = Duration::from_millis(100);
        let through = (0..20).filter(|_| rate.take_at(interval, now).is_ok()).count();
        assert_eq!(through, 10);
        assert!(rate.take_at(interval, now).unwrap_err() <= interval);
        assert!(rate.take_at(interval, now + interval).is_ok());
        assert!(rate.take_at(interval, now + interval).is_err());
        let state = rate.state_at(interval, now + interval);
        assert_eq!((state.per_second, state.left), (10, 0));
        assert!(
            state.full_in <= Duration::from_secs(1) && state.full_in > Duration::from_millis(900)
        );
        let later = rate.state_at(interval, now + Duration::from_secs(2));
        assert_eq!((later.left, later.full_in), (10, Duration::ZERO));
        assert!((0..1_000).all(|_| Rate::new(0).take().is_ok()));
    }

    #[test]
    fn a_long_rest_saves_up_one_second_and_no_more() {
        let (rate, now) = (Rate::new(5), Instant::now() + Duration::from_secs(3_600));
        let interval = Duration::from_millis(200);
        let through = (0..50).filter(|_| rate.take_at(interval, now).is_ok()).count();
        assert_eq!(through, 5);
    }

    #[test]
    fn a_refused_call_says_how_long_to_wait_and_takes_nothing() {
        let (rate, now) = (Rate::new(1), Instant::now());
        let interval = Duration::from_secs(1);
        rate.take_at(interval, now).unwrap();
        for _ in 0..100 {
            let wait = rate.take_at(interval, now).unwrap_err();
            assert!(wait > Duration::ZERO && wait <= interval, "{wait:?}");
        }
        assert!(rate.take_at(interval, now + interval).is_ok());
    }

    #[test]
    fn without_a_limit_there_is_no_state() {
        assert_eq!(Rate::new(0).state(), None);
        assert_eq!(Rate::new(7).state().unwrap().left, 7);
    }
}
