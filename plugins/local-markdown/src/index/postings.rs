//! The inverted index: which passages have which term.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::DocId;
use crate::text::Term;

/// The number of a term in this instance.
pub(super) type TermId = u32;

/// A passage number has this many bits of a posting; the rest is the term's weight there.
const PASSAGE_BITS: u32 = 24;
/// Stands in place of the record of a removed passage.
const NOBODY: DocId = DocId::MAX;
/// With fewer dead passages there is no renumbering.
const FEW: usize = 4_096;

/// A map whose keys are good hashes already.
pub(crate) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<Itself>>;

/// Uses a number as its own hash.
#[derive(Debug, Default)]
pub(crate) struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        // A term has 48 bits, and the map uses the upper bits, too.
        self.0 = number ^ (number << 16);
    }
}

/// A passage that has a term.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Posting(u32);

impl Posting {
    /// Its number.
    pub(crate) fn passage(self) -> usize {
        (self.0 & ((1 << PASSAGE_BITS) - 1)) as usize
    }

    /// How often, weighted by the place of the term.
    #[allow(clippy::cast_precision_loss, reason = "a byte")]
    pub(crate) fn count(self) -> f32 {
        (self.0 >> PASSAGE_BITS) as f32 / 4.0
    }
}

#[derive(Debug, Default)]
struct List {
    postings: Vec<Posting>,
    /// How many of them are alive.
    alive: u32,
}

/// The inverted index.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    ids: ByHash<TermId>,
    terms: Vec<Term>,
    lists: Vec<List>,
    /// By passage: its record.
    owners: Vec<DocId>,
    /// By passage: its number of words.
    lengths: Vec<u8>,
    dead: usize,
    words: u64,
}

impl Postings {
    /// How many numbers of passages are in use, dead ones included.
    pub(crate) fn slots(&self) -> usize {
        self.owners.len()
    }

    /// How many passages are alive, and how many words they have on average.
    #[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
    pub(crate) fn size(&self) -> (f32, f32) {
        let alive = (self.owners.len() - self.dead) as f32;
        (alive, self.words as f32 / alive.max(1.0))
    }

    /// The record of a passage, and its number of words.
    pub(crate) fn passage(&self, passage: usize) -> Option<(DocId, u8)> {
        let owner = self.owners[passage];
        (owner != NOBODY).then(|| (owner, self.lengths[passage]))
    }

    /// The passages that have a term, among them dead ones, and how many are alive.
    pub(crate) fn of(&self, term: Term) -> (&[Posting], u32) {
        match self.ids.get(&term) {
            Some(id) => {
                let list = &self.lists[*id as usize];
                (&list.postings, list.alive)
            }
            None => (&[], 0),
        }
    }

    /// The number of a term, new if need be.
    pub(super) fn id(&mut self, term: Term) -> TermId {
        *self.ids.entry(term).or_insert_with(|| {
            self.terms.push(term);
            self.lists.push(List::default());
            TermId::try_from(self.terms.len() - 1).unwrap_or(TermId::MAX)
        })
    }

    /// The term of a number.
    pub(super) fn term(&self, id: TermId) -> Term {
        self.terms[id as usize]
    }

    /// Whether this many more passages fit.
    pub(super) fn has_room(&self, passages: usize) -> bool {
        self.owners.len() + passages < 1 << PASSAGE_BITS
    }

    /// Adds a record's passages and answers the number of the first.
    pub(super) fn add(
        &mut self,
        owner: DocId,
        lengths: &[u8],
        counts: &[u16],
        terms: &[TermId],
        weights: &[u8],
    ) -> u32 {
        let first = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
        let mut all = terms.iter().zip(weights);
        for (length, count) in lengths.iter().zip(counts) {
            let passage = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
            self.owners.push(owner);
            self.lengths.push(*length);
            self.words += u64::from(*length);
            for (term, weight) in all.by_ref().take(usize::from(*count)) {
                let list = &mut self.lists[*term as usize];
                list.postings.push(Posting(u32::from(*weight) << PASSAGE_BITS | passage));
                list.alive += 1;
            }
        }
        first
    }

    /// Removes a record's passages. Their postings stay until the next renumbering.
    pub(super) fn remove(&mut self, first: u32, lengths: &[u8], terms: &[TermId]) {
        for (passage, length) in (first as usize..).zip(lengths) {
            self.owners[passage] = NOBODY;
            self.words -= u64::from(*length);
        }
        self.dead += lengths.len();
        for term in terms {
            self.lists[*term as usize].alive -= 1;
        }
    }

    /// Whether so many passages are dead that all should be added again, after [`Self::clear`].
    pub(super) fn is_worn(&self) -> bool {
        self.dead > FEW && self.dead * 2 > self.owners.len()
    }

    /// Removes all passages and keeps the terms' numbers.
    pub(super) fn clear(&mut self) {
        for list in &mut self.lists {
            list.postings.clear();
            list.alive = 0;
        }
        self.owners.clear();
        self.lengths.clear();
        (self.dead, self.words) = (0, 0);
    }
}
