//! What the commands that a person types fail with. A hook itself never fails.

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum HooksError {
    /// An argument or a file will not do.
    #[error("{what}: {message}")]
    Input {
        /// Which.
        what: String,
        /// Why.
        message: String,
    },
    /// What was installed cannot be noted down.
    #[error("what was installed cannot be written down: {0}")]
    Record(#[from] serde_json::Error),
    /// A file or standard output cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl HooksError {
    pub(crate) fn input(what: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::Input { what: what.into(), message: message.to_string() }
    }
}
