//! How many bytes each company has in the store. Every write changes the number in its own
//! transaction (`trees.rs`), so it is exact, also after a crash. It is derived: a backup leaves it
//! out, and a store without it is measured when it is opened.

use std::collections::BTreeMap;

use sled::Batch;

use super::trees::{Trees, decode_number};
use crate::error::failed;
use crate::quota::company_in;
use crate::reserve::Need;
use crate::{StoreError, Table};

/// The mark of a store whose companies are counted. No key of a company begins with a zero byte.
const COUNTED: &[u8] = b"\0counted";
/// Rows that a measurement writes at once.
const AT_ONCE: usize = 512;

/// Reads the numbers of all companies into memory.
pub(super) fn load(trees: &Trees) -> Result<(), StoreError> {
    measure(trees)?;
    let mut numbers = trees.numbers.lock();
    for entry in trees.held.iter() {
        let (company, number) = entry.map_err(failed("reading"))?;
        if company != COUNTED {
            let number = i64::try_from(decode_number(&number)).unwrap_or(i64::MAX);
            numbers.insert(company.to_vec(), number);
        }
    }
    Ok(())
}

/// Measures every company of a store that was not counted from its beginning, such as one from a
/// backup.
fn measure(trees: &Trees) -> Result<(), StoreError> {
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
