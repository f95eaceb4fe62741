//! The vocabulary, laid out for the encoder.
//!
//! `data/o200k_base.bin` is the vocabulary as OpenAI publishes it (`o200k_base.tiktoken`, 199 998
//! tokens, MIT licence), sorted and packed by `examples/pack.rs`. Inflated it is, for all tokens in
//! the order of their bytes:
//! - how many bytes a token shares with the one before (a byte each);
//! - how many more it has (a byte each);
//! - how many bytes the left one of the two tokens has that it is merged from (a byte each, 0 for a
//!   single byte);
//! - the ranks (the high bytes of all, then the middle ones, then the low ones);
//! - the bytes that are not shared.

use std::io::Read;

use flate2::read::DeflateDecoder;

static PACKED: &[u8] = include_bytes!("../data/o200k_base.bin");

/// How many tokens there are.
const TOKENS: usize = 199_998;
/// How many bytes the longest token has.
pub(crate) const LONGEST: usize = 128;
/// No token.
const NONE: Token = Token::MAX;
/// A power of two. Two of five slots are taken, so a search that finds nothing ends after about
/// two.
const SLOTS: usize = 1 << 19;

/// A token's place in the order of bytes. Its rank is the number that others call its id.
pub(crate) type Token = u32;

/// Takes 8 MB of memory.
pub(crate) struct Table {
    /// The bytes of all tokens, sorted.
    text: Vec<u8>,
    /// Where each token begins in the text; at last the text's length.
    starts: Vec<u32>,
    /// Merges happen in the order of the ranks of what they make.
    ranks: Vec<u32>,
    /// The longest other token that a token begins with.
    shorter: Vec<Token>,
    /// The two tokens that a token is merged from. A single byte has itself, twice.
    halves: Vec<(Token, Token)>,
    /// Open addressing: the tokens, each at a slot for its halves.
    merges: Vec<Token>,
    /// For each pair of bytes, the first token that is not less.
    seeks: Vec<u32>,
}

impl Table {
    /// Takes about 60 ms of processor time, in a release build. `None` if the packed vocabulary is
    /// damaged.
    pub(crate) fn load() -> Option<Self> {
        let mut packed = Vec::with_capacity(2 << 20);
        DeflateDecoder::new(PACKED).read_to_end(&mut packed).ok()?;
        let (shared, rest) = packed.split_at_checked(TOKENS)?;
        let (more, rest) = rest.split_at_checked(TOKENS)?;
        let (halves, rest) = rest.split_at_checked(TOKENS)?;
        let (ranks, mut rest) = rest.split_at_checked(3 * TOKENS)?;
        let rank = |at: usize| {
            u32::from_be_bytes([0, ranks[at], ranks[TOKENS + at], ranks[2 * TOKENS + at]])
        };
        let mut table = Self {
            text: Vec::with_capacity(1_400_000),
            starts: Vec::with_capacity(TOKENS + 1),
            ranks: (0..TOKENS).map(rank).collect(),
            shorter: Vec::with_capacity(TOKENS),
            halves: Vec::with_capacity(TOKENS),
            merges: vec![NONE; SLOTS],
            seeks: Vec::with_capacity(1 << 16),
        };
        // The tokens that the one before begins with, and it.
        let mut within: Vec<Token> = Vec::with_capacity(LONGEST);
        let mut before = 0_usize;
        for token in 0..TOKENS {
            let (shared, (new, left)) =
                (usize::from(shared[token]), rest.split_at_checked(usize::from(more[token]))?);
            rest = left;
            let start = table.text.len();
            table.starts.push(start as u32);
            table.text.extend_from_within(
                before..before.checked_add(shared).filter(|end| *end <= start)?,
            );
            table.text.extend_from_slice(new);
            before = start;
            while within.pop_if(|longer| table.len(*longer) > shared).is_some() {}
            table.shorter.push(within.last().copied().unwrap_or(NONE));
            within.push(token as Token);
        }
        table.starts.push(table.text.len() as u32);
        table.seek();
        table.halve(halves)?;
        Some(table)
    }
}

impl Table {
    /// How many bytes a token has.
    pub(crate) fn len(&self, token: Token) -> usize {
        let token = token as usize;
        (self.starts[token + 1] - self.starts[token]) as usize
    }

