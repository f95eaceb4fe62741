//! Which records have the words of a question: BM25.

use std::hash::{Hash, Hasher};

use memhost_sdk::remote::Record;
use memhost_sdk::types::Score;
use siphasher::sip::SipHasher13;

use crate::days::Found;

/// How soon repetitions of a word stop counting.
const K1: f64 = 1.2;
/// How much long texts are penalized.
const B: f64 = 0.75;
/// Signs from here on, such as those of Chinese, are words of their own.
const IDEOGRAPHS: char = '\u{2e80}';

/// The words of a text.
#[derive(Debug)]
pub(crate) struct Words {
    /// Hashes of words and how often each is there, by hash.
    counts: Vec<(u64, u32)>,
    length: usize,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let mut all: Vec<u64> = words(text).iter().map(|word| hash(word)).collect();
        all.sort_unstable();
        let count = |same: &[u64]| (same[0], u32::try_from(same.len()).unwrap_or(u32::MAX));
        Self { counts: all.chunk_by(|a, b| a == b).map(count).collect(), length: all.len() }
    }

    fn count(&self, word: u64) -> f64 {
        self.counts.binary_search_by_key(&word, |(word, _)| *word).map_or(0.0, |at| f64::from(self.counts[at].1))
    }
}

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

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for sign in text.chars() {
        if !sign.is_alphanumeric() || sign >= IDEOGRAPHS {
            words.push(if sign.is_alphanumeric() { sign.to_string() } else { String::new() });
        }
        if sign.is_alphanumeric() && sign < IDEOGRAPHS {
            if let Some(word) = words.last_mut().filter(|word| !word.starts_with(|first| first >= IDEOGRAPHS)) {
                word.extend(sign.to_lowercase());
            } else {
                words.push(sign.to_lowercase().collect());
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The same in every version, because ids of entries are made of it.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = SipHasher13::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_text_has_words() {
        assert_eq!(words("The Gate's red, 7 日本go-ÄB"), ["the", "gate", "s", "red", "7", "日", "本", "go", "äb"]);
        assert!(words(" .,- ").is_empty());
    }
}
