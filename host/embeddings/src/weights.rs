//! A model's weights: read from safetensors, kept as bytes with a scale a row (a quarter of the
//! room, and recall stays the same to a tenth of a point), and back.

use std::collections::BTreeMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::EmbeddingsError;

/// Beside a matrix of bytes: the scale of each of its rows.
const SCALES: &str = ".scales";

/// A matrix of bytes; a row's numbers are its bytes times its scale.
pub(super) struct Bytes {
    rows: Vec<i8>,
    scales: Vec<f32>,
    columns: usize,
}

impl Bytes {
    /// One row, as it was up to rounding.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let from = row * self.columns;
        self.rows[from..from + self.columns]
            .iter()
            .map(move |byte| f32::from(*byte) * self.scales[row])
    }

    /// How many there are.
    pub(super) fn rows(&self) -> usize {
        self.scales.len()
    }

    /// All rows, one after the other.
    pub(super) fn numbers(&self) -> Vec<f32> {
        (0..self.rows()).flat_map(|row| self.row(row)).collect()
    }

    /// The bytes of all rows and the scale of each.
    pub(super) fn into_parts(self) -> (Vec<i8>, Vec<f32>) {
        (self.rows, self.scales)
    }
}

/// Makes the kept form of a file of safetensors.
///
/// # Errors
/// Where it is no such file.
pub(super) fn compact(file: &[u8]) -> Result<Vec<u8>, EmbeddingsError> {
    let wrong = |error: &dyn std::fmt::Display| {
        EmbeddingsError::model(format!("its weights cannot be read: {error}"))
    };
    let tensors = SafeTensors::deserialize(file).map_err(|error| wrong(&error))?;
    let mut kept: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)> = BTreeMap::new();
    for (name, tensor) in tensors.iter() {
        let Some(numbers) = floats(&tensor) else { continue };
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(EmbeddingsError::model(format!(
                "`{name}` has a value that is not a finite number"
            )));
        }
        let shape = tensor.shape().to_vec();
        match shape.as_slice() {
            [rows, columns] if *columns > 0 => {
                let (bytes, scales) = quantize(&numbers, *columns);
                kept.insert(
                    format!("{name}{SCALES}"),
                    (Dtype::F32, vec![*rows], little_endian(&scales)),
                );
                kept.insert(name.to_owned(), (Dtype::I8, shape, bytes));
            }
            _ => {
                kept.insert(name.to_owned(), (Dtype::F32, shape, little_endian(&numbers)));
            }
        }
    }
    let views = kept.iter().map(|(name, (dtype, shape, bytes))| {
        Ok((
            name.as_str(),
            TensorView::new(*dtype, shape.clone(), bytes).map_err(|error| wrong(&error))?,
        ))
    });
    let views: Vec<_> = views.collect::<Result<_, EmbeddingsError>>()?;
    safetensors::serialize(views, None).map_err(|error| wrong(&error))
}

fn quantize(numbers: &[f32], columns: usize) -> (Vec<u8>, Vec<f32>) {
    let mut scales = Vec::with_capacity(numbers.len() / columns);
    let mut bytes = Vec::with_capacity(numbers.len());
    for row in numbers.chunks_exact(columns) {
        let most = row.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
        scales.push(scale);
        #[allow(clippy::cast_possible_truncation, reason = "at most 127 by the scale")]
        bytes.extend(row.iter().map(|number| ((number / scale).round() as i8).cast_unsigned()));
    }
    (bytes, scales)
}

fn little_endian(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn floats(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    (tensor.dtype() == Dtype::F32).then(|| {
        let numbers = tensor.data().as_chunks::<4>().0.iter();
        numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect()
    })
}

/// The kept form, opened.
pub(super) struct Weights<'a>(SafeTensors<'a>);

impl<'a> Weights<'a> {
    /// # Errors
    /// Where it is no such file.
    pub(super) fn open(file: &'a [u8]) -> Result<Self, EmbeddingsError> {
        let read = SafeTensors::deserialize(file);
        read.map(Self)
            .map_err(|error| EmbeddingsError::model(format!("its weights cannot be read: {error}")))
    }

    fn tensor(&self, name: &str, shape: &[usize]) -> Result<TensorView<'a>, EmbeddingsError> {
        let found = self.0.tensor(name);
        let tensor =
            found.map_err(|_| EmbeddingsError::model(format!("it has no weights `{name}`")))?;
        match tensor.shape() == shape {
            true => Ok(tensor),
            false => Err(EmbeddingsError::model(format!(
                "`{name}` is of {:?} and not {shape:?}",
                tensor.shape()
            ))),
        }
    }

    /// A vector of this length.
    ///
    /// # Errors
    /// Where there is none, or one of another length; the same below.
    pub(super) fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, EmbeddingsError> {
        let wrong = || EmbeddingsError::model(format!("`{name}` is not of 32-bit numbers"));
        floats(&self.tensor(name, &[length])?).ok_or_else(wrong)
    }

    /// A matrix that stays as bytes.
    pub(super) fn bytes(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Result<Bytes, EmbeddingsError> {
        let tensor = self.tensor(name, &[rows, columns])?;
        if tensor.dtype() != Dtype::I8 {
            return Err(EmbeddingsError::model(format!(
                "`{name}` is not of bytes; install the wheel again"
            )));
        }
        let scales = self.vector(&format!("{name}{SCALES}"), rows)?;
        Ok(Bytes {
            rows: tensor.data().iter().map(|byte| byte.cast_signed()).collect(),
            scales,
            columns,
        })
    }
}
