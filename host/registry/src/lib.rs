//! What serves a call: the providers that the host has, in all their versions; the bindings of
//! companies, with their secrets; and the build that serves each of them.
//!
//! This crate owns the tables `Bindings`, `Targets`, `Activity` and `Secrets`, the marks of deleted
//! bindings, and each binding's storage, directory and state of versions. It knows no caller and no
//! operation: whoever calls it has authorized the change.

mod activity;
pub mod bindings;
mod error;
pub mod plugins;
pub mod secrets;
#[cfg(test)]
mod testing;
pub mod versions;

pub use activity::{ActivityLog, CompanyRegister, NewActivity, activity_key};
pub use error::BindingError;
