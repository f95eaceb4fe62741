//! From text to the numbers of a BERT model's vocabulary: the basic tokenizer and WordPiece (Devlin
//! et al. 2018, the reference is `tokenization.py` of google-research/bert).

use std::collections::HashMap;

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use super::EmbeddingsError;

/// A longer word, in characters, is unknown.
const LONGEST_WORD: usize = 100;

/// A vocabulary, and how text becomes its pieces.
pub(super) struct WordPiece {
    pieces: HashMap<Box<str>, u32>,
    lower_case: bool,
    unknown: u32,
    begin: u32,
    end: u32,
}

impl WordPiece {
    /// Reads a `vocab.txt`: a piece a line, numbered from 0.
    ///
    /// # Errors
    /// Where one of the pieces that every text needs is missing.
    pub(super) fn new(vocabulary: &str, lower_case: bool) -> Result<Self, EmbeddingsError> {
        let pieces: HashMap<Box<str>, u32> = vocabulary
            .lines()
            .zip(0..)
            .map(|(piece, number)| (piece.trim_end().into(), number))
            .collect();
        let special = |piece: &str| {
            pieces
                .get(piece)
                .copied()
                .ok_or_else(|| EmbeddingsError::model(format!("its vocabulary has no `{piece}`")))
        };
        Ok(Self {
            unknown: special("[UNK]")?,
            begin: special("[CLS]")?,
            end: special("[SEP]")?,
            lower_case,
            pieces,
        })
    }

    /// How many pieces there are.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// A text's pieces between the two that mark its ends; what goes beyond `most` in all is cut.
    pub(super) fn encode(&self, text: &str, most: usize) -> Vec<u32> {
        let mut found = vec![self.begin];
        for word in words(text, self.lower_case) {
            if found.len() + 1 >= most {
                break;
            }
            self.split(&word, &mut found);
        }
        found.truncate(most.saturating_sub(1));
        found.push(self.end);
        found
    }

    /// The longest piece that fits, again and again; a word with a part that nothing fits is
    /// unknown as a whole.
    fn split(&self, word: &str, found: &mut Vec<u32>) {
        let before = found.len();
        if word.chars().count() > LONGEST_WORD {
            found.push(self.unknown);
            return;
        }
        let (mut start, mut piece) = (0, String::new());
        while start < word.len() {
            let mut end = word.len();
            let number = loop {
                piece.clear();
                if start > 0 {
                    piece.push_str("##");
                }
                piece.push_str(&word[start..end]);
                if let Some(number) = self.pieces.get(piece.as_str()) {
                    break Some(*number);
                }
                match word[start..end].char_indices().next_back() {
                    Some((last, _)) if last > 0 => end = start + last,
                    _ => break None,
                }
            };
            let Some(number) = number else {
                found.truncate(before);
                found.push(self.unknown);
                return;
            };
            found.push(number);
            start = end;
        }
    }
}

/// Words and single marks. Control characters go, scripts without spaces give a word a character.
fn words(text: &str, lower_case: bool) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut put = |c: char| {
        let is_alone = is_punctuation(c) || is_ideographic(c);
        if is_alone || c.is_whitespace() {
            words.push(String::new());
        }
        if !c.is_whitespace()
            && let Some(last) = words.last_mut()
        {
            last.push(c);
        }
        if is_alone {
            words.push(String::new());
        }
    };
    for c in text.chars().filter(|c| !is_control(*c)) {
        if !lower_case {
            put(c);
            continue;
        }
        for c in c.to_lowercase().nfd() {
            if get_general_category(c) != GeneralCategory::NonspacingMark {
                put(c);
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_control(c: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse, Surrogate, Unassigned};
    let is_space = matches!(c, '\t' | '\n' | '\r');
    c == '\u{fffd}'
        || !is_space
            && matches!(
                get_general_category(c),
                Control | Format | PrivateUse | Surrogate | Unassigned
            )
}

fn is_punctuation(c: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation,
        InitialPunctuation, OpenPunctuation, OtherPunctuation,
    };
    c.is_ascii_punctuation()
        || matches!(
            get_general_category(c),
            ClosePunctuation
                | ConnectorPunctuation
                | DashPunctuation
                | FinalPunctuation
                | InitialPunctuation
                | OpenPunctuation
                | OtherPunctuation
        )
}

fn is_ideographic(c: char) -> bool {
    matches!(u32::from(c),
        0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xf900..=0xfaff
            | 0x20000..=0x2a6df | 0x2a700..=0x2ceaf | 0x2f800..=0x2fa1f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_the_pieces_that_fit() {
        let vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n,\ncafe\n東\n";
        let tokenizer = WordPiece::new(vocabulary, true).unwrap();
        assert_eq!(tokenizer.encode("Unaffable, Café", 20), [2, 4, 5, 6, 7, 8, 3]);
        assert_eq!(tokenizer.encode("un東un unfit", 20), [2, 4, 9, 4, 1, 3]);
        assert_eq!(tokenizer.encode("un\u{0}able\tun\u{200b}", 20), [2, 4, 6, 4, 3]);
        assert_eq!(tokenizer.encode("", 20), [2, 3]);
        assert_eq!(tokenizer.encode(&"un ".repeat(50), 8), [2, 4, 4, 4, 4, 4, 4, 3]);
        assert_eq!(tokenizer.encode(&"u".repeat(101), 8), [2, 1, 3]);
        assert!(WordPiece::new("[UNK]\n[CLS]\n", true).is_err());
    }
}
