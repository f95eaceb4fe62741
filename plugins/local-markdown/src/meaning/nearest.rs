//! The passages that are similar to a question.

use super::Meaning;
use super::vectors::sketch;
use crate::index::DocId;

/// Up to this many passages are all compared with the question. If there are more, only those with
/// the most similar signs are: comparing signs is about fifty times cheaper.
const EXACT: usize = 8_192;
/// How many passages are compared then.
const LIKELY: usize = 2_048;
/// The average is meaningful for many passages only. This many passages of similarity 0 are added
/// to it, for a memory with few records, in which the answer itself would raise the average.
const UNKNOWN: f64 = 8.0;

/// A record's most similar passage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Near {
    /// The record.
    pub(crate) doc: DocId,
    /// The passage, counted from the record's first.
    pub(crate) passage: usize,
    /// The cosine, -1 to 1.
    pub(crate) cosine: f32,
}

/// The result of a comparison with a question.
#[derive(Debug, Default)]
pub(crate) struct Nearest {
    /// Records with a vector, each with its most similar passage.
    pub(crate) records: Vec<Near>,
    /// The cosine of the question with any passage, on average.
    pub(crate) usual: f32,
    /// The similarity that random vectors reach by chance, above the average.
    pub(crate) chance: f32,
}

impl Meaning {
    /// Compares the records that `admits` accepts with a question's vector of unit length.
    pub(crate) fn nearest(&self, question: &[f32], admits: impl Fn(DocId) -> bool) -> Nearest {
        if question.iter().any(|number| !number.is_finite()) {
            return Nearest::default();
        }
        let docs =
            || (0..).zip(&self.of).filter_map(|(doc, vectors)| Some((doc, vectors.as_ref()?)));
        let mut furthest = u32::MAX;
        let like = sketch(question.iter().map(|number| *number >= 0.0));
        if self.passages > EXACT {
            let mut apart: Vec<u32> = docs()
                .filter(|(doc, _)| admits(*doc))
                .flat_map(|(_, vectors)| vectors.apart(&like))
                .collect();
            if apart.len() > EXACT {
                furthest = *apart.select_nth_unstable(LIKELY).1;
            }
        }
        let nearest = |(doc, vectors): (DocId, &super::Vectors)| {
            let likely = vectors.apart(&like).enumerate().filter(|(_, apart)| *apart <= furthest);
            likely
                .map(|(passage, _)| Near {
                    doc,
                    passage,
                    cosine: vectors.cosine(passage, question),
                })
                .max_by(|a, b| {
                    a.cosine.total_cmp(&b.cosine).then_with(|| b.passage.cmp(&a.passage))
                })
        };
        let records = docs().filter(|(doc, _)| admits(*doc)).filter_map(nearest).collect();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "counts for an average"
        )]
        let (usual, chance) = {
            let count = self.passages.max(1) as f64;
            let all: f64 =
                self.sum.iter().zip(question).map(|(sum, number)| sum * f64::from(*number)).sum();
            // The largest of n cosines of random unit vectors in d dimensions, each about normal
            // with variance 1/d.
            let chance = (2.0 * count.ln() / question.len().max(1) as f64).sqrt();
            ((all / (count + UNKNOWN)) as f32, chance as f32)
        };
        Nearest { records, usual, chance }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Vectors;
    use super::*;
    use memhost_sdk::embeddings::Model;

    const DIMENSIONS: u32 = 64;

    /// Numbers that look random, of unit length.
    fn vector(seed: u64) -> Vec<f32> {
        let number = |at: u64| {
            f32::from((crate::hash::hash(&seed.to_le_bytes(), &at.to_le_bytes()) as i8) | 1)
        };
        let mut vector: Vec<f32> = (0..u64::from(DIMENSIONS)).map(number).collect();
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        vector.iter_mut().for_each(|number| *number /= length);
        vector
    }

    fn meaning(records: DocId, passages: u64) -> Meaning {
        let mut meaning = Meaning::new(Model { name: "m".to_owned(), dimensions: DIMENSIONS });
        for doc in 0..records {
            let mut vectors = Vectors::new(DIMENSIONS as usize);
            (0..passages).for_each(|passage| vectors.push(&vector(u64::from(doc) << 8 | passage)));
            meaning.set(doc, vectors);
        }
        meaning
    }

    fn best(nearest: &Nearest) -> (DocId, usize) {
        let best = nearest.records.iter().max_by(|a, b| a.cosine.total_cmp(&b.cosine)).unwrap();
        (best.doc, best.passage)
    }

    #[test]
    fn the_nearest_passage_is_found_among_few_and_among_many() {
        for records in [10, 6_000] {
            let meaning = meaning(records, 2);
            for doc in [0, 7, records - 1] {
                let near: Vec<f32> = vector(u64::from(doc) << 8 | 1)
                    .iter()
                    .zip(vector(1 << 60))
                    .map(|(a, b)| a * 0.9 + b * 0.1)
                    .collect();
                let found = meaning.nearest(&near, |_| true);
                assert_eq!(best(&found), (doc, 1), "of {records}");
                assert!(
                    found.usual.abs() < 0.1 && found.chance > 0.2 && found.chance < 0.6,
                    "{found:?}"
                );
                assert_ne!(best(&meaning.nearest(&near, |other| other != doc)).0, doc);
                assert!(found.records.len() <= EXACT.min(records as usize));
            }
        }
    }

    #[test]
    fn invalid_vectors_are_similar_to_nothing() {
        assert!(
            meaning(3, 1).nearest(&[f32::NAN; DIMENSIONS as usize], |_| true).records.is_empty()
        );
    }
}
