//! The clock of a host among others: that of the database, so that what one host writes after
//! another one is later.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;

use crate::lease::HostLease;
use memhost_ports::Clock;

/// The database's time, as the last heartbeat found it, with what has passed since. It does not
/// follow this machine's clock when somebody sets it, and it never falls: where the database's
/// clock does, it stands still until that has caught up. Nor is it before the last operation of a
/// company that this host has taken over.
pub struct DatabaseClock {
    lease: Arc<HostLease>,
    /// Randomness, and the time before the first heartbeat.
    own: Arc<dyn Clock>,
    /// The last answer, in nanoseconds since 1970.
    last: AtomicI64,
}

impl DatabaseClock {
    /// The clock of the database that a host renews its lease at.
    pub fn new(lease: Arc<HostLease>, own: Arc<dyn Clock>) -> Self {
        Self { lease, own, last: AtomicI64::new(i64::MIN) }
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        let found = self.lease.database_time();
        let own = || i64::try_from(self.own.now().as_nanosecond()).unwrap_or(i64::MAX);
        let now = found.unwrap_or_else(own);
        let last = self.last.fetch_max(now, Ordering::Relaxed);
        Timestamp::from_nanosecond(i128::from(now.max(last))).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn random(&self) -> u128 {
        self.own.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Late;

    impl Clock for Late {
        fn now(&self) -> Timestamp {
            Timestamp::from_second(1_000).unwrap()
        }

        fn random(&self) -> u128 {
            7
        }
    }

    #[test]
    fn time_is_the_databases_and_never_falls() {
        let lease = Arc::<HostLease>::default();
        let clock = DatabaseClock::new(Arc::clone(&lease), Arc::new(Late));
        assert_eq!(clock.now().as_second(), 1_000, "nothing is known yet");
        let sent = crate::lease::now();
        lease.found_time(sent, 2_000_000_000);
        let second = clock.now().as_second();
        assert!((2_000..2_010).contains(&second), "{second}");
        let before = clock.now();
        lease.found_time(crate::lease::now(), 1_500_000_000);
        assert!(clock.now() >= before, "it fell with the database's");
        assert_eq!(clock.random(), 7);
        // Nobody need have asked for the time before it fell.
        let lease = Arc::<HostLease>::default();
        lease.found_time(crate::lease::now(), 2_000_000_000);
        lease.found_time(crate::lease::now(), 1_500_000_000);
        let clock = DatabaseClock::new(Arc::clone(&lease), Arc::new(Late));
        assert!(clock.now().as_second() >= 2_000, "{}", clock.now());
        // What another host has written is not later, unless its time was quite wrong.
        lease.reach(4_000_000_000);
        assert_eq!(clock.now().as_second(), 4_000);
        lease.reach(400_000_000_000);
        assert_eq!(clock.now().as_second(), 4_000);
        // An answer that took long says little about the time.
        let lease = Arc::<HostLease>::default();
        lease.found_time(crate::lease::now().saturating_sub(5_000_000_000), 2_000_000_000);
        assert!(lease.database_time().is_none());
    }
}
