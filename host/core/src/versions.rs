//! Which build of a provider serves a binding, and how one build takes over from another.

pub(crate) mod breaker;
pub(crate) mod choice;
pub(crate) mod migration_storage;
pub(crate) mod rate;
pub(crate) mod serving;
mod switch;

pub use breaker::BreakerState;
pub use rate::RateState;
