//! Removal of the oldest operations, or of everything of a company.

use std::ops::Range;

use sled::Batch;

use super::gate::{HELD, INDEX, OPERATIONS, STORAGE};
use super::state::{Companies, last, watermark};
use super::tree::KeyChange;
use super::tree::Tree;
use super::trees::Trees;
use super::{keys, partition};
use crate::error::failed;
use crate::reserve::Need;
use crate::{StoreError, Table, due_at};
use memhost_types::CompanyId;

const AT_ONCE: usize = 1_024;
/// The bytes that the removal of a key takes in the log.
const REMOVAL: usize = 64;

/// Removes a company from every tree, the derived ones included. Its due entries are left, see
/// [`due`].
pub(super) fn company(trees: &Trees, company: &CompanyId) -> Result<u64, StoreError> {
    let own = keys::all(company);
    let mut count = prefix(trees, INDEX, &trees.index, &own)?;
    for (name, tree) in trees.kept() {
        // The keys of these two do not begin with a company.
        if [Table::Host.name(), Table::Due.name()].contains(&name) {
            continue;
        }
        count += prefix(trees, name, tree, &own)?;
    }
    // The host's own records of partitions have a prefix before the company.
    for own in [partition::state_key(&own), partition::sum_key(&own)] {
        count += prefix(trees, STORAGE, &trees.storage, &own)?;
    }
    trees.rows.clear();
    // Last: what it has is counted while it has something.
    prefix(trees, HELD, &trees.held, &own)?;
    trees.numbers.lock().remove(&own);
    Ok(count)
}

/// Removes the due entries of a company. The company comes after the time in their keys, so this
/// reads those of all companies. One that is left names nothing any more, and is removed when its
/// time comes.
pub(super) fn due(trees: &Trees, company: &CompanyId) -> Result<u64, StoreError> {
    let (mut count, own) = (0, keys::all(company));
    let tree = trees.table(Table::Due);
    for key in tree.iter().keys() {
        let key = key.map_err(failed("reading"))?;
        if due_at(&key).is_some_and(|(_, rest)| rest.starts_with(&own)) {
            let writing = trees.enter(Need::Present, 0)?;
            writing.note(|| [(Table::Due.name(), key.to_vec())]);
            trees.disk.wrote("erasing", tree.remove(&key))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Removes one binding's private storage.
pub(super) fn partition(trees: &Trees, partition: &[u8]) -> Result<u64, StoreError> {
    let keys = [partition.to_vec(), partition::state_key(partition), partition::sum_key(partition)];
    keys.iter().map(|key| prefix(trees, STORAGE, &trees.storage, key)).sum()
}

fn prefix(
    trees: &Trees,
    name: &'static str,
    tree: &Tree,
    prefix: &[u8],
) -> Result<u64, StoreError> {
    range(trees, name, tree, &(prefix.to_vec()..behind(prefix)))
}

/// The first key behind all that begin with a prefix, which begins with a company.
fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while end.pop_if(|last| *last == u8::MAX).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

fn range(
    trees: &Trees,
    name: &'static str,
    tree: &Tree,
    range: &Range<Vec<u8>>,
) -> Result<u64, StoreError> {
    let mut count = 0;
    loop {
        let some: Result<Vec<_>, _> = tree.range(range.clone()).keys().take(AT_ONCE).collect();
        let some = some.map_err(failed("reading"))?;
        if some.is_empty() {
            return Ok(count);
        }
        count += some.len() as u64;
        let writing = trees.enter(Need::Present, some.len() * REMOVAL)?;
        writing.note(|| some.iter().map(|key| (name, key.to_vec())).collect::<Vec<_>>());
        let mut batch = Batch::default();
        some.iter().for_each(|key| batch.remove(key));
        trees.disk.wrote("erasing", tree.apply_batch(batch))?;
    }
}

/// Removes a company's operations below a number, with the chunks that contain no others.
pub(super) fn operations(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
    below: u64,
) -> Result<u64, StoreError> {
    // Operations that are not indexed yet are still needed, and so is the newest one, for the next
    // number.
    let below = below.min(watermark(companies, company) + 1).min(last(companies, company));
    let mut count = 0;
    loop {
        let range = keys::record(company, 0)..keys::record(company, below);
        let some: Vec<_> = trees
            .records
            .range(range)
            .keys()
            .take(AT_ONCE)
            .collect::<Result<_, _>>()
            .map_err(failed("reading"))?;
        if some.is_empty() {
            break;
        }
        let writing = trees.enter(Need::Present, some.len() * REMOVAL)?;
        writing.note(|| {
            let removed = some.iter().map(|key| (OPERATIONS, key.to_vec()));
            removed.chain([(HELD, keys::all(company))]).collect::<Vec<_>>()
        });
        count += some.len() as u64;
        let removed: Vec<KeyChange> = some.into_iter().map(|key| (key, None)).collect();
        trees.transact(&removed, &[])?;
    }
    // How often they are counted in the sums, which stay.
    let counts = crate::summed_count_key(company, 0)..crate::summed_count_key(company, below);
    range(trees, Table::Sums.name(), trees.table(Table::Sums), &counts)?;
    // A comparison that read the log before this would write the chunks again.
    let _indexing = trees.indexing.lock();
    let (mut batch, mut removed) = (Batch::default(), Vec::new());
    let block = below / keys::BLOCK;
    let chunks = trees.index.scan_prefix(keys::postings(company)).keys();
    let chunks = chunks.filter(|key| {
        key.as_ref().map_or(true, |key| keys::sequence(key).is_some_and(|of| of < block))
    });
    let named = trees.index.range(keys::named(company)..keys::named_in(company, block)).keys();
    for key in chunks.chain(named) {
        let key = key.map_err(failed("reading"))?;
        removed.push((INDEX, key.to_vec()));
        batch.remove(key);
    }
    let writing = trees.enter(Need::Present, removed.len() * REMOVAL)?;
    writing.note(|| removed);
    trees.disk.wrote("trimming", trees.index.apply_batch(batch))?;
    Ok(count)
}
