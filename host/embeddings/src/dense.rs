//! A dense layer over bytes: its weights have a scale for each row, its input gets one for each token while it is computed.
//! Sums of bytes are exact, so the result for a token does not depend on the tokens beside it.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_simd::{Isa, SimdOp};
use rten_tensor::NdTensorView;
use rten_vecmath::MinMax;

use super::EmbeddingsError;
use super::weights::Bytes;

/// The matrix products of this machine: the kernels are chosen by what its processor can do.
pub(super) struct Products {
    bytes: GemmExecutor<u8, i8, i32>,
    pub(super) numbers: GemmExecutor,
    /// The largest byte of an input. Kernels without exact sums of two products need the highest bit free.
    most: f32,
}

impl Products {
    pub(super) fn new() -> Self {
        let bytes = GemmExecutor::<u8, i8, i32>::default();
        let most = if bytes.may_saturate() { 127.0 } else { 255.0 };
        Self { bytes, numbers: GemmExecutor::default(), most }
    }
}

/// What is needed on the way, kept for the next layer.
#[derive(Default)]
pub(super) struct Buffers {
    bytes: Vec<u8>,
    scales: Vec<f32>,
    zeros: Vec<i32>,
    sums: Vec<i32>,
}

/// `x W^T + b`.
pub(super) struct Dense {
    weight: PackedBMatrix<i8>,
    /// The sum of each row of weights: times an input's byte for zero it is what that adds.
    totals: Vec<i32>,
    scales: Vec<f32>,
    bias: Vec<f32>,
}

impl Dense {
    /// Several layers of one input as one: their outputs are beside each other.
    pub(super) fn new(products: &Products, columns: usize, parts: Vec<(Bytes, Vec<f32>)>) -> Self {
        let (mut rows, mut scales, mut bias) = (Vec::new(), Vec::new(), Vec::new());
        for (weight, of_part) in parts {
            let (bytes, of_rows) = weight.into_parts();
            rows.extend(bytes);
            scales.extend(of_rows);
            bias.extend(of_part);
        }
        let weight = NdTensorView::from_data([scales.len(), columns], rows.as_slice());
        let totals = rows.chunks_exact(columns).map(|row| row.iter().map(|byte| i32::from(*byte)).sum()).collect();
        Self { weight: products.bytes.prepack_b(weight.transposed()), totals, scales, bias }
    }

    /// Adds the layer's output for each row of `input` to `output`, or puts it there.
    pub(super) fn apply(
        &self,
        products: &Products,
        buffers: &mut Buffers,
        input: &[f32],
        adds: bool,
        output: &mut Vec<f32>,
    ) -> Result<(), EmbeddingsError> {
        let (columns, width) = (self.weight.rows(), self.weight.cols());
        let rows = input.len() / columns;
        buffers.read(products.most, input, columns);
        buffers.sums.resize(rows * width, 0);
        let left = NdTensorView::from_data([rows, columns], buffers.bytes.as_slice());
        let (left, right) = (GemmInputA::Unpacked(left), GemmInputB::Packed(&self.weight));
        // Not with the crate's own zeros: release 0.27 uses those of the first eight rows for all rows.
        let done = products.bytes.gemm(&mut buffers.sums, left, right, GemmOptions::default());
        done.map_err(|error| EmbeddingsError::model(format!("a layer cannot be computed: {error}")))?;
        output.resize(rows * width, 0.0);
        let rows = buffers.sums.chunks_exact(width).zip(output.chunks_exact_mut(width));
        for ((sums, output), (scale, zero)) in rows.zip(buffers.scales.iter().zip(&buffers.zeros)) {
            Scale { layer: self, sums, scale: *scale, zero: *zero, adds, output }.dispatch();
        }
        Ok(())
    }
}

impl Buffers {
    /// Rows as bytes, each with a scale and a byte for zero.
    fn read(&mut self, most: f32, input: &[f32], columns: usize) {
        self.bytes.resize(input.len(), 0);
        self.scales.clear();
        self.zeros.clear();
        for (row, bytes) in input.chunks_exact(columns).zip(self.bytes.chunks_exact_mut(columns)) {
            let (least, largest) = MinMax::new(row).dispatch();
            let (least, largest) = (least.min(0.0), largest.max(0.0));
            let scale = if largest > least { (largest - least) / most } else { 1.0 };
            let zero = (-least / scale).round_ties_even();
            Round { row, factor: scale.recip(), zero, bytes }.dispatch();
            self.scales.push(scale);
            #[allow(clippy::cast_possible_truncation, reason = "0 to `most`")]
            self.zeros.push(zero as i32);
        }
    }
}

/// From numbers to bytes. `rten_simd` compiles the loop for each kind of processor; that of `rten_vecmath` calls a function
/// for each step.
struct Round<'a> {
    row: &'a [f32],
    factor: f32,
    zero: f32,
    bytes: &'a mut [u8],
}

impl SimdOp for Round<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    fn eval<I: Isa>(self, _: I) {
        let half = self.zero + 0.5;
        for (byte, x) in self.bytes.iter_mut().zip(self.row) {
            *byte = (x * self.factor + half).clamp(0.0, 255.0) as i32 as u8;
        }
    }
}

/// From sums of bytes to numbers.
struct Scale<'a> {
    layer: &'a Dense,
    sums: &'a [i32],
    scale: f32,
    zero: i32,
    adds: bool,
    output: &'a mut [f32],
}

impl SimdOp for Scale<'_> {
    type Output = ();

    #[inline(always)]
    #[allow(clippy::cast_precision_loss, reason = "the lowest bits of a sum do not matter")]
    fn eval<I: Isa>(self, _: I) {
        let of_rows = self.layer.scales.iter().zip(&self.layer.totals).zip(&self.layer.bias);
        let all = self.output.iter_mut().zip(self.sums).zip(of_rows);
        let number = |sum: &i32, total: &i32, scale: &f32| (sum - self.zero * total) as f32 * (self.scale * scale);
        if self.adds {
            all.for_each(|((x, sum), ((scale, total), bias))| *x += number(sum, total, scale) + bias);
        } else {
            all.for_each(|((x, sum), ((scale, total), bias))| *x = number(sum, total, scale) + bias);
        }
    }
}