    /// The bytes of a token.
    pub(crate) fn bytes(&self, token: Token) -> &[u8] {
        let token = token as usize;
        &self.text[self.starts[token] as usize..self.starts[token + 1] as usize]
    }

    /// The tokens, by rank.
    pub(crate) fn by_rank(&self) -> Vec<Token> {
        let mut tokens = vec![NONE; TOKENS];
        for (token, rank) in self.ranks.iter().enumerate() {
            if let Some(place) = tokens.get_mut(*rank as usize) {
                *place = token as Token;
            }
        }
        tokens
    }

    /// The longest token that a text begins with. The text is not empty; every byte is a token.
    pub(crate) fn longest(&self, text: &[u8]) -> Token {
        let mut range = self.seeks[seek_of(text)] as usize;
        if text.len() > 1 {
            // The tokens with the same two first bytes that are not greater than the text.
            let end = self.seeks.get(seek_of(text) + 1).map_or(TOKENS, |end| *end as usize);
            let (mut low, mut high) = (range, end);
            while low < high {
                let middle = low.midpoint(high);
                if self.bytes(middle as Token) <= text { low = middle + 1 } else { high = middle }
            }
            range = low;
        }
        // The greatest of them begins with every token that the text begins with.
        let mut token = range as Token - 1;
        let same =
            self.bytes(token).iter().zip(text).take_while(|(one, other)| one == other).count();
        while self.len(token) > same {
            token = self.shorter[token as usize];
        }
        token
    }

    /// The longest other token that a token begins with.
    pub(crate) fn shorter(&self, token: Token) -> Option<Token> {
        Some(self.shorter[token as usize]).filter(|shorter| *shorter != NONE)
    }

    /// Whether the encoding leaves two tokens side by side: no merge across the seam comes before
    /// those that made them.
    pub(crate) fn adjoin(&self, mut left: Token, mut right: Token) -> bool {
        let mut limit = u32::MAX;
        loop {
            if self.merge(left, right).is_some_and(|merged| self.ranks[merged as usize] < limit) {
                return false;
            }
            // The later of the two merges is undone. If both have one rank, the left one comes
            // first, and so does the merge across the seam before the right one.
            let (of_left, of_right) = (self.ranks[left as usize], self.ranks[right as usize]);
            let (undone, half) = if of_left > of_right {
                limit = of_left;
                let undone = left;
                left = self.halves[left as usize].1;
                (undone, left)
            } else {
                limit = of_right + 1;
                let undone = right;
                right = self.halves[right as usize].0;
                (undone, right)
            };
            if undone == half {
                // A single byte, and so is the other: their ranks are the lowest.
                return true;
            }
        }
    }

    /// What two tokens are merged to.
    fn merge(&self, left: Token, right: Token) -> Option<Token> {
        let mut slot = slot_of(left, right);
        loop {
            let token = self.merges[slot];
            if token == NONE {
                return None;
            }
            if self.halves[token as usize] == (left, right) {
                return Some(token);
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    fn seek(&mut self) {
        let mut token = 0;
        for seek in 0..=u16::MAX {
            while token < TOKENS && self.bytes(token as Token) < &seek.to_be_bytes()[..] {
                token += 1;
            }
            self.seeks.push(token as u32);
        }
    }

    /// Looks the two tokens up that each token is merged from. `left` has how many bytes the left
    /// one has.
    fn halve(&mut self, left: &[u8]) -> Option<()> {
        for (token, left) in (0..).zip(left) {
            let len_of_left = usize::from(*left);
            if len_of_left == 0 {
                self.halves.push((token, token));
                continue;
            }
            let mut left = self.shorter(token)?;
            while self.len(left) > len_of_left {
                left = self.shorter(left)?;
            }
            let halves = (left, self.longest(self.bytes(token).get(len_of_left..)?));
            self.halves.push(halves);
            let mut slot = slot_of(halves.0, halves.1);
            while self.merges[slot] != NONE {
                slot = (slot + 1) % SLOTS;
            }
            self.merges[slot] = token;
        }
        Some(())
    }
}

/// The first two bytes of a text as a number. A text of one byte is treated as if a zero followed.
fn seek_of(text: &[u8]) -> usize {
    usize::from(text[0]) << 8 | text.get(1).map_or(0, |second| usize::from(*second))
}

fn slot_of(left: Token, right: Token) -> usize {
    let mixed = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 45) as usize
}
