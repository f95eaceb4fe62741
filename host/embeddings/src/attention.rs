//! What the tokens of a text attend to, in 32-bit numbers. Each text is computed for itself.

use rten_gemm::{GemmInputA, GemmInputB, GemmOptions};
use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};
use rten_tensor::NdTensorView;

use super::EmbeddingsError;
use super::curves::{across, power};
use super::dense::Products;
use super::passes::Buffer;

/// Queries are computed together up to this many.
const QUERIES: usize = 48;

/// The sizes of attention.
pub(super) struct Attention {
    pub(super) heads: usize,
    /// Numbers of one head.
    pub(super) width: usize,
    /// The length of a row of its output; queries, keys and values have as much each.
    pub(super) columns: usize,
}

/// Intermediate results, reused for the next text.
#[derive(Default)]
pub(super) struct Buffers {
    weights: Buffer<f32>,
    /// The factors that make the sum of each row of weights one.
    factors: Buffer<f32>,
    mixed: Buffer<f32>,
}

impl Attention {
    /// From the rows of one text, query, key and value of a token beside each other, to what its
    /// tokens attend to.
    pub(super) fn apply(
        &self,
        products: &Products,
        rows: &[f32],
        buffers: &mut Buffers,
        output: &mut [f32],
    ) -> Result<(), EmbeddingsError> {
        let (width, columns) = (self.width, self.columns);
        let count = output.len() / columns;
        let failed = |error: &dyn std::fmt::Display| {
            EmbeddingsError::model(format!("attention fails: {error}"))
        };
        #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
        let scale = 1.0 / (width as f32).sqrt();
        for head in 0..self.heads {
            let part = |number: usize| {
                let from = &rows[number * columns + head * width..];
                NdTensorView::from_slice_with_strides([count, width], from, [3 * columns, 1])
                    .map_err(|error| failed(&error))
            };
            let (query, key, value) = (part(0)?, part(1)?, part(2)?);
            let (key, value) =
                (products.numbers.prepack_b(key.transposed()), products.numbers.prepack_b(value));
            for begin in (0..count).step_by(QUERIES) {
                let end = count.min(begin + QUERIES);
                let weights = buffers.weights.room((end - begin) * count);
                let mixed = buffers.mixed.room((end - begin) * width);
                let factors = buffers.factors.room(end - begin);
                let left = GemmInputA::Unpacked(query.slice(begin..end));
                let right = GemmInputB::Packed(&key);
                let weighed = products.numbers.gemm(weights, left, right, GemmOptions::default());
                weighed.map_err(|error| failed(&error))?;
                Exponents { weights, scale, factors }.dispatch();
                let left =
                    GemmInputA::Unpacked(NdTensorView::from_data([end - begin, count], &*weights));
                let right = GemmInputB::Packed(&value);
                let done = products.numbers.gemm(mixed, left, right, GemmOptions::default());
                done.map_err(|error| failed(&error))?;
                let into = output[begin * columns..end * columns].chunks_exact_mut(columns);
                for ((row, mixed), factor) in into.zip(mixed.chunks_exact(width)).zip(&*factors) {
                    let row = &mut row[head * width..(head + 1) * width];
                    row.iter_mut().zip(mixed).for_each(|(x, mixed)| *x = mixed * factor);
                }
            }
        }
        Ok(())
    }
}

/// Softmax of the rows of a square matrix, without the division: what is multiplied with it has
/// fewer columns. `factors` are for that.
struct Exponents<'a> {
    weights: &'a mut [f32],
    scale: f32,
    factors: &'a mut [f32],
}

impl SimdOp for Exponents<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (ops, lanes) = (isa.f32(), isa.f32().len());
        let scale = ops.splat(self.scale * std::f32::consts::LOG2_E);
        let columns = self.weights.len() / self.factors.len();
        for (row, factor) in self.weights.chunks_exact_mut(columns).zip(self.factors.iter_mut()) {
            let (parts, rest) = row.split_at_mut(row.len() / lanes * lanes);
            // Nothing in comparison with the largest.
            let mut last = [f32::MIN; 16];
            last[..rest.len()].copy_from_slice(rest);
            let mut most = ops.load(&last);
            for part in parts.chunks_exact(lanes) {
                most = ops.max(most, ops.load(part));
            }
            let most = ops.mul(ops.splat(-across(isa, most)), scale);
            let mut sum = ops.zero();
            for part in parts.chunks_exact_mut(lanes) {
                let x = power(isa, ops.mul_add(ops.load(part), scale, most));
                sum = ops.add(sum, x);
                ops.store(x, part);
            }
            if !rest.is_empty() {
                let x = power(isa, ops.mul_add(ops.load(&last), scale, most));
                sum = ops.add(sum, x);
                ops.store(x, &mut last);
                rest.copy_from_slice(&last[..rest.len()]);
            }
            *factor = ops.sum(sum).recip();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More tokens than queries are computed together, and no multiple of what a vector has.
    #[test]
    fn every_token_attends_to_all_of_its_text() {
        const COUNT: usize = QUERIES + 5;
        let attention = Attention { heads: 2, width: 3, columns: 64 };
        let numbers: Vec<f32> =
            (0..COUNT * 3 * 64).map(|n| f32::from(n as u16 % 251) / 100.0 - 1.25).collect();
        let mut output = vec![0.0; COUNT * 64];
        attention.apply(&Products::new(), &numbers, &mut Buffers::default(), &mut output).unwrap();
        let part = |token: usize, part: usize, head: usize| {
            &numbers[(token * 3 + part) * 64 + head * 3..][..3]
        };
        for (token, row) in output.chunks_exact(64).enumerate() {
            for head in 0..2 {
                let dot = |(a, b): (&f32, &f32)| a * b;
                let weight = |other: usize| {
                    let scores = part(token, 0, head).iter().zip(part(other, 1, head)).map(dot);
                    (scores.sum::<f32>() / 3.0_f32.sqrt()).exp()
                };
                let total: f32 = (0..COUNT).map(weight).sum();
                for column in 0..3 {
                    let mixed = (0..COUNT)
                        .map(|other| weight(other) * part(other, 2, head)[column])
                        .sum::<f32>();
                    assert!((row[head * 3 + column] - mixed / total).abs() < 1e-4);
                }
            }
            assert!(row[6..].iter().all(|x| *x == 0.0));
        }
    }
}
