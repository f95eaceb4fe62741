//! The sizes of a BERT encoder, and which of them can be computed.

use serde::{Deserialize, Serialize};

use super::EmbeddingsError;

/// `config.json` of a model, as far as it matters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shape {
    model_type: String,
    hidden_act: String,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) layer_norm_eps: f32,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    pub(super) type_vocab_size: usize,
    position_embedding_type: Option<String>,
}

impl Shape {
    /// # Errors
    /// Where a model of this shape is not one that this encoder computes, or larger than is
    /// sensible.
    pub(super) fn check(&self) -> Result<(), EmbeddingsError> {
        let position = self.position_embedding_type.as_deref().unwrap_or("absolute");
        for (what, found, expected) in [
            ("model_type", self.model_type.as_str(), "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", position, "absolute"),
        ] {
            if found != expected {
                return Err(EmbeddingsError::model(format!(
                    "its `{what}` is `{found}` and not `{expected}`"
                )));
            }
        }
        let fits = (1..=4_096).contains(&self.hidden_size)
            && (1..=48).contains(&self.num_hidden_layers)
            && self.num_attention_heads > 0
            && self.hidden_size.is_multiple_of(self.num_attention_heads)
            && (1..=16_384).contains(&self.intermediate_size)
            && (2..=8_192).contains(&self.max_position_embeddings)
            && (3..=1_000_000).contains(&self.vocab_size)
            && (1..=1_000).contains(&self.type_vocab_size)
            && (0.0..1.0).contains(&self.layer_norm_eps);
        if fits {
            Ok(())
        } else {
            Err(EmbeddingsError::model("its `config.json` has a size that makes no sense"))
        }
    }

    /// The most bytes that weights of this shape have: twice what is computed with, as files have
    /// more, and some names.
    pub(super) fn max_weights(&self) -> u64 {
        let [hidden, inner] = [self.hidden_size, self.intermediate_size].map(|size| size as u64);
        let rows = [self.vocab_size, self.max_position_embeddings, self.type_vocab_size]
            .map(|rows| rows as u64);
        let layer = 4 * hidden * (hidden + 1) + 2 * hidden * inner + inner + 5 * hidden;
        let numbers =
            (rows.iter().sum::<u64>() + 2) * hidden + self.num_hidden_layers as u64 * layer;
        (16 << 20) + 2 * 4 * numbers
    }
}
