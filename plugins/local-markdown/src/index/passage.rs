//! A passage as the index knows it: its terms, and in which order its words are.

use super::Weighted;
use crate::text::Term;

/// Stands for a stop word in the order of words, and for a word behind the terms that a byte can
/// number.
pub(super) const UNTOLD: u8 = u8::MAX;

/// A passage of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passage<'a> {
    /// Its terms, sorted, as they are stored.
    pub(super) terms: &'a [[u8; Weighted::BYTES]],
    /// For each word the place of its term among them, or [`UNTOLD`].
    pub(super) order: &'a [u8],
}

impl Passage<'_> {
    /// The place of a term among those of the passage, for [`Self::beside`].
    pub(crate) fn place(&self, term: Term) -> Option<u8> {
        let found = self.terms.binary_search_by_key(&term, |bytes| Weighted(*bytes).term());
        found.ok().and_then(|place| u8::try_from(place).ok()).filter(|place| *place != UNTOLD)
    }

    /// How often the word of one place is followed by that of another. Stop words between them do
    /// not count.
    pub(crate) fn beside(&self, first: u8, second: u8) -> f32 {
        let mut telling = self.order.iter().filter(|place| **place != UNTOLD);
        let mut count = 0.0;
        while let Some(place) = telling.next() {
            // Looked at again, because it may be the first one of another pair.
            if *place == first && telling.clone().next() == Some(&second) {
                count += 1.0;
            }
        }
        count
    }
}
