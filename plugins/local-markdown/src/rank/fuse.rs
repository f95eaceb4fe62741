//! A record's own score: a weighted sum of its words and its meaning, each on a scale of this
//! question: from the score of the thirty-first best record, which counts nothing, to the best
//! one's.
//!
//! Scores by words and cosines have no common scale, and where one side tells the records apart
//! better differs between questions, so each is compared with what the same side says of other
//! records. The best of several bad hits must not count as much as a good answer. So meaning fades,
//! and the scale of words becomes that of a question without a model, as the most similar record
//! comes near the level that vectors reach by chance. And words count less in a record whose
//! similarity is at that level while another record's is above.

use std::collections::HashMap;

use crate::config::Ranking;
use crate::index::DocId;
use crate::meaning::Nearest;

/// How many records of a side count, chosen by leaving one kind of text out (decision 0081).
const COMPARED: usize = 30;

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

/// The best `most` records by both, in the order of their numbers. `words` are the best by words.
pub(super) fn own(
    ranking: &Ranking,
    words: &[(DocId, f32)],
    nearest: &Nearest,
    most: usize,
) -> Vec<(DocId, Own)> {
    let sureness = if ranking.meaning > 0.0 { sureness(nearest) } else { 0.0 };
    let mut own: Vec<(DocId, Own)> = if sureness > 0.0 {
        let of_words = Scale::of(words.iter().map(|(_, score)| *score), 0.0);
        let of_words = Scale { from: of_words.from * sureness, ..of_words };
        let on_scale = |(doc, score): &(DocId, f32)| {
            (*doc, Own { words: ranking.words * of_words.at(*score), ..Own::default() })
        };
        let mut both: HashMap<DocId, Own> =
            words.iter().map(on_scale).filter(|(_, own)| own.words > 0.0).collect();
        add_meaning(ranking.meaning * sureness, nearest, &mut both);
        both.into_iter().collect()
    } else {
        words
            .iter()
            .map(|(doc, score)| (*doc, Own { words: ranking.words * score, ..Own::default() }))
            .collect()
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
pub(super) fn keep_best<T>(all: &mut Vec<(DocId, T)>, most: usize, score: impl Fn(&T) -> f32) {
    if all.len() > most {
        all.select_nth_unstable_by(most, |a, b| {
            score(&b.1).total_cmp(&score(&a.1)).then_with(|| a.0.cmp(&b.0))
        });
        all.truncate(most);
    }
}

/// The scale of one side for one question.
#[derive(Debug, Clone, Copy)]
struct Scale {
    from: f32,
    to: f32,
}

impl Scale {
    /// From the best score behind the first [`COMPARED`], at least `least`, to the best. With fewer
    /// scores it begins at `least`.
    fn of(scores: impl Iterator<Item = f32>, least: f32) -> Self {
        let mut scores: Vec<f32> = scores.collect();
        let to = scores.iter().copied().fold(least, f32::max);
        let from = match scores.len() > COMPARED {
            true => scores.select_nth_unstable_by(COMPARED, |a, b| b.total_cmp(a)).1.max(least),
            false => least,
        };
        Self { from, to }
    }

    /// 1 for the best score; 0 and less for those that count nothing.
    fn at(self, score: f32) -> f32 {
        (score - self.from) / (self.to - self.from).max(f32::EPSILON)
    }
}

/// How far the most similar record is above the level of chance, 0 to 1. With a model without
/// information no record is.
fn sureness(nearest: &Nearest) -> f32 {
    let top = nearest.records.iter().map(|near| near.cosine).fold(0.0, f32::max);
    let chance = nearest.usual + nearest.chance;
    // With few dimensions any similarity may be chance.
    if chance >= 1.0 || top <= chance {
        return 0.0;
    }
    // A single vector has no level of chance.
    ((top - chance) / nearest.chance.max(f32::EPSILON)).min(1.0)
}

fn add_meaning(weight: f32, nearest: &Nearest, own: &mut HashMap<DocId, Own>) {
    let scale = Scale::of(nearest.records.iter().map(|near| near.cosine), nearest.usual);
    let chance = nearest.usual + nearest.chance;
    let is_sure = (scale.to - chance) / (scale.to - nearest.usual);
    for near in &nearest.records {
        let meaning = weight * scale.at(near.cosine);
        if let Some(found) = own.get_mut(&near.doc) {
            let by_chance =
                ((chance - near.cosine) / nearest.chance.max(f32::EPSILON)).clamp(0.0, 1.0);
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

    const RANKING: fn() -> Ranking = || Ranking { words: 1.0, meaning: 0.75, ..Ranking::default() };

    fn nearest(cosines: &[f32], usual: f32, chance: f32) -> Nearest {
        let near = |(doc, cosine): (DocId, &f32)| Near { doc, passage: 3, cosine: *cosine };
        Nearest { records: (0..).zip(cosines).map(near).collect(), usual, chance }
    }

    fn order(words: &[(DocId, f32)], nearest: &Nearest) -> Vec<DocId> {
        let mut own = own(&RANKING(), words, nearest, 10);
        own.sort_by(|a, b| b.1.sum().total_cmp(&a.1.sum()));
        own.into_iter().map(|(doc, _)| doc).collect()
    }

    #[test]
    fn a_part_without_information_does_not_change_the_order() {
        let words = [(0, 9.0), (1, 8.0), (2, 7.0)];
        // All equal, as with a model that gives every text the same vector.
        assert_eq!(order(&words, &nearest(&[0.9, 0.9, 0.9], 0.9, 0.2)), [0, 1, 2]);
        // The level of chance.
        assert_eq!(order(&words, &nearest(&[0.0, 0.1, 0.29], 0.1, 0.2)), [0, 1, 2]);
        // Too few dimensions.
        assert_eq!(order(&words, &nearest(&[0.1, 0.2, 1.0], 0.0, 1.1)), [0, 1, 2]);
        // One word of a question in a record that is not similar.
        assert_eq!(order(&[(0, 1.0)], &nearest(&[0.1, 0.7, 0.5], 0.1, 0.2)), [1, 2, 0]);
    }

    #[test]
    fn words_count_less_if_another_record_is_similar() {
        let words = [(0, 8.0), (1, 6.0)];
        // The first is at the level of chance, the second above it, and the third is the answer.
        assert_eq!(order(&words, &nearest(&[0.1, 0.35, 0.9], 0.1, 0.2)), [1, 2, 0]);
        // Nothing is similar, so words decide.
        assert_eq!(order(&words, &nearest(&[0.1, 0.25, 0.2], 0.1, 0.2)), [0, 1]);
    }

    #[test]
    fn each_side_counts_from_its_thirty_first_record() {
        let records: Vec<f32> = (0..60_u8).map(|doc| 0.5 - f32::from(doc) / 1_000.0).collect();
        let words: Vec<(DocId, f32)> =
            (0..60_u8).map(|doc| (DocId::from(doc), 90.0 - f32::from(doc))).collect();
        let found = own(&RANKING(), &words, &nearest(&records, 0.1, 0.1), 100);
        assert_eq!(found.len(), 30);
        let [(0, first), .., (29, last)] = found[..] else { panic!("{found:?}") };
        assert!(
            (first.words - 1.0 / 1.75).abs() < 1e-4 && (first.meaning - 0.75 / 1.75).abs() < 1e-4,
            "{first:?}"
        );
        assert!(
            last.words > 0.0 && last.words < 0.03 && last.meaning > 0.0 && last.meaning < 0.03,
            "{last:?}"
        );
        // A model without information leaves the words' own scale.
        let found = own(&RANKING(), &words, &nearest(&records, 0.4, 0.3), 100);
        assert_eq!(found.len(), 60);
        assert!(
            (found[30].1.words - 60.0 / 90.0).abs() < 1e-4 && found[30].1.meaning == 0.0,
            "{:?}",
            found[30]
        );
    }

    #[test]
    fn only_the_best_are_ranked_closely() {
        let words: Vec<(DocId, f32)> =
            (0..100_u8).map(|doc| (DocId::from(doc), f32::from(doc))).collect();
        let found = own(&RANKING(), &words, &nearest(&[], 0.0, 0.0), 3);
        assert_eq!(found.into_iter().map(|(doc, _)| doc).collect::<Vec<_>>(), [97, 98, 99]);
    }

    #[test]
    fn both_parts_together_count_more_than_one() {
        let found =
            own(&RANKING(), &[(0, 6.0), (1, 6.0)], &nearest(&[0.0, 0.8, 0.8], 0.1, 0.1), 10);
        let [(_, words), (_, both), (_, meaning)] = found[..] else { panic!("{found:?}") };
        assert!(
            (both.sum() - 1.0).abs() < 1e-6 && words.sum().max(meaning.sum()) < 1.0,
            "{found:?}"
        );
        assert_eq!((words.passage, both.passage, meaning.passage), (None, None, Some(3)));
        assert!(own(&RANKING(), &[], &nearest(&[], 0.0, 0.0), 10).is_empty());
        let none = Ranking { words: 0.0, meaning: 0.0, ..RANKING() };
        assert!(own(&none, &[(0, 1.0)], &nearest(&[0.9], 0.0, 0.1), 10).is_empty());
    }
}
