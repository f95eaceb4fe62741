//! Converts words into terms. A term is a hash, so the index contains no words of the texts.

use memhost_sdk::words::{base_form, is_function_word, plain, words};
use rust_stemmers::{Algorithm, Stemmer};

use crate::config::Language;
use crate::hash::hash;

/// A word after stemming, as 48 bits: with a million terms collisions are rare, and a collision
/// only changes a ranking.
pub(crate) type Term = u64;

const TERM_BITS: u32 = 48;

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
    pub(crate) fn term(&self, word: &str) -> Term {
        if !self.is_english {
            // Accents are removed after stemming, because the stemmer uses them.
            return self.stemmed(word);
        }
        let word = plain(word);
        self.stemmed(base_form(&word).unwrap_or(&word))
    }

    /// The terms of a word: a second one if its stem is another one without accents, because some
    /// people leave them out.
    pub(crate) fn terms(&self, word: &str) -> impl Iterator<Item = Term> + use<> {
        let term = self.term(word);
        let other = (!self.is_english && !word.is_ascii()).then(|| self.stemmed(&plain(word)));
        [Some(term), other.filter(|other| *other != term)].into_iter().flatten()
    }

    fn stemmed(&self, word: &str) -> Term {
        match &self.stemmer {
            Some(stemmer) => text_term(&stemmer.stem(word)),
            None => text_term(word),
        }
    }

    /// Whether a word is a stop word. There is a list for English only; in other languages the
    /// ranking gives little weight to frequent words.
    pub(crate) fn is_stop_word(&self, word: &str) -> bool {
        // Words are in small letters here, so `may` could be the month.
        self.is_english && word != "may" && is_function_word(word)
    }

    /// The distinct terms of a question.
    pub(crate) fn question(&self, text: &str) -> Vec<Term> {
        let mut terms: Vec<Term> =
            self.telling(text).iter().flat_map(|word| self.terms(word)).collect();
        let mut seen = std::collections::HashSet::new();
        terms.retain(|term| seen.insert(*term));
        terms
    }

    /// The terms of a question in its order, some of them perhaps several times.
    pub(crate) fn in_order(&self, text: &str) -> Vec<Term> {
        self.telling(text).iter().map(|word| self.term(word)).collect()
    }

    /// The words of a question without stop words, unless it has no others.
    pub(crate) fn telling(&self, text: &str) -> Vec<String> {
        let (stop, telling): (Vec<String>, Vec<String>) =
            words(text).map(|word| word.text).partition(|word| self.is_stop_word(word));
        if telling.is_empty() { stop } else { telling }
    }

    /// The term for a word of a short metadata value that may be a name.
    pub(crate) fn name(word: &str) -> Term {
        hash(b"name", plain(word).as_bytes()) >> (u64::BITS - TERM_BITS)
    }
}

fn text_term(word: &str) -> Term {
    hash(b"text", plain(word).as_bytes()) >> (u64::BITS - TERM_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one_term() {
        let english = Analyzer::new(Language::English);
        assert_eq!(english.term("running"), english.term("ran"));
        assert_eq!(english.term("café"), english.term("cafe"));
        assert_ne!(english.term("run"), english.term("rum"));
        assert_ne!(english.term("ana"), Analyzer::name("ana"));
        let german = Analyzer::new(Language::German);
        assert_eq!(german.term("häuser"), german.term("haus"));
    }

    #[test]
    fn spellings_of_a_word_are_one_term() {
        let english = Analyzer::new(Language::English);
        for (one, other) in
            [("İstanbul", "istanbul"), ("Straße", "strasse"), ("ανάπτυξη", "αναπτυξη")]
        {
            assert_eq!(english.question(one), english.question(other), "{one}");
        }
        let french = Analyzer::new(Language::French);
        let told: Vec<Term> = french.terms("parlée").collect();
        for asked in ["parlee", "parler", "parlée"] {
            assert!(french.question(asked).iter().any(|term| told.contains(term)), "{asked}");
        }
        let without: Vec<Term> = french.terms("parlee").collect();
        assert!(french.question("parlée").iter().any(|term| without.contains(term)));
    }

    #[test]
    fn stop_words_are_left_out_unless_alone() {
        let english = Analyzer::new(Language::English);
        let terms =
            |words: &[&str]| words.iter().map(|word| english.term(word)).collect::<Vec<_>>();
        assert_eq!(
            english.question("What was the running of the races, the race?"),
            terms(&["run", "race"])
        );
        assert_eq!(english.question("who are you"), terms(&["who", "are", "you"]));
        assert!(english.question("?!").is_empty());
    }
}
