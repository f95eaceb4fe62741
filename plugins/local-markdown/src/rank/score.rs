//! A record's own score by words: Okapi BM25 (Robertson and Zaragoza 2009) over its passages and
//! over the whole record.
//!
//! The best passage tells where a long record answers, and the whole record what it is about: its
//! words need not stand together to say that. Either alone is worse on some kind of text.

use super::context::Around;
use crate::config::Ranking;
use crate::index::{DocId, Index, Posting};
use crate::text::Term;

/// The shortest length of a passage that BM25 uses, in words: `Yes, Paris!` must not rank high for
/// its shortness.
const SENTENCE: u8 = 20;

/// A term with less than this share of the rarest term's weight does not change the order of those
/// found without it.
const NEGLIGIBLE: f32 = 0.001;

/// BM25's `k1` for whole records. In them a word has to be repeated more often to say the same.
pub(super) const WHOLE_K1: f32 = 2.0;

/// Sums by passage and by record, kept between questions so that no question allocates memory for
/// all records.
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
    /// The score of the whole record.
    record: f32,
    /// The weights of those terms of the question that it has.
    covered: f32,
    /// The last count that it was part of.
    counted: u32,
}

impl Scratch {
    /// The best passage of a record for the last question, counted from its first; 0 if it has no
    /// word of the question.
    pub(crate) fn passage(&self, index: &Index, doc: DocId) -> usize {
        let passage =
            self.docs.get(doc as usize).filter(|found| found.best > 0.0).map(|found| found.passage);
        passage
            .zip(index.doc(doc))
            .map_or(0, |(passage, doc)| passage.saturating_sub(doc.first_passage) as usize)
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

    /// The score of a passage; 0 if it has no term of the last question.
    pub(super) fn of_passage(&self, passage: usize) -> f32 {
        self.passages.get(passage).copied().unwrap_or(0.0)
    }

    /// The weights of those terms of the last question that a record has.
    pub(super) fn covered(&self, doc: DocId) -> f32 {
        self.docs.get(doc as usize).map_or(0.0, |found| found.covered)
    }

    /// Whether so many records are above a score, with what was counted of them so far. `number` is
    /// another one in each call for a question, and not 0.
    fn are_above(
        &mut self,
        index: &Index,
        record: f32,
        score: f32,
        many: usize,
        number: u32,
    ) -> bool {
        if self.found.len() < many {
            return false;
        }
        let mut count = 0;
        for passage in &self.touched {
            let of_passage = self.passages[*passage as usize];
            let Some((doc, _)) = index.postings.passage(*passage as usize) else { continue };
            let found = &mut self.docs[doc as usize];
            if of_passage + record * found.record > score && found.counted != number {
                found.counted = number;
                count += 1;
                if count >= many {
                    return true;
                }
            }
        }
        false
    }

    /// Adds what a term gives to a whole record that has it so often.
    fn add_whole(&mut self, doc: DocId, weight: f32, count: f32, norm: f32) {
        let found = &mut self.docs[doc as usize];
        if found.covered == 0.0 {
            self.found.push(doc);
        }
        found.covered += weight;
        found.record += weight * (WHOLE_K1 + 1.0) * count / (count + norm);
    }
}

/// The records that have some of the terms, with their scores: the best passage's, a share of the
/// others', which is at most that share of the best one, and the whole record's. The best `most`
/// records are among them. Passages that have only common terms are left out when `most` records
/// are above all that such terms can give.
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
    let norm = Norm::of(index, ranking);
    let mut lists: Vec<(f32, &[Posting])> = terms
        .iter()
        .map(|term| index.postings.of(*term))
        .map(|(postings, frequency)| (rarity(alive, frequency), postings))
        .collect();
    // Rare terms first.
    lists.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut rest: f32 = lists.iter().map(|(weight, _)| weight).sum();
    // The most that a record gets for a weight of 1.
    let full = (ranking.k1 + 1.0) * (1.0 + ranking.whole) + (WHOLE_K1 + 1.0) * ranking.record;
    let mut takes_more = true;
    let telling = lists.first().map_or(0.0, |(weight, _)| weight * NEGLIGIBLE);
    for ((weight, postings), number) in lists.into_iter().zip(1..) {
        takes_more =
            takes_more && !scratch.are_above(index, ranking.record, rest * full, most, number);
        rest -= weight;
        if weight < telling && !takes_more {
            break;
        }
        // The passages of a record follow one another.
        let (mut whole, mut times) = (None, 0.0);
        for posting in postings {
            let passage = posting.passage();
            let sum = scratch.passages[passage];
            if sum == 0.0 && !takes_more {
                continue;
            }
            let Some((doc, length)) = index.postings.passage(passage) else { continue };
            if sum == 0.0 {
                // Before the best are chosen, so that invisible records do not displace visible
                // ones.
                if !admits(doc) {
                    continue;
                }
                scratch.touched.push(u32::try_from(passage).unwrap_or(u32::MAX));
            }
            let count = posting.count();
            scratch.passages[passage] =
                sum + weight * (ranking.k1 + 1.0) * count / (count + norms[usize::from(length)]);
            if let Some(before) = whole.filter(|before| *before != doc) {
                scratch.add_whole(before, weight, times, norm.at(index, before));
                times = 0.0;
            }
            (whole, times) = (Some(doc), times + count);
        }
        if let Some(last) = whole {
            scratch.add_whole(last, weight, times, norm.at(index, last));
        }
    }
    for passage in &scratch.touched {
        let Some((doc, _)) = index.postings.passage(*passage as usize) else { continue };
        let score = scratch.passages[*passage as usize];
        let found = &mut scratch.docs[doc as usize];
        found.sum += score;
        if score > found.best {
            (found.best, found.passage) = (score, *passage);
        }
    }
    let total = |doc: &DocId| {
        let found = scratch.docs[*doc as usize];
        let passages = found.best + ranking.whole * (found.sum - found.best).min(found.best);
        (*doc, passages + ranking.record * found.record)
    };
    scratch.found.iter().map(total).collect()
}

/// BM25's penalty for long records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norm {
    base: f32,
    by_word: f32,
}

impl Norm {
    #[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
    pub(super) fn of(index: &Index, ranking: &Ranking) -> Self {
        let (passages, average) = index.postings.size();
        let words = passages * average / index.len().max(1) as f32;
        Self { base: WHOLE_K1 * (1.0 - ranking.b), by_word: WHOLE_K1 * ranking.b / words.max(1.0) }
    }

    #[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
    pub(super) fn at(self, index: &Index, doc: DocId) -> f32 {
        self.base + self.by_word * index.words_of(doc) as f32
    }
}

/// BM25's idf: the weight of a term that occurs in so many passages.
#[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
pub(super) fn rarity(alive: f32, frequency: u32) -> f32 {
    let frequency = frequency as f32;
    (1.0 + (alive - frequency + 0.5) / (frequency + 0.5)).ln()
}
