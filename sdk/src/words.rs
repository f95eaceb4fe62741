//! Search by words, for providers that keep records themselves and few of them: BM25 over texts in
//! memory.
//!
//! ```
//! use memhost_sdk::words::{Words, rank};
//!
//! let texts = ["The gate is red", "The door of the gate is shut, and red", "Tea is ready"];
//! let words = texts.map(Words::of);
//! let hits = rank(&words, |words| words, "Which gate is red?");
//! let places: Vec<usize> = hits.iter().map(|(place, _)| *place).collect();
//! assert_eq!(places, [0, 1, 2], "the last one has `is`");
//! assert!(hits[0].1 > hits[1].1 && hits[1].1 > hits[2].1 && hits[0].1 <= 1.0);
//! assert!(rank(&words, |words| words, "window").is_empty());
//! ```

mod function;
mod irregular;

pub use function::{is_function_word, pieces};
pub use irregular::base_form;
pub use memhost_words::{Word, is_mark, is_spaceless, plain, small, terms, words};

/// How soon repetitions of a word stop counting.
const K1: f64 = 1.2;
/// How much long texts are penalized.
const B: f64 = 0.75;

/// The [`terms`] of a text as numbers: 16 bytes for each different one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// Hashes of words and how often each is there, by hash.
    counts: Vec<(u64, u32)>,
    length: usize,
}

impl Words {
    /// The words of a text.
    pub fn of(text: &str) -> Self {
        let mut all: Vec<u64> = terms(text).map(|word| hash(&word)).collect();
        all.sort_unstable();
        let count = |same: &[u64]| (same[0], u32::try_from(same.len()).unwrap_or(u32::MAX));
        Self { counts: all.chunk_by(|a, b| a == b).map(count).collect(), length: all.len() }
    }

    fn count(&self, word: u64) -> f64 {
        self.counts
            .binary_search_by_key(&word, |(word, _)| *word)
            .map_or(0.0, |at| f64::from(self.counts[at].1))
    }
}

/// FNV-1a. Two words that are one here would only make a hit more.
fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Which items have words of a question: the place of each among `items`, and the share of the best
/// score that there could be, above 0 and at most 1. Best first, and equal ones as they were.
#[allow(clippy::cast_precision_loss, reason = "counts of words and items")]
pub fn rank<T>(items: &[T], words_of: impl Fn(&T) -> &Words, question: &str) -> Vec<(usize, f64)> {
    let length: usize = items.iter().map(|item| words_of(item).length).sum();
    let (many, average) = (items.len() as f64, length.max(1) as f64 / items.len().max(1) as f64);
    let rarity = |(word, _): &(u64, u32)| {
        let with = items.iter().filter(|item| words_of(item).count(*word) > 0.0).count() as f64;
        (*word, (1.0 + (many - with + 0.5) / (with + 0.5)).ln())
    };
    let asked: Vec<(u64, f64)> = Words::of(question).counts.iter().map(rarity).collect();
    let full = asked.iter().map(|(_, rarity)| rarity * (K1 + 1.0)).sum::<f64>();
    let score = |item: &T| {
        let words = words_of(item);
        let damping = K1 * (1.0 - B + B * words.length as f64 / average);
        let part = |(word, rarity): &(u64, f64)| {
            let count = words.count(*word);
            rarity * count * (K1 + 1.0) / (count + damping)
        };
        asked.iter().map(part).sum::<f64>() / full
    };
    let scores = items.iter().map(score).enumerate().filter(|(_, score)| *score > 0.0);
    let mut hits: Vec<(usize, f64)> =
        scores.map(|(place, score)| (place, score.min(1.0))).collect();
    hits.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    hits
}

#[cfg(test)]
mod tests {
    use super::{Words, rank};

    #[test]
    fn two_spellings_and_words_inside_sentences_are_found() {
        let texts = ["Die Straße ist gesperrt", "ทีมงานประชุมทุกวันจันทร์", "회의를 싫어한다"];
        let all = texts.map(Words::of);
        for (place, question) in ["STRASSE", "ประชุม", "회의"].iter().enumerate() {
            assert_eq!(rank(&all, |words| words, question)[0].0, place, "{question}");
        }
    }

    #[test]
    fn rare_words_and_short_texts_count_more() {
        let texts = [
            "red door",
            "red gate",
            "red gate, which was painted last year and the year before",
            "tea",
        ];
        let all = texts.map(Words::of);
        let places = |question| {
            rank(&all, |words| words, question).into_iter().map(|hit| hit.0).collect::<Vec<_>>()
        };
        assert_eq!(places("red gate")[0], 1);
        assert_eq!(places("gate"), [1, 2]);
        assert_eq!(places("RED"), [0, 1, 2], "equal ones as they were");
        assert!(places("").is_empty() && rank(&[], |words: &Words| words, "x").is_empty());
    }
}
