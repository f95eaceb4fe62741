//! What happens to rows of numbers between two products of matrices. A row is read and written
//! once, and becomes the bytes that the next product needs while it is still in the processor's
//! first cache. `rten_simd` compiles each pass for each kind of processor.

use rten_simd::ops::{BitOps, FloatOps, NarrowSaturate, NumOps, ToFloat};
use rten_simd::{Isa, SimdOp};

use super::curves::{across, gelu};

/// The length of rows of so many numbers: a multiple of the most bytes that a vector of any
/// processor has, so that no loop has a rest. What is added is zero.
pub(super) const fn padded(width: usize) -> usize {
    width.next_multiple_of(64)
}

/// Room that is kept for the next time, from the begin of one of the processor's cache lines: a
/// vector then never lies in two of them.
#[derive(Default)]
pub(super) struct Buffer<T> {
    room: Vec<T>,
    begin: usize,
}

impl<T: Clone + Default> Buffer<T> {
    /// So much of it. It has zeros where nobody wrote, or what was written before.
    pub(super) fn room(&mut self, length: usize) -> &mut [T] {
        const LINE: usize = 64;
        if self.room.len() < self.begin + length {
            self.room = vec![T::default(); length + LINE];
            self.begin = self.room.as_ptr().align_offset(LINE).min(LINE);
        }
        &mut self.room[self.begin..self.begin + length]
    }

    /// So much of what was written to its room.
    pub(super) fn written(&self, length: usize) -> &[T] {
        &self.room[self.begin..self.begin + length]
    }
}

/// Rows of bytes. A row has a scale and a byte that means zero.
#[derive(Default)]
pub(super) struct Rows {
    bytes: Buffer<u8>,
    scales: Vec<Scale>,
}

#[derive(Clone, Copy)]
struct Scale {
    scale: f32,
    zero: f32,
}

impl Rows {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.scales.len()
    }

    /// All of them, each of so many columns.
    pub(super) fn bytes(&self, columns: usize) -> &[u8] {
        self.bytes.written(self.count() * columns)
    }

    /// Makes bytes of each row after `change` was applied to it. `most` is the largest byte.
    #[inline(always)]
    fn read<'a, I: Isa>(
        &mut self,
        isa: I,
        rows: impl ExactSizeIterator<Item = &'a mut [f32]>,
        columns: usize,
        most: f32,
        mut change: impl FnMut(usize, &mut [f32]),
    ) {
        self.scales.clear();
        let bytes = self.bytes.room(rows.len() * columns);
        for (number, (row, bytes)) in rows.zip(bytes.chunks_exact_mut(columns)).enumerate() {
            change(number, row);
            self.scales.push(round(isa, row, most, bytes));
        }
    }
}

/// The factors that make numbers of the sums in a column.
pub(super) struct Columns {
    pub(super) scales: Vec<f32>,
    /// The sum that the zero's byte adds.
    pub(super) zeros: Vec<f32>,
    pub(super) bias: Vec<f32>,
}

/// A product of bytes.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub(super) sums: &'a [i32],
    pub(super) left: &'a Rows,
    pub(super) columns: &'a Columns,
}

impl Product<'_> {
    /// The numbers of one row; `finish` gets what was there and what is new.
    #[inline(always)]
    fn row<I: Isa>(
        &self,
        isa: I,
        row: usize,
        output: &mut [f32],
        finish: impl Fn(I::F32, I::F32) -> I::F32,
    ) {
        let (ops, integers) = (isa.f32(), isa.i32());
        let (lanes, width) = (ops.len(), self.columns.bias.len());
        let scale = ops.splat(self.left.scales[row].scale);
        let zero = ops.splat(-self.left.scales[row].zero);
        let sums = self.sums[row * width..(row + 1) * width].chunks_exact(lanes);
        let of_columns =
            self.columns.scales.chunks_exact(lanes).zip(self.columns.zeros.chunks_exact(lanes));
        let of_columns = of_columns.zip(self.columns.bias.chunks_exact(lanes));
        for ((x, sums), ((scales, zeros), bias)) in
            output.chunks_exact_mut(lanes).zip(sums).zip(of_columns)
        {
            let sum = integers.to_float(integers.load(sums));
            let number = ops.mul_add(zero, ops.load(zeros), ops.mul(sum, ops.load(scales)));
            let number = ops.mul_add(scale, number, ops.load(bias));
            ops.store(finish(ops.load(x), number), x);
        }
    }
}

