//! The vectors of a record's passages, with one byte for each number: a quarter of the size, with
//! the same ranking.

use serde::{Deserialize, Serialize};

use crate::files::Stamp;
use crate::index::{seal, unseal};

/// How many signs fit into one word of a sketch.
const WORD: usize = 64;

/// Vectors, passage by passage, the first of them the record's first passage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vectors {
    dimensions: usize,
    /// The factor for the bytes of each passage.
    scales: Vec<f32>,
    bytes: Vec<i8>,
    /// The signs of the numbers, one bit each. If there are many vectors, candidates are chosen by
    /// these.
    sketches: Vec<u64>,
}

impl Vectors {
    /// No vectors yet, with this many numbers each.
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions: dimensions.max(1),
            scales: Vec::new(),
            bytes: Vec::new(),
            sketches: Vec::new(),
        }
    }

    /// How many passages have vectors.
    pub(crate) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Adds the vector of the next passage.
    pub(crate) fn push(&mut self, vector: &[f32]) {
        let largest = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        self.scales.push(scale);
        #[allow(clippy::cast_possible_truncation, reason = "from -127 to 127; NaN becomes 0")]
        self.bytes.extend(
            (0..self.dimensions).map(|at| (vector.get(at).unwrap_or(&0.0) / scale).round() as i8),
        );
        let from = self.bytes.len() - self.dimensions;
        self.sketches.extend(sketch(self.bytes[from..].iter().map(|byte| *byte >= 0)));
    }

    /// The cosine of a passage with a vector of unit length.
    pub(super) fn cosine(&self, passage: usize, with: &[f32]) -> f32 {
        let bytes = &self.bytes[passage * self.dimensions..(passage + 1) * self.dimensions];
        bytes.iter().zip(with).map(|(byte, number)| f32::from(*byte) * number).sum::<f32>()
            * self.scales[passage]
    }

    /// The number of signs in which each passage differs from a sketch.
    pub(super) fn apart<'a>(&'a self, from: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        let words = self.dimensions.div_ceil(WORD);
        self.sketches
            .chunks_exact(words)
            .map(move |own| own.iter().zip(from).map(|(a, b)| (a ^ b).count_ones()).sum())
    }

    /// Adds every vector, times `sign`, to a sum.
    pub(super) fn add_to(&self, sum: &mut [f64], sign: f64) {
        for (bytes, scale) in self.bytes.chunks_exact(self.dimensions).zip(&self.scales) {
            for (sum, byte) in sum.iter_mut().zip(bytes) {
                *sum += sign * f64::from(*byte) * f64::from(*scale);
            }
        }
    }
}

/// One bit for each number: whether it is positive.
pub(super) fn sketch(signs: impl Iterator<Item = bool>) -> Vec<u64> {
    let mut sketch = Vec::new();
    for (at, is_positive) in signs.enumerate() {
        if at % WORD == 0 {
            sketch.push(0);
        }
        if let Some(word) = sketch.last_mut() {
            *word |= u64::from(is_positive) << (at % WORD);
        }
    }
    sketch
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    model: &'a str,
    /// The state of the file that the vectors are of.
    stamp: Stamp,
    dimensions: u32,
    scales: Vec<f32>,
    bytes: &'a [u8],
}

/// The stored form.
pub(crate) fn encode(
    model: &str,
    stamp: Stamp,
    vectors: &Vectors,
) -> Result<Vec<u8>, postcard::Error> {
    let bytes: Vec<u8> = vectors.bytes.iter().map(|byte| byte.cast_unsigned()).collect();
    let dimensions = u32::try_from(vectors.dimensions).unwrap_or(u32::MAX);
    let stored = Stored { model, stamp, dimensions, scales: vectors.scales.clone(), bytes: &bytes };
    Ok(seal(&postcard::to_allocvec(&stored)?))
}

/// The inverse of [`encode`], with the state of the file. None if the bytes are damaged or of
/// another model.
pub(crate) fn decode(model: &str, dimensions: u32, value: &[u8]) -> Option<(Stamp, Vectors)> {
    let stored: Stored<'_> = postcard::from_bytes(unseal(value)?).ok()?;
    let (length, count) = (dimensions as usize, stored.scales.len());
    if (stored.model, stored.dimensions) != (model, dimensions)
        || stored.bytes.len() != count * length
        || length == 0
    {
        return None;
    }
    let bytes: Vec<i8> = stored.bytes.iter().map(|byte| byte.cast_signed()).collect();
    let sketches = bytes
        .chunks_exact(length)
        .flat_map(|bytes| sketch(bytes.iter().map(|byte| *byte >= 0)))
        .collect();
    Some((stored.stamp, Vectors { dimensions: length, scales: stored.scales, bytes, sketches }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_vectors_are_read_and_damaged_ones_are_not() {
        let mut vectors = Vectors::new(3);
        vectors.push(&[0.6, 0.8, 0.0]);
        vectors.push(&[0.0, -1.0, 0.0]);
        vectors.push(&[f32::NAN, 0.0, 0.0]);
        let value = encode("m", Stamp::default(), &vectors).unwrap();
        assert_eq!(decode("m", 3, &value), Some((Stamp::default(), vectors.clone())));
        assert_eq!(decode("other", 3, &value), None);
        assert_eq!(decode("m", 4, &value), None);
        for at in 0..value.len() {
            let mut damaged = value.clone();
            damaged[at] ^= 1;
            assert_eq!(decode("m", 3, &damaged), None, "{at}");
        }
        assert!((vectors.cosine(0, &[0.6, 0.8, 0.0]) - 1.0).abs() < 0.01);
        assert!((vectors.cosine(1, &[0.0, 1.0, 0.0]) + 1.0).abs() < 0.01);
        assert!(vectors.cosine(2, &[1.0, 0.0, 0.0]).abs() < 0.01);
        let mut sum = vec![0.0; 3];
        vectors.add_to(&mut sum, 1.0);
        assert!((sum[1] + 0.2).abs() < 0.01, "{sum:?}");
        let question = sketch([true, true, true].into_iter());
        assert_eq!(vectors.apart(&question).collect::<Vec<_>>(), [0, 1, 0]);
    }
}
