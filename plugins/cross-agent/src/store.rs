//! Items and index pages in storage, and the index in memory.
//!
//! | key | value |
//! | --- | --- |
//! | `i` 0 id | the item, JSON |
//! | `p` 0 number | a page of the index |
//! | `v` 0 id | the item's vector (`meaning.rs`) |
//! | `j` 0 id | a job (`provider/jobs.rs`) |
//! | `m` | the generation: a number that every change makes larger |
//! | `a` | how the terms of the index were made |
//! | `d` | ids of a change whose pages are not all written yet |

mod pages;

use memhost_sdk::log;
use memhost_sdk::storage::{self, Batch};
use memhost_sdk::types::Error;

use crate::config::Config;
use crate::index::{Entry, Index, Page};
use crate::item::Item;
use crate::text::{Analyzer, VERSION};
use pages::Sizes;

const GENERATION: &[u8] = b"m";
const UNFINISHED: &[u8] = b"d";
const ANALYSIS: &[u8] = b"a";
/// Bytes of one batch of items. The contract's limit is 16 MiB; pages and keys need the rest.
const BATCH_BYTES: usize = 9 << 20;
/// Items of one change, so that its writes fit one batch: each has at most two.
pub(crate) const CHANGE_ITEMS: usize = 1_000;
/// Items that are read at once while the index is made anew.
const ITEMS_AT_ONCE: usize = 500;
/// Pages that are in memory at once while they are rewritten.
const PAGES_AT_ONCE: usize = 48;

/// The binding's items.
pub(crate) struct Store {
    /// The index in memory.
    pub(crate) index: Index,
    /// Converts text into terms.
    pub(crate) analyzer: Analyzer,
    /// How it does that.
    analysis: String,
    sizes: Sizes,
    /// The generation of storage that the index shows. None: nothing was read.
    generation: Option<u64>,
    numbering: u64,
}

/// A storage key that ends in an id.
pub(crate) fn key(kind: u8, id: &str) -> Vec<u8> {
    [&[kind, 0], id.as_bytes()].concat()
}

fn page_key(page: u32) -> Vec<u8> {
    [b"p\0".as_slice(), &page.to_be_bytes()].concat()
}

fn corrupt(what: &str, error: &impl std::fmt::Display) -> Error {
    Error::internal(format!(
        "{what} in storage cannot be read: {error}; restore the binding from a backup"
    ))
}

