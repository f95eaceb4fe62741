//! Why calls about tokens fail.

use crate::Denied;
use memhost_store::StoreError;
use memhost_types::FieldError;

/// Why a token was not made, changed or found.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AccessError {
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("there is no token {id} here; `memhost token list` shows those that there are")]
    NotFound { id: String },
    #[error(
        "the token {id} was revoked and stays revoked; make another one with `memhost token create`"
    )]
    Revoked { id: String },
    /// The token would give its creator more than the creator has.
    #[error(transparent)]
    Beyond(#[from] Denied),
    #[error("no token can be made: the system gives no random bytes: {0}; try again")]
    NoRandomness(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}
