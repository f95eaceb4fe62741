//! The forward pass of a BERT encoder (Devlin et al. 2018) with the mean of its last layer as the text's vector, as
//! sentence-transformers have it. A text is computed alone and without padding: its vector does not depend on what else
//! was asked for at the same time.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use serde::{Deserialize, Serialize};

use super::EmbeddingsError;
use super::weights::{Bytes, Weights};

/// `config.json` of a model, as far as it matters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Shape {
    model_type: String,
    hidden_act: String,
    pub(super) hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    layer_norm_eps: f32,
    pub(super) max_position_embeddings: usize,
    pub(super) vocab_size: usize,
    type_vocab_size: usize,
    position_embedding_type: Option<String>,
}

impl Shape {
    /// # Errors
    /// Where a model of this shape is not one that this encoder computes, or larger than is sensible.
    pub(super) fn check(&self) -> Result<(), EmbeddingsError> {
        let position = self.position_embedding_type.as_deref().unwrap_or("absolute");
        for (what, found, expected) in [
            ("model_type", self.model_type.as_str(), "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", position, "absolute"),
        ] {
            if found != expected {
                return Err(EmbeddingsError::model(format!("its `{what}` is `{found}` and not `{expected}`")));
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
        if fits { Ok(()) } else { Err(EmbeddingsError::model("its `config.json` has a size that makes no sense")) }
    }

    /// The most bytes that weights of this shape have: twice what is computed with, as files have more, and some names.
    pub(super) fn max_weights(&self) -> u64 {
        let [hidden, inner] = [self.hidden_size, self.intermediate_size].map(|size| size as u64);
        let rows = [self.vocab_size, self.max_position_embeddings, self.type_vocab_size].map(|rows| rows as u64);
        let layer = 4 * hidden * (hidden + 1) + 2 * hidden * inner + inner + 5 * hidden;
        let numbers = (rows.iter().sum::<u64>() + 2) * hidden + self.num_hidden_layers as u64 * layer;
        (16 << 20) + 2 * 4 * numbers
    }
}

/// A dense layer: `x W^T + b`.
struct Dense {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    attended: Dense,
    attended_norm: Norm,
    up: Dense,
    down: Dense,
    norm: Norm,
}

/// A model that is ready to compute.
pub(super) struct Encoder {
    words: Bytes,
    /// Positions with the embedding of the one token type added.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
}

impl Encoder {
    /// # Errors
    /// Where the weights are not those of this shape.
    pub(super) fn new(shape: &Shape, weights: &Weights<'_>) -> Result<Self, EmbeddingsError> {
        let (hidden, inner, epsilon) = (shape.hidden_size, shape.intermediate_size, shape.layer_norm_eps);
        let dense = |name: &str, rows: usize, columns: usize| {
            let weight = weights.matrix(&format!("{name}.weight"), rows, columns)?;
            Ok::<_, EmbeddingsError>(Dense { weight, bias: weights.vector(&format!("{name}.bias"), rows)? })
        };
        let norm = |name: &str| {
            let weight = weights.vector(&format!("{name}.LayerNorm.weight"), hidden)?;
            let bias = weights.vector(&format!("{name}.LayerNorm.bias"), hidden)?;
            Ok::<_, EmbeddingsError>(Norm { weight, bias, epsilon })
        };
        let mut positions =
            weights.matrix("embeddings.position_embeddings.weight", shape.max_position_embeddings, hidden)?;
        let types = weights.matrix("embeddings.token_type_embeddings.weight", shape.type_vocab_size, hidden)?;
        positions += &types.row(0);
        let layer = |number: usize| {
            let name = |part: &str| format!("encoder.layer.{number}.{part}");
            Ok::<_, EmbeddingsError>(Layer {
                query: dense(&name("attention.self.query"), hidden, hidden)?,
                key: dense(&name("attention.self.key"), hidden, hidden)?,
                value: dense(&name("attention.self.value"), hidden, hidden)?,
                attended: dense(&name("attention.output.dense"), hidden, hidden)?,
                attended_norm: norm(&name("attention.output"))?,
                up: dense(&name("intermediate.dense"), inner, hidden)?,
                down: dense(&name("output.dense"), hidden, inner)?,
                norm: norm(&name("output"))?,
            })
        };
        Ok(Self {
            words: weights.bytes("embeddings.word_embeddings.weight", shape.vocab_size, hidden)?,
            positions,
            norm: norm("embeddings")?,
            layers: (0..shape.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            heads: shape.num_attention_heads,
        })
    }

    /// The vector of a text's pieces, of unit length. There is at least one piece, and no more than positions.
    pub(super) fn vector(&self, pieces: &[u32]) -> Vec<f32> {
        let mut state = Array2::zeros((pieces.len(), self.positions.ncols()));
        for ((mut row, piece), position) in state.rows_mut().into_iter().zip(pieces).zip(self.positions.rows()) {
            let word = (*piece as usize).min(self.words.rows() - 1);
            row.iter_mut().zip(self.words.row(word)).zip(position).for_each(|((x, word), at)| *x = word + at);
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            state = layer.apply(&state, self.heads);
        }
        let mean = state.mean_axis(Axis(0)).unwrap_or_default().to_vec();
        unit(mean)
    }
}

/// The vector of the same direction and of length 1; one of nothing but zeros stays.
pub(super) fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}

impl Layer {
    fn apply(&self, state: &Array2<f32>, heads: usize) -> Array2<f32> {
        let (query, key, value) = (self.query.apply(state), self.key.apply(state), self.value.apply(state));
        let width = state.ncols() / heads;
        #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
        let scale = 1.0 / (width as f32).sqrt();
        let mut attended = Array2::zeros(state.raw_dim());
        let mut weights = Array2::zeros((state.nrows(), state.nrows()));
        for head in 0..heads {
            let columns = s![.., head * width..(head + 1) * width];
            general_mat_mul(scale, &query.slice(columns), &key.slice(columns).t(), 0.0, &mut weights);
            softmax(&mut weights);
            general_mat_mul(1.0, &weights, &value.slice(columns), 0.0, &mut attended.slice_mut(columns));
        }
        let mut state = self.attended.apply(&attended) + state;
        self.attended_norm.apply(&mut state);
        let mut inner = self.up.apply(&state);
        inner.mapv_inplace(gelu);
        let mut state = self.down.apply(&inner) + &state;
        self.norm.apply(&mut state);
        state
    }
}

impl Dense {
    fn apply(&self, state: &Array2<f32>) -> Array2<f32> {
        let weight: ArrayView2<'_, f32> = self.weight.t();
        state.dot(&weight) + &self.bias
    }
}

impl Norm {
    #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
    fn apply(&self, state: &mut Array2<f32>) {
        let width = state.ncols() as f32;
        for mut row in state.rows_mut() {
            let mean = row.sum() / width;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / width;
            let scale = 1.0 / (variance + self.epsilon).sqrt();
            row.iter_mut().zip(&self.weight).zip(&self.bias).for_each(|((x, w), b)| *x = (*x - mean) * scale * w + b);
        }
    }
}

fn softmax(weights: &mut Array2<f32>) {
    for mut row in weights.rows_mut() {
        let most = row.fold(f32::NEG_INFINITY, |most, x| most.max(*x));
        row.mapv_inplace(|x| (x - most).exp());
        let sum = row.sum();
        row /= sum;
    }
}

fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function to 1.5e-7 (Abramowitz and Stegun 1964, 7.1.26).
fn erf(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let sum = t * (0.254_829_6 + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    (1.0 - sum * (-x * x).exp()).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_is_that_of_the_tables() {
        for (x, expected) in [(0.0, 0.0), (0.5, 0.520_499_9), (1.0, 0.842_700_8), (-2.0, -0.995_322_3), (4.0, 1.0)] {
            assert!((erf(x) - expected).abs() < 1e-6, "{x}: {}", erf(x));
        }
    }

    #[test]
    fn a_vector_has_length_one_unless_it_is_nothing() {
        assert_eq!(unit(vec![3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(unit(vec![0.0, 0.0]), [0.0, 0.0]);
    }
}
