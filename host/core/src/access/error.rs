//! Why calls about tokens fail.

use memhost_store::StoreError;
use memhost_types::FieldError;

/// Why a token was not made, changed or found.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// A field is not valid.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// There is no such token.
    #[error("there is no token {id} here; `memhost token list` shows those that there are")]
    NotFound {
        /// Which.
        id: String,
    },
    /// It was revoked.
    #[error("the token {id} was revoked and stays so; make another with `memhost token create`")]
    Revoked {
        /// Which.
        id: String,
    },
    /// The system has no randomness.
    #[error("no token can be made: the system gives no random bytes: {0}")]
    NoRandomness(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