/// The numbers of a product.
pub(super) struct Put<'a> {
    pub(super) product: Product<'a>,
    pub(super) output: &'a mut [f32],
}

impl SimdOp for Put<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let rows = self.output.chunks_exact_mut(self.product.columns.bias.len());
        for (number, row) in rows.enumerate() {
            self.product.row(
                isa,
                number,
                row,
                #[inline(always)]
                |_, new| new,
            );
        }
    }
}

/// Gelu of a product, as bytes.
pub(super) struct Activate<'a> {
    pub(super) product: Product<'a>,
    pub(super) most: f32,
    /// For one row.
    pub(super) row: &'a mut [f32],
    pub(super) output: &'a mut Rows,
}

impl SimdOp for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let columns = self.row.len();
        self.output.scales.clear();
        let bytes = self.output.bytes.room(self.product.left.count() * columns);
        for (number, bytes) in bytes.chunks_exact_mut(columns).enumerate() {
            self.product.row(
                isa,
                number,
                self.row,
                #[inline(always)]
                |_, new| gelu(isa, new),
            );
            self.output.scales.push(round(isa, self.row, self.most, bytes));
        }
    }
}

/// Adds a product to the state and normalizes that; and the state as bytes.
pub(super) struct Add<'a> {
    pub(super) product: Product<'a>,
    pub(super) state: &'a mut [f32],
    pub(super) norm: &'a Norm,
    pub(super) most: f32,
    pub(super) output: &'a mut Rows,
}

impl SimdOp for Add<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (ops, columns) = (isa.f32(), self.product.columns.bias.len());
        self.output.read(
            isa,
            self.state.chunks_exact_mut(columns),
            columns,
            self.most,
            #[inline(always)]
            |number, row| {
                self.product.row(
                    isa,
                    number,
                    row,
                    #[inline(always)]
                    |old, new| ops.add(old, new),
                );
                self.norm.apply(isa, row);
            },
        );
    }
}

/// Rows as bytes, normalized if there is a norm.
pub(super) struct Read<'a> {
    pub(super) rows: &'a mut [f32],
    pub(super) columns: usize,
    pub(super) norm: Option<&'a Norm>,
    pub(super) most: f32,
    pub(super) output: &'a mut Rows,
}

impl SimdOp for Read<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        self.output.read(
            isa,
            self.rows.chunks_exact_mut(self.columns),
            self.columns,
            self.most,
            #[inline(always)]
            |_, row| {
                if let Some(norm) = self.norm {
                    norm.apply(isa, row);
                }
            },
        );
    }
}

/// Layer norm.
pub(super) struct Norm {
    /// How many numbers of a row there are without what was added to it.
    width: f32,
    added: f32,
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    #[allow(clippy::cast_precision_loss, reason = "a width of at most 4,096")]
    pub(super) fn new(mut weight: Vec<f32>, mut bias: Vec<f32>, epsilon: f32) -> Self {
        let (width, columns) = (weight.len(), padded(weight.len()));
        weight.resize(columns, 0.0);
        bias.resize(columns, 0.0);
        Self { width: width as f32, added: (columns - width) as f32, weight, bias, epsilon }
    }

