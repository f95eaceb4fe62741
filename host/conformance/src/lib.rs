//! The conformance suite: tries on a provider every rule of the contract. It runs on a host of its
//! own in a temporary directory, so that admission, grants, limits and the validation of every
//! answer are those of a serving host.

mod error;
mod material;
mod network;
mod report;
mod rule;
mod rules;
mod selection;
mod subject;
mod suite;
mod verdict;

pub use error::CheckError;
pub use network::Network;
pub use report::{Counts, Finding, Outcome, Report, Status};
pub use rule::{Mode, Rule, Sentence};
pub use rules::{all as rules, handbook};
pub use selection::Selection;
pub use suite::{CheckOptions, Source, Suite};
