//! Sums over operations. A bitmap for each block says which operations are summed, so that an
//! operation that is indexed again, after a crash or in a restored store, is not summed again. An
//! entry that stands for several refusals has a row with the number that is summed: it is written
//! again when its minute ends, with a larger one.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;
use sled::Batch;

use super::keys;
use super::log::Log;
use super::state::Applied;
use super::tree::Tree;
use super::trees::Trees;
use crate::error::failed;
use crate::posting::Posting;
use crate::reserve::Need;
use crate::{
    MOST_SUM_ROWS, StoreError, Table, decode, encode, other_sums, sum_key, summed_count,
    summed_count_key, summed_key, sums_prefix,
};
use memhost_types::{CompanyId, Operation, Rollup, RollupKey};

/// Days of companies whose rows are counted in memory.
const MOST_COUNTS: usize = 1_000;

/// Adds operations, each once, and as often as its entry says.
pub(super) fn add(trees: &Trees, applied: &[Applied]) -> Result<(), StoreError> {
    let tree = trees.table(Table::Sums);
    let mut blocks: HashMap<Vec<u8>, Posting> = HashMap::new();
    let mut rows: HashMap<Vec<u8>, (RollupKey, Rollup)> = HashMap::new();
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for operation in applied {
        let (block, offset) = (operation.sequence / keys::BLOCK, operation.sequence % keys::BLOCK);
        let key = summed_key(&operation.company, block);
        let summed = match blocks.get_mut(&key) {
            Some(summed) => summed,
            None => {
                let stored = Posting::read(tree, &key)?.unwrap_or_default();
                blocks.entry(key).or_insert(stored)
            }
        };
        let place = summed_count_key(&operation.company, operation.sequence);
        let before = match summed.contains(offset) {
            false => 0,
            true => match counts.get(&place) {
                Some(count) => *count,
                None => count_of(tree, &place)?,
            },
        };
        if before >= operation.count {
            continue;
        }
        summed.insert(offset);
        if operation.count > 1 {
            counts.insert(place, operation.count);
        }
        let again = |(key, row): &(RollupKey, Rollup)| {
            (key.clone(), row.clone().times(operation.count - before))
        };
        let again: Vec<_> = operation.again.as_deref().into_iter().map(again).collect();
        for (key, sums) in if before == 0 { &operation.sums } else { &again } {
            let mut place = sum_key(&operation.company, key);
            let mut key = key.clone();
            if !rows.contains_key(&place) && !has_row(trees, &operation.company, &key, &place)? {
                key = other_sums(key);
                place = sum_key(&operation.company, &key);
            }
            rows.entry(place).or_insert_with(|| (key, Rollup::default())).1.add(sums);
        }
    }
    let mut batch = Batch::default();
    let mut written: Vec<Vec<u8>> =
        blocks.keys().chain(rows.keys()).chain(counts.keys()).cloned().collect();
    let mut bytes = 0;
    for (key, summed) in blocks {
        let summed = summed.encode();
        bytes += summed.len();
        batch.insert(key, summed);
    }
    for (key, count) in counts {
        bytes += size_of::<u64>();
        batch.insert(key, &count.to_be_bytes());
    }
    for (key, mut row) in rows {
        if let Some(stored) = tree.get(&key).map_err(failed("reading"))? {
            row.1.add(&decode::<(RollupKey, Rollup)>("sums", &stored)?.1);
        }
        let row = encode("sums", &row)?;
        bytes += row.len();
        batch.insert(key, row);
    }
    let writing = trees.enter(Need::Present, bytes)?;
    writing.note(|| written.drain(..).map(|key| (Table::Sums.name(), key)).collect::<Vec<_>>());
    trees.disk.wrote("summing", tree.apply_batch(batch))
}

/// Replaces the bitmaps of these blocks.
pub(super) fn set_blocks(
    trees: &Trees,
    company: &CompanyId,
    blocks: BTreeMap<u64, Posting>,
) -> Result<(), StoreError> {
    let (mut batch, mut written, mut bytes) = (Batch::default(), Vec::new(), 0);
    for (block, summed) in blocks {
        let (key, summed) = (summed_key(company, block), summed.encode());
        bytes += summed.len();
        written.push((Table::Sums.name(), key.clone()));
        batch.insert(key, summed);
    }
    let writing = trees.enter(Need::Present, bytes)?;
    writing.note(|| written);
    trees.disk.wrote("summing", trees.table(Table::Sums).apply_batch(batch))
}

/// How often a summed operation is counted.
fn count_of(tree: &Tree, place: &[u8]) -> Result<u64, StoreError> {
    let stored = tree.get(place).map_err(failed("reading"))?;
    Ok(stored.and_then(|value| summed_count(&value)).unwrap_or(1))
}

/// Compares the sums with operations, whose blocks come one after the other.
pub(super) struct Check<'a> {
    tree: &'a Tree,
    company: &'a CompanyId,
    /// The block of the last operation, and what is summed of it. `None`: that is damaged.
    block: Option<(u64, Option<Posting>)>,
    damaged: BTreeMap<u64, Posting>,
    /// Up to here the index is whole, and with it the sums.
    watermark: u64,
}

impl<'a> Check<'a> {
    pub(super) fn new(trees: &'a Trees, company: &'a CompanyId, watermark: u64) -> Self {
        let tree = trees.table(Table::Sums);
        Self { tree, company, block: None, damaged: BTreeMap::new(), watermark }
    }

    /// The blocks whose bitmap cannot be read, with the operations that are summed: those up to the
    /// watermark.
    pub(super) fn damaged(self) -> BTreeMap<u64, Posting> {
        self.damaged
    }

