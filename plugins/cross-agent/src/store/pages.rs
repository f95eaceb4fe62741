//! Which page an entry goes to.

use std::collections::{BTreeMap, BTreeSet};

use crate::index::{Entry, Index, Page};

/// About what an entry takes beside its terms, in bytes.
const ENTRY_BYTES: usize = 200;

/// What is to become of one page.
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
    /// A page as it is now: how many items and bytes.
    pub(super) fn set(&mut self, page: u32, items: usize, bytes: usize) {
        self.sizes.insert(page, (items, bytes));
        match Page::has_room(items, bytes) {
            true => self.roomy.insert(page),
            false => self.roomy.remove(&page),
        };
    }

    /// Where entries go and which leave: an item that is there stays in its page, a new one goes where there is room. In
    /// the order of pages.
    pub(super) fn plan(&mut self, index: &Index, entries: Vec<Entry>, gone: &[&str]) -> Vec<Change> {
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
