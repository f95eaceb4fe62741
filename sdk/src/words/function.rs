//! Words of a language that nearly every sentence has.

/// Sorted, as the search needs it. Also what is left of `don't` or `we've` at the apostrophe.
#[rustfmt::skip]
const ENGLISH: &[&str] = &[
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "any",
    "are", "as", "at", "be", "because", "been", "before", "being", "below", "between", "both",
    "but", "by", "can", "could", "d", "did", "do", "does", "doing", "don", "down", "during", "each",
    "few", "for", "from", "further", "had", "has", "have", "having", "he", "her", "here", "hers",
    "herself", "him", "himself", "his", "how", "i", "if", "in", "into", "is", "it", "its", "itself",
    "just", "let", "ll", "m", "me", "might", "more", "most", "must", "my", "myself", "no", "nor",
    "not", "now", "of", "off", "on", "once", "only", "or", "other", "our", "ours", "ourselves",
    "out", "over", "own", "re", "s", "same", "shall", "she", "should", "so", "some", "such", "t",
    "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these",
    "they", "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "very",
    "was", "we", "were", "what", "when", "where", "which", "while", "who", "whom", "why", "will",
    "with", "would", "you", "your", "yours", "yourself", "yourselves",
];

/// Whether an English word only holds sentences together, such as `the`, `which` or `don't`. Such a
/// word tells nothing about what is asked for. Capitals do not matter, except of `may`: `May` is
/// the month. So ask before you change a text to small letters.
///
/// ```
/// use memhost_sdk::words::is_function_word;
///
/// let words = "What's the weather in the Bahamas?".split([' ', '?']);
/// let asked = words.filter(|word| !word.is_empty() && !is_function_word(word));
/// assert_eq!(asked.collect::<Vec<_>>(), ["weather", "Bahamas"]);
/// ```
#[must_use]
pub fn is_function_word(word: &str) -> bool {
    // Most words need no more.
    if word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word == "may" || ENGLISH.binary_search(&word).is_ok();
    }
    let word = word.to_lowercase().replace('\u{2019}', "'");
    // `doesn't` is `does not`; three of them are shortened.
    if let Some(short) = word.strip_suffix("n't") {
        return ["ca", "wo", "sha"].contains(&short) || ENGLISH.binary_search(&short).is_ok();
    }
    word.split('\'').all(|part| ENGLISH.binary_search(&part).is_ok())
}

/// The parts of a text between spaces and punctuation, to ask [`is_function_word`] of each:
/// apostrophes stay, and so do accents and capitals.
///
/// ```
/// use memhost_sdk::words::{is_function_word, pieces, terms};
///
/// let asked = pieces("Who doesn't like the café?").filter(|word| !is_function_word(word));
/// assert_eq!(asked.flat_map(terms).collect::<Vec<_>>(), ["like", "cafe"]);
/// ```
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |sign: char| match sign {
        '\'' | '\u{2019}' => false,
        '\u{2010}'..='\u{2027}' | '\u{3000}'..='\u{3003}' | '\u{ff01}'..='\u{ff0f}' => true,
        sign => sign.is_whitespace() || sign.is_ascii_punctuation(),
    };
    text.split(is_between).filter(|piece| !piece.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_for_the_search() {
        assert!(ENGLISH.is_sorted());
    }

    #[test]
    fn contractions_are_function_words_and_names_are_not() {
        for word in ["The", "don't", "won't", "DOESN'T", "we\u{2019}ve", "What's", "may"] {
            assert!(is_function_word(word), "{word}");
        }
        for word in ["", "'", "o'clock", "gate", "It's-me", "May", "MAY"] {
            assert!(!is_function_word(word), "{word}");
        }
    }
}
