//! Why an operation ended without success, or could not be recorded.

use memhost_store::StoreError;
use memhost_types::{OperationError, OperationId, Outcome};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OplogError {
    /// The operation ended without success; its entry says the same.
    #[error("{}", error.message)]
    Ended { operation_id: OperationId, outcome: Outcome, error: OperationError },
    /// The intent could not be recorded, and the provider was not called; or a read could not be
    /// recorded, and its answer is not shown.
    #[error(
        "the operation could not be recorded, so nothing was changed and there is no answer: {0}"
    )]
    NotRecorded(#[source] StoreError),
    /// The provider did what was asked, and the completion could not be recorded.
    #[error(
        "the provider did it, but it is not known to be on disk, and operation {operation_id} will \
         be shown as interrupted: {error}; then look for the records and repeat it if they are \
         missing"
    )]
    Unrecorded {
        operation_id: OperationId,
        #[source]
        error: StoreError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl OplogError {
    /// The same refusal, counted in an earlier operation.
    pub(crate) fn counted_in(self, operation_id: OperationId) -> Self {
        match self {
            Self::Ended { outcome, error, .. } => Self::Ended { operation_id, outcome, error },
            error => error,
        }
    }
}
