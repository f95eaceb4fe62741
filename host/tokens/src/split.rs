//! The pieces of a text. The encoding never merges across two.

use regex::Regex;

/// The published pattern of `o200k_base`, of which `\s+(?!\S)` is left out: `Pieces` does what it
/// says. A look-ahead would need an engine that backtracks, and takes quadratic time.
const PATTERN: &str = concat!(
    r"^(?:",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r"|\s*[\r\n]+",
    r"|\s+)",
);

pub(crate) fn pattern() -> Option<Regex> {
    Regex::new(PATTERN).ok()
}

/// The pieces from the front of what is left.
pub(crate) struct Pieces<'a> {
    pub(crate) pattern: &'a Regex,
    pub(crate) left: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut end = self.pattern.find(self.left)?.end();
        let (piece, after) = self.left.split_at(end);
        // Blanks that end no line leave the last one to the word that follows, unless it is the
        // only one.
        if let Some(last) = piece.chars().next_back()
            && last.is_whitespace()
            && !matches!(last, '\r' | '\n')
            && !after.is_empty()
            && piece.len() > last.len_utf8()
        {
            end -= last.len_utf8();
        }
        let (piece, left) = self.left.split_at(end);
        self.left = left;
        Some(piece)
    }
}
