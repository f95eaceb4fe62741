//! Whatever turns texts into vectors.

use super::error::EmbeddingsError;
use memhost_ports::{EmbeddingModel, OutgoingCounter};
use memhost_types::Usage;

/// What computes vectors, on whatever thread it is called on. Texts of one call are computed in one
/// go.
pub(super) trait Model: Send + Sync {
    /// Its name and the length of its vectors.
    fn about(&self) -> &EmbeddingModel;

    /// Whether it computes here, so that no text leaves the machine.
    fn is_local(&self) -> bool;

    /// How many texts one call should have: what holds a place for some tenths of a second, not for
    /// many.
    fn batch(&self) -> usize;

    /// A vector of unit length for each text, and the tokens that they had. What it sends is
    /// counted in `sent`.
    fn embed(
        &self,
        texts: &[String],
        sent: &OutgoingCounter,
    ) -> Result<(Vec<Vec<f32>>, u64), EmbeddingsError>;

    /// The usage of this number of tokens.
    fn usage(&self, tokens: u64) -> Usage;
}
