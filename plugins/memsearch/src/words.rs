//! The words of a text.

use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

/// Signs from here on, such as those of Chinese, are words of their own.
const IDEOGRAPHS: char = '\u{2e80}';

/// The words of a text.
#[derive(Debug)]
pub(crate) struct Words {
    /// Hashes of words and how often each is there, by hash.
    pub(crate) counts: Vec<(u64, u32)>,
    pub(crate) length: usize,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let mut all: Vec<u64> = words(text).iter().map(|word| hash(word)).collect();
        all.sort_unstable();
        let count = |same: &[u64]| (same[0], u32::try_from(same.len()).unwrap_or(u32::MAX));
        Self { counts: all.chunk_by(|a, b| a == b).map(count).collect(), length: all.len() }
    }

    pub(crate) fn count(&self, word: u64) -> f64 {
        self.counts.binary_search_by_key(&word, |(word, _)| *word).map_or(0.0, |at| f64::from(self.counts[at].1))
    }
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
