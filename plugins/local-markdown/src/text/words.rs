//! Splits text into words and passages.

/// How many words a passage has. A record is ranked by its best passage, so that a long document is
/// not worse than the one paragraph that answers. About the length of a spoken turn or a short
/// paragraph.
const PASSAGE_WORDS: usize = 60;
/// A rest shorter than this is added to the passage before it. Alone it would score too high.
const SHORTEST_REST: usize = 20;

/// Lower-case words with the byte at which each begins. A possessive `'s` and combining accents are
/// left out; scripts without spaces give a word a character.
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
                if is_combining(next) {
                    rest.next();
                    continue;
                }
                if next.is_alphanumeric() && !is_ideographic(next) {
                    word.extend(next.to_lowercase());
                    rest.next();
                    continue;
                }
                let is_apostrophe = next == '\'' || next == '’';
                let mut behind = text[at + next.len_utf8()..].chars();
                if is_apostrophe
                    && behind.next() == Some('s')
                    && behind.next().is_none_or(|c| !c.is_alphanumeric())
                {
                    rest.next();
                    rest.next();
                }
                break;
            }
            return Some((start, word));
        }
    })
}

/// The parts of a word that is written as one of several, such as `readUserName` or `HTTPServer`,
/// in lower case. Other words have none. `text` begins with the word, whose length is in letters:
/// more of a text without spaces is not read.
pub(crate) fn parts(text: &str, length: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let letters = text.chars().take(length).take_while(|c| c.is_alphanumeric());
    if !letters.clone().skip(1).any(char::is_uppercase) {
        return parts;
    }
    let mut letters = letters.peekable();
    let (mut before, mut part) = (None::<char>, String::new());
    while let Some(letter) = letters.next() {
        let begins = letter.is_uppercase()
            && before.is_some_and(|before| {
                // The last capital of several begins the next part.
                before.is_lowercase()
                    || before.is_uppercase()
                        && letters.peek().is_some_and(|next| next.is_lowercase())
            });
        if begins {
            parts.push(std::mem::take(&mut part));
        }
        part.extend(letter.to_lowercase());
        before = Some(letter);
    }
    if parts.is_empty() {
        return parts;
    }
    parts.push(part);
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
    let begins: Vec<usize> = words(text).map(|(at, _)| at).collect();
    let mut word = 0;
    let mut starts = vec![0];
    for length in passage_lengths(begins.len()) {
        word += length;
        starts.extend(begins.get(word).copied());
    }
    starts
}

fn is_ideographic(c: char) -> bool {
    matches!(
        u32::from(c),
        0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0x20000..=0x2fa1f,
    )
}

fn is_combining(c: char) -> bool {
    matches!(u32::from(c), 0x0300..=0x036f)
}

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
        assert_eq!(plain("cafe\u{301}s"), ["cafes"]);
        assert!(plain("… --- \u{0}").is_empty());
    }

    #[test]
    fn names_of_several_words_have_parts() {
        let long = |text| parts(text, 100);
        assert_eq!(long("readUserName(x)"), ["read", "user", "name"]);
        assert_eq!(long("HTTPServer2 Other"), ["http", "server2"]);
        assert_eq!(long("aList"), ["list"]);
        for whole in ["word", "Word", "WORD", "word2", "snake_caseWord", "", "("] {
            assert!(long(whole).is_empty(), "{whole}");
        }
        // The rest is another word.
        assert_eq!(parts("標readUserName", 1), [""; 0]);
        assert_eq!(parts("readUserName", 8), ["read", "user"]);
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
