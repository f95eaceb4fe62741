//! What operations leave: a log entry each, counted refusals, the feed of events, costs and
//! budgets, and metrics.
//!
//! An operation that runs is a type for each of its states (`operation`), and only its completion
//! makes an answer. This crate knows no provider and no plugin. It gets what it needs to know of a
//! binding.

pub mod billing;
mod error;
pub mod events;
pub mod feed;
mod log;
pub mod metrics;
pub mod operation;
mod recent;
pub mod refusals;

#[cfg(test)]
mod testing;

pub use self::error::OplogError;
pub use self::log::{Audit, Oplog, OplogOptions, Told};
pub use self::recent::{Recent, Troubles};
