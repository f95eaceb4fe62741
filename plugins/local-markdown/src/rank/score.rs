//! A record's own score: Okapi BM25 (Robertson and Zaragoza 2009) over passages.

use crate::config::Ranking;
use crate::index::{DocId, Index};
use crate::text::Term;

/// The shortest length of a passage that BM25 uses, in words: `Yes, Paris!` must not rank high for its shortness.
const SENTENCE: u8 = 20;

/// Sums by passage and by record, kept between questions so that no question allocates memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    passages: Vec<f32>,
    touched: Vec<u32>,
    docs: Vec<Found>,
    found: Vec<DocId>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Found {
    best: f32,
    sum: f32,
    /// The number of the best passage in the index.
    passage: u32,
}

impl Scratch {
    /// The best passage of a record for the last question, counted from its first; 0 if it has no word of the question.
    pub(crate) fn passage(&self, index: &Index, doc: DocId) -> usize {
        let passage = self.docs.get(doc as usize).filter(|found| found.best > 0.0).map(|found| found.passage);
        passage.zip(index.doc(doc)).map_or(0, |(passage, doc)| passage.saturating_sub(doc.first_passage) as usize)
    }

    fn clear(&mut self, index: &Index) {
        for passage in self.touched.drain(..) {
            self.passages[passage as usize] = 0.0;
        }
        for doc in self.found.drain(..) {
            self.docs[doc as usize] = Found::default();
        }
        self.passages.resize(index.postings.slots(), 0.0);
        self.docs.resize(index.slots(), Found::default());
    }
}

/// The records that have some of the terms, with their scores: the best passage's, and a share of the others', which
/// is at most that share of the best one.
pub(super) fn own(
    index: &Index,
    ranking: &Ranking,
    scratch: &mut Scratch,
    terms: &[Term],
    admits: &impl Fn(DocId) -> bool,
) -> Vec<(DocId, f32)> {
    scratch.clear(index);
    let (alive, average) = index.postings.size();
    // By length in words, because passages have few lengths.
    let norms: Vec<f32> = (0..=u8::MAX)
        .map(|length| ranking.k1 * (1.0 - ranking.b + ranking.b * f32::from(length.max(SENTENCE)) / average.max(1.0)))
        .collect();
    for term in terms {
        let (postings, frequency) = index.postings.of(*term);
        let weight = rarity(alive, frequency) * (ranking.k1 + 1.0);
        for posting in postings {
            let passage = posting.passage();
            let Some((doc, length)) = index.postings.passage(passage) else { continue };
            let sum = &mut scratch.passages[passage];
            if *sum == 0.0 {
                // Before the best are chosen, so that invisible records do not displace visible ones.
                if !admits(doc) {
                    continue;
                }
                scratch.touched.push(u32::try_from(passage).unwrap_or(u32::MAX));
            }
            let count = posting.count();
            *sum += weight * count / (count + norms[usize::from(length)]);
        }
    }
    for passage in &scratch.touched {
        let Some((doc, _)) = index.postings.passage(*passage as usize) else { continue };
        let score = scratch.passages[*passage as usize];
        let found = &mut scratch.docs[doc as usize];
        if found.best == 0.0 {
            scratch.found.push(doc);
        }
        found.sum += score;
        if score > found.best {
            (found.best, found.passage) = (score, *passage);
        }
    }
    let total = |doc: &DocId| {
        let found = scratch.docs[*doc as usize];
        (*doc, found.best + ranking.whole * (found.sum - found.best).min(found.best))
    };
    scratch.found.iter().map(total).collect()
}

/// The score of a passage of average length that has every term once.
pub(super) fn whole(index: &Index, terms: &[Term]) -> f32 {
    let (alive, _) = index.postings.size();
    terms.iter().map(|term| rarity(alive, index.postings.of(*term).1)).sum()
}

/// BM25's idf: the weight of a term that occurs in so many passages.
#[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
fn rarity(alive: f32, frequency: u32) -> f32 {
    let frequency = frequency as f32;
    (1.0 + (alive - frequency + 0.5) / (frequency + 0.5)).ln()
}
