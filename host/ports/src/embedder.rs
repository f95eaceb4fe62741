//! A provider's embeddings as a trait: the sandbox calls it, the host's model implements it, and
//! neither knows the other.

use std::sync::Arc;

use memhost_types::{Outgoing, Usage};
use parking_lot::{Mutex, MutexGuard};

/// Texts that one call may hold (`embeddings` in `wit/host.wit`).
pub const MAX_EMBEDDING_TEXTS: usize = 256;
/// Bytes that one text may have.
pub const MAX_EMBEDDING_TEXT_BYTES: usize = 64 << 10;

/// A model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Vectors of different names must not be compared.
    pub name: String,
    /// Numbers in a vector.
    pub dimensions: u32,
}

/// Vectors, and their usage.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddedTexts {
    /// One vector of unit length for each text, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// None where all of them were cached.
    pub usage: Option<Usage>,
}

/// Where the requests of one call are counted as they leave, also those that nobody waits for any
/// more. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct OutgoingCounter(Arc<Mutex<Outgoing>>);

impl OutgoingCounter {
    /// What is counted by now.
    pub fn lock(&self) -> MutexGuard<'_, Outgoing> {
        self.0.lock()
    }

    /// What is counted by now; it counts from 0 again.
    pub fn take(&self) -> Outgoing {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Why there are no vectors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// The host has no model.
    #[error("{0}")]
    Unavailable(String),
    /// The model or its endpoint failed.
    #[error("{0}")]
    Failed(String),
}

/// Text to vectors for one binding. Deterministic for one model name.
#[async_trait::async_trait]
pub trait Embedder: Send + Sync {
    /// Which model answers.
    ///
    /// # Errors
    /// Where there is none.
    fn model(&self) -> Result<EmbeddingModel, EmbeddingError>;

    /// One vector of unit length for each text, in their order. The caller has checked
    /// [`MAX_EMBEDDING_TEXTS`] and [`MAX_EMBEDDING_TEXT_BYTES`]. What is sent for it is counted in
    /// `sent`.
    ///
    /// # Errors
    /// Where there is no model or it fails.
    async fn embed(
        &self,
        texts: Vec<String>,
        sent: OutgoingCounter,
    ) -> Result<EmbeddedTexts, EmbeddingError>;
}
