//! How the index is stored: in pages of some records each. A change rewrites the pages of its
//! records, so that a write costs one small value and a forgotten record is removed from storage at
//! once. A page holds no word of a text, only hashes.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{Analysis, Bytes, DocId, Entry, Index, Key, Partition, Terms};
use crate::files::Stamp;
use crate::hash::hash;

/// The most records of a page.
const PAGE_RECORDS: usize = 16;
/// A page that has this many bytes takes no further record; one long record may have a larger page
/// to itself. Every write rewrites a page: pages of 64 records were a third of what a database with
/// a log of its changes wrote.
const PAGE_BYTES: usize = 2 << 10;
const NO_PAGE: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Page {
    docs: Vec<DocId>,
    bytes: usize,
}

/// Which page each record is in, and which pages must be stored.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    page_of: Vec<u32>,
    size_of: Vec<u32>,
    roomy: BTreeSet<u32>,
    last_left: Option<u32>,
    dirty: BTreeSet<u32>,
}

impl Pages {
    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.pages.len()).unwrap_or(u32::MAX)
    }

    /// Finds a page for a record of this size.
    pub(crate) fn enter(&mut self, doc: DocId, bytes: usize) {
        let fits =
            |page: &u32| self.pages.get(*page as usize).is_some_and(|page| page.takes(bytes));
        let found = self
            .last_left
            .take()
            .filter(fits)
            .or_else(|| self.roomy.iter().rev().take(8).find(|p| fits(p)).copied());
        let page = found.unwrap_or_else(|| {
            self.pages.push(Page::default());
            self.len() - 1
        });
        self.enter_page(doc, bytes, page);
        self.dirty.insert(page);
    }

    /// Adds a record to the page that it was stored in.
    pub(crate) fn enter_page(&mut self, doc: DocId, bytes: usize, number: u32) {
        if self.pages.len() <= number as usize {
            self.pages.resize_with(number as usize + 1, Page::default);
        }
        if self.page_of.len() <= doc as usize {
            self.page_of.resize(doc as usize + 1, NO_PAGE);
            self.size_of.resize(doc as usize + 1, 0);
        }
        let page = &mut self.pages[number as usize];
        page.docs.push(doc);
        page.bytes += bytes;
        self.page_of[doc as usize] = number;
        self.size_of[doc as usize] = u32::try_from(bytes).unwrap_or(u32::MAX);
        match page.takes(0) {
            true => self.roomy.insert(number),
            false => self.roomy.remove(&number),
        };
    }

    /// Creates the page of this number if it is missing.
    pub(crate) fn reserve(&mut self, number: u32) {
        if self.pages.len() <= number as usize {
            self.pages.resize_with(number as usize + 1, Page::default);
        }
        if self.pages[number as usize].docs.is_empty() {
            self.roomy.insert(number);
        }
    }

    /// Removes a record from its page.
    pub(crate) fn leave(&mut self, doc: DocId) {
        let Some(number) =
            self.page_of.get(doc as usize).copied().filter(|number| *number != NO_PAGE)
        else {
            return;
        };
        let page = &mut self.pages[number as usize];
        page.docs.retain(|other| *other != doc);
        page.bytes -= self.size_of[doc as usize] as usize;
        self.page_of[doc as usize] = NO_PAGE;
        self.roomy.insert(number);
        self.dirty.insert(number);
        self.last_left = Some(number);
    }

    /// Marks all pages to be stored.
    pub(crate) fn mark_all(&mut self) {
        self.dirty.extend(0..self.len());
    }

    /// Whether there is something to store.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The number and the stored form of the next page to store. It counts as stored afterwards.
    pub(crate) fn next_dirty(
        &mut self,
        index: &Index,
    ) -> Option<(u32, Result<Vec<u8>, postcard::Error>)> {
        let number = self.dirty.pop_first()?;
        let entries = self.pages[number as usize].docs.iter().filter_map(|doc| index.entry(*doc));
        Some((number, encode(entries)))
    }
}

impl Page {
    fn takes(&self, bytes: usize) -> bool {
        self.docs.is_empty() || (self.docs.len() < PAGE_RECORDS && self.bytes + bytes <= PAGE_BYTES)
    }
}

/// About how many bytes the stored entry has.
pub(crate) fn stored_size(entry: &Entry) -> usize {
    64 + entry.id.len()
        + entry.path.len()
        + entry.partition.iter().flatten().map(String::len).sum::<usize>()
        + entry.members.len() * 10
        + entry.analysis.lengths.len() * 3
        + entry.analysis.terms.0.len()
        + entry.analysis.order.len()
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    id: &'a str,
    path: &'a str,
    stamp: Stamp,
    partition: Partition,
    key: Key,
    when: i64,
    session: u64,
    members: Vec<u64>,
    lengths: &'a [u8],
    counts: Vec<u16>,
    order: &'a [u8],
    terms: &'a [u8],
}

