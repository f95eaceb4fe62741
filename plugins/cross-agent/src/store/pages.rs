//! Assigns entries to pages.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Entry, Index, Page};

/// About how many bytes an entry takes beside its terms.
const ENTRY_BYTES: usize = 200;

/// The changes of one page.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) page: u32,
    pub(super) puts: Vec<Entry>,
    pub(super) gone: Vec<String>,
}

/// How full each page is.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    sizes: BTreeMap<u32, (usize, usize)>,
    roomy: BTreeSet<u32>,
}

impl Sizes {
    /// Sets the size of a page, in items and bytes.
    pub(super) fn set(&mut self, page: u32, items: usize, bytes: usize) {
        self.sizes.insert(page, (items, bytes));
        match Page::has_room(items, bytes) {
            true => self.roomy.insert(page),
            false => self.roomy.remove(&page),
        };
    }

    /// The changes of all pages, in the order of pages: an item stays in its page, and a new one is
    /// added where there is room.
    pub(super) fn plan(
        &mut self,
        index: &Index,
        entries: Vec<Entry>,
        gone: &[&str],
    ) -> Vec<Change> {
        let mut plan: BTreeMap<u32, Change> = BTreeMap::new();
        for id in gone {
            if let Some((_, known)) = index.find(id) {
                plan.entry(known.page).or_default().gone.push((*id).to_owned());
            }
        }
        for entry in entries {
            let page = match index.find(&entry.id) {
                Some((_, known)) => known.page,
                None => self.enter(entry.terms.len() * 6 + ENTRY_BYTES),
            };
            plan.entry(page).or_default().puts.push(entry);
        }
        plan.into_iter().map(|(page, change)| Change { page, ..change }).collect()
    }

    fn enter(&mut self, bytes: usize) -> u32 {
        let next = self.sizes.last_key_value().map_or(0, |(page, _)| page + 1);
        let page = self.roomy.last().copied().unwrap_or(next);
        let (items, before) = self.sizes.get(&page).copied().unwrap_or_default();
        self.set(page, items + 1, before + bytes);
        page
    }
}
