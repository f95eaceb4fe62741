//! Parts of words, and passages of words.

use memhost_sdk::words::{small, words};

/// How many words a passage has. A record is ranked by its best passage, so that a long document is
/// not worse than the one paragraph that answers. About the length of a spoken turn or a short
/// paragraph.
const PASSAGE_WORDS: usize = 60;
/// A rest shorter than this is added to the passage before it. Alone it would score too high.
const SHORTEST_REST: usize = 20;

/// The parts of a word that is written as one of several, such as `readUserName` or `HTTPServer`,
/// in the one spelling. Other words have none.
pub(crate) fn parts(word: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    if !word.chars().skip(1).any(char::is_uppercase) {
        return parts;
    }
    let mut letters = word.char_indices().peekable();
    let (mut before, mut begin) = (None::<char>, 0);
    while let Some((at, letter)) = letters.next() {
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                // The last capital of several begins the next part.
                before.is_lowercase()
                    || before.is_uppercase()
                        && letters.peek().is_some_and(|(_, next)| next.is_lowercase())
            });
        if begins {
            parts.push(small(&word[begin..at]).into_owned());
            begin = at;
        }
        // A mark belongs to its letter.
        if letter.is_alphanumeric() {
            before = Some(letter);
        }
    }
    if parts.is_empty() {
        return parts;
    }
    parts.push(small(&word[begin..]).into_owned());
    // A single letter says nothing.
    parts.retain(|part| part.chars().nth(1).is_some());
    parts
}

/// How many words of each passage a text of this many words has.
pub(crate) fn passage_lengths(words: usize) -> impl Iterator<Item = usize> {
    let full = words / PASSAGE_WORDS;
    let rest = words % PASSAGE_WORDS;
    let joins = full > 0 && rest < SHORTEST_REST;
    let count = if joins { full } else { full + 1 };
    (0..count).map(move |number| match (number + 1 == count, joins) {
        (true, true) => PASSAGE_WORDS + rest,
        (true, false) => rest,
        (false, _) => PASSAGE_WORDS,
    })
}

/// The byte at which each passage of a text begins; the first is 0.
pub(crate) fn passage_starts(text: &str) -> Vec<usize> {
    let begins: Vec<usize> = words(text).map(|word| word.at).collect();
    let mut word = 0;
    let mut starts = vec![0];
    for length in passage_lengths(begins.len()) {
        word += length;
        starts.extend(begins.get(word).copied());
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_words_have_parts() {
        assert_eq!(parts("readUserName"), ["read", "user", "name"]);
        assert_eq!(parts("HTTPServer2"), ["http", "server2"]);
        assert_eq!(parts("aList"), ["list"]);
        assert_eq!(parts("cafe\u{301}E\u{301}te\u{301}"), ["café", "été"]);
        for whole in ["word", "Word", "WORD", "word2", "", "標"] {
            assert!(parts(whole).is_empty(), "{whole}");
        }
    }

    #[test]
    fn passages_cover_every_word_once() {
        for count in [0, 1, 59, 60, 61, 79, 80, 119, 120, 121, 1_000] {
            let lengths: Vec<usize> = passage_lengths(count).collect();
            assert_eq!(lengths.iter().sum::<usize>(), count, "{count}");
            assert!(
                lengths.iter().all(|length| *length < PASSAGE_WORDS + SHORTEST_REST),
                "{count}: {lengths:?}"
            );
            let text = "w ".repeat(count);
            assert_eq!(passage_starts(&text).len(), lengths.len(), "{count}");
        }
    }
}