    /// Whether this operation is summed, as often as its entry says.
    pub(super) fn has(&mut self, operation: &Operation) -> Result<bool, StoreError> {
        let sequence = operation.id.sequence();
        let block = sequence / keys::BLOCK;
        if self.block.as_ref().is_none_or(|(known, _)| *known != block) {
            let stored = self.tree.get(summed_key(self.company, block));
            let stored = stored.map_err(failed("reading"))?;
            let summed = stored.map_or(Some(Posting::default()), |stored| Posting::decode(&stored));
            self.block = Some((block, summed));
        }
        let Some((_, Some(summed))) = &self.block else {
            let damaged = self.damaged.entry(block).or_default();
            if sequence <= self.watermark {
                damaged.insert(sequence % keys::BLOCK);
            }
            return Ok(sequence <= self.watermark);
        };
        let is_summed = summed.contains(sequence % keys::BLOCK);
        if !is_summed || operation.count == 1 {
            return Ok(is_summed);
        }
        let place = summed_count_key(self.company, sequence);
        Ok(count_of(self.tree, &place)? >= operation.count)
    }
}

/// Whether there is a row, or may be one more: then it is counted.
fn has_row(
    trees: &Trees,
    company: &CompanyId,
    key: &RollupKey,
    place: &[u8],
) -> Result<bool, StoreError> {
    let tree = trees.table(Table::Sums);
    if tree.contains_key(place).map_err(failed("reading"))? {
        return Ok(true);
    }
    let day = sums_prefix(company, Some(key.day));
    let mut counts = trees.sum_rows.lock();
    let count = match counts.get(&day) {
        Some(count) => *count,
        None => tree.scan_prefix(&day).take(MOST_SUM_ROWS).count(),
    };
    if counts.len() >= MOST_COUNTS {
        counts.clear();
    }
    // A row that is not written after all, because the disk fails, is counted: then the store takes
    // no more calls.
    let may = count < MOST_SUM_ROWS;
    counts.insert(day, count + usize::from(may));
    Ok(may)
}

/// The rows of some days, with the operations that are known in memory only.
pub(super) fn rows(
    trees: &Trees,
    log: &Log,
    company: &CompanyId,
    since: Date,
    until: Date,
) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
    let mut rows: HashMap<RollupKey, Rollup> = HashMap::new();
    let _moving = trees.sums.read();
    for entry in
        trees.table(Table::Sums).range(sums_prefix(company, Some(since))..keys::behind(company))
    {
        let (key, value) = entry.map_err(failed("reading"))?;
        if !key.starts_with(&sums_prefix(company, None)) {
            break;
        }
        let (key, sums): (RollupKey, Rollup) = decode("sums", &value)?;
        if key.day > until {
            break;
        }
        rows.insert(key, sums);
    }
    let open =
        log.companies.lock().get(company).map(|state| state.open.clone()).unwrap_or_default();
    let mut blocks: HashMap<u64, Posting> = HashMap::new();
    for sequence in open {
        // An imported operation is in the imported sums already and is indexed here a moment later.
        let block = sequence / keys::BLOCK;
        let summed = match blocks.get(&block) {
            Some(summed) => summed,
            None => {
                let stored = Posting::read(trees.table(Table::Sums), &summed_key(company, block))?
                    .unwrap_or_default();
                blocks.entry(block).or_insert(stored)
            }
        };
        if summed.contains(sequence % keys::BLOCK) {
            continue;
        }
        let Some(operation) = log.read(company, sequence)? else { continue };
        for (key, sums) in Rollup::of(&operation) {
            if (since..=until).contains(&key.day) {
                rows.entry(key).or_default().add(&sums);
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use memhost_types::Counts;

    use super::*;
    use crate::{SledOptions, SledStore};

    #[test]
    fn a_day_has_so_many_rows_at_most_and_nothing_is_lost() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
        let company: CompanyId = "acme".parse().unwrap();
        let day: Date = "2026-11-20".parse().unwrap();
        let key = |number: usize, day: Date| RollupKey {
            day,
            binding_key: "memory".parse().ok(),
            binding_id: None,
            agent_id: format!("agent-{number}").parse().ok(),
            provider: format!("provider-{number}"),
            model: Some(format!("model-{number}")),
            origin: None,
        };
        let one = || Rollup {
            counts: Counts { operations: 1, ..Counts::default() },
            ..Rollup::default()
        };
        let of = |sequence: u64, numbers: std::ops::Range<usize>, day: Date| Applied {
            company: company.clone(),
            sequence,
            facets: Vec::new(),
            named: Vec::new(),
            sums: numbers.map(|number| (key(number, day), one())).collect(),
            count: 1,
            again: None,
        };
        let next = day.tomorrow().unwrap();
        add(&store.trees, &[of(0, 0..MOST_SUM_ROWS - 1, day)]).unwrap();
        // Also after a restart, when nothing is counted in memory.
        store.trees.sum_rows.lock().clear();
        add(&store.trees, &[of(1, MOST_SUM_ROWS - 10..MOST_SUM_ROWS + 20, day), of(2, 0..3, next)])
            .unwrap();
        add(&store.trees, &[of(3, MOST_SUM_ROWS + 20..MOST_SUM_ROWS + 40, day)]).unwrap();
        let rows = rows(&store.trees, store.log.as_ref().unwrap(), &company, day, next).unwrap();
        let of_day = |wanted: Date| rows.iter().filter(move |(key, _)| key.day == wanted);
        assert_eq!((of_day(day).count(), of_day(next).count()), (MOST_SUM_ROWS + 1, 3));
        let (_, others) = rows.iter().find(|(key, _)| key.provider == "other").unwrap();
        assert_eq!(others.counts.operations, 40);
        assert_eq!(
            of_day(day).map(|(_, sums)| sums.counts.operations).sum::<u64>(),
            MOST_SUM_ROWS as u64 - 1 + 50
        );
    }
}
