//! The forward pass of a BERT encoder (Devlin et al. 2018) with the mean of its last layer as the
//! text's vector, as sentence-transformers have it. Texts are computed beside each other without
//! padding, each for itself: a vector does not depend on what else was asked for at the same time.
//! Dense layers compute with bytes, attention with 32-bit numbers.

use std::ops::Range;

use rten_simd::SimdOp;

use super::EmbeddingsError;
use super::attention::{self, Attention};
use super::dense::{Dense, Products};
use super::passes::{Activate, Add, Buffer, Norm, Put, Read, Rows, padded};
use super::shape::Shape;
use super::weights::{Bytes, Weights};

/// Texts are computed together up to this many tokens. Any number from 96 to 512 is as fast.
const TOGETHER: usize = 128;

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
    attention: Attention,
    hidden: usize,
}

impl Encoder {
    /// # Errors
    /// Where the weights are not those of this shape.
    pub(super) fn new(shape: &Shape, weights: &Weights<'_>) -> Result<Self, EmbeddingsError> {
        let (hidden, inner, epsilon) =
            (shape.hidden_size, shape.intermediate_size, shape.layer_norm_eps);
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
            Ok::<_, EmbeddingsError>(Norm::new(weight, bias, epsilon))
        };
        let layer = |number: usize| {
            let name = |part: &str| format!("encoder.layer.{number}.{part}");
            let attention =
                ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
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
        let mut positions =
            weights.bytes(positions, shape.max_position_embeddings, hidden)?.numbers();
        let types = weights.bytes(
            "embeddings.token_type_embeddings.weight",
            shape.type_vocab_size,
            hidden,
        )?;
        for position in positions.chunks_exact_mut(hidden) {
            position.iter_mut().zip(types.row(0)).for_each(|(x, of_type)| *x += of_type);
        }
        Ok(Self {
            words: weights.bytes("embeddings.word_embeddings.weight", shape.vocab_size, hidden)?,
            positions,
            norm: norm("embeddings")?,
            layers: (0..shape.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            attention: Attention {
                heads: shape.num_attention_heads,
                width: hidden / shape.num_attention_heads,
                columns: padded(hidden),
            },
            hidden,
        })
    }

    /// The vectors of some texts' pieces, of unit length. A text has at least one piece, and no
    /// more than positions.
    ///
    /// # Errors
    /// Where a product of matrices fails, which it does for no model that could be opened.
    pub(super) fn vectors(&self, texts: &[Vec<u32>]) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        // Cheap, and for this thread alone.
        let products = Products::new();
        let (mut state, mut room) = (Buffer::default(), Room::default());
        let (mut vectors, mut rest) = (Vec::with_capacity(texts.len()), texts);
        while !rest.is_empty() {
            let mut tokens = 0;
            let fits = |text: &&Vec<u32>| {
                tokens += text.len();
                tokens <= TOGETHER
            };
            let (now, later) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            vectors.extend(self.together(&products, now, &mut state, &mut room)?);
            rest = later;
        }
        Ok(vectors)
    }

    fn together(
        &self,
        products: &Products,
        texts: &[Vec<u32>],
        state: &mut Buffer<f32>,
        buffers: &mut Room,
    ) -> Result<Vec<Vec<f32>>, EmbeddingsError> {
        let columns = padded(self.hidden);
        let tokens = texts.iter().map(Vec::len).sum::<usize>();
        let state = state.room(tokens * columns);
        let (mut rows, mut ranges, mut begin) =
            (state.chunks_exact_mut(columns), Vec::with_capacity(texts.len()), 0);
        for text in texts {
            let positions = self.positions.chunks_exact(self.hidden);
            for ((piece, position), row) in text.iter().zip(positions).zip(&mut rows) {
                let word = self.words.row((*piece as usize).min(self.words.rows() - 1));
                row.iter_mut().zip(word.zip(position)).for_each(|(x, (word, at))| *x = word + at);
            }
            ranges.push(begin..begin + text.len());
            begin += text.len();
        }
        let (rows, norm, most) = (&mut *state, Some(&self.norm), products.most);
        Read { rows, columns, norm, most, output: &mut buffers.state }.dispatch();
        for layer in &self.layers {
            self.layer(products, layer, &ranges, state, buffers)?;
        }
        let mean = |range: &Range<usize>| {
            let mut sum = vec![0.0; self.hidden];
            for row in state[range.start * columns..range.end * columns].chunks_exact(columns) {
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
        state: &mut [f32],
        buffers: &mut Room,
    ) -> Result<(), EmbeddingsError> {
        let (columns, most) = (padded(self.hidden), products.most);
        let product = layer.attention.product(products, &buffers.state, &mut buffers.sums)?;
        let inputs = buffers.inputs.room(3 * state.len());
        Put { product, output: inputs }.dispatch();
        let attended = buffers.attended.room(state.len());
        for text in texts {
            let rows = &inputs[text.start * 3 * columns..text.end * 3 * columns];
            let output = &mut attended[text.start * columns..text.end * columns];
            self.attention.apply(products, rows, &mut buffers.attention, output)?;
        }
        Read { rows: attended, columns, norm: None, most, output: &mut buffers.mixed }.dispatch();
        let product = layer.attended.product(products, &buffers.mixed, &mut buffers.sums)?;
        Add { product, state, norm: &layer.attended_norm, most, output: &mut buffers.state }
            .dispatch();
        let product = layer.up.product(products, &buffers.state, &mut buffers.sums)?;
        let row = buffers.row.room(layer.up.width());
        Activate { product, most, row, output: &mut buffers.mixed }.dispatch();
        let product = layer.down.product(products, &buffers.mixed, &mut buffers.sums)?;
        Add { product, state, norm: &layer.norm, most, output: &mut buffers.state }.dispatch();
        Ok(())
    }
}

/// The data between the steps of a layer.
#[derive(Default)]
struct Room {
    /// The state as bytes.
    state: Rows,
    /// The attention's output, then the inner layer, as bytes.
    mixed: Rows,
    sums: Buffer<i32>,
    /// Queries, keys and values.
    inputs: Buffer<f32>,
    attended: Buffer<f32>,
    attention: attention::Buffers,
    row: Buffer<f32>,
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
