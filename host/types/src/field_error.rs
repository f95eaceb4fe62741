//! What is wrong with a field of a request.

/// A field of a request and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct FieldError {
    /// The field, in camelCase with dots, such as `records.0.metadata`.
    pub field: String,
    /// The error, and the allowed values.
    pub message: String,
}

impl FieldError {
    /// An error at a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}
