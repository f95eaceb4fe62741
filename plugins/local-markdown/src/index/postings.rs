//! The inverted index: which passages have which term.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::{DocId, Terms};
use crate::text::Term;

/// The number of a term's list in this instance.
type TermId = u32;

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

/// The inverted index. In a lazy one only those terms have a list that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    ids: ByHash<TermId>,
    is_lazy: bool,
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

    fn list(&mut self, term: Term) -> &mut List {
        let id = *self.ids.entry(term).or_insert_with(|| {
            self.lists.push(List::default());
            TermId::try_from(self.lists.len() - 1).unwrap_or(TermId::MAX)
        });
        &mut self.lists[id as usize]
    }

    /// Whether only those terms have a list that were asked for.
    pub(super) fn is_lazy(&self) -> bool {
        self.is_lazy
    }

    /// From now on only the terms that are asked for get a list, or all of them do.
    pub(super) fn set_lazy(&mut self, is_lazy: bool) {
        self.is_lazy = is_lazy;
    }

    /// Whether a term has a list.
    pub(super) fn knows(&self, term: Term) -> bool {
        self.ids.contains_key(&term)
    }

    /// Adds a passage to the list of a term.
    pub(super) fn fill(&mut self, term: Term, passage: u32, weight: u8) {
        let list = self.list(term);
        list.postings.push(Posting(u32::from(weight) << PASSAGE_BITS | passage));
        list.alive += 1;
    }

    /// Puts the list of a term in the order of passages, and makes an empty one if there is none.
    pub(super) fn sort(&mut self, term: Term) {
        self.list(term).postings.sort_unstable_by_key(|posting| posting.passage());
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
        terms: &Terms,
    ) -> u32 {
        let first = u32::try_from(self.owners.len()).unwrap_or(u32::MAX);
        for length in lengths {
            self.owners.push(owner);
            self.lengths.push(*length);
            self.words += u64::from(*length);
        }
        if self.is_lazy && self.ids.is_empty() {
            return first;
        }
        let mut all = terms.iter();
        for (passage, count) in (first..).zip(counts) {
            for weighted in all.by_ref().take(usize::from(*count)) {
                if !self.is_lazy || self.knows(weighted.term()) {
                    self.fill(weighted.term(), passage, weighted.weight());
                }
            }
        }
        first
    }

    /// Removes a record's passages. Their postings stay until the next renumbering.
    pub(super) fn remove(&mut self, first: u32, lengths: &[u8], terms: &Terms) {
        for (passage, length) in (first as usize..).zip(lengths) {
            self.owners[passage] = NOBODY;
            self.words -= u64::from(*length);
        }
        self.dead += lengths.len();
        for weighted in terms.iter() {
            if let Some(id) = self.ids.get(&weighted.term()) {
                self.lists[*id as usize].alive -= 1;
            }
        }
    }

    /// Whether so many passages are dead that all should be added again, after [`Self::clear`].
    pub(super) fn is_worn(&self) -> bool {
        self.dead > FEW && self.dead * 2 > self.owners.len()
    }

    /// Removes all passages and keeps the terms' lists, empty.
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