impl Store {
    /// Does not access storage.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            index: Index::default(),
            analyzer: Analyzer::new(&config.language),
            analysis: format!("{VERSION} {}", config.language),
            sizes: Sizes::default(),
            generation: None,
            numbering: 0,
        }
    }

    /// Updates the index from storage: at the first call, and if another instance wrote meanwhile.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        let stored = stored_generation()?;
        if self.generation == Some(stored) && !self.index.is_worn() {
            return Ok(());
        }
        (self.index, self.sizes, self.generation) = (Index::default(), Sizes::default(), None);
        self.numbering += 1;
        for entry in storage::scan(b"p\0".as_slice()) {
            let (key, value) = entry?;
            let number =
                <[u8; 4]>::try_from(&key[2..]).map_err(|error| corrupt("a page's key", &error))?;
            let number = u32::from_be_bytes(number);
            let page =
                Page::decode(&value).map_err(|error| corrupt("a page of the index", &error))?;
            self.sizes.set(number, page.entries.len(), value.len());
            for entry in &page.entries {
                self.index.add(number, entry);
            }
        }
        self.generation = Some(stored);
        self.finish()?;
        self.analyze_anew()
    }

    /// Makes the terms of every item anew if they were made in another way or for another language.
    /// A crash in the middle makes the next call begin again.
    fn analyze_anew(&mut self) -> Result<(), Error> {
        if self.index.len() == 0
            || storage::get(ANALYSIS)?.as_deref() == Some(self.analysis.as_bytes())
        {
            return Ok(());
        }
        log::info!("the words of {} items are indexed anew", self.index.len());
        let mut all: Vec<_> =
            self.index.behind(None).map(|(_, known)| (known.page, known.id.clone())).collect();
        // Each page is written once or twice.
        all.sort_unstable();
        for some in all.chunks(ITEMS_AT_ONCE) {
            let mut entries = Vec::with_capacity(some.len());
            for (_, id) in some {
                if let Some(item) = self.item(id)? {
                    entries.push(Entry::of(&item, &mut self.analyzer));
                }
            }
            let plan = self.sizes.plan(&self.index, entries, &[]);
            self.rewrite_in_parts(plan)?;
        }
        let mut last = Batch::new();
        last.put_raw(ANALYSIS.to_vec(), self.analysis.clone().into_bytes());
        self.apply(last)
    }

    /// A number that changes when all items get new numbers.
    pub(crate) fn numbering(&self) -> u64 {
        self.numbering
    }

    /// An item as it is stored.
    pub(crate) fn item(&self, id: &str) -> Result<Option<Item>, Error> {
        let Some(value) = storage::get(key(b'i', id))? else { return Ok(None) };
        serde_json::from_slice(&value).map(Some).map_err(|error| corrupt("an item", &error))
    }

    /// Writes items and removes others, all or none; at most [`CHANGE_ITEMS`] in all, each id once.
    ///
    /// # Errors
    /// If storage fails or a limit is reached. Nothing has changed then.
    pub(crate) fn change(&mut self, puts: &[Item], gone: &[Item]) -> Result<(), Error> {
        if puts.is_empty() && gone.is_empty() {
            return Ok(());
        }
        let done = self.change_all(puts, gone);
        if done.is_err() {
            self.generation = None;
        }
        done
    }

    fn change_all(&mut self, puts: &[Item], gone: &[Item]) -> Result<(), Error> {
        if !self.index.has_room(puts.len()) {
            let message =
                "a binding of cross-agent holds 16 million writes; create another binding";
            return Err(Error::QuotaExceeded(message.to_owned()));
        }
        let mut batch = Batch::new();
        let mut bytes = 0;
        if self.index.len() == 0 {
            batch.put_raw(ANALYSIS.to_vec(), self.analysis.clone().into_bytes());
        }
        for item in puts {
            let value =
                serde_json::to_vec(item).map_err(|error| Error::internal(error.to_string()))?;
            bytes += value.len();
            batch.put_raw(key(b'i', &item.id), value);
            // Its text may have changed.
            if self.index.find(&item.id).is_some() {
                batch.delete_raw(key(b'v', &item.id));
            }
        }
        if bytes > BATCH_BYTES {
            let message = format!(
                "the records take {bytes} bytes; at most {BATCH_BYTES} can be written at once"
            );
            return Err(Error::invalid("records", format!("{message}, so send them in parts")));
        }
        for item in gone {
            batch.delete_raw(key(b'i', &item.id));
            batch.delete_raw(key(b'v', &item.id));
        }
        let entries = puts.iter().map(|item| Entry::of(item, &mut self.analyzer)).collect();
        let gone: Vec<&str> = gone.iter().map(|item| item.id.as_str()).collect();
        let plan = self.sizes.plan(&self.index, entries, &gone);
        if plan.len() <= PAGES_AT_ONCE {
            return self.rewrite(plan, batch);
        }
        // Too many pages for one batch. Until all are written, the stored ids say what must be done
        // again.
        let ids: Vec<&str> = puts.iter().map(|item| item.id.as_str()).chain(gone).collect();
        let ids = serde_json::to_vec(&ids).map_err(|error| Error::internal(error.to_string()))?;
        batch.put_raw(UNFINISHED.to_vec(), ids);
        self.apply(batch)?;
        self.rewrite_in_parts(plan)
    }

    /// Completes a change that a crash interrupted. Its items were written; its pages may not have
    /// been.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(ids) = storage::get(UNFINISHED)? else { return Ok(()) };
        let ids: Vec<String> = serde_json::from_slice(&ids)
            .map_err(|error| corrupt("a change's list of ids", &error))?;
        let (mut entries, mut gone) = (Vec::new(), Vec::new());
        for id in &ids {
            match self.item(id)? {
                Some(item) => entries.push(Entry::of(&item, &mut self.analyzer)),
                None => gone.push(id.as_str()),
            }
        }
        let plan = self.sizes.plan(&self.index, entries, &gone);
        self.rewrite_in_parts(plan)
    }

    /// Rewrites pages batch by batch. The last batch removes the ids of the change.
    fn rewrite_in_parts(&mut self, mut plan: Vec<pages::Change>) -> Result<(), Error> {
        while plan.len() > PAGES_AT_ONCE {
            let rest = plan.split_off(PAGES_AT_ONCE);
            self.rewrite(plan, Batch::new())?;
            plan = rest;
        }
        let mut last = Batch::new();
        last.delete_raw(UNFINISHED.to_vec());
        self.rewrite(plan, last)
    }

    /// Rewrites pages in one batch with other writes, and then updates the index.
    fn rewrite(&mut self, plan: Vec<pages::Change>, mut batch: Batch) -> Result<(), Error> {
        let (mut removed, mut written) = (Vec::new(), Vec::new());
        for change in plan {
            let mut page = match storage::get(page_key(change.page))? {
                Some(value) => {
                    Page::decode(&value).map_err(|error| corrupt("a page of the index", &error))?
                }
                None => Page::default(),
            };
            removed.extend(change.gone.iter().filter_map(|id| page.take(id)));
            for entry in change.puts {
                written.push((change.page, entry.clone()));
                removed.extend(page.put(entry));
            }
            let value = page.encode().map_err(|error| Error::internal(error.to_string()))?;
            self.sizes.set(change.page, page.entries.len(), value.len());
            match page.entries.is_empty() {
                true => batch.delete_raw(page_key(change.page)),
                false => batch.put_raw(page_key(change.page), value),
            }
        }
        self.apply(batch)?;
        removed.iter().for_each(|entry| self.index.remove(entry));
        written.iter().for_each(|(page, entry)| self.index.add(*page, entry));
        Ok(())
    }

    fn apply(&mut self, mut batch: Batch) -> Result<(), Error> {
        let next = stored_generation()? + 1;
        batch.put_raw(GENERATION.to_vec(), next.to_le_bytes().to_vec());
        batch.apply()?;
        self.generation = Some(next);
        Ok(())
    }
}

