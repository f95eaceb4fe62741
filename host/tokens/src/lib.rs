//! Estimates how many tokens a text has, without the vocabulary of a model. This is a crate of its
//! own because the host and the provider `facts` must agree on it, and has no dependencies because
//! that runs in the sandbox.
//!
//! The estimate is meant to be too high, so that a text within a budget is within it for the model,
//! too. It was compared with exact counts of `o200k_base`, the encoding of OpenAI's models since
//! GPT-4o, over blocks of 500 bytes or more of one kind of text, from this repository and a data
//! set of conversations:
//!
//! | text | estimate ÷ count: all | lowest block | 95th percentile | blocks below 1 |
//! |---|---|---|---|---|
//! | English prose | 1.12 | 1.00 | 1.19 | none of 408 |
//! | English conversations | 1.20 | 1.06 | 1.30 | none of 1,231 |
//! | Rust | 1.18 | 0.86 | 1.30 | 1 % of 5,201 |
//! | TypeScript and JavaScript | 1.18 | 1.01 | 1.27 | none of 677 |
//! | JSON | 1.21 | 0.97 | 1.49 | 2 % of 474 |
//! | Chinese | 1.13 | 1.05 | 1.26 | none of 36 |
//! | German | 1.03 | 1.00 | 1.11 | none of 4 |
//! | base64 | 1.09 | 1.04 | 1.12 | none of 42 |
//!
//! The blocks below 1 are tables of words in many scripts, and signatures. A text of words that
//! no language has, such as random letters, can have 2.5 times as many tokens as estimated.

/// The unit of the sum: this many are a token.
const UNIT: usize = 8;
/// A word of at most so many letters is one token. Each further letter costs a quarter of a token.
const SHORT_WORD: usize = 5;
/// From here on a letter costs half a token: such a word is in no vocabulary.
const LONG_WORD: usize = 20;
/// Letters and digits that alternate over at least so many characters are a key or a digest.
const KEY: usize = 8;
/// How many digits are one token.
const DIGITS: usize = 3;

/// About how many tokens a text has, in linear time. The estimate of a text is at most the sum of
/// the estimates of its lines.
#[must_use]
pub fn estimate(text: &str) -> usize {
    let mut sum = 0;
    let mut rest = text;
    let mut before = Class::Line;
    while let Some(first) = rest.chars().next() {
        let class = Class::of(first);
        let end = rest.find(|c| Class::of(c) != class).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        sum += match class {
            // A line feed is part of the token of a sign before it.
            Class::Line => {
                changes(run) + run.len() / 2 + if before == Class::Word { UNIT } else { 0 }
            }
            // One blank is part of the word that follows, but not of a number.
            Class::Blank if run.len() > 1 => UNIT * changes(run) + run.len() / UNIT,
            Class::Blank => UNIT * usize::from(after.starts_with(|c: char| c.is_ascii_digit())),
            Class::Word => word(run),
            Class::Sign => (UNIT / 2 * changes(run)).max(UNIT) + run.len() / UNIT,
            Class::Other => run.chars().map(other).sum(),
        };
        (before, rest) = (class, after);
    }
    sum.div_ceil(UNIT)
}

/// Characters that are counted together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Ends of lines.
    Line,
    Blank,
    /// Latin letters and digits.
    Word,
    /// Punctuation of ASCII.
    Sign,
    Other,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            '\r' | '\n' => Self::Line,
            '0'..='9' | 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => Self::Word,
            _ if c.is_whitespace() => Self::Blank,
            _ if c.is_ascii() => Self::Sign,
            _ => Self::Other,
        }
    }
}

/// How many characters differ from the one before: a vocabulary has long runs of the same one.
fn changes(run: &str) -> usize {
    1 + run.chars().zip(run.chars().skip(1)).filter(|(one, next)| one != next).count()
}

