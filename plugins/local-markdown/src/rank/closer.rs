//! What is looked at in the best records alone: how much of the question a record has, and which
//! words of the question stand next to each other in it, as in the question. The lists of the index
//! have no order of words, and a record's own order is cheap to read for a hundred records.

use super::score::{Norm, Scratch, WHOLE_K1, rarity};
use crate::config::Ranking;
use crate::index::{DocId, Index};
use crate::text::Term;

/// In how many records pairs of words are looked for.
const CLOSELY: usize = 100;
/// In how many of their passages at most, so that a few very long records do not make a question
/// slow.
const PASSAGES: usize = 2_048;
/// How many pairs of a question are looked for, so that a very long one is not slow: its first
/// ones.
const PAIRS: usize = 64;

/// Changes the scores of the records that were found by words. `asked` are the telling words of the
/// question in order.
pub(super) fn look(
    index: &Index,
    ranking: &Ranking,
    scratch: &Scratch,
    asked: &[Term],
    found: &mut [(DocId, f32)],
) {
    let most = found.iter().map(|(doc, _)| scratch.covered(*doc)).fold(f32::EPSILON, f32::max);
    for (doc, score) in &mut *found {
        // The fourth root: a record with one rare word of the question is behind one with several
        // of the others, but one that lacks a word is not far behind one that has them all.
        *score *= (scratch.covered(*doc) / most).sqrt().sqrt();
    }
    let pairs = Pairs::of(index, asked);
    if ranking.pairs == 0.0 || pairs.of.is_empty() {
        return;
    }
    let closely = CLOSELY.min(found.len());
    if found.len() > closely {
        found.select_nth_unstable_by(closely, |a, b| {
            b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0))
        });
    }
    let counts = pairs.count(index, scratch, &found[..closely]);
    let norm = Norm::of(index, ranking);
    for (pair, _) in pairs.of.iter().enumerate() {
        let counts = || counts.iter().skip(pair).step_by(pairs.of.len());
        let having = counts().filter(|count| **count > 0.0).count();
        #[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
        let weight =
            ranking.pairs * rarity(index.len() as f32, u32::try_from(having).unwrap_or(u32::MAX));
        for ((doc, score), count) in
            found.iter_mut().zip(counts()).filter(|(_, count)| **count > 0.0)
        {
            *score += weight * (WHOLE_K1 + 1.0) * count / (count + norm.at(index, *doc));
        }
    }
}

/// The pairs of neighbouring words of a question that records may have.
struct Pairs {
    terms: Vec<Term>,
    /// Places of terms.
    of: Vec<[usize; 2]>,
}

impl Pairs {
    fn of(index: &Index, asked: &[Term]) -> Self {
        let mut pairs = Self { terms: Vec::new(), of: Vec::new() };
        for pair in asked.array_windows::<2>() {
            if pairs.of.len() == PAIRS {
                break;
            }
            if pair[0] == pair[1] || pair.iter().any(|term| index.postings.of(*term).1 == 0) {
                continue;
            }
            let places = pair.map(|term| pairs.place(term));
            if !pairs.of.contains(&places) {
                pairs.of.push(places);
            }
        }
        pairs
    }

    fn place(&mut self, term: Term) -> usize {
        self.terms.iter().position(|known| *known == term).unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        })
    }

    /// How often each record has each pair, record by record.
    fn count(&self, index: &Index, scratch: &Scratch, found: &[(DocId, f32)]) -> Vec<f32> {
        let mut counts = vec![0.0; found.len() * self.of.len()];
        let mut places = vec![None; self.terms.len()];
        let mut left = PASSAGES;
        for ((doc, _), counts) in found.iter().zip(counts.chunks_exact_mut(self.of.len())) {
            let Some(doc) = index.doc(*doc) else { continue };
            let passages = (doc.first_passage as usize..).zip(doc.read());
            for (_, passage) in
                passages.filter(|(number, _)| scratch.of_passage(*number) > 0.0).take(left)
            {
                left -= 1;
                for (place, term) in places.iter_mut().zip(&self.terms) {
                    *place = passage.place(*term);
                }
                for ([first, second], count) in self.of.iter().zip(&mut *counts) {
                    if let (Some(first), Some(second)) = (places[*first], places[*second]) {
                        *count += passage.beside(first, second);
                    }
                }
            }
        }
        counts
    }
}
