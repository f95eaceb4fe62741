//! What the encoder is compared with: the same forward pass in 32-bit numbers, one text at a time,
//! with the matrix product of `ndarray`. The host computed this way before it had kernels for
//! bytes.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::EmbeddingsError;
use super::encoder::unit;
use super::shape::Shape;
use super::weights::{Bytes, Weights};

fn matrix(
    weights: &Weights<'_>,
    name: &str,
    rows: usize,
    columns: usize,
) -> Result<Array2<f32>, EmbeddingsError> {
    let numbers = weights.bytes(name, rows, columns)?.numbers();
    Array2::from_shape_vec((rows, columns), numbers)
        .map_err(|error| EmbeddingsError::model(error.to_string()))
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

/// The same model, computed plainly.
pub(super) struct Plain {
    words: Bytes,
    /// Positions with the embedding of the one token type added.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
}

impl Plain {
    /// # Errors
    /// Where the weights are not those of this shape.
    pub(super) fn new(shape: &Shape, weights: &Weights<'_>) -> Result<Self, EmbeddingsError> {
        let (hidden, inner, epsilon) =
            (shape.hidden_size, shape.intermediate_size, shape.layer_norm_eps);
        let dense = |name: &str, rows: usize, columns: usize| {
            let weight = matrix(weights, &format!("{name}.weight"), rows, columns)?;
            Ok::<_, EmbeddingsError>(Dense {
                weight,
                bias: weights.vector(&format!("{name}.bias"), rows)?.into(),
            })
        };
        let norm = |name: &str| {
            let weight = weights.vector(&format!("{name}.LayerNorm.weight"), hidden)?.into();
            let bias = weights.vector(&format!("{name}.LayerNorm.bias"), hidden)?.into();
            Ok::<_, EmbeddingsError>(Norm { weight, bias, epsilon })
        };
        let mut positions = matrix(
            weights,
            "embeddings.position_embeddings.weight",
            shape.max_position_embeddings,
            hidden,
        )?;
        let types = matrix(
            weights,
            "embeddings.token_type_embeddings.weight",
            shape.type_vocab_size,
            hidden,
        )?;
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

    /// The vector of a text's pieces, of unit length. There is at least one piece, and no more than
    /// positions.
    pub(super) fn vector(&self, pieces: &[u32]) -> Vec<f32> {
        let mut state = Array2::zeros((pieces.len(), self.positions.ncols()));
        for ((mut row, piece), position) in
            state.rows_mut().into_iter().zip(pieces).zip(self.positions.rows())
        {
            let word = (*piece as usize).min(self.words.rows() - 1);
            row.iter_mut()
                .zip(self.words.row(word))
                .zip(position)
                .for_each(|((x, word), at)| *x = word + at);
        }
        self.norm.apply(&mut state);
        for layer in &self.layers {
            state = layer.apply(&state, self.heads);
        }
        let mean = state.mean_axis(Axis(0)).unwrap_or_default().to_vec();
        unit(mean)
    }
}

impl Layer {
    fn apply(&self, state: &Array2<f32>, heads: usize) -> Array2<f32> {
        let (query, key, value) =
            (self.query.apply(state), self.key.apply(state), self.value.apply(state));
        let width = state.ncols() / heads;
        #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
        let scale = 1.0 / (width as f32).sqrt();
        let mut attended = Array2::zeros(state.raw_dim());
        let mut weights = Array2::zeros((state.nrows(), state.nrows()));
        for head in 0..heads {
            let columns = s![.., head * width..(head + 1) * width];
            general_mat_mul(
                scale,
                &query.slice(columns),
                &key.slice(columns).t(),
                0.0,
                &mut weights,
            );
            softmax(&mut weights);
            general_mat_mul(
                1.0,
                &weights,
                &value.slice(columns),
                0.0,
                &mut attended.slice_mut(columns),
            );
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
            row.iter_mut()
                .zip(&self.weight)
                .zip(&self.bias)
                .for_each(|((x, w), b)| *x = (*x - mean) * scale * w + b);
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
    let sum = t
        * (0.254_829_6
            + t * (-0.284_496_74 + t * (1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4))));
    (1.0 - sum * (-x * x).exp()).copysign(x)
}
