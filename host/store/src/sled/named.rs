//! Which operations name a record: those that wrote, returned or forgot it, and those that cite it.
//!
//! An entry is the checksum of a record's id and the operation's place in its block of 4,096.
//! Operations that are indexed together share a row, in no order: an operation with ten records
//! costs no more writes than one with none. Once every operation of a block is indexed, the block's
//! rows are sorted into parts by checksum, so that a search reads one part of each block. Two ids
//! may have one checksum, so a reader looks at the operation as well.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sled::IVec;

use super::keys;
use super::tree::KeyChange;
use super::tree::Tree;
use crate::StoreError;
use crate::error::failed;
use crate::posting::Posting;
use memhost_types::{CompanyId, Operation, RecordId};

/// A checksum, and the operation's place in its block.
type Entry = (u32, u16);
/// The bytes of an entry.
const ENTRY: usize = 6;
/// A row is not continued with another operation from here on, in bytes.
const LONG: usize = 16 << 10;
/// A part's number is so many of the first bits of its checksums: a block has 64 parts.
const PART_BITS: u32 = 6;

/// The checksum of a record's id.
pub(super) fn checksum(id: &RecordId) -> u32 {
    crc32fast::hash(id.as_str().as_bytes())
}

/// The checksums of the records that an operation names, each once.
pub(super) fn checksums_of(operation: &Operation) -> Vec<u32> {
    let mut all: Vec<u32> =
        operation.named().map(|handle| checksum(&handle.provider_record_id)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn part_of(checksum: u32) -> u8 {
    u8::try_from(checksum >> (u32::BITS - PART_BITS)).unwrap_or(u8::MAX)
}

fn encode((checksum, place): Entry) -> [u8; ENTRY] {
    let ([a, b, c, d], [e, f]) = (checksum.to_be_bytes(), place.to_be_bytes());
    [a, b, c, d, e, f]
}

/// The entries of a row or a part. `None` if it is damaged.
fn decode(bytes: &[u8]) -> Option<Vec<Entry>> {
    let entry = |bytes: &[u8]| {
        let (checksum, place) = bytes.split_first_chunk::<4>()?;
        let place = u16::from_be_bytes(place.try_into().ok()?);
        (u64::from(place) < keys::BLOCK).then_some((u32::from_be_bytes(*checksum), place))
    };
    bytes.chunks(ENTRY).map(entry).collect()
}

fn read(bytes: &[u8]) -> Result<Vec<Entry>, StoreError> {
    decode(bytes).ok_or_else(|| StoreError::Corrupt {
        what: "index of named records".to_owned(),
        message:
            "a row is not a list of entries; `memhost store verify` lists the affected operations"
                .to_owned(),
    })
}

/// The new rows of one block.
#[derive(Default)]
pub(super) struct Rows(Vec<(u16, Vec<u8>)>);

impl Rows {
    /// Adds what an operation names.
    pub(super) fn add(&mut self, place: u64, checksums: &[u32]) {
        let Ok(place) = u16::try_from(place) else { return };
        if checksums.is_empty() {
            return;
        }
        if self.0.last().is_none_or(|(_, row)| row.len() >= LONG) {
            self.0.push((place, Vec::new()));
        }
        if let Some((_, row)) = self.0.last_mut() {
            row.extend(checksums.iter().flat_map(|checksum| encode((*checksum, place))));
        }
    }

    /// What is written. An operation that is indexed again may begin a row that is there already:
    /// it is continued.
    pub(super) fn changes(
        self,
        tree: &Tree,
        company: &CompanyId,
        block: u64,
    ) -> Result<Vec<KeyChange>, StoreError> {
        let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (place, new) in self.0 {
            let key = keys::named_row(company, block, place);
            let row = match rows.get_mut(&key) {
                Some(row) => row,
                None => {
                    let stored = tree.get(&key).map_err(failed("reading"))?;
                    rows.entry(key)
                        .or_insert(stored.map(|stored| stored.to_vec()).unwrap_or_default())
                }
            };
            row.extend(new);
        }
        Ok(rows.into_iter().map(|(key, row)| (key.into(), Some(row.into()))).collect())
    }
}

/// Sorts the rows of a block into its parts. Answers what is written first and what is removed
/// after that: a reader that reads the rows before the part misses nothing.
pub(super) fn sorted(
    tree: &Tree,
    company: &CompanyId,
    block: u64,
) -> Result<(Vec<KeyChange>, Vec<KeyChange>), StoreError> {
    let mut removed = Vec::new();
    let mut new: BTreeMap<u8, BTreeSet<Entry>> = BTreeMap::new();
    for entry in tree.scan_prefix(keys::named_rows(company, block)) {
        let (key, row) = entry.map_err(failed("reading"))?;
        read(&row)?.into_iter().for_each(|entry| {
            new.entry(part_of(entry.0)).or_default().insert(entry);
        });
        removed.push((key, None));
    }
    let mut written = Vec::new();
    for (part, mut entries) in new {
        let key = keys::named_part(company, block, part);
        let before = tree.get(&key).map_err(failed("reading"))?.unwrap_or_default();
        entries.extend(read(&before)?);
        let after: Vec<u8> = entries.into_iter().flat_map(encode).collect();
        if before != after {
            written.push((key.into(), Some(after.into())));
        }
    }
    Ok((written, removed))
}

/// The highest block from one on and below another with an operation that names a record. Blocks
/// without are skipped: the numbers of an imported company may be far apart.
pub(super) fn last_block(
    tree: &Tree,
    company: &CompanyId,
    from: u64,
    below: u64,
) -> Result<Option<u64>, StoreError> {
    if from >= below {
        return Ok(None);
    }
    let last = tree
        .range(keys::named_in(company, from)..keys::named_in(company, below))
        .keys()
        .next_back();
    Ok(last
        .transpose()
        .map_err(failed("reading"))?
        .and_then(|key| keys::named_block(company, &key)))
}

/// The operations of a block that may name a record with this checksum.
pub(super) fn find(
    tree: &Tree,
    company: &CompanyId,
    block: u64,
    checksum: u32,
) -> Result<Posting, StoreError> {
    let rows: Result<Vec<IVec>, _> =
        tree.scan_prefix(keys::named_rows(company, block)).values().collect();
    let part =
        tree.get(keys::named_part(company, block, part_of(checksum))).map_err(failed("reading"))?;
    let mut posting = Posting::default();
    for row in rows.map_err(failed("reading"))?.into_iter().chain(part) {
        let is_it = |entry: &Entry| entry.0 == checksum;
        read(&row)?
            .into_iter()
            .filter(is_it)
            .for_each(|(_, place)| posting.insert(u64::from(place)));
    }
    Ok(posting)
}

/// Compares the index with the log, whose operations are handed in by their numbers, the lowest
/// first.
pub(super) struct Check<'a> {
    tree: &'a Tree,
    company: &'a CompanyId,
    /// Whether an operation may be indexed while this runs.
    is_moving: &'a dyn Fn(u64) -> bool,
    /// The oldest operation of the log. The index of its block also has those that were removed.
    first: u64,
    /// The blocks that are compared.
    blocks: Range<u64>,
    block: u64,
    wanted: BTreeSet<Entry>,
    seen: BTreeSet<u64>,
    findings: Vec<String>,
    changes: Vec<KeyChange>,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        company: &'a CompanyId,
        is_moving: &'a dyn Fn(u64) -> bool,
        (first, blocks): (u64, Range<u64>),
    ) -> Self {
        let block = blocks.start.max(first / keys::BLOCK);
        let (wanted, seen) = (BTreeSet::new(), BTreeSet::new());
        let (findings, changes) = (Vec::new(), Vec::new());
        Self { tree, company, is_moving, first, blocks, block, wanted, seen, findings, changes }
    }

    /// Adds an operation that is indexed.
    pub(super) fn expect(&mut self, operation: &Operation) -> Result<(), StoreError> {
        let sequence = operation.id.sequence();
        if sequence / keys::BLOCK != self.block {
            self.compare()?;
            self.block = sequence / keys::BLOCK;
        }
        let place = u16::try_from(sequence % keys::BLOCK).unwrap_or_default();
        self.wanted.extend(checksums_of(operation).into_iter().map(|checksum| (checksum, place)));
        Ok(())
    }

    /// The differences, one line each, and what makes the index fit.
    pub(super) fn end(mut self) -> Result<(Vec<String>, Vec<KeyChange>), StoreError> {
        self.compare()?;
        let (from, to) = (self.blocks.start, self.blocks.end);
        let of_blocks = keys::named_in(self.company, from)..keys::named_in(self.company, to);
        for key in self.tree.range(of_blocks).keys() {
            let key = key.map_err(failed("reading"))?;
            if let Some(block) = keys::named_block(self.company, &key)
                && !self.seen.contains(&block)
            {
                self.block = block;
                self.compare()?;
            }
        }
        Ok((self.findings, self.changes))
    }

    fn compare(&mut self) -> Result<(), StoreError> {
        let (company, block) = (self.company, self.block);
        let mut wanted = std::mem::take(&mut self.wanted);
        if !self.blocks.contains(&block) {
            return Ok(());
        }
        self.seen.insert(block);
        let (mut found, mut stored, mut is_damaged) = (BTreeSet::new(), Vec::new(), false);
        // Rows before parts, as a reader does: the block may be sorted meanwhile.
        let rows = self.tree.scan_prefix(keys::named_rows(company, block));
        for entry in rows.chain(self.tree.scan_prefix(keys::named_parts(company, block))) {
            let (key, row) = entry.map_err(failed("reading"))?;
            stored.push(key);
            match decode(&row) {
                Some(entries) => found.extend(entries),
                None => is_damaged = true,
            }
        }
        let is_late = |(_, place): &Entry| {
            let sequence = block * keys::BLOCK + u64::from(*place);
            (self.is_moving)(sequence) || sequence < self.first
        };
        let late: BTreeSet<Entry> = found.extract_if(.., is_late).collect();
        if found == wanted && !is_damaged {
            return Ok(());
        }
        let what = if is_damaged { "is damaged" } else { "does not fit the log" };
        self.findings
            .push(format!("{company}: the index of records named in block {block} {what}"));
        wanted.extend(late);
        // Sorted by checksum, and so by part.
        let mut parts: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for entry in wanted {
            parts.entry(part_of(entry.0)).or_default().extend(encode(entry));
        }
        let parts = parts
            .into_iter()
            .map(|(part, row)| (IVec::from(keys::named_part(company, block, part)), row));
        let parts: BTreeMap<IVec, Vec<u8>> = parts.collect();
        let removed = stored.into_iter().filter(|key| !parts.contains_key(key));
        let removed: Vec<KeyChange> = removed.map(|key| (key, None)).collect();
        self.changes.extend(parts.into_iter().map(|(key, row)| (key, Some(row.into()))));
        self.changes.extend(removed);
        Ok(())
    }
}
