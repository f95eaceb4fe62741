//! Words as ranking compares them: in one spelling, stemmed, without the most common ones.

use memhost_sdk::words::{is_function_word, pieces, terms};
use rust_stemmers::{Algorithm, Stemmer};

/// The stems of a text's words, in order. Common words are left out unless there are no others.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    // In small letters `may` could be the month.
    let telling: Vec<String> = pieces(text)
        .filter(|word| word.eq_ignore_ascii_case("may") || !is_function_word(word))
        .flat_map(terms)
        .collect();
    let kept = if telling.is_empty() { terms(text).collect() } else { telling };
    kept.into_iter().map(|word| stemmer.stem(&word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one() {
        assert_eq!(stems("The reviewers are reviewing a review"), ["review", "review", "review"]);
        assert_eq!(stems("to be or not"), ["to", "be", "or", "not"]);
        assert_eq!(stems("It isn't the café's"), stems("CAFE\u{301}"));
    }
}
