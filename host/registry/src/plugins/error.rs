//! Why calls about plugins fail.

use std::fmt::Display;
use std::path::Path;

use crate::plugins::trust::TrustError;
use memhost_sandbox::AdmissionError;
use memhost_types::Digest;

/// Why a file is not admitted, or a build cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PluginError {
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The file was changed or replaced while it was read.
    #[error("{path} is being written; try again when it is complete")]
    BeingWritten { path: String },
    #[error("its provider key `{key}` is that of the built-in provider; give it one of its own")]
    BuiltinKey { key: &'static str },
    /// The digest of a copy does not match its name.
    #[error(
        "the copy of {digest} was changed by somebody else; put the plugin's file into the plugins \
         directory"
    )]
    Changed { digest: Digest },
    /// Compiling it was stopped at an earlier try.
    #[error("{reason}; it was not tried again: for another try, `touch` the file")]
    StoppedBefore { reason: String },
    /// The build is there, and not ready yet.
    #[error("the build {digest} is being compiled; try again in a few seconds")]
    Admitting { digest: Digest },
    /// The copy of a build was not admitted.
    #[error("the copy of {digest} is refused: {reason}")]
    Copy { digest: Digest, reason: String },
    #[error("{action} {what} failed: {message}")]
    Io { action: &'static str, what: String, message: String },
}

impl PluginError {
    pub(crate) fn io(action: &'static str, path: &Path, error: &dyn Display) -> Self {
        Self::Io { action, what: path.display().to_string(), message: error.to_string() }
    }
}
