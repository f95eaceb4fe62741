//! The errors of a benchmark run.

use memhost_core::ServiceError;

/// Why an evaluation stopped.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The file is not a benchmark of this format.
    #[error(
        "{path} is not a LoCoMo file: {message}; see the documentation of `memhost eval locomo` \
         for the format"
    )]
    Format {
        /// Which file.
        path: String,
        /// Where and what.
        message: String,
    },
    /// A name in the file does not make a valid id.
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
        /// The operation.
        what: String,
        /// Why.
        error: Box<ServiceError>,
    },
}
