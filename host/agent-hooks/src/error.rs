//! Why a command that a person types failed. A hook itself never fails.

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum HooksError {
    /// An argument, a variable or a file is wrong. The message says what to do.
    #[error("{what}: {message}")]
    Input {
        /// The argument, the variable or the path of the file.
        what: String,
        /// The error, and the text to type instead.
        message: String,
    },
    /// Some events could not be delivered. What was printed says why.
    #[error(
        "not everything was delivered: {0} still waiting, and the lines above say why; mend that, \
         and type `memhost agent-hooks spool --flush` again"
    )]
    Waiting(usize),
    /// The record of an installation could not be written.
    #[error("the record of the installation cannot be written: {0}")]
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
