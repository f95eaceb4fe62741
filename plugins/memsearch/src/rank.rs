//! Which records have the words of a question: BM25.

use memhost_sdk::remote::Record;
use memhost_sdk::types::Score;

use crate::days::Found;
use crate::words::Words;

/// How soon repetitions of a word stop counting.
const K1: f64 = 1.2;
/// How much long texts are penalized.
const B: f64 = 0.75;

/// The records with words of the question, best first. A score is the share of the best one that there could be.
#[allow(clippy::cast_precision_loss, reason = "counts of words and records")]
pub(crate) fn rank(all: &[Found], question: &str, most: usize) -> Vec<Record> {
    let asked = Words::of(question).counts;
    let average = all.iter().map(|found| found.words.length).sum::<usize>().max(1) as f64 / all.len().max(1) as f64;
    let rarity = |(word, _): &(u64, u32)| {
        let with = all.iter().filter(|found| found.words.count(*word) > 0.0).count() as f64;
        (*word, (1.0 + (all.len() as f64 - with + 0.5) / (with + 0.5)).ln())
    };
    let asked: Vec<(u64, f64)> = asked.iter().map(rarity).collect();
    let full = asked.iter().map(|(_, rarity)| rarity * (K1 + 1.0)).sum::<f64>();
    let score = |found: &Found| {
        let damping = K1 * (1.0 - B + B * found.words.length as f64 / average);
        let part = |(word, rarity): &(u64, f64)| {
            let count = found.words.count(*word);
            rarity * count * (K1 + 1.0) / (count + damping)
        };
        asked.iter().map(part).sum::<f64>() / full
    };
    let mut hits: Vec<_> = all.iter().map(|found| (score(found), found)).filter(|(score, _)| *score > 0.0).collect();
    // What was written later comes first of equal ones.
    hits.sort_by(|(a, one), (b, other)| {
        b.total_cmp(a).then_with(|| other.record.updated_at.cmp(&one.record.updated_at))
    });
    let hit =
        |(score, found): (f64, &Found)| Record { score: Some(Score::Rank(score.min(1.0))), ..found.record.clone() };
    hits.into_iter().take(most).map(hit).collect()
}
