//! What this room fails with. A provider that breaks a rule is no error here but a finding.

use memhost_core::{OpenError, ServiceError};

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The file cannot be read.
    #[error("{path} cannot be read: {message}")]
    File {
        /// Which.
        path: String,
        /// What the system said.
        message: String,
    },
    /// A file has the key of the built-in provider, or was kept out for another reason that says nothing of the contract.
    #[error("the file is kept out: {0}")]
    KeptOut(String),
    /// The host of the check does not open.
    #[error("the host of the check does not open: {0}")]
    Open(#[from] OpenError),
    /// A binding of the check cannot be made.
    #[error("a binding for the check cannot be made: {0}; give what the provider needs with --config")]
    Binding(#[from] Box<ServiceError>),
    /// Nothing is known by this id.
    #[error("there is no rule `{id}`; `memhost plugin check --list-rules` lists them")]
    NoRule {
        /// What was asked for.
        id: String,
    },
}
