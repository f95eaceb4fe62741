//! Why a call of a provider fails, as the contract's error variant has it, and why an operation
//! does.

use std::fmt;
use std::time::Duration;

use super::operation::{OperationError, OperationErrorCode, Outcome};
use super::{FieldError, limits};

/// How long to wait until the store may be reached again, or another host has taken the company
/// over.
pub const STORE_UNAVAILABLE: Duration = Duration::from_secs(1);

/// The contract's error variant. What the host does on each is stated in `wit/types.wit`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProviderError {
    /// The request can never succeed as it is.
    #[error("{}{message}", field.as_ref().map(|field| format!("{field}: ")).unwrap_or_default())]
    InvalidRequest { field: Option<String>, message: String },
    /// The thing named does not exist in this scope.
    #[error("{0}")]
    NotFound(String),
    /// This provider does not do that.
    #[error("{0}")]
    Unsupported(String),
    /// The system behind the provider refused its credentials.
    #[error("{0}")]
    Unauthorized(String),
    /// Too fast.
    #[error("{message}")]
    RateLimited {
        message: String,
        /// Milliseconds until another try makes sense.
        retry_after_ms: Option<u64>,
    },
    /// Not now.
    #[error("{message}")]
    Unavailable {
        message: String,
        /// Milliseconds until another try makes sense.
        retry_after_ms: Option<u64>,
    },
    /// A limit on stored things is reached.
    #[error("{0}")]
    QuotaExceeded(String),
    /// Anything else.
    #[error("{0}")]
    Internal(String),
}

/// A provider's message, cut to what the log keeps, at a character.
pub fn cut_message(mut message: String) -> String {
    if message.len() > limits::MAX_MESSAGE_BYTES {
        let end = message.floor_char_boundary(limits::MAX_MESSAGE_BYTES);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// Why an operation does not succeed, before its entry says so. What refuses converts its own error
/// into this one, beside that error.
#[derive(Debug)]
pub struct Refusal {
    /// How the operation ends with it.
    pub outcome: Outcome,
    /// The error that the operation's entry and the caller get.
    pub error: OperationError,
}

impl Refusal {
    /// The operation is refused before its provider is called.
    pub fn new(code: OperationErrorCode, message: impl Into<String>) -> Self {
        let error =
            OperationError { code, message: message.into(), field: None, retry_after_ms: None };
        Self { outcome: Outcome::Refused, error }
    }

    /// The host itself failed.
    pub fn host(error: impl fmt::Display) -> Self {
        Self::new(OperationErrorCode::Host, error.to_string())
    }

    /// The same with the time after which another try makes sense.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.error.retry_after_ms =
            Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1));
        self
    }
}

impl From<FieldError> for Refusal {
    fn from(field: FieldError) -> Self {
        let mut refusal = Self::new(OperationErrorCode::InvalidRequest, field.message);
        refusal.error.field = Some(field.field);
        refusal
    }
}

impl From<&ProviderError> for Refusal {
    fn from(error: &ProviderError) -> Self {
        use OperationErrorCode as Code;
        let (code, field, retry_after_ms) = match error {
            ProviderError::InvalidRequest { field, .. } => {
                (Code::InvalidRequest, field.clone(), None)
            }
            ProviderError::NotFound(_) => (Code::NotFound, None, None),
            ProviderError::Unsupported(_) => (Code::Unsupported, None, None),
            ProviderError::Unauthorized(_) => (Code::Unauthorized, None, None),
            ProviderError::RateLimited { retry_after_ms, .. } => {
                (Code::RateLimited, None, *retry_after_ms)
            }
            ProviderError::Unavailable { retry_after_ms, .. } => {
                (Code::Unavailable, None, *retry_after_ms)
            }
            ProviderError::QuotaExceeded(_) => (Code::QuotaExceeded, None, None),
            ProviderError::Internal(_) => (Code::Internal, None, None),
        };
        let message = match error {
            ProviderError::InvalidRequest { message, .. } => message.clone(),
            other => other.to_string(),
        };
        Self {
            outcome: Outcome::Failed,
            error: OperationError { code, message, field, retry_after_ms },
        }
    }
}
