//! The log's indexes: derived, compact, and written a little after the log. Operations that are not
//! indexed yet are known in memory. After a crash the index is updated from the log, from each
//! company's watermark on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use sled::Batch;

use super::disk::PIECE;
use super::gate::INDEX;
use super::state::{Applied, Companies, Message, watermark};
use super::tree::KeyChange;
use super::trees::Trees;
use super::{keys, named, remove, sums};
use crate::error::failed;
use crate::posting::Posting;
use crate::reserve::Need;
use crate::{StoreError, decode};
use memhost_types::{CompanyId, Operation};

/// How long an operation waits for others before they are indexed together.
const LINGER: Duration = Duration::from_millis(50);
/// Operations that are indexed at once. Large batches share chunks, which makes the index cheap.
const MAX_BATCH: usize = 8_192;

/// Numbers that are removed from memory under one lock.
const SHORT: usize = 256;
/// The lowest priority of a thread: indexing can wait, answers cannot.
const NICE: i32 = 19;

/// Indexes operations until the sender is dropped.
pub(super) fn run(trees: &Trees, companies: &Companies, incoming: &Receiver<Message>) {
    // Where the system does not allow it, the thread keeps its normal priority.
    let _ = rustix::process::nice(NICE);
    while let Ok(first) = incoming.recv() {
        let (mut batch, mut next) = (Vec::new(), Some(first));
        let until = Instant::now() + LINGER;
        loop {
            match next {
                Some(Message::Ended(operation)) => batch.push(Applied::of(&operation)),
                Some(Message::Applied(applied)) => batch.push(applied),
                _ => break,
            }
            next = match batch.len() < MAX_BATCH {
                true => incoming.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
                false => None,
            };
        }
        if let Err(error) = add(trees, companies, &batch) {
            // They stay in memory and are read from the log; the next opening indexes them.
            tracing::error!(%error, operations = batch.len(), "operations could not be indexed");
        }
        if let Some(Message::Erase(company, reply)) = next {
            // Everything that was written before this is indexed and is removed with the rest. A
            // comparison with the log would find that it is missing, and write it again.
            let _indexing = trees.indexing.lock();
            let _ = reply.send(remove::company(trees, &company));
        }
    }
}

/// Adds operations to the index, and then removes them from memory.
pub(super) fn add(
    trees: &Trees,
    companies: &Companies,
    applied: &[Applied],
) -> Result<(), StoreError> {
    let _indexing = trees.indexing.lock();
    let tree = &trees.index;
    let mut chunks: HashMap<Vec<u8>, Vec<u64>> = HashMap::new();
    let mut rows: BTreeMap<(&CompanyId, u64), named::Rows> = BTreeMap::new();
    let mut touched: HashMap<&CompanyId, Vec<u64>> = HashMap::new();
    for operation in applied {
        let (block, offset) = (operation.sequence / keys::BLOCK, operation.sequence % keys::BLOCK);
        for facet in &operation.facets {
            chunks.entry(keys::chunk(facet, block)).or_default().push(offset);
        }
        rows.entry((&operation.company, block)).or_default().add(offset, &operation.named);
        touched.entry(&operation.company).or_default().push(operation.sequence);
    }
    let mut changes: Vec<KeyChange> = Vec::with_capacity(chunks.len());
    for (key, offsets) in chunks {
        let mut posting = Posting::read(tree, &key)?.unwrap_or_default();
        offsets.into_iter().for_each(|offset| posting.insert(offset));
        changes.push((key.into(), Some(posting.encode().into())));
    }
    let blocks: Vec<_> = rows.keys().copied().collect();
    for ((company, block), rows) in rows {
        changes.extend(rows.changes(tree, company, block)?);
    }
    // A reader of sums sees an operation either in the index or in memory, not in both.
    let moving = trees.sums.write();
    sums::add(trees, applied)?;
    write(trees, changes)?;
    for (company, sequences) in &touched {
        // Every operation takes this lock when it begins, so it is held for a short time only.
        for some in sequences.chunks(SHORT) {
            if let Some(state) = companies.lock().get_mut(*company) {
                for sequence in some {
                    state.open.remove(sequence);
                }
            }
        }
    }
    drop(moving);
    for company in touched.into_keys() {
        let mine =
            blocks.iter().filter(|(of, _)| *of == company).map(|(_, block)| *block).collect();
        move_watermark(trees, company, watermark(companies, company), mine)?;
    }
    Ok(())
}