/// Letters and digits side by side. Each number and each word of a name such as `camelCase` counts
/// by itself.
fn word(run: &str) -> usize {
    let (mut sum, mut rest) = (0, run);
    let (mut has_letters, mut has_digits) = (false, false);
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let mut before = first;
        let end = rest.find(|c: char| {
            let is_new = c.is_uppercase() && !before.is_uppercase();
            before = c;
            c.is_ascii_digit() != is_number || is_new
        });
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        let length = part.chars().count();
        sum += match is_number {
            true => UNIT * length.div_ceil(DIGITS),
            false => {
                let beyond = |letters: usize| UNIT / 4 * length.saturating_sub(letters);
                // Capitals and letters with marks make a word rare.
                let capitals = part.chars().skip(SHORT_WORD - 1).filter(|c| c.is_uppercase());
                let marked = part.chars().filter(|c| !c.is_ascii());
                UNIT + beyond(SHORT_WORD)
                    + beyond(LONG_WORD)
                    + capitals.count()
                    + UNIT / 2 * marked.count()
            }
        };
        has_letters |= !is_number;
        has_digits |= is_number;
        rest = after;
    }
    match has_letters && has_digits && run.len() >= KEY {
        true => sum.max(UNIT * 3 / 4 * run.len()),
        false => sum,
    }
}

/// A character that is neither Latin nor ASCII.
fn other(c: char) -> usize {
    match c {
        '\u{370}'..='\u{10ff}' => UNIT / 2,
        '\u{3400}'..='\u{9fff}' => UNIT * 7 / 8,
        '\0'..='\u{ffff}' => UNIT,
        _ => UNIT * 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with their tokens of `o200k_base`, and the estimates.
    const COUNTS: &[(&str, usize, usize)] = &[
        ("", 0, 0),
        ("a", 1, 1),
        ("Hello, world!", 4, 4),
        ("the gate code is 17", 6, 6),
        ("- Prefers concise answers (issue PAP-7, 2026-11-20)\n", 19, 20),
        ("- Senior software engineer\n- Chose Zustand over Redux\n", 12, 14),
        ("## About This Workspace\n\n", 5, 7),
        ("iPhone camelCase HTTPServer snake_case", 8, 10),
        ("   leading", 2, 3),
        ("a\r\nb\r\n", 4, 5),
        ("fn main() { println!(\"{}\", 1 << 20); }", 13, 16),
        ("https://example.com/a/b?c=d#e", 11, 16),
        ("{\"key\": [1, 2.5e10, null]}", 15, 15),
        ("Die Kündigungsfrist beträgt drei Monate zum Quartalsende.", 12, 14),
        ("sk-proj-4f9AbC81zzQx07", 14, 15),
        ("日本語のテキスト", 6, 8),
        ("中文分词没有空格", 6, 7),
        ("한국어 문장입니다.", 6, 9),
        ("Привет, мир", 4, 6),
        ("مرحبا بالعالم", 4, 6),
        ("मानक हिन्दी", 3, 5),
        ("ภาษาไทยไม่เว้นวรรค", 7, 9),
        ("😀👩\u{200d}👩\u{200d}👧\u{200d}👦🇩🇪✌🏽", 20, 36),
        ("𝔘𝔫𝔦𝔠𝔬𝔡𝔢", 21, 28),
    ];

    /// Characters, and the tokens of `o200k_base` of 50 000 of them.
    const REPEATED: &[(&str, usize)] = &[
        ("a", 6_250),
        (" ", 392),
        ("=", 781),
        ("0", 16_667),
        ("\n", 3_125),
        (" \t", 49_999),
        ("ab", 25_000),
        ("😀", 50_000),
        ("Aa", 50_000),
    ];

    #[test]
    fn estimates_are_a_little_above_exact_counts() {
        for (text, tokens, estimated) in COUNTS {
            assert_eq!(estimate(text), *estimated, "{text:?}");
            assert!(estimated >= tokens, "{text:?}");
        }
    }

    #[test]
    fn long_texts_without_a_seam_are_not_underestimated() {
        for (text, tokens) in REPEATED {
            assert!(estimate(&text.repeat(50_000)) >= *tokens, "{text:?}");
        }
    }

    #[test]
    fn lines_together_have_no_more_than_each_by_itself() {
        let text = "## A\n\n- b, c.\n- /d\r\n\n\n  e\n- é 12\n";
        let lines: usize = text.split_inclusive('\n').map(estimate).sum();
        assert!(estimate(text) <= lines, "{} and {lines}", estimate(text));
    }
}
