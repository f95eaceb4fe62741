//! The seam through which time and randomness enter, so that tests can fix them.

use jiff::Timestamp;

/// Time and randomness.
pub trait Clock: Send + Sync + 'static {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
    /// Bits that nobody can guess.
    fn random(&self) -> u128;
}

/// The system's clock and its random source.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}
