//! The binding's items and their use counts in storage, and a copy in memory.
//!
//! A stored number counts the batches. A copy with another number is read again. Queries change
//! only the use counts, which are counted in memory and written with the next batch or after some
//! dozens. If the host drops the instance in between, a few are lost, and a fact fades a little
//! sooner.

use std::collections::BTreeMap;

use jiff::Timestamp;
use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::types::Error;

use crate::item::{Item, Use};
use crate::words::stems;

/// More items than this are refused: all of them are held in memory to be ranked.
const MOST_ITEMS: usize = 50_000;
/// Uses that are not written yet, at most.
const UNWRITTEN_USES: usize = 32;

/// An item with its stems for ranking.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) item: Item,
    /// The stems of its words, sorted.
    pub(crate) stems: Vec<String>,
    pub(crate) used: Option<Use>,
}

/// The binding's items.
#[derive(Debug)]
pub(crate) struct Store {
    items: Collection<Item>,
    uses: Collection<Use>,
    version: Collection<u64>,
    seen: Option<u64>,
    held: BTreeMap<String, Held>,
    unwritten: BTreeMap<String, Use>,
}

impl Store {
    pub(crate) fn new() -> Self {
        Self {
            items: Collection::new("items"),
            uses: Collection::new("uses"),
            version: Collection::new("version"),
            seen: None,
            held: BTreeMap::new(),
            unwritten: BTreeMap::new(),
        }
    }

    /// Updates the copy from storage.
    pub(crate) fn refresh(&mut self) -> Result<(), Error> {
        let version = self.version.get("items")?.unwrap_or(0);
        if self.seen == Some(version) {
            return Ok(());
        }
        let mut held = BTreeMap::new();
        for entry in self.items.iter("") {
            let (_, item) = entry?;
            held.insert(item.id.clone(), hold(item, None));
        }
        for entry in self.uses.iter("") {
            let (key, used) = entry?;
            if let Some(held) = held.get_mut(String::from_utf8_lossy(&key).as_ref()) {
                held.used = Some(used);
            }
        }
        (self.held, self.seen) = (held, Some(version));
        Ok(())
    }

    pub(crate) fn held(&self, id: &str) -> Option<&Held> {
        self.held.get(id)
    }

    /// Takes over the use count of an item that is written next.
    pub(crate) fn take_over_uses(&mut self, id: &str, used: Use) {
        self.unwritten.insert(id.to_owned(), used);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Item> {
        self.held.get(id).map(|held| &held.item)
    }

    /// All items after one, in the order of their ids.
    pub(crate) fn behind(&self, last: Option<&str>) -> impl Iterator<Item = &Held> {
        use std::ops::Bound::{Excluded, Unbounded};
        let from = last.map_or(Unbounded, Excluded);
        self.held.range::<str, _>((from, Unbounded)).map(|(_, held)| held)
    }

    /// Writes items and forgets others, with whatever else is in the batch: all of it or nothing.
    pub(crate) fn write(
        &mut self,
        mut batch: Batch,
        items: Vec<Item>,
        gone: &[String],
    ) -> Result<(), Error> {
        let new = items.iter().filter(|item| !self.held.contains_key(&item.id)).count();
        if new > 0 && self.held.len() + new > MOST_ITEMS + gone.len() {
            return Err(Error::QuotaExceeded(format!(
                "this binding holds {} items and may hold {MOST_ITEMS}; forget what is not needed",
                self.held.len()
            )));
        }
        for item in &items {
            batch.put(&self.items, &item.id, item)?;
        }
        for id in gone {
            batch.delete(&self.items, id);
            batch.delete(&self.uses, id);
            self.unwritten.remove(id);
        }
        for (id, used) in &self.unwritten {
            batch.put(&self.uses, id, used)?;
        }
        let version = self.seen.unwrap_or(0) + 1;
        batch.put(&self.version, "items", &version)?;
        // If it fails, the state of storage is unknown, and the copy is read again.
        self.seen = None;
        batch.apply()?;
        let written = std::mem::take(&mut self.unwritten);
        for id in gone {
            self.held.remove(id);
        }
        for item in items {
            let used = self.held.get(&item.id).and_then(|held| held.used);
            let used = written.get(&item.id).copied().or(used);
            self.held.insert(item.id.clone(), hold(item, used));
        }
        self.seen = Some(version);
        Ok(())
    }

    /// Counts uses of items.
    pub(crate) fn count_uses(&mut self, ids: &[String], now: Timestamp) -> Result<(), Error> {
        for id in ids {
            let Some(held) = self.held.get_mut(id) else { continue };
            let count = held.used.map_or(0, |used| used.count).saturating_add(1);
            held.used = Some(Use { count, last: now });
            self.unwritten.insert(id.clone(), Use { count, last: now });
        }
        if self.unwritten.len() < UNWRITTEN_USES {
            return Ok(());
        }
        let mut batch = Batch::new();
        for (id, used) in &self.unwritten {
            batch.put(&self.uses, id, used)?;
        }
        batch.apply()?;
        self.unwritten.clear();
        Ok(())
    }
}

fn hold(item: Item, used: Option<Use>) -> Held {
    let mut all = stems(&item.text);
    for more in item.summary.iter().chain(&item.tags) {
        all.extend(stems(more));
    }
    all.push(item.kind.name().to_owned());
    all.sort_unstable();
    Held { item, stems: all, used }
}
