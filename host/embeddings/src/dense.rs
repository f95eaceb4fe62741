//! A dense layer over bytes: its weights have a scale for each row, its input gets one for each
//! token while it is computed. Sums of bytes are exact, so the result for a token does not depend
//! on the tokens beside it.

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, PackedBMatrix};
use rten_tensor::NdTensorView;

use super::EmbeddingsError;
use super::passes::{Buffer, Columns, Product, Rows, padded};
use super::weights::Bytes;

/// The matrix products of this machine: the kernels are chosen by what its processor can do.
pub(super) struct Products {
    bytes: GemmExecutor<u8, i8, i32>,
    pub(super) numbers: GemmExecutor,
    /// The largest byte of an input. Kernels without exact sums of two products need the highest
    /// bit free.
    pub(super) most: f32,
}

impl Products {
    pub(super) fn new() -> Self {
        let bytes = GemmExecutor::<u8, i8, i32>::default();
        let most = if bytes.may_saturate() { 127.0 } else { 255.0 };
        Self { bytes, numbers: GemmExecutor::default(), most }
    }
}

/// `x W^T + b`.
pub(super) struct Dense {
    weight: PackedBMatrix<i8>,
    columns: Columns,
}

impl Dense {
    /// Several layers of one input as one: their outputs are beside each other, each padded.
    pub(super) fn new(products: &Products, columns: usize, parts: Vec<(Bytes, Vec<f32>)>) -> Self {
        let (mut rows, mut of_rows) =
            (Vec::new(), Columns { scales: Vec::new(), zeros: Vec::new(), bias: Vec::new() });
        for (weight, bias) in parts {
            let (bytes, scales) = weight.into_parts();
            for (row, scale) in bytes.chunks_exact(columns).zip(&scales) {
                #[allow(
                    clippy::cast_precision_loss,
                    reason = "the lowest bits of a sum do not matter"
                )]
                let total = row.iter().map(|byte| i32::from(*byte)).sum::<i32>() as f32;
                of_rows.zeros.push(total * scale);
                rows.extend_from_slice(row);
                rows.resize(rows.len().next_multiple_of(padded(columns)), 0);
            }
            of_rows.scales.extend(scales);
            of_rows.bias.extend(bias);
            let length = padded(of_rows.bias.len());
            rows.resize(length * padded(columns), 0);
            for of_row in [&mut of_rows.scales, &mut of_rows.zeros, &mut of_rows.bias] {
                of_row.resize(length, 0.0);
            }
        }
        let weight =
            NdTensorView::from_data([of_rows.bias.len(), padded(columns)], rows.as_slice());
        Self { weight: products.bytes.prepack_b(weight.transposed()), columns: of_rows }
    }

    /// The length of a row of its output.
    pub(super) fn width(&self) -> usize {
        self.columns.bias.len()
    }

    /// The product with each row of `left`; its sums are in `sums`.
    pub(super) fn product<'a>(
        &'a self,
        products: &Products,
        left: &'a Rows,
        sums: &'a mut Buffer<i32>,
    ) -> Result<Product<'a>, EmbeddingsError> {
        let sums = sums.room(left.count() * self.width());
        let bytes = NdTensorView::from_data(
            [left.count(), self.weight.rows()],
            left.bytes(self.weight.rows()),
        );
        let (of_left, of_right) = (GemmInputA::Unpacked(bytes), GemmInputB::Packed(&self.weight));
        // Not with the crate's own zeros: release 0.27 uses those of the first eight rows for all
        // rows.
        let done = products.bytes.gemm(sums, of_left, of_right, GemmOptions::default());
        done.map_err(|error| {
            EmbeddingsError::model(format!("a layer cannot be computed: {error}"))
        })?;
        Ok(Product { sums, left, columns: &self.columns })
    }
}
