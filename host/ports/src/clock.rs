//! The seam through which time and randomness enter, so that tests can fix them.

use jiff::Timestamp;
use uuid::Uuid;

/// Time and randomness.
pub trait Clock: Send + Sync + 'static {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
    /// Bits that nobody can guess.
    fn random(&self) -> u128;
}

/// An id that nobody can guess and that orders by time: a UUID of version 7. It tells apart what is
/// a quarter of a microsecond apart, so that two things of one change have their order (RFC 9562,
/// 6.2, method 3).
pub fn new_id(clock: &dyn Clock) -> Uuid {
    const NS_IN_MS: u64 = 1_000_000;
    let unix_ns = u64::try_from(clock.now().as_nanosecond()).unwrap_or(0);
    let mut random: [u8; 10] = clock.random().to_be_bytes()[..10].try_into().unwrap_or_default();
    // Twelve bits of the millisecond.
    let [.., high, low] = (unix_ns % NS_IN_MS * 4_096 / NS_IN_MS).to_be_bytes();
    (random[0], random[1]) = (high, low);
    uuid::Builder::from_unix_timestamp_millis(unix_ns / NS_IN_MS, &random).into_uuid()
}

/// The system's clock and its random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u128 {
        Uuid::new_v4().as_u128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct At(i128, u128);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_nanosecond(self.0).unwrap()
        }

        fn random(&self) -> u128 {
            self.1
        }
    }

    #[test]
    fn ids_have_the_order_of_their_times_whatever_is_random_in_them() {
        let at = |ns: i128, random| new_id(&At(1_700_000_000_123_000_000 + ns, random));
        let ids = [at(0, u128::MAX), at(250, 0), at(999_500, u128::MAX), at(1_000_000, 0)];
        assert!(ids.is_sorted() && ids.iter().all(|id| id.get_version_num() == 7), "{ids:?}");
        assert_ne!(at(0, 1 << 64), at(0, 0), "the rest is random");
        let seconds = ids[0].get_timestamp().map(|time| time.to_unix().0);
        assert_eq!(seconds, Some(1_700_000_000));
    }
}