fn stored_generation() -> Result<u64, Error> {
    let Some(value) = storage::get(GENERATION)? else { return Ok(0) };
    <[u8; 8]>::try_from(value.as_slice())
        .map(u64::from_le_bytes)
        .map_err(|error| corrupt("the generation", &error))
}

#[cfg(test)]
mod tests {
    use memhost_sdk::testing;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_index_of_another_analysis_is_made_anew() {
        testing::reset(json!({}));
        let config = |language: &str| Config { language: language.to_owned(), ..Config::default() };
        let mut none = Store::new(&config("none"));
        none.refresh().unwrap();
        let item = |number: usize| -> Item {
            serde_json::from_value(json!({
                "id": number.to_string(), "content": "Deploys are frozen", "scope": {},
                "createdAt": "2026-03-01T00:00:00Z", "updatedAt": "2026-03-01T00:00:00Z",
            }))
            .unwrap()
        };
        let items: Vec<Item> = (0..=ITEMS_AT_ONCE).map(item).collect();
        none.change(&items[..ITEMS_AT_ONCE], &[]).unwrap();
        none.change(&items[ITEMS_AT_ONCE..], &[]).unwrap();
        let mut english = Store::new(&config("english"));
        english.refresh().unwrap();
        let term = english.analyzer.question("deployed")[0];
        assert_eq!(english.index.of(term).1 as usize, items.len());
        let written = stored_generation().unwrap();
        let mut again = Store::new(&config("english"));
        again.refresh().unwrap();
        assert_eq!(
            (again.index.of(term).1 as usize, stored_generation().unwrap()),
            (items.len(), written)
        );
    }
}
