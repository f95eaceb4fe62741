//! The errors of the suite. A provider that breaks a rule is a finding, not an error.

use memhost_core::{OpenError, ServiceError};

/// Why a check did not run.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {message}")]
    File {
        /// Which.
        path: String,
        /// The system's message.
        message: String,
    },
    /// The host refused the file for a reason that no rule is about, such as the built-in
    /// provider's key.
    #[error("the host refused the file: {0}")]
    KeptOut(String),
    /// The host of the check does not open.
    #[error("the host of the check does not open: {0}")]
    Open(#[from] OpenError),
    /// A binding of the check cannot be made.
    #[error(
        "a binding for the check cannot be made: {0}; give what the provider needs with --config"
    )]
    Binding(#[from] Box<ServiceError>),
    /// The JUnit report cannot be written.
    #[error("the JUnit report cannot be written: {0}")]
    Report(String),
    /// There is no rule with this id.
    #[error("there is no rule `{id}`; `memhost plugin check --list-rules` lists them")]
    NoRule {
        /// The id that was asked for.
        id: String,
    },
}
