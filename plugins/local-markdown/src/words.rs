//! From text to terms, and to passages.

use rust_stemmers::{Algorithm, Stemmer};

use crate::config::Language;

/// How many words a passage has. A record is as good as its best passage, so that a long document is not held against
/// the one paragraph that answers.
pub(crate) const PASSAGE_WORDS: usize = 60;

/// Turns words into terms.
pub(crate) struct Analyzer {
    stemmer: Option<Stemmer>,
    is_english: bool,
}

impl Analyzer {
    /// For one language.
    pub(crate) fn new(language: Language) -> Self {
        let algorithm = match language {
            Language::Danish => Some(Algorithm::Danish),
            Language::Dutch => Some(Algorithm::Dutch),
            Language::English => Some(Algorithm::English),
            Language::French => Some(Algorithm::French),
            Language::German => Some(Algorithm::German),
            Language::Italian => Some(Algorithm::Italian),
            Language::Norwegian => Some(Algorithm::Norwegian),
            Language::Portuguese => Some(Algorithm::Portuguese),
            Language::Russian => Some(Algorithm::Russian),
            Language::Spanish => Some(Algorithm::Spanish),
            Language::Swedish => Some(Algorithm::Swedish),
            Language::None => None,
        };
        Self { stemmer: algorithm.map(Stemmer::create), is_english: language == Language::English }
    }

    /// The term of a word.
    pub(crate) fn term(&self, word: &str) -> String {
        match &self.stemmer {
            Some(stemmer) => stemmer.stem(word).into_owned(),
            None => word.to_owned(),
        }
    }

    /// Whether a word says too little to look for.
    pub(crate) fn is_stop_word(&self, word: &str) -> bool {
        self.is_english && STOP_WORDS.binary_search(&word).is_ok()
    }

    /// The terms of a question: without stop words, unless nothing else is left.
    pub(crate) fn question(&self, text: &str) -> Vec<String> {
        let words: Vec<(usize, String)> = words(text).collect();
        let telling: Vec<_> = words.iter().filter(|(_, word)| !self.is_stop_word(word)).collect();
        let chosen = if telling.is_empty() { words.iter().collect() } else { telling };
        let mut terms: Vec<String> = chosen.into_iter().map(|(_, word)| self.term(word)).collect();
        let mut seen = std::collections::HashSet::new();
        terms.retain(|term| seen.insert(term.clone()));
        terms
    }
}

/// Lower-case words with the byte at which each begins. A possessive `'s` is left out; scripts without spaces give a
/// word a character.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    let mut rest = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (start, first) = rest.next()?;
            if !first.is_alphanumeric() {
                continue;
            }
            let mut word: String = first.to_lowercase().collect();
            if is_ideographic(first) {
                return Some((start, word));
            }
            while let Some((at, next)) = rest.peek().copied() {
                if next.is_alphanumeric() && !is_ideographic(next) {
                    word.extend(next.to_lowercase());
                    rest.next();
                    continue;
                }
                let is_apostrophe = next == '\'' || next == '’';
                let mut behind = text[at + next.len_utf8()..].chars();
                if is_apostrophe && behind.next() == Some('s') && behind.next().is_none_or(|c| !c.is_alphanumeric()) {
                    rest.next();
                    rest.next();
                }
                break;
            }
            return Some((start, word));
        }
    })
}

fn is_ideographic(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0x20000..=0x2fa1f)
}

/// Sorted, as the search needs it.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "don",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "ll",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "now",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "re",
    "s",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "ve",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Vec<String> {
        words(text).map(|(_, word)| word).collect()
    }

    #[test]
    fn words_are_split_and_folded() {
        assert_eq!(plain("Caroline's RUN-42, Ünïcode!"), ["caroline", "run", "42", "ünïcode"]);
        assert_eq!(plain("it’s 標識ab"), ["it", "標", "識", "ab"]);
        assert!(plain("… --- \u{0}").is_empty());
    }

    #[test]
    fn stop_words_are_sorted_and_left_out_unless_alone() {
        assert!(STOP_WORDS.is_sorted());
        let english = Analyzer::new(Language::English);
        assert_eq!(english.question("What was the running of the races?"), ["run", "race"]);
        assert_eq!(english.question("who are you"), ["who", "are", "you"]);
    }
}
