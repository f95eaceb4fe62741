//! Which build of a provider serves a binding, and how one build takes over from another.

pub(crate) mod asked;
pub(crate) mod breaker;
pub(crate) mod choice;
pub(crate) mod health;
pub(crate) mod migration_storage;
pub(crate) mod rate;
pub(crate) mod serving;
mod switch;

pub use breaker::BreakerState;
pub use health::HealthFound;
pub use rate::RateState;
