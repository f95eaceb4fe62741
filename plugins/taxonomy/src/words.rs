//! Words as ranking compares them: lower case, stemmed, without the most common ones.

use memhost_sdk::words::is_function_word;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// The stems of a text's words, in order. Common words are left out unless there are no others.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.unicode_words().collect();
    // In small letters `may` could be the month.
    let telling: Vec<&str> =
        words.iter().copied().filter(|word| *word == "may" || !is_function_word(word)).collect();
    let kept = if telling.is_empty() { words } else { telling };
    kept.into_iter().map(|word| stemmer.stem(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one() {
        assert_eq!(stems("The reviewers are reviewing a review"), ["review", "review", "review"]);
        assert_eq!(stems("to be or not"), ["to", "be", "or", "not"]);
    }
}
