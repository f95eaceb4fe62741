//! The queues of a host: deliveries of hooks, extraction jobs, review items, and records of an
//! import. Each entry is a row until somebody takes it or decides about it.
//!
//! This crate owns the tables `Deliveries`, `Jobs`, `JobIndex`, `Due`, `Reviews` and `Waiting`, and
//! the marks of bindings for which records wait. It calls no provider and knows no caller.

pub mod deliveries;
pub mod due_queue;
mod error;
pub mod jobs;
mod retry;
mod reviews;
pub mod waiting;

pub use deliveries::Deliveries;
pub use error::BackgroundError;
pub use jobs::Jobs;
pub use retry::{RetryPolicy, wait_for};
pub use reviews::{ReviewError, Reviews, Standing};
