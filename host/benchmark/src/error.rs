//! What this room fails with.

use memhost_core::ServiceError;

/// Why an evaluation did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file is not a benchmark of this format.
    #[error("{path} is not a LoCoMo file: {message}; see the documentation of `memhost eval locomo` for the format")]
    Format {
        /// Which file.
        path: String,
        /// Where and what.
        message: String,
    },
    /// An id made from the file's own names will not do.
    #[error("the file's {what} cannot be used as an id: {message}")]
    Id {
        /// Which name.
        what: String,
        /// Why.
        message: String,
    },
    /// A capture or query failed.
    #[error("{what} failed: {error}")]
    Operation {
        /// What was tried.
        what: String,
        /// Why.
        error: Box<ServiceError>,
    },
}
