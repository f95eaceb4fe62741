//! The build of a provider that serves a binding, and how another one takes over from it.

mod breaker;
mod choice;
mod migration_storage;
mod rate;
mod serving;
mod storage;
mod switch;
#[cfg(test)]
mod tests;

pub use breaker::{Admitted, Breaker, BreakerState};
pub use choice::{Choice, WaitingBuild, choose, newest, warnings};
pub use rate::{Rate, RateState};
pub use serving::{HealthFound, MEMORY, Serving, ServingBindings, binding_deleted, circuit_open};
pub use storage::{partition, remove_company_directory};