/// Notes how far the index of a company is. The blocks that are whole by now are sorted: those that
/// this completed, and those of `touched`. After a crash before the end, the same operations are
/// indexed again, which changes nothing.
fn move_watermark(
    trees: &Trees,
    company: &CompanyId,
    mark: u64,
    mut touched: BTreeSet<u64>,
) -> Result<(), StoreError> {
    let key = keys::watermark(company);
    let whole = (mark + 1) / keys::BLOCK;
    let (from, mut below) = (stored_watermark(trees, company)? / keys::BLOCK, whole);
    while let Some(block) = named::last_block(&trees.index, company, from, below)? {
        touched.insert(block);
        below = block;
    }
    for block in touched.range(..whole) {
        let (written, removed) = named::sorted(&trees.index, company, *block)?;
        write(trees, written)?;
        write(trees, removed)?;
    }
    let mark = mark.to_be_bytes();
    let writing = trees.enter(Need::Present, mark.len())?;
    writing.note(|| [(INDEX, key.clone())]);
    trees.disk.wrote("indexing", trees.index.insert(key, &mark)).map(drop)
}

pub(super) fn stored_watermark(trees: &Trees, company: &CompanyId) -> Result<u64, StoreError> {
    number(trees, &keys::watermark(company))
}

/// Up to which operation a company's log and index fitted when the store was closed, or opened.
pub(super) fn compared(trees: &Trees, company: &CompanyId) -> Result<u64, StoreError> {
    number(trees, &keys::compared(company))
}

/// Notes that the logs and indexes of these companies fit, up to these operations.
pub(super) fn set_compared(trees: &Trees, all: Vec<(CompanyId, u64)>) -> Result<(), StoreError> {
    let mut changes = Vec::new();
    for (company, last) in all {
        if compared(trees, &company)? != last {
            let mark = last.to_be_bytes();
            changes.push((keys::compared(&company).into(), Some(mark.as_slice().into())));
        }
    }
    write(trees, changes)
}

fn number(trees: &Trees, key: &[u8]) -> Result<u64, StoreError> {
    let mark = trees.index.get(key).map_err(failed("reading"))?;
    Ok(mark
        .and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?)))
        .unwrap_or(0))
}

/// Writes to the index, in pieces: what was written is flushed in between. An operation whose
/// entries are written in part is indexed again.
pub(super) fn write(trees: &Trees, changes: Vec<KeyChange>) -> Result<(), StoreError> {
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        let (mut batch, mut bytes, mut written) = (Batch::default(), 0, Vec::new());
        while bytes < PIECE
            && let Some((key, value)) = changes.next()
        {
            bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
            written.push((INDEX, key.to_vec()));
            match value {
                Some(value) => batch.insert(key, value),
                None => batch.remove(key),
            }
        }
        let writing = trees.enter(Need::Present, bytes)?;
        writing.note(|| written);
        trees.disk.wrote("indexing", trees.index.apply_batch(batch))?;
    }
    Ok(())
}

/// Updates a company's index from its log, from the watermark on.
pub(super) fn catch_up(
    trees: &Trees,
    companies: &Companies,
    company: &CompanyId,
) -> Result<(), StoreError> {
    let log = &trees.records;
    let mark = stored_watermark(trees, company)?;
    let mut pending = Vec::new();
    for entry in log.range(keys::record(company, mark + 1)..=keys::record(company, u64::MAX)) {
        let (key, value) = entry.map_err(failed("reading"))?;
        let Some(sequence) = keys::sequence(&key) else { continue };
        let operation: Operation = match decode("operation", &value) {
            Ok(operation) => operation,
            Err(error) => {
                tracing::error!(%error, %company, sequence, "an operation is not indexed");
                continue;
            }
        };
        if pending.len() == MAX_BATCH {
            // The watermark does not pass what is still to come.
            open(companies, company, |open| open.insert(sequence));
            add(trees, companies, &pending)?;
            open(companies, company, |open| open.remove(&sequence));
            pending.clear();
        }
        pending.push(Applied::of(&operation));
    }
    if pending.is_empty() { Ok(()) } else { add(trees, companies, &pending) }
}

/// Changes which operations of a company are known in memory only.
fn open(
    companies: &Companies,
    company: &CompanyId,
    change: impl FnOnce(&mut BTreeSet<u64>) -> bool,
) {
    if let Some(state) = companies.lock().get_mut(company) {
        change(&mut state.open);
    }
}
