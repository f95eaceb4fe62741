//! Converts text into terms.

use memhost_sdk::words::{self, base_form, is_function_word, is_mark, is_spaceless, plain, small};
use rust_stemmers::{Algorithm, Stemmer};
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::Hasher;
use unicode_segmentation::UnicodeSegmentation;

/// Languages by their names, each with its stemmer.
pub(crate) const LANGUAGES: [(&str, Option<Algorithm>); 18] = [
    ("english", Some(Algorithm::English)),
    ("arabic", Some(Algorithm::Arabic)),
    ("danish", Some(Algorithm::Danish)),
    ("dutch", Some(Algorithm::Dutch)),
    ("finnish", Some(Algorithm::Finnish)),
    ("french", Some(Algorithm::French)),
    ("german", Some(Algorithm::German)),
    ("greek", Some(Algorithm::Greek)),
    ("hungarian", Some(Algorithm::Hungarian)),
    ("italian", Some(Algorithm::Italian)),
    ("norwegian", Some(Algorithm::Norwegian)),
    ("portuguese", Some(Algorithm::Portuguese)),
    ("romanian", Some(Algorithm::Romanian)),
    ("russian", Some(Algorithm::Russian)),
    ("spanish", Some(Algorithm::Spanish)),
    ("swedish", Some(Algorithm::Swedish)),
    ("turkish", Some(Algorithm::Turkish)),
    ("none", None),
];

/// A word after stemming, as a hash of 40 bits, so that the index contains no words of the texts.
/// Among a hundred thousand words the probability of any collision is half a percent, and a
/// collision only changes a ranking.
pub(crate) type Term = u64;

/// Increased when the making of terms changes. An index of another version is made anew.
pub(crate) const VERSION: u32 = 2;

/// Bytes of a stored term.
pub(crate) const TERM_BYTES: usize = 5;

/// Words with more bytes are left out: they are keys, hashes or encoded pictures.
const MAX_WORD: usize = 64;
/// How many stems are remembered while a batch is written. After that the memory is cleared.
const REMEMBERED: usize = 50_000;

/// Turns words into terms.
pub(crate) struct Analyzer {
    stemmer: Option<Stemmer>,
    is_english: bool,
    /// Its keys are chosen by whoever writes, so its hash has a random key.
    known: HashMap<String, Terms>,
}

/// The term of a word, and a second one if its stem is another one without accents: some people
/// leave them out.
type Terms = (Term, Option<Term>);

impl Analyzer {
    /// For a language of [`LANGUAGES`]. Words of other languages are not stemmed.
    pub(crate) fn new(language: &str) -> Self {
        let found = LANGUAGES
            .iter()
            .find(|(name, _)| *name == language)
            .and_then(|(_, algorithm)| *algorithm);
        Self {
            stemmer: found.map(Stemmer::create),
            is_english: language == "english",
            known: HashMap::new(),
        }
    }

    /// The terms of a text, in their order, with repetitions. A name such as `memory_saved` or
    /// `sessionId` counts as a whole and in its parts.
    pub(crate) fn terms(&mut self, text: &str) -> Vec<Term> {
        self.all(text, |_| true)
    }

    /// The distinct terms of a question, in their order. The words that every sentence has are left
    /// out. There is a list of them for English only.
    pub(crate) fn question(&mut self, text: &str) -> Vec<Term> {
        let mut seen = rustc_hash::FxHashSet::default();
        let is_english = self.is_english;
        let mut terms = self.all(text, |word| !(is_english && is_function_word(word)));
        terms.retain(|term| seen.insert(*term));
        terms
    }