    // Not with `rten_vecmath`: release 0.27 calls a function for each step where another crate
    // compiles its loops.
    #[inline(always)]
    fn apply<I: Isa>(&self, isa: I, row: &mut [f32]) {
        let (ops, lanes) = (isa.f32(), isa.f32().len());
        let mut sums = [ops.zero(); 4];
        for part in row.chunks_exact(4 * lanes) {
            let part = ops.load_many::<4>(part);
            for lane in 0..4 {
                sums[lane] = ops.add(sums[lane], part[lane]);
            }
        }
        let mean =
            ops.sum(ops.add(ops.add(sums[0], sums[1]), ops.add(sums[2], sums[3]))) / self.width;
        let means = ops.splat(mean);
        let mut sums = [ops.zero(); 4];
        for part in row.chunks_exact(4 * lanes) {
            let part = ops.load_many::<4>(part);
            for lane in 0..4 {
                let x = ops.sub(part[lane], means);
                sums[lane] = ops.mul_add(x, x, sums[lane]);
            }
        }
        let squares = ops.sum(ops.add(ops.add(sums[0], sums[1]), ops.add(sums[2], sums[3])));
        let variance = (squares - self.added * mean * mean) / self.width;
        let scale = ops.splat(1.0 / (variance + self.epsilon).sqrt());
        let weights = self.weight.chunks_exact(lanes).zip(self.bias.chunks_exact(lanes));
        for (x, (weight, bias)) in row.chunks_exact_mut(lanes).zip(weights) {
            let scaled = ops.mul(ops.sub(ops.load(x), means), scale);
            ops.store(ops.mul_add(scaled, ops.load(weight), ops.load(bias)), x);
        }
    }
}

/// From numbers to bytes: zero is one of them, so that what was added to a row stays nothing.
#[inline(always)]
fn round<I: Isa>(isa: I, row: &[f32], most: f32, bytes: &mut [u8]) -> Scale {
    let (ops, integers, shorts) = (isa.f32(), isa.i32(), isa.i16());
    let four = 4 * ops.len();
    let (mut least, mut largest) = ([ops.zero(); 4], [ops.zero(); 4]);
    for part in row.chunks_exact(four) {
        let part = ops.load_many::<4>(part);
        for lane in 0..4 {
            least[lane] = ops.min(least[lane], part[lane]);
            largest[lane] = ops.max(largest[lane], part[lane]);
        }
    }
    let least = ops.min(ops.min(least[0], least[1]), ops.min(least[2], least[3]));
    let largest = ops.max(ops.max(largest[0], largest[1]), ops.max(largest[2], largest[3]));
    let (least, largest) = (-across(isa, ops.neg(least)), across(isa, largest));
    let scale = if largest > least { (largest - least) / most } else { 1.0 };
    let zero = (-least / scale).round_ties_even();
    let (factor, offset) = (ops.splat(scale.recip()), ops.splat(zero));
    for (bytes, part) in bytes.chunks_exact_mut(four).zip(row.chunks_exact(four)) {
        let part = ops.load_many::<4>(part).map(
            #[inline(always)]
            |x| ops.to_int_round(ops.mul_add(x, factor, offset)),
        );
        let low = integers.narrow_saturate(part[0], part[1]);
        let high = integers.narrow_saturate(part[2], part[3]);
        isa.u8().store(shorts.narrow_saturate(low, high), bytes);
    }
    Scale { scale, zero }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_begins_with_a_line_and_has_zeros_where_nobody_wrote() {
        let mut buffer = Buffer::<f32>::default();
        for length in [3, 1, 5_000] {
            let room = buffer.room(length);
            assert!(room.len() == length && room.as_ptr().addr().is_multiple_of(64));
            assert!(room[1..].iter().all(|x| *x == 0.0));
            room[0] = 1.0;
        }
        assert_eq!(buffer.written(2), [1.0, 0.0]);
    }

    #[test]
    fn what_is_added_to_a_row_changes_nothing() {
        let numbers: Vec<f32> = (0..70_u16).map(|n| f32::from(n * 7 % 11) - 3.0).collect();
        let mut row = numbers.clone();
        row.resize(padded(70), 0.0);
        let norm = Norm::new(vec![2.0; 70], vec![1.0; 70], 1e-12);
        let mut output = Rows::default();
        Read { rows: &mut row, columns: 128, norm: Some(&norm), most: 255.0, output: &mut output }
            .dispatch();
        let mean = numbers.iter().sum::<f32>() / 70.0;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 70.0;
        let Scale { scale, zero } = output.scales[0];
        for ((x, byte), number) in row.iter().zip(output.bytes(128)).zip(&numbers) {
            let expected = (number - mean) / variance.sqrt() * 2.0 + 1.0;
            assert!((x - expected).abs() < 1e-5, "{x} {expected}");
            assert!((scale * (f32::from(*byte) - zero) - x).abs() <= scale);
        }
        assert!(row[70..].iter().all(|x| *x == 0.0));
    }
}
