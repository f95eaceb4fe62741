//! What the tokens of a text attend to, in 32-bit numbers. Each text is computed for itself.

use rten_gemm::{GemmInputA, GemmInputB, GemmOptions};
use rten_simd::ops::{BitOps, IntOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp};
use rten_tensor::NdTensorView;

use super::EmbeddingsError;
use super::dense::Products;
use super::passes::{Buffer, across};

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

/// What is needed on the way, kept for the next text.
#[derive(Default)]
pub(super) struct Buffers {
    weights: Buffer<f32>,
    /// The sum of each row of weights.
    totals: Buffer<f32>,
    mixed: Buffer<f32>,
}

impl Attention {
    /// From the rows of one text, query, key and value of a token beside each other, to what its tokens attend to.
    pub(super) fn apply(
        &self,
        products: &Products,
        rows: &[f32],
        buffers: &mut Buffers,
        output: &mut [f32],
    ) -> Result<(), EmbeddingsError> {
        let (width, columns) = (self.width, self.columns);
        let count = output.len() / columns;
        let failed = |error: &dyn std::fmt::Display| EmbeddingsError::model(format!("attention fails: {error}"));
        #[allow(clippy::cast_precision_loss, reason = "a width below 4,096")]
        let scale = 1.0 / (width as f32).sqrt();
        for head in 0..self.heads {
            let part = |number: usize| {
                let from = &rows[number * columns + head * width..];
                NdTensorView::from_slice_with_strides([count, width], from, [3 * columns, 1])
                    .map_err(|error| failed(&error))
            };
            let (query, key, value) = (part(0)?, part(1)?, part(2)?);
            let (key, value) = (products.numbers.prepack_b(key.transposed()), products.numbers.prepack_b(value));
            for begin in (0..count).step_by(QUERIES) {
                let end = count.min(begin + QUERIES);
                let weights = buffers.weights.room((end - begin) * count);
                let mixed = buffers.mixed.room((end - begin) * width);
                let totals = buffers.totals.room(end - begin);
                let left = GemmInputA::Unpacked(query.slice(begin..end));
                let right = GemmInputB::Packed(&key);
                let weighed = products.numbers.gemm(weights, left, right, GemmOptions::default());
                weighed.map_err(|error| failed(&error))?;
                Exponents { weights, scale, totals }.dispatch();
                let left = GemmInputA::Unpacked(NdTensorView::from_data([end - begin, count], &*weights));
                let right = GemmInputB::Packed(&value);
                let done = products.numbers.gemm(mixed, left, right, GemmOptions::default());
                done.map_err(|error| failed(&error))?;
                let into = output[begin * columns..end * columns].chunks_exact_mut(columns);
                for ((row, mixed), total) in into.zip(mixed.chunks_exact(width)).zip(&*totals) {
                    let row = &mut row[head * width..(head + 1) * width];
                    row.iter_mut().zip(mixed).for_each(|(x, mixed)| *x = mixed / total);
                }
            }
        }
        Ok(())
    }
}

/// Softmax of the rows of a square matrix, without the division: what is multiplied with it has fewer columns.
struct Exponents<'a> {
    weights: &'a mut [f32],
    scale: f32,
    totals: &'a mut [f32],
}

impl SimdOp for Exponents<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (ops, lanes) = (isa.f32(), isa.f32().len());
        let scale = ops.splat(self.scale * std::f32::consts::LOG2_E);
        let columns = self.weights.len() / self.totals.len();
        for (row, total) in self.weights.chunks_exact_mut(columns).zip(self.totals.iter_mut()) {
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
            *total = ops.sum(sum);
        }
    }
}

/// `2^f` by powers of `f`, from -1/2 to 1/2, within 3e-6.
const POWER: [f32; 5] = [0.999_999_3, 0.693_121_8, 0.240_247_44, 0.055_917_863, 0.009_570_102];
/// A number of this size has its ones in the lowest bit.
const ONES: f32 = 12_582_912.0;

/// `2^x` of what is not above zero, and no less than what the smallest exponent has.
#[inline(always)]
fn power<I: Isa>(isa: I, x: I::F32) -> I::F32 {
    let (ops, integers) = (isa.f32(), isa.i32());
    let x = ops.max(x, ops.splat(-126.0));
    let whole = ops.add(x, ops.splat(ONES));
    let part = ops.sub(x, ops.sub(whole, ops.splat(ONES)));
    let mut sum = ops.splat(POWER[4]);
    for factor in POWER[..4].iter().rev() {
        sum = ops.mul_add(sum, part, ops.splat(*factor));
    }
    let exponent = integers.shift_left::<23>(whole.reinterpret_cast::<I::I32>());
    integers.add(sum.reinterpret_cast::<I::I32>(), exponent).reinterpret_cast()
}