fn encode(entries: impl Iterator<Item = Entry>) -> Result<Vec<u8>, postcard::Error> {
    let mut body = Vec::new();
    for entry in entries {
        let stored = Stored {
            id: &entry.id,
            path: &entry.path,
            stamp: entry.stamp,
            partition: entry.partition,
            key: entry.key,
            when: entry.when,
            session: entry.session,
            members: entry.members,
            lengths: &entry.analysis.lengths,
            counts: entry.analysis.counts,
            order: &entry.analysis.order,
            terms: &entry.analysis.terms.0,
        };
        body = postcard::to_extend(&stored, body)?;
    }
    Ok(seal(&body))
}

/// The entries of a stored page, which share its bytes. None if it is damaged.
pub(crate) fn decode(page: Vec<u8>) -> Option<Vec<Entry>> {
    let page = Rc::new(page);
    let mut rest = unseal(&page)?;
    let mut entries = Vec::with_capacity(PAGE_RECORDS);
    while !rest.is_empty() {
        let (stored, behind) = postcard::take_from_bytes::<Stored<'_>>(rest).ok()?;
        rest = behind;
        let shared = |part: &[u8]| {
            let from = part.as_ptr().addr().checked_sub(page.as_ptr().addr())?;
            Bytes::shared(&page, from..from + part.len())
        };
        let (terms, order) = (Terms(shared(stored.terms)?), shared(stored.order)?);
        entries.push(Entry {
            id: stored.id.into(),
            path: stored.path.into(),
            stamp: stored.stamp,
            partition: stored.partition,
            key: stored.key,
            when: stored.when,
            session: stored.session,
            members: stored.members,
            analysis: Analysis {
                lengths: stored.lengths.to_vec(),
                counts: stored.counts,
                terms,
                order,
            },
        });
    }
    Some(entries)
}

/// Bytes with their hash in front.
pub(crate) fn seal(body: &[u8]) -> Vec<u8> {
    [&sum(body).to_le_bytes(), body].concat()
}

/// The bytes after their hash. None if the hash does not match.
pub(crate) fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let (sealed, body) = sealed.split_first_chunk::<8>()?;
    // Vectors were sealed with the slower hash before, and are expensive to compute again.
    (*sealed == sum(body).to_le_bytes() || *sealed == hash(b"page", body).to_le_bytes())
        .then_some(body)
}

/// A hash of many bytes, eight at a time in four lanes: an index of 100,000 records is read when it
/// is opened.
fn sum(bytes: &[u8]) -> u64 {
    const LANES: usize = 4;
    const WORD: usize = 8;
    let mut lanes = [0x9e37_79b9_7f4a_7c15_u64; LANES];
    let mix =
        |lane: u64, word: u64| (lane ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
    let (blocks, rest) = bytes.as_chunks::<{ LANES * WORD }>();
    for block in blocks {
        let (words, _) = block.as_chunks::<WORD>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let ends = lanes.iter().fold(bytes.len() as u64, |all, lane| mix(all, *lane));
    hash(&ends.to_le_bytes(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_fill_pages_and_make_room_again() {
        let mut pages = Pages::default();
        for doc in 0..130 {
            pages.enter(doc, 100);
        }
        assert_eq!(pages.len(), 9);
        let index = Index::default();
        while pages.next_dirty(&index).is_some() {}
        pages.leave(3);
        pages.enter(3, 100);
        assert_eq!(pages.dirty.iter().copied().collect::<Vec<_>>(), [0]);
        pages.enter(200, PAGE_BYTES * 4);
        assert_eq!(pages.len(), 10);
        pages.enter(201, 1);
        assert_eq!(pages.page_of[201], 8);
    }

    #[test]
    fn damage_is_noticed() {
        let entry = Entry::of(
            &crate::text::Analyzer::new(crate::config::Language::English),
            "id".to_owned(),
            "path.md".to_owned(),
            Stamp::default(),
            &crate::record::Record { text: "some words here".to_owned(), ..Default::default() },
        );
        let page = encode([entry.clone(), entry.clone()].into_iter()).unwrap();
        let found = decode(page.clone()).unwrap();
        assert_eq!((found.len(), &found[1].analysis), (2, &entry.analysis));
        for at in 0..page.len() {
            let mut damaged = page.clone();
            damaged[at] ^= 1;
            assert!(decode(damaged).is_none(), "{at}");
        }
        assert!(decode(page[..page.len() - 1].to_vec()).is_none());
    }
}
