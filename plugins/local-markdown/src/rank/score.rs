//! A record's own score: Okapi BM25 (Robertson and Zaragoza 2009) over passages.

use super::context::Around;
use crate::config::Ranking;
use crate::index::{DocId, Index, Posting};
use crate::text::Term;

/// The shortest length of a passage that BM25 uses, in words: `Yes, Paris!` must not rank high for its shortness.
const SENTENCE: u8 = 20;

/// A term with less than this share of the rarest term's weight does not change the order of those found without it.
const NEGLIGIBLE: f32 = 0.001;

/// Sums by passage and by record, kept between questions so that no question allocates memory for all records.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    passages: Vec<f32>,
    touched: Vec<u32>,
    docs: Vec<Found>,
    found: Vec<DocId>,
    pub(super) around: Around,
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

    /// Whether so many records have a passage above a score.
    fn are_above(&mut self, index: &Index, score: f32, many: usize) -> bool {
        if self.touched.len() < many {
            return false;
        }
        let mut count = 0;
        for passage in &self.touched {
            if self.passages[*passage as usize] > score
                && let Some((doc, _)) = index.postings.passage(*passage as usize)
            {
                // Reset when the records' scores are summed.
                let found = &mut self.docs[doc as usize];
                count += usize::from(found.sum == 0.0);
                found.sum = 1.0;
                self.found.push(doc);
            }
            if count >= many {
                break;
            }
        }
        for doc in self.found.drain(..) {
            self.docs[doc as usize] = Found::default();
        }
        count >= many
    }
}

/// The records that have some of the terms, with their scores: the best passage's, and a share of the others', which
/// is at most that share of the best one. The best `most` records are among them. Passages that have only common terms
/// are left out when `most` records are above all that such terms can give.
pub(super) fn own(
    index: &Index,
    ranking: &Ranking,
    scratch: &mut Scratch,
    terms: &[Term],
    most: usize,
    admits: &impl Fn(DocId) -> bool,
) -> Vec<(DocId, f32)> {
    scratch.clear(index);
    let (alive, average) = index.postings.size();
    // By length in words, because passages have few lengths.
    let norms: [f32; 256] = std::array::from_fn(|length| {
        let length = f32::from(u8::try_from(length).unwrap_or(u8::MAX).max(SENTENCE));
        ranking.k1 * (1.0 - ranking.b + ranking.b * length / average.max(1.0))
    });
    let mut lists: Vec<(f32, &[Posting])> = terms
        .iter()
        .map(|term| index.postings.of(*term))
        .map(|(postings, frequency)| (rarity(alive, frequency) * (ranking.k1 + 1.0), postings))
        .collect();
    // Rare terms first.
    lists.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut rest: f32 = lists.iter().map(|(weight, _)| weight).sum();
    let mut takes_more = true;
    let telling = lists.first().map_or(0.0, |(weight, _)| weight * NEGLIGIBLE);
    for (weight, postings) in lists {
        takes_more = takes_more && !scratch.are_above(index, rest * (1.0 + ranking.whole), most);
        rest -= weight;
        if weight < telling && !takes_more {
            break;
        }
        for posting in postings {
            let passage = posting.passage();
            let sum = scratch.passages[passage];
            if sum == 0.0 && !takes_more {
                continue;
            }
            let Some((doc, length)) = index.postings.passage(passage) else { continue };
            if sum == 0.0 {
                // Before the best are chosen, so that invisible records do not displace visible ones.
                if !admits(doc) {
                    continue;
                }
                scratch.touched.push(u32::try_from(passage).unwrap_or(u32::MAX));
            }
            let count = posting.count();
            scratch.passages[passage] = sum + weight * count / (count + norms[usize::from(length)]);
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

/// BM25's idf: the weight of a term that occurs in so many passages.
#[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
fn rarity(alive: f32, frequency: u32) -> f32 {
    let frequency = frequency as f32;
    (1.0 + (alive - frequency + 0.5) / (frequency + 0.5)).ln()
}
