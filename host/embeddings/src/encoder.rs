//! The forward pass of a BERT encoder (Devlin et al. 2018) with the mean of its last layer as the text's vector, as
//! sentence-transformers have it. Texts are computed beside each other without padding, each for itself: a vector does
//! not depend on what else was asked for at the same time. Dense layers compute with bytes, attention with 32-bit
//! numbers.

use std::ops::Range;

use rten_gemm::{GemmInputA, GemmInputB, GemmOptions};
use rten_simd::{SimdOp, SimdUnaryOp};
use rten_tensor::NdTensorView;
use rten_vecmath::{Gelu, Normalize, NormalizeOptions, Softmax, Sum, SumSquareSub};

use super::EmbeddingsError;
use super::dense::{Buffers, Dense, Products};
use super::shape::Shape;
use super::weights::{Bytes, Weights};

/// Texts are computed together up to this many tokens: enough for the products of matrices to be quick, and few enough
/// for what is between two layers to stay in the processor's second cache.
const TOGETHER: usize = 128;

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

struct Layer {
    /// Query, key and value of a token beside each other.
    attention: Dense,
    attended: Dense,
    attended_norm: Norm,
    up: Dense,
    down: Dense,
    norm: Norm,
}

/// A model that is ready to compute.
pub(super) struct Encoder {
    words: Bytes,
    /// By position, with the embedding of the one token type added.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
    hidden: usize,
}

