//! What a provider's call can fail with, as the contract's error variant has it.

use super::limits;

/// A field of a request and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    /// The field, in camelCase with dots, such as `records.0.metadata`.
    pub field: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl FieldError {
    /// An error at a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

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
