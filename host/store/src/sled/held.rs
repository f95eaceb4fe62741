//! How many bytes each company has in the store. Every write changes the number in its own
//! transaction, so it is exact, also after a crash. It is derived: a backup leaves it out, and a
//! store without it is measured when it is opened.

use std::collections::BTreeMap;

use sled::Batch;
use sled::transaction::{TransactionalTree, UnabortableTransactionError};

use super::failed;
use super::gate::{HELD, Place};
use super::room::Need;
use super::trees::Trees;
use crate::{StoreError, Table};

/// The mark of a store whose companies are counted. No key of a company begins with a zero byte.
const COUNTED: &[u8] = b"\0counted";
/// Rows that a measurement writes at once.
const AT_ONCE: usize = 512;

/// The prefix of a company's key: its id and a zero byte.
pub(super) fn company_in(key: &[u8]) -> Option<&[u8]> {
    let end = key.iter().position(|byte| *byte == 0).filter(|end| *end > 0)?;
    Some(&key[..=end])
}

/// Where the numbers are that writes of these keys change.
pub(super) fn places<'a>(keys: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = Place> {
    keys.filter_map(company_in).map(|company| (HELD, company.to_vec()))
}

/// A stored number.
pub(super) fn decode(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// By how much one transaction changes what companies have, in bytes.
#[derive(Default)]
pub(super) struct Growth(BTreeMap<Vec<u8>, i64>);

impl Growth {
    /// Adds one key, whose value had one length and gets another one. `None` if there is no value.
    pub(super) fn add(&mut self, key: &[u8], before: Option<usize>, after: Option<usize>) {
        let Some(company) = company_in(key) else { return };
        let size = |value: Option<usize>| {
            value.map_or(0, |value| i64::try_from(key.len() + value).unwrap_or(i64::MAX))
        };
        let by = size(after).saturating_sub(size(before));
        match self.0.get_mut(company) {
            Some(sum) => *sum = sum.saturating_add(by),
            None => {
                self.0.insert(company.to_vec(), by);
            }
        }
    }

    /// Writes it to the tree of the numbers, within the transaction.
    pub(super) fn write(
        &self,
        numbers: &TransactionalTree,
    ) -> Result<(), UnabortableTransactionError> {
        for (company, by) in self.0.iter().filter(|(_, by)| **by != 0) {
            let before = numbers.get(company)?.map_or(0, |value| decode(&value));
            numbers.insert(company.as_slice(), &before.saturating_add_signed(*by).to_le_bytes())?;
        }
        Ok(())
    }
}

/// Measures every company of a store that was not counted from its beginning, such as one from a
/// backup.
pub(super) fn measure(trees: &Trees) -> Result<(), StoreError> {
    if trees.held.contains_key(COUNTED).map_err(failed("reading"))? {
        return Ok(());
    }
    let mut sums: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for (_, tree) in trees.of_companies().filter(|(name, _)| *name != Table::Sums.name()) {
        for entry in tree.iter() {
            let (key, value) = entry.map_err(failed("reading"))?;
            let Some(company) = company_in(&key) else { continue };
            let bytes = (key.len() + value.len()) as u64;
            match sums.get_mut(company) {
                Some(sum) => *sum += bytes,
                None => {
                    sums.insert(company.to_vec(), bytes);
                }
            }
        }
    }
    let rows: Vec<(Vec<u8>, u64)> = sums.into_iter().collect();
    for some in rows.chunks(AT_ONCE) {
        let mut batch = Batch::default();
        for (company, sum) in some {
            batch.insert(company.as_slice(), &sum.to_le_bytes());
        }
        let _writing =
            trees.enter(Need::Present, some.iter().map(|(company, _)| company.len() + 8).sum())?;
        trees.disk.wrote("measuring", trees.held.apply_batch(batch))?;
    }
    // After all of them: a measurement that was cut short begins again.
    let _writing = trees.enter(Need::Present, COUNTED.len())?;
    trees.disk.wrote("measuring", trees.held.insert(COUNTED, &[1_u8])).map(drop)
}
