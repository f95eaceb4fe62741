//! Byte pair encoding of one piece of a text, by backtracking.
//!
//! The definition merges, again and again, the leftmost of the neighbours that make the token of
//! the lowest rank. A sequence of tokens is what comes of that if and only if each two neighbours
//! in it may stand side by side, so the encoder takes the longest token that may follow the last
//! one, and goes back where none does. Each place is given up at most once, which makes it linear.
//! The algorithm is that of the crate `bpe` (github/rust-gems, MIT licence).

use crate::table::{Table, Token};

/// Counts pieces. It keeps its memory between them: at most five bytes for each byte of the
/// longest.
pub(crate) struct Encoder<'a> {
    table: &'a Table,
    tokens: Vec<Token>,
    /// Bits, for places that no sequence of tokens goes on from.
    given_up: Vec<u64>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(table: &'a Table) -> Self {
        Self { table, tokens: Vec::new(), given_up: Vec::new() }
    }

    /// How many tokens a piece has.
    pub(crate) fn count(&mut self, piece: &[u8]) -> usize {
        if piece.is_empty() {
            return 0;
        }
        let mut next = self.table.longest(piece);
        if self.table.len(next) == piece.len() {
            return 1;
        }
        self.tokens.clear();
        self.given_up.clear();
        self.given_up.resize(piece.len() / 64 + 1, 0);
        let mut at = 0;
        loop {
            if let Some(token) = self.fitting(at, next) {
                self.tokens.push(token);
                at += self.table.len(token);
                if at == piece.len() {
                    return self.tokens.len();
                }
                next = self.table.longest(&piece[at..]);
            } else {
                self.given_up[at / 64] |= 1 << (at % 64);
                // Single bytes always fit, so the first place is never given up.
                let Some(last) = self.tokens.pop() else { return piece.len() };
                at -= self.table.len(last);
                next = last;
            }
        }
    }

    /// The longest of a token and those that it begins with which may follow the last token.
    fn fitting(&self, at: usize, longest: Token) -> Option<Token> {
        let mut token = longest;
        loop {
            let end = at + self.table.len(token);
            let is_open = self.given_up[end / 64] & 1 << (end % 64) == 0;
            if is_open && self.tokens.last().is_none_or(|last| self.table.adjoin(*last, token)) {
                return Some(token);
            }
            token = self.table.shorter(token)?;
        }
    }
}
