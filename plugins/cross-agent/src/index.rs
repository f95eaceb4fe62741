//! The index in memory: which items have a term, and the index entry of each item. It is a cache of
//! the pages in storage.

mod page;
mod places;

pub(crate) use page::{Entry, Page, members};
pub(crate) use places::{Asked, Places};

use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::text::Term;

/// An item's number in this instance.
pub(crate) type Doc = u32;

/// A posting has this many bits for the item's number; the rest is how often it has the term.
const DOC_BITS: u32 = 24;
/// With fewer dead items the index is not read again.
const FEW: usize = 4_096;

/// An item that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting(u32);

impl Posting {
    /// Its number.
    pub(crate) fn doc(self) -> Doc {
        self.0 & ((1 << DOC_BITS) - 1)
    }

    /// How often, up to 255 times.
    #[allow(clippy::cast_precision_loss, reason = "a byte")]
    pub(crate) fn count(self) -> f32 {
        (self.0 >> DOC_BITS) as f32
    }
}

/// An item of the index.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Its id.
    pub(crate) id: Rc<str>,
    /// The page that its entry is stored in.
    pub(crate) page: u32,
    /// The number of its place in [`Places`].
    pub(crate) place: u32,
    /// 0 to 1.
    pub(crate) confidence: f32,
    /// Microseconds since 1970.
    pub(crate) when: i64,
    /// Its terms, with repetitions.
    pub(crate) length: u16,
    is_alive: bool,
    members: (u32, u16),
}

#[derive(Debug, Default)]
struct List {
    postings: Vec<Posting>,
    alive: u32,
}

/// All items of the binding.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The places of the items.
    pub(crate) places: Places,
    by_id: BTreeMap<Rc<str>, Doc>,
    docs: Vec<Known>,
    members: Vec<u64>,
    terms: FxHashMap<Term, u32>,
    lists: Vec<List>,
    dead: usize,
    length: u64,
}

impl Index {
    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// How many numbers of items are in use, dead ones included.
    pub(crate) fn slots(&self) -> usize {
        self.docs.len()
    }

    /// How many terms an item has on average.
    #[allow(clippy::cast_precision_loss, reason = "counts for a formula")]
    pub(crate) fn average(&self) -> f32 {
        self.length as f32 / self.len().max(1) as f32
    }

    /// The item of an id.
    pub(crate) fn find(&self, id: &str) -> Option<(Doc, &Known)> {
        self.by_id.get(id).map(|doc| (*doc, &self.docs[*doc as usize]))
    }

    /// An item by its number, unless it was removed.
    pub(crate) fn known(&self, doc: Doc) -> Option<&Known> {
        self.docs.get(doc as usize).filter(|known| known.is_alive)
    }

    /// All items after an id, in the order of ids.
    pub(crate) fn behind<'a>(
        &'a self,
        id: Option<&str>,
    ) -> impl Iterator<Item = (Doc, &'a Known)> + use<'a> {
        let from = id.map_or(Bound::Unbounded, |id| Bound::Excluded(Rc::from(id)));
        self.by_id
            .range::<Rc<str>, _>((from, Bound::Unbounded))
            .map(|(_, doc)| (*doc, &self.docs[*doc as usize]))
    }

    /// The items that have a term, among them dead ones, and how many are alive.
    pub(crate) fn of(&self, term: Term) -> (&[Posting], u32) {
        let list = self.terms.get(&term).map(|number| &self.lists[*number as usize]);
        list.map_or((&[], 0), |list| (&list.postings, list.alive))
    }

    /// Whether an item's metadata has all of these members.
    pub(crate) fn has_members(&self, known: &Known, wanted: &[u64]) -> bool {
        let (first, count) = (known.members.0 as usize, usize::from(known.members.1));
        let own = &self.members[first..first + count];
        wanted.iter().all(|member| own.contains(member))
    }

    /// Whether there is room for this many more.
    pub(crate) fn has_room(&self, more: usize) -> bool {
        self.docs.len() + more < 1 << DOC_BITS
    }

    /// Whether so many items are dead that the index should be read again.
    pub(crate) fn is_worn(&self) -> bool {
        self.dead > FEW && self.dead * 4 > self.docs.len()
    }

    /// Adds a new item.
    pub(crate) fn add(&mut self, page: u32, entry: &Entry) {
        let doc = Doc::try_from(self.docs.len()).unwrap_or(Doc::MAX);
        let id: Rc<str> = Rc::from(entry.id.as_str());
        let first = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.members.extend_from_slice(&entry.members);
        self.docs.push(Known {
            id: Rc::clone(&id),
            page,
            place: self.places.number(&entry.place),
            confidence: entry.confidence,
            when: entry.when,
            length: entry.length,
            is_alive: true,
            members: (first, u16::try_from(entry.members.len()).unwrap_or(u16::MAX)),
        });
        self.by_id.insert(id, doc);
        self.length += u64::from(entry.length);
        for (term, count) in &entry.terms {
            let next = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
            let number = *self.terms.entry(*term).or_insert(next);
            if number == next {
                self.lists.push(List::default());
            }
            let list = &mut self.lists[number as usize];
            list.postings.push(Posting(u32::from(*count) << DOC_BITS | doc));
            list.alive += 1;
        }
    }

    /// Removes an item, with the terms that it was added with. Its postings stay until the index is
    /// read again.
    pub(crate) fn remove(&mut self, entry: &Entry) {
        let Some(doc) = self.by_id.remove(entry.id.as_str()) else { return };
        self.docs[doc as usize].is_alive = false;
        self.dead += 1;
        self.length -= u64::from(entry.length);
        for (term, _) in &entry.terms {
            if let Some(number) = self.terms.get(term) {
                self.lists[*number as usize].alive -= 1;
            }
        }
    }
}
