//! Words as ranking compares them: lower case, stemmed, without the most common ones.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_segmentation::UnicodeSegmentation;

/// Words that nearly every sentence has.
const COMMON: &str = "a an and are as at be been being but by can could did do does doing for from had has have having he her \
    hers him his how i if in into is it its itself just me more most my no nor not of off on once only or our ours out over \
    own same she should so some such than that the their theirs them then there these they this those through to too under \
    until up very was we were what when where which while who whom why will with would you your yours about any all";

static COMMON_ONES: LazyLock<HashSet<&str>> = LazyLock::new(|| COMMON.split_whitespace().collect());

/// The stems of a text's words, in order. Common words are left out unless there are no others.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.unicode_words().collect();
    let telling: Vec<&str> = words.iter().copied().filter(|word| !COMMON_ONES.contains(word)).collect();
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