impl Encoder {
    /// # Errors
    /// Where the weights are not those of this shape.
    pub(super) fn new(shape: &Shape, weights: &Weights<'_>) -> Result<Self, EmbeddingsError> {
        let (hidden, inner, epsilon) = (shape.hidden_size, shape.intermediate_size, shape.layer_norm_eps);
        let products = Products::new();
        let dense = |names: &[String], rows: usize, columns: usize| {
            let part = |name: &String| {
                let weight = weights.bytes(&format!("{name}.weight"), rows, columns)?;
                Ok((weight, weights.vector(&format!("{name}.bias"), rows)?))
            };
            let parts = names.iter().map(part).collect::<Result<_, EmbeddingsError>>()?;
            Ok::<_, EmbeddingsError>(Dense::new(&products, columns, parts))
        };
        let norm = |name: &str| {
            let weight = weights.vector(&format!("{name}.LayerNorm.weight"), hidden)?;
            let bias = weights.vector(&format!("{name}.LayerNorm.bias"), hidden)?;
            Ok::<_, EmbeddingsError>(Norm { weight, bias, epsilon })
        };
        let layer = |number: usize| {
            let name = |part: &str| format!("encoder.layer.{number}.{part}");
            let attention = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
            Ok::<_, EmbeddingsError>(Layer {
                attention: dense(&attention, hidden, hidden)?,
                attended: dense(&[name("attention.output.dense")], hidden, hidden)?,
                attended_norm: norm(&name("attention.output"))?,
                up: dense(&[name("intermediate.dense")], inner, hidden)?,
                down: dense(&[name("output.dense")], hidden, inner)?,
                norm: norm(&name("output"))?,
            })
        };
        let positions = "embeddings.position_embeddings.weight";
        let mut positions = weights.bytes(positions, shape.max_position_embeddings, hidden)?.numbers();
        let types = weights.bytes("embeddings.token_type_embeddings.weight", shape.type_vocab_size, hidden)?;
        for position in positions.chunks_exact_mut(hidden) {
            position.iter_mut().zip(types.row(0)).for_each(|(x, of_type)| *x += of_type);
        }
        Ok(Self {
            words: weights.bytes("embeddings.word_embeddings.weight", shape.vocab_size, hidden)?,
            positions,
            norm: norm("embeddings")?,
            layers: (0..shape.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            heads: shape.num_attention_heads,
            hidden,
        })
    }

    /// The vectors of some texts' pieces, of unit length. A text has at least one piece, and no more than positions.
    ///
    /// # Errors
    /// Where a product of matrices fails, which it does for no model that could be opened.
    pub(super) fn vectors(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        // Cheap, and for this thread alone.
        let products = Products::new();
        let (mut vectors, mut rest) = (Vec::with_capacity(texts.len()), texts);
        while !rest.is_empty() {
            let mut tokens = 0;
            let fits = |text: &&Vec<u32>| {
                tokens += text.len();
                tokens <= TOGETHER
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            vectors.extend(self.together(&products, now)?);
            rest = later;
        }
        Ok(vectors)
    }

    fn together(&self, products: &Products, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        let (mut state, mut ranges) = (Vec::new(), Vec::with_capacity(texts.len()));
        for text in texts {
            let begin = state.len() / self.hidden;
            for (piece, position) in text.iter().zip(self.positions.chunks_exact(self.hidden)) {
                let word = self.words.row((*piece as usize).min(self.words.rows() - 1));
                state.extend(word.zip(position).map(|(word, at)| word + at));
            }
            ranges.push(begin..state.len() / self.hidden);
        }
        self.norm.apply(&mut state);
        let mut room = Room::default();
        for layer in &self.layers {
            self.layer(products, layer, &ranges, &mut state, &mut room)?;
        }
        let mean = |range: &Range<usize>| {
            let mut sum = vec![0.0; self.hidden];
            for row in state[range.start * self.hidden..range.end * self.hidden].chunks_exact(self.hidden) {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            // The length does not matter.
            unit(sum)
        };
        Ok(ranges.iter().map(mean).collect())
    }

    fn layer(
        &self,
        products: &Products,
        layer: &Layer,
        texts: &[Range<usize>],
        state: &mut Vec<f32>,
        room: &mut Room,
    ) -> Result<(), EmbeddingsError> {
        layer.attention.apply(products, &mut room.buffers, state, false, &mut room.wide)?;
        room.attended.resize(state.len(), 0.0);
        for text in texts {
            self.attend(products, text, room)?;
        }
        layer.attended.apply(products, &mut room.buffers, &room.attended, true, state)?;
        layer.attended_norm.apply(state);
        layer.up.apply(products, &mut room.buffers, state, false, &mut room.wide)?;
        Gelu {}.map_mut(&mut room.wide);
        layer.down.apply(products, &mut room.buffers, &room.wide, true, state)?;
        layer.norm.apply(state);
        Ok(())
    }

    /// From query, key and value of one text to what its tokens attend to.
    fn attend(&self, products: &Products, text: &Range<usize>, room: &mut Room) -> Result<(), EmbeddingsError> {
        let (count, width) = (text.len(), self.hidden / self.heads);
        let failed = |error: &dyn std::fmt::Display| EmbeddingsError::model(format!("attention fails: {error}"));
        #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
        let options = GemmOptions { alpha: 1.0 / (width as f32).sqrt(), ..GemmOptions::default() };
        room.weights.resize(count * count, 0.0);
        room.mixed.resize(count * width, 0.0);
        let rows = &room.wide[text.start * 3 * self.hidden..text.end * 3 * self.hidden];
        for head in 0..self.heads {
            let part = |number: usize| {
                let from = &rows[number * self.hidden + head * width..];
                NdTensorView::from_slice_with_strides([count, width], from, [3 * self.hidden, 1])
                    .map_err(|error| failed(&error))
            };
            let (query, key, value) = (part(0)?, part(1)?, part(2)?);
            let (left, right) = (GemmInputA::Unpacked(query), GemmInputB::Unpacked(key.transposed()));
            let weighed = products.numbers.gemm(&mut room.weights, left, right, options.clone());
            weighed.map_err(|error| failed(&error))?;
            room.weights.chunks_exact_mut(count).for_each(|row| {
                Softmax::new_mut(row).dispatch();
            });
            let weights = NdTensorView::from_data([count, count], room.weights.as_slice());
            let (left, right) = (GemmInputA::Unpacked(weights), GemmInputB::Unpacked(value));
            let mixed = products.numbers.gemm(&mut room.mixed, left, right, GemmOptions::default());
            mixed.map_err(|error| failed(&error))?;
            let into = room.attended[text.start * self.hidden..].chunks_exact_mut(self.hidden);
            for (row, mixed) in into.zip(room.mixed.chunks_exact(width)) {
                row[head * width..(head + 1) * width].copy_from_slice(mixed);
            }
        }
        Ok(())
    }
}

/// What is between the steps of a layer.
#[derive(Default)]
struct Room {
    buffers: Buffers,
    /// Queries, keys and values; then the inner layer.
    wide: Vec<f32>,
    attended: Vec<f32>,
    weights: Vec<f32>,
    mixed: Vec<f32>,
}

impl Norm {
    #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
    fn apply(&self, state: &mut [f32]) {
        let width = self.weight.len() as f32;
        for row in state.chunks_exact_mut(self.weight.len()) {
            let mean = Sum::new(row).dispatch() / width;
            let variance = SumSquareSub::new(row, mean).dispatch() / width;
            let options = NormalizeOptions {
                pre_scale_bias: mean,
                scale: 1.0 / (variance + self.epsilon).sqrt(),
                element_scale: Some(&self.weight),
                element_bias: Some(&self.bias),
                ..NormalizeOptions::default()
            };
            Normalize::new_mut(row, options).dispatch();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_has_length_one_unless_it_is_nothing() {
        assert_eq!(unit(vec![3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(unit(vec![0.0, 0.0]), [0.0, 0.0]);
    }
}
