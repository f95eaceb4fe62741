//! The conformance kit: a provider is asked, rule by rule, whether it does what the contract says. It runs on a host
//! of its own in a temporary directory, so that admission, grants, limits and the checks of every answer are those that
//! a provider meets when it serves.

mod error;
mod kit;
mod material;
mod report;
mod rule;
mod rules;
mod subject;

pub use error::CheckError;
pub use kit::{CheckOptions, Kit, Selection, Source};
pub use report::{Counts, Finding, Outcome, Report, Status};
pub use rule::{Mode, Rule, Sentence};
pub use rules::{all as rules, handbook};