    fn all(&mut self, text: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Term> {
        let mut terms = Vec::new();
        for piece in text.split_whitespace() {
            if piece.contains(is_spaceless) {
                words::terms(piece).for_each(|word| self.push(&mut terms, &word));
                continue;
            }
            for word in piece.unicode_words().filter(|word| is_wanted(word)) {
                self.add(&mut terms, word);
            }
        }
        terms
    }

    fn add(&mut self, terms: &mut Vec<Term>, word: &str) {
        if word.len() > MAX_WORD {
            return;
        }
        self.push(terms, word);
        if word.chars().all(is_of_word) && !word.chars().skip(1).any(char::is_uppercase) {
            return;
        }
        let parts: Vec<&str> = parts(word).collect();
        if parts.len() > 1 {
            parts.into_iter().for_each(|part| self.push(terms, part));
        }
    }

    fn push(&mut self, terms: &mut Vec<Term>, word: &str) {
        let (term, other) = self.term(word);
        terms.push(term);
        terms.extend(other);
    }

    fn term(&mut self, word: &str) -> Terms {
        if let Some(known) = self.known.get(word) {
            return *known;
        }
        let lower = small(word);
        let bare = plain(&lower);
        // English has no accents that a stemmer uses.
        let own = if self.is_english { &bare } else { &lower };
        let base = base_form(own).filter(|_| self.is_english).unwrap_or(own);
        let (term, other) = (self.stemmed(base), self.stemmed(&bare));
        let is_other = !self.is_english && other != term;
        let terms = (term, is_other.then_some(other));
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(word.to_owned(), terms);
        terms
    }

    fn stemmed(&self, word: &str) -> Term {
        let term = match &self.stemmer {
            Some(stemmer) => hash(b"term", plain(&stemmer.stem(word)).as_bytes()),
            None => hash(b"term", plain(word).as_bytes()),
        };
        term >> (u64::BITS as usize - 8 * TERM_BYTES)
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_mark(c)
}

/// Splits a name at every sign, and before a capital letter that follows a small one.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(|c: char| !is_of_word(c)).flat_map(camel).filter(|part| !part.is_empty())
}

fn camel(word: &str) -> Vec<&str> {
    let (mut found, mut start, mut was_small) = (Vec::new(), 0, false);
    for (at, c) in word.char_indices() {
        if was_small && c.is_uppercase() {
            found.push(&word[start..at]);
            start = at;
        }
        was_small = c.is_lowercase();
    }
    found.push(&word[start..]);
    found
}

/// A hash that is stored: SipHash 1-3 without a key. It is not safe against deliberate
/// collisions.
pub(crate) fn hash(kind: &[u8], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(kind);
    hasher.write_u8(0);
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_parts_of_a_word_are_found() {
        let mut english = Analyzer::new("english");
        assert_eq!(english.terms("Deploys"), english.terms("deployed"));
        assert_ne!(english.terms("deploy"), english.terms("destroy"));
        assert_eq!(english.terms("chose"), english.terms("choose"));
        let name = english.terms("memory_saved");
        assert_eq!(name[1..], english.terms("memory saved"));
        assert_eq!(english.terms("sessionId")[1..], english.terms("session Id"));
        assert_eq!(english.terms("HTTP").len(), 1);
        assert_eq!(english.terms("標識 – ok…").len(), 4, "and the two letters together");
        assert!(english.terms(&"x".repeat(MAX_WORD + 1)).is_empty());
        let mut none = Analyzer::new("none");
        assert_ne!(none.terms("deploys"), none.terms("deploy"));
    }

    #[test]
    fn spellings_of_a_word_are_one_term() {
        let mut english = Analyzer::new("english");
        for (one, other) in
            [("İstanbul", "istanbul"), ("Straße", "strasse"), ("gal\u{327}a", "gaļa")]
        {
            assert_eq!(english.terms(one), english.terms(other), "{one}");
        }
        let sentence = english.terms("사용자는 회의를 싫어한다");
        let asked = english.terms("회의");
        assert!(asked.len() == 3 && asked.iter().all(|term| sentence.contains(term)));
        let mut french = Analyzer::new("french");
        let (told, asked) = (french.terms("parlée"), french.question("parlee"));
        assert!(asked.iter().all(|term| told.contains(term)), "{told:?} {asked:?}");
    }

    #[test]
    fn stored_indexes_rely_on_these_values() {
        assert_eq!(Analyzer::new("english").terms("running"), [PINNED]);
    }

    const PINNED: Term = 0x21_2938_f360;
}
