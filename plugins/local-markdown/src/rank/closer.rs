//! What is looked at in the best records alone: how much of the question a record has, and which words of the question
//! stand next to each other in it, as in the question. The lists of the index have no order of words, and a record's
//! own order is cheap to read for a hundred records.

use super::score::{Norm, Scratch, WHOLE_K1, rarity};
use crate::config::Ranking;
use crate::index::{DocId, Index};
use crate::text::Term;

/// In how many records pairs of words are looked for.
const CLOSELY: usize = 100;
/// In how many of their passages at most, so that a few very long records do not make a question slow.
const PASSAGES: usize = 2_048;

/// Changes the scores of the records that were found by words. `asked` are the telling words of the question in order.
pub(super) fn look(index: &Index, ranking: &Ranking, scratch: &Scratch, asked: &[Term], found: &mut [(DocId, f32)]) {
    let most = found.iter().map(|(doc, _)| scratch.covered(*doc)).fold(f32::EPSILON, f32::max);
    for (doc, score) in &mut *found {
        // The fourth root: a record with one rare word of the question is behind one with several of the others, but
        // one that lacks a word is not far behind one that has them all.
        *score *= (scratch.covered(*doc) / most).sqrt().sqrt();
    }
    let pairs = pairs(index, asked);
    if ranking.pairs == 0.0 || pairs.is_empty() {
        return;
    }
    let closely = CLOSELY.min(found.len());
    if found.len() > closely {
        found.select_nth_unstable_by(closely, |a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }
    let mut left = PASSAGES;
    let counts: Vec<Vec<f32>> =
        found[..closely].iter().map(|(doc, _)| count(index, scratch, &pairs, *doc, &mut left)).collect();
    let norm = Norm::of(index, ranking);
    for pair in 0..pairs.len() {
        let having = counts.iter().filter(|counts| counts[pair] > 0.0).count();
        #[allow(clippy::cast_precision_loss, reason = "a count for a formula")]
        let weight = ranking.pairs * rarity(index.len() as f32, u32::try_from(having).unwrap_or(u32::MAX));
        for ((doc, score), counts) in found.iter_mut().zip(&counts) {
            *score += weight * (WHOLE_K1 + 1.0) * counts[pair] / (counts[pair] + norm.at(index, *doc));
        }
    }
}

/// The pairs of neighbouring words of a question that records may have.
fn pairs(index: &Index, asked: &[Term]) -> Vec<[Term; 2]> {
    let mut pairs: Vec<[Term; 2]> = Vec::new();
    for pair in asked.array_windows::<2>() {
        let is_known = pair.iter().all(|term| index.postings.of(*term).1 > 0);
        if is_known && pair[0] != pair[1] && !pairs.contains(pair) {
            pairs.push(*pair);
        }
    }
    pairs
}

/// How often a record has each pair.
fn count(index: &Index, scratch: &Scratch, pairs: &[[Term; 2]], doc: DocId, left: &mut usize) -> Vec<f32> {
    let mut counts = vec![0.0; pairs.len()];
    let Some(doc) = index.doc(doc) else { return counts };
    for (number, passage) in (doc.first_passage as usize..).zip(doc.read()) {
        if *left == 0 {
            break;
        }
        if scratch.of_passage(number) == 0.0 {
            continue;
        }
        *left -= 1;
        for (pair, count) in pairs.iter().zip(&mut counts) {
            let [Some(first), Some(second)] = pair.map(|term| passage.place(term)) else { continue };
            let mut before = None;
            for place in passage.telling() {
                if place == second && before == Some(first) {
                    *count += 1.0;
                }
                before = Some(place);
            }
        }
    }
    counts
}
