//! When something that failed is tried again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use memhost_ports::Clock;
use memhost_types::OperationErrorCode;

/// How long something waits for room on the disk.
const DISK_FULL: Duration = Duration::from_secs(30);

/// How often, and how long between. The wait doubles from the first to the longest; each is drawn
/// between a half and the whole of that, so that what failed together is not tried again together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The wait after the first failure.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts there are in all, the first one included.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(300), attempts: 10 }
    }
}

impl RetryPolicy {
    /// When to try again after so many failures. `None`: it is given up. `asked` is the shortest
    /// wait that the other side asked for.
    pub fn next(
        &self,
        clock: &dyn Clock,
        failures: u32,
        asked: Option<Duration>,
    ) -> Option<Timestamp> {
        if failures >= self.attempts {
            return None;
        }
        let doubled = self
            .first
            .saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        let whole = doubled.min(self.longest);
        #[allow(clippy::cast_precision_loss, reason = "a share of a wait")]
        let share = 0.5 + (clock.random() as u64 as f64 / u64::MAX as f64) / 2.0;
        let wait = whole.mul_f64(share).max(asked.unwrap_or_default().min(self.longest));
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_hours(1));
        clock.now().checked_add(wait).ok()
    }
}

/// How long to wait where nothing was tried: the provider could not be asked for a reason that
/// passes. What ends by itself within seconds is looked at soon.
pub fn wait_for(
    code: OperationErrorCode,
    asked: Option<Duration>,
    retry: &RetryPolicy,
) -> Duration {
    match code {
        OperationErrorCode::BindingDisabled => retry.longest,
        OperationErrorCode::BudgetExceeded => asked.unwrap_or(retry.longest),
        OperationErrorCode::DiskFull => retry.longest.min(DISK_FULL),
        _ => asked.unwrap_or(retry.first).min(retry.longest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_ports::SystemClock;

    #[test]
    fn waits_double_up_to_the_longest_and_end() {
        let policy = RetryPolicy { attempts: 40, ..RetryPolicy::default() };
        let wait = |failures| {
            let at = policy.next(&SystemClock, failures, None).unwrap();
            at.duration_since(Timestamp::now()).as_secs_f64()
        };
        assert!((0.4..=1.1).contains(&wait(1)) && (1.9..=4.1).contains(&wait(3)));
        assert!((149.0..=301.0).contains(&wait(39)));
        assert_eq!(policy.next(&SystemClock, 40, None), None);
        let asked = policy.next(&SystemClock, 1, Some(Duration::from_secs(60))).unwrap();
        assert!(asked.duration_since(Timestamp::now()).as_secs() >= 59);
    }
}
