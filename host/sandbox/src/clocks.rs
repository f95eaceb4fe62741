//! Clocks for providers without a grant for the exact time. With microseconds, a guest could
//! measure what other guests and the processor's caches do.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

/// How far apart two times are that such a provider can tell apart.
const STEP: Duration = Duration::from_millis(100);

/// The time of day, in steps.
pub(super) struct CoarseWallClock;

impl HostWallClock for CoarseWallClock {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        floor(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

/// Time that goes on, in steps.
pub(super) struct CoarseMonotonicClock(Instant);

impl CoarseMonotonicClock {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }
}

impl HostMonotonicClock for CoarseMonotonicClock {
    fn resolution(&self) -> u64 {
        nanos_of_step()
    }

    fn now(&self) -> u64 {
        nanos(floor(self.0.elapsed()))
    }
}

pub(super) fn floor(time: Duration) -> Duration {
    let nanos = nanos(time);
    Duration::from_nanos(nanos - nanos % nanos_of_step())
}

fn nanos_of_step() -> u64 {
    nanos(STEP)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_to_the_step() {
        assert_eq!(floor(Duration::from_millis(1_234)), Duration::from_millis(1_200));
        let later = Duration::from_millis(4_000_000_000_150);
        assert_eq!(floor(later), Duration::from_millis(4_000_000_000_100));
        assert_eq!(CoarseWallClock.now().as_nanos() % STEP.as_nanos(), 0);
    }
}
