//! The number of tokens of a line of a list, in `o200k_base`, which the host uses, too. Other
//! encodings differ by some percent.
//!
//! Counts add up: a list's lines are words with one space between them, each line begins with `-`
//! and ends in a line feed, and the encoding's pattern always splits between the two. So a line is
//! counted once, when its fact is written, and a preamble counts nothing. Tests compare the counts
//! with those of `memhost-tokens`, which has another algorithm.

mod hash;

use std::sync::LazyLock;

use hash::{EMPTY, SLOTS, first_slot};
use regex::Regex;
use serde::{Deserialize, Serialize};

/// See `build.rs`.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tokens.bin"));

/// How the encoding splits a text before it looks for tokens. It has only those rules for blanks
/// that apply to a line: there is one space between words, and none at the end.
static PIECES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
    let lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";
    let ending = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
    let before = r"[^\r\n\p{L}\p{N}]?";
    Regex::new(&format!(
        r"{before}{upper}*{lower}+{ending}|{before}{upper}+{lower}*{ending}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+"
    ))
    .ok()
});

/// The tokens of a fact's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    /// With the line feed that ends it.
    pub(crate) within: u16,
    /// With the two that end a list.
    pub(crate) last: u16,
}

impl Tokens {
    /// Counts a line without its end, such as `- Prefers concise answers`.
    pub(crate) fn of(line: &str) -> Self {
        let ended = |end: &str| u16::try_from(count(&format!("{line}{end}"))).unwrap_or(u16::MAX);
        Self { within: ended("\n"), last: ended("\n\n") }
    }
}

/// Counts tokens of such lines.
fn count(lines: &str) -> usize {
    match &*PIECES {
        Some(pieces) => pieces.find_iter(lines).map(|piece| merge(piece.as_str().as_bytes())).sum(),
        // Never fewer than the real number.
        None => lines.len(),
    }
}

/// Byte pair encoding: of all neighbours that make a token together, those that make the one of the
/// lowest rank are put together first, until none do.
fn merge(piece: &[u8]) -> usize {
    if rank(piece).is_some() {
        return 1;
    }
    // Where each part begins, and the rank of it and the next one together.
    let mut parts: Vec<(usize, Option<u32>)> =
        (0..piece.len()).map(|at| (at, piece.get(at..at + 2).and_then(rank))).collect();
    while let Some(at) = lowest(&parts) {
        parts.remove(at + 1);
        for changed in [at.checked_sub(1), Some(at)].into_iter().flatten() {
            let start = parts[changed].0;
            let end = parts.get(changed + 2).map_or(piece.len(), |part| part.0);
            let has_next = changed + 1 < parts.len();
            parts[changed].1 = has_next.then(|| rank(&piece[start..end])).flatten();
        }
    }
    parts.len()
}

fn lowest(parts: &[(usize, Option<u32>)]) -> Option<usize> {
    let ranked = parts.iter().enumerate().filter_map(|(at, part)| Some((part.1?, at)));
    ranked.min().map(|(_, at)| at)
}

/// The rank of a token.
fn rank(token: &[u8]) -> Option<u32> {
    let mut slot = first_slot(token);
    loop {
        let rank = number(SLOTS_AT + 3 * slot, 3);
        if rank == EMPTY {
            return None;
        }
        if TABLE[TEXT_AT + start(rank)..TEXT_AT + start(rank + 1)] == *token {
            return Some(rank);
        }
        slot = (slot + 1) % SLOTS;
    }
}

const STARTS_AT: usize = 4;
const SLOTS_AT: usize = STARTS_AT + 4 * (number(0, 4) as usize + 1);
const TEXT_AT: usize = SLOTS_AT + 3 * SLOTS;

/// Where a token begins in the text.
fn start(rank: u32) -> usize {
    number(STARTS_AT + 4 * rank as usize, 4) as usize
}

/// The little-endian number of so many bytes.
const fn number(at: usize, bytes: usize) -> u32 {
    let (mut number, mut byte) = (0, 0);
    while byte < bytes {
        number |= (TABLE[at + byte] as u32) << (8 * byte);
        byte += 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn theirs(text: &str) -> usize {
        memhost_tokens::count(text)
    }

    #[test]
    fn every_token_is_found_and_is_one() {
        let vocabulary = memhost_tokens::vocabulary();
        assert_eq!(vocabulary.len(), 199_998);
        for (wanted, token) in (0..).zip(vocabulary) {
            assert_eq!(rank(token), Some(wanted));
        }
        assert_eq!(rank(b"no token has this many words in it"), None);
    }

    #[test]
    fn counts_equal_those_of_another_tokenizer() {
        for line in [
            "- Prefers concise answers",
            "- Chose Zustand over Redux (2026-01-16)",
            "- /",
            "- 标识 é Ǆ 's ſ's 12345",
        ] {
            let tokens = Tokens::of(line);
            assert_eq!(usize::from(tokens.within), theirs(&format!("{line}\n")), "{line}");
            assert_eq!(usize::from(tokens.last), theirs(&format!("{line}\n\n")), "{line}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn pieces_are_merged_as_elsewhere(text in "[a-zA-Z]{0,30}|\\PC{0,20}|(?s).{0,40}") {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert_eq!(count(&format!("- {text}\n")), theirs(&format!("- {text}\n")));
        }
    }
}
