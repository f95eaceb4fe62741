//! What this room fails with.

use crate::plugins::trust::TrustError;
use memhost_sandbox::AdmissionError;
use memhost_types::Digest;

/// Why a file is not taken in, or a build cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// What is in it will not do.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// Whose it is is not known, or not believed.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Another file has taken its place while it was read.
    #[error("{path} is being written; try again when it is whole")]
    BeingWritten {
        /// Which file.
        path: String,
    },
    /// It has the key of the provider that is part of the host.
    #[error("its provider key `{key}` is that of the built-in provider; give it one of its own")]
    BuiltinKey {
        /// The key.
        key: &'static str,
    },
    /// A copy is not what its name says.
    #[error("the copy of {digest} was changed by somebody else; put the plugin's file into the plugins directory")]
    Changed {
        /// What it should be.
        digest: Digest,
    },
    /// The host could not read or write.
    #[error("{action} {what} failed: {message}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// To which thing.
        what: String,
        /// What the system said.
        message: String,
    },
}

impl PluginError {
    /// What the system said of a file.
    pub(crate) fn io(action: &'static str, path: &std::path::Path, error: &dyn std::fmt::Display) -> Self {
        Self::Io { action, what: path.display().to_string(), message: error.to_string() }
    }
}
