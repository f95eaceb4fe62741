//! A record's own score: a weighted sum of its words and its meaning, each on a scale of its own from 0 to 1.
//!
//! Neither is divided by its best value, because the best of several bad hits would then count as much as a good
//! answer. The score by words is compared with a passage that has all words of the question, and similarity with the
//! level that vectors reach by chance. A part without information is therefore small for every record and leaves the
//! order to the other part. Words count less in a record whose similarity is at the level of chance while another
//! record's is above.

use std::collections::HashMap;

use crate::config::Ranking;
use crate::index::DocId;
use crate::meaning::Nearest;

/// Both parts of a record's own score; those of the best record add up to 1.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Own {
    pub(super) words: f32,
    pub(super) meaning: f32,
    /// Its most similar passage, if that counts more than its words.
    pub(super) passage: Option<usize>,
}

impl Own {
    fn sum(self) -> f32 {
        self.words + self.meaning
    }
}

/// The best `most` records by both, in the order of their numbers. `whole` is the score of a passage that has all words
/// of the question.
pub(super) fn own(
    ranking: &Ranking,
    mut words: Vec<(DocId, f32)>,
    whole: f32,
    nearest: &Nearest,
    most: usize,
) -> Vec<(DocId, Own)> {
    // A common word is in most of the records. Records that have only such a word are left out.
    keep_best(&mut words, most, |score| *score);
    let full = words.iter().map(|(_, score)| *score).fold(whole, f32::max);
    let share = if full > 0.0 { ranking.words / full } else { 0.0 };
    let of_words = words.iter().map(|(doc, score)| (*doc, Own { words: share * score, ..Own::default() }));
    let mut own: Vec<(DocId, Own)> = if ranking.meaning > 0.0 && !nearest.records.is_empty() {
        let mut both: HashMap<DocId, Own> = of_words.collect();
        add_meaning(ranking.meaning, nearest, &mut both);
        both.into_iter().collect()
    } else {
        of_words.collect()
    };
    keep_best(&mut own, most, |own| own.sum());
    let best = own.iter().map(|(_, own)| own.sum()).fold(0.0, f32::max);
    own.retain(|(_, own)| own.sum() > 0.0);
    for (_, own) in &mut own {
        own.words /= best;
        own.meaning /= best;
    }
    own.sort_unstable_by_key(|(doc, _)| *doc);
    own
}

/// In no order.
fn keep_best<T>(all: &mut Vec<(DocId, T)>, most: usize, score: impl Fn(&T) -> f32) {
    if all.len() > most {
        all.select_nth_unstable_by(most, |a, b| score(&b.1).total_cmp(&score(&a.1)).then_with(|| a.0.cmp(&b.0)));
        all.truncate(most);
    }
}

fn add_meaning(weight: f32, nearest: &Nearest, own: &mut HashMap<DocId, Own>) {
    // With few dimensions any similarity may be chance.
    let chance = nearest.usual + nearest.chance;
    let top = nearest.records.iter().map(|near| near.cosine).fold(0.0, f32::max);
    if chance >= 1.0 || top <= chance {
        return;
    }
    // How far the most similar record is above the level of chance. With a model without information no record is.
    let is_sure = (top - chance) / (top - nearest.usual);
    for near in &nearest.records {
        let meaning = weight * (near.cosine - chance) / (1.0 - chance);
        if let Some(found) = own.get_mut(&near.doc) {
            // A single vector has no level of chance.
            let by_chance = ((chance - near.cosine) / nearest.chance.max(f32::EPSILON)).clamp(0.0, 1.0);
            found.words *= 1.0 - is_sure * by_chance;
        } else if meaning <= 0.0 {
            continue;
        }
        let found = own.entry(near.doc).or_default();
        found.meaning = meaning.max(0.0);
        found.passage = (found.meaning > found.words).then_some(near.passage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meaning::Near;

    const RANKING: fn() -> Ranking = || Ranking { words: 1.0, meaning: 0.5, ..Ranking::default() };

    fn nearest(cosines: &[f32], usual: f32, chance: f32) -> Nearest {
        let near = |(doc, cosine): (DocId, &f32)| Near { doc, passage: 3, cosine: *cosine };
        Nearest { records: (0..).zip(cosines).map(near).collect(), usual, chance }
    }

    fn order(words: &[(DocId, f32)], whole: f32, nearest: &Nearest) -> Vec<DocId> {
        let mut own = own(&RANKING(), words.to_vec(), whole, nearest, 10);
        own.sort_by(|a, b| b.1.sum().total_cmp(&a.1.sum()));
        own.into_iter().map(|(doc, _)| doc).collect()
    }

    #[test]
    fn a_part_without_information_does_not_change_the_order() {
        let words = [(0, 9.0), (1, 8.0), (2, 7.0)];
        // All equal, as with a model that gives every text the same vector.
        assert_eq!(order(&words, 10.0, &nearest(&[0.9, 0.9, 0.9], 0.9, 0.2)), [0, 1, 2]);
        // The level of chance.
        assert_eq!(order(&words, 10.0, &nearest(&[0.0, 0.1, 0.29], 0.1, 0.2)), [0, 1, 2]);
        // Too few dimensions.
        assert_eq!(order(&words, 10.0, &nearest(&[0.1, 0.2, 1.0], 0.0, 1.1)), [0, 1, 2]);
        // One common word of a long question in the wrong record.
        assert_eq!(order(&[(0, 1.0)], 20.0, &nearest(&[0.1, 0.7, 0.5], 0.1, 0.2)), [1, 2, 0]);
    }

    #[test]
    fn words_count_less_if_another_record_is_similar() {
        let words = [(0, 8.0), (1, 6.0)];
        // The first is at the level of chance, the second above it, and the third is the answer.
        assert_eq!(order(&words, 10.0, &nearest(&[0.1, 0.35, 0.9], 0.1, 0.2)), [1, 2, 0]);
        // Nothing is similar, so words decide.
        assert_eq!(order(&words, 10.0, &nearest(&[0.1, 0.25, 0.2], 0.1, 0.2)), [0, 1]);
    }

    #[test]
    fn only_the_best_are_ranked_closely() {
        let words: Vec<(DocId, f32)> = (0..100_u8).map(|doc| (DocId::from(doc), f32::from(doc))).collect();
        let found = own(&RANKING(), words, 99.0, &nearest(&[], 0.0, 0.0), 3);
        assert_eq!(found.into_iter().map(|(doc, _)| doc).collect::<Vec<_>>(), [97, 98, 99]);
    }

    #[test]
    fn both_parts_together_count_more_than_one() {
        let found = own(&RANKING(), vec![(0, 6.0), (1, 6.0)], 10.0, &nearest(&[0.0, 0.8, 0.8], 0.1, 0.1), 10);
        let [(_, words), (_, both), (_, meaning)] = found[..] else { panic!("{found:?}") };
        assert!((both.sum() - 1.0).abs() < 1e-6 && words.sum().max(meaning.sum()) < 1.0, "{found:?}");
        assert_eq!((words.passage, both.passage, meaning.passage), (None, None, Some(3)));
        assert!(own(&RANKING(), Vec::new(), 0.0, &nearest(&[], 0.0, 0.0), 10).is_empty());
        let none = Ranking { words: 0.0, meaning: 0.0, ..RANKING() };
        assert!(own(&none, vec![(0, 1.0)], 1.0, &nearest(&[0.9], 0.0, 0.1), 10).is_empty());
    }
}
