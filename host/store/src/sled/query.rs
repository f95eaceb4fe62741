//! The reading side of the operation log: newest first, by range scan or by intersecting posting chunks. A filter by a
//! facet never scans the whole log.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::log::Log;
use super::posting::Posting;
use super::state::last;
use super::tree::Tree;
use super::{failed, keys, named};
use crate::{LogPage, StoreError, company_of, decode};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{CompanyId, Operation, OperationFilter};

/// An operation's number is given out just before its time is read, so two operations that begin together may have their
/// times in the other order. No more than this many can begin within such a moment.
const TIME_SLACK: u64 = 1_024;

pub(super) struct Reader<'a> {
    pub(super) log: &'a Log,
    pub(super) records: &'a Tree,
    pub(super) index: &'a Tree,
    pub(super) company: &'a CompanyId,
}

impl Reader<'_> {
    pub(super) fn operation(&self, sequence: u64) -> Result<Option<Operation>, StoreError> {
        self.log.read(self.company, sequence)
    }

    pub(super) fn page(
        &self,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        // Exclusive; what is newer than `until` is skipped without being read.
        let mut below = before.unwrap_or(u64::MAX);
        if let Some(until) = filter.until {
            below = below.min(self.first_at(until)?.saturating_add(TIME_SLACK));
        }
        let from = match filter.since {
            Some(since) => self.first_at(since)?.saturating_sub(TIME_SLACK),
            None => 0,
        };
        // Memory first, then the index: an operation that moves in between is seen twice and not missed.
        let mut recent = self.log.queued(self.company);
        let facets = keys::facets_wanted(self.company, filter);
        let named = filter.provider_record_id.as_ref().map(named::checksum);
        if !facets.is_empty() || named.is_some() {
            let companies = self.log.companies.lock();
            if let Some(state) = companies.get(self.company) {
                recent.extend(&state.open);
            }
        }
        let (mut operations, mut bytes, mut more) = (Vec::<Operation>::new(), 0, false);
        let mut visit = |sequence: u64| -> Result<bool, StoreError> {
            if let Some(operation) = self.operation(sequence)?
                && filter.matches(&operation)
            {
                // One more than fits says that there is a next page.
                more = operations.len() == limit || bytes >= MAX_PAGE_BYTES;
                if !more {
                    bytes += size(&operation);
                    operations.push(operation);
                }
            }
            Ok(more)
        };
        let mut recent = recent.range(from..below).rev().copied().peekable();
        let mut stored = self.stored(&facets, named, from, below);
        let mut next_stored = stored.next().transpose()?;
        loop {
            let sequence = match (recent.peek().copied(), next_stored) {
                (None, None) => break,
                (Some(a), Some(b)) if a == b => {
                    recent.next();
                    next_stored = stored.next().transpose()?;
                    a
                }
                (Some(a), b) if b.is_none_or(|b| a > b) => {
                    recent.next();
                    a
                }
                (_, Some(b)) => {
                    next_stored = stored.next().transpose()?;
                    b
                }
                (Some(a), None) => a,
            };
            if visit(sequence)? {
                break;
            }
        }
        drop(stored);
        let next_before = if more { operations.last().map(|last| last.id.sequence()) } else { None };
        Ok(LogPage { operations, next_before })
    }

    /// Numbers in the tree or the index, highest first.
    fn stored(
        &self,
        facets: &[Vec<u8>],
        named: Option<u32>,
        from: u64,
        below: u64,
    ) -> Box<dyn Iterator<Item = Result<u64, StoreError>> + '_> {
        let facets = facets.to_vec();
        let blocks: Box<dyn Iterator<Item = Result<Vec<u64>, StoreError>> + '_> = match (named, facets.split_first()) {
            (Some(checksum), _) => {
                let (from, mut end) = (from / keys::BLOCK, (below / keys::BLOCK).saturating_add(1));
                let next = move || {
                    let block = named::last_block(self.index, self.company, from, end).transpose()?;
                    end = *block.as_ref().unwrap_or(&0);
                    Some(block)
                };
                Box::new(std::iter::from_fn(next).map(move |block| {
                    let block = block?;
                    let named = named::find(self.index, self.company, block, checksum)?;
                    self.having(block, named, &facets)
                }))
            }
            (None, Some((first, others))) => {
                let blocks = keys::chunk(first, from / keys::BLOCK)..=keys::chunk(first, below / keys::BLOCK);
                let others = others.to_vec();
                Box::new(self.index.range(blocks).rev().map(move |entry| {
                    let (key, _) = entry.map_err(failed("reading"))?;
                    match (keys::sequence(&key), Posting::read(self.index, &key)?) {
                        (Some(block), Some(posting)) => self.having(block, posting, &others),
                        _ => Ok(Vec::new()),
                    }
                }))
            }
            (None, None) => {
                let range = keys::record(self.company, from)..keys::record(self.company, below);
                let all = self.records.range(range).rev();
                return Box::new(all.filter_map(|entry| match entry {
                    Ok((key, _)) => keys::sequence(&key).map(Ok),
                    Err(error) => Some(Err(failed("reading")(error))),
                }));
            }
        };
        let all = blocks.flat_map(|found| {
            let (found, error) = match found {
                Ok(found) => (found, None),
                Err(error) => (Vec::new(), Some(Err(error))),
            };
            found.into_iter().map(Ok).chain(error)
        });
        Box::new(all.filter(move |found| found.as_ref().map_or(true, |sequence| (from..below).contains(sequence))))
    }

    /// The numbers of one block's operations that also have all these facets, highest first.
    fn having(&self, block: u64, mut found: Posting, facets: &[Vec<u8>]) -> Result<Vec<u64>, StoreError> {
        for facet in facets {
            match Posting::read(self.index, &keys::chunk(facet, block))? {
                Some(other) => found.intersect(&other),
                None => return Ok(Vec::new()),
            }
        }
        Ok(found.descending().map(|offset| block * keys::BLOCK + offset).collect())
    }

    /// The number of the first operation that began at or after a moment, by bisection.
    pub(super) fn first_at(&self, moment: Timestamp) -> Result<u64, StoreError> {
        let (mut low, mut high) = (1, last(&self.log.companies, self.company) + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at_or_behind(middle, high)? {
                Some((sequence, started)) if started < moment => low = sequence + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    fn at_or_behind(&self, sequence: u64, below: u64) -> Result<Option<(u64, Timestamp)>, StoreError> {
        let range = keys::record(self.company, sequence)..keys::record(self.company, below);
        match self.records.range(range).next() {
            None => Ok(None),
            Some(Err(error)) => Err(failed("reading")(error)),
            Some(Ok((_, value))) => {
                let operation: Operation = decode("operation", &value)?;
                Ok(Some((operation.id.sequence(), operation.started_at)))
            }
        }
    }
}

/// About how large a record is, in bytes: what it has of everything that can be long.
fn size(operation: &Operation) -> usize {
    let texts = operation.payload.iter().map(|payload| payload.text.len());
    let texts = texts.chain(operation.log.iter().map(|line| line.text.len()));
    let texts = texts.chain(operation.error.iter().map(|error| error.message.len()));
    let handles =
        operation.records.iter().chain(&operation.cited).map(|handle| handle.provider_record_id.as_str().len());
    let parts = operation.records.len() + operation.cited.len() + operation.jobs.len() + operation.usage.len();
    texts.chain(handles).sum::<usize>() + 1_024 + 256 * parts
}

/// Every company that has keys in a tree, by seeking from one to the next. Keys of the host itself begin with a zero byte:
/// operators' tokens, and idempotency keys of requests that are about no company.
pub(super) fn companies(name: &str, tree: &Tree) -> Result<BTreeSet<CompanyId>, StoreError> {
    let mut all = BTreeSet::new();
    let mut from = vec![1];
    while let Some(entry) = tree.range(from..).next() {
        let (key, _) = entry.map_err(failed("reading"))?;
        let Some(company) = company_of(&key) else {
            return Err(StoreError::Corrupt {
                what: format!("tree `{name}`"),
                message: format!("the key {:?} does not begin with a company", String::from_utf8_lossy(&key)),
            });
        };
        from = keys::behind(&company);
        all.insert(company);
    }
    Ok(all)
}
