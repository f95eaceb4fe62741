//! What operations leave: refusals that are counted, the feed of events, costs and budgets, and
//! metrics.
//!
//! This crate knows no provider and no plugin. It gets what it needs to know of a binding.

pub mod billing;
pub mod feed;
pub mod metrics;
pub mod refusals;
