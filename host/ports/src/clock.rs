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

/// An id that nobody can guess and that orders by time: a UUID of version 7.
pub fn new_id(clock: &dyn Clock) -> Uuid {
    let unix_ms = u64::try_from(clock.now().as_millisecond()).unwrap_or(0);
    let random = clock.random().to_be_bytes()[..10].try_into().unwrap_or_default();
    uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid()
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
