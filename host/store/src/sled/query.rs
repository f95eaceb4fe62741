//! The reading side of the operation log: newest first, by range scan or by intersecting posting
//! chunks. A filter by a facet never scans the whole log.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::log::Log;
use super::state::last;
use super::tree::Tree;
use super::{keys, named};
use crate::error::failed;
use crate::posting::Posting;
use crate::{LogPage, StoreError, TIME_SLACK, company_of, decode};
use memhost_executor::{expect_off_executor, off_executor};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{CompanyId, Operation, OperationFilter};

/// Operations that do not match and are read for one page. It is enough for those on both sides of
/// a time, so that only a filter that the index does not answer in full ends a page early.
pub(super) const MOST_PASSED: usize = 2 * TIME_SLACK as usize;
/// The same in bytes. Long operations take longer to read.
pub(super) const MOST_PASSED_BYTES: usize = 4 * MAX_PAGE_BYTES;
/// Operations that are read without letting other tasks run, and their bytes.
const STEP: usize = 128;
const STEP_BYTES: usize = MAX_PAGE_BYTES / 4;

/// A page while it is filled.
struct Filling<'a> {
    filter: &'a OperationFilter,
    limit: usize,
    /// The numbers that are left to be looked at: from the first one on, below the second one.
    from: u64,
    below: u64,
    found: Vec<Operation>,
    bytes: usize,
    passed: usize,
    passed_bytes: usize,
    next_before: Option<u64>,
    is_over: bool,
}

impl Filling<'_> {
    /// Looks at the next operation. Where the page ends before it, the next page begins with it.
    fn add(&mut self, sequence: u64, operation: Option<Operation>) {
        let bytes = operation.as_ref().map_or(0, size);
        match operation.filter(|operation| self.filter.matches(operation)) {
            // One more than fits says that there is a next page.
            Some(_) if self.found.len() == self.limit || self.bytes >= MAX_PAGE_BYTES => {
                self.end_above(sequence);
            }
            Some(operation) => {
                self.bytes += bytes;
                self.found.push(operation);
            }
            None => {
                self.passed += 1;
                self.passed_bytes += bytes;
            }
        }
        self.below = sequence;
    }

    fn has_passed_enough(&self) -> bool {
        self.passed >= MOST_PASSED || self.passed_bytes >= MOST_PASSED_BYTES
    }

    fn end_above(&mut self, sequence: u64) {
        (self.next_before, self.is_over) = (Some(sequence + 1), true);
    }
}

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

    /// One page. It is read away from the executor, in steps between which other tasks run.
    pub(super) async fn page(
        &self,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        let mut page = off_executor(usize::MAX, || self.begin(filter, before, limit))?;
        loop {
            off_executor(usize::MAX, || self.step(&mut page))?;
            if page.is_over {
                return Ok(LogPage { operations: page.found, next_before: page.next_before });
            }
            tokio::task::yield_now().await;
        }
    }

    fn begin<'f>(
        &self,
        filter: &'f OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Filling<'f>, StoreError> {
        // Exclusive; what is newer than `until` is skipped without being read.
        let mut below = before.unwrap_or(u64::MAX);
        if let Some(until) = filter.until {
            below = below.min(self.first_at(until)?.saturating_add(TIME_SLACK));
        }
        let from = match filter.since {
            Some(since) => self.first_at(since)?.saturating_sub(TIME_SLACK),
            None => 0,
        };
        let (bytes, passed, passed_bytes, next_before, is_over) = (0, 0, 0, None, false);
        let found = Vec::new();
        Ok(Filling {
            filter,
            limit,
            from,
            below,
            found,
            bytes,
            passed,
            passed_bytes,
            next_before,
            is_over,
        })
    }

    /// Reads on for a page, until it ends or others should run.
    fn step(&self, page: &mut Filling<'_>) -> Result<(), StoreError> {
        expect_off_executor("reading a page of the log", usize::MAX);
        let (from, below) = (page.from, page.below);
        // Memory first, then the index: an operation that moves in between is seen twice and not
        // missed.
        let mut recent = self.log.queued(self.company);
        let facets = keys::facets_wanted(self.company, page.filter);
        let named = page.filter.provider_record_id.as_ref().map(named::checksum);
        if !facets.is_empty() || named.is_some() {
            let companies = self.log.companies.lock();
            if let Some(state) = companies.get(self.company) {
                recent.extend(&state.open);
            }
        }
        // A page may begin below the first number that is wanted.
        let mut recent = recent.range(from..below.max(from)).rev().copied().peekable();
        let mut stored = self.stored(&facets, named, from, below);
        let mut next_stored = stored.next().transpose()?;
        let (mut read, bytes) = (0, page.bytes + page.passed_bytes);
        loop {
            let sequence = match (recent.peek().copied(), next_stored) {
                (None, None) => {
                    page.is_over = true;
                    return Ok(());
                }
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
            if page.has_passed_enough() {
                page.end_above(sequence);
                return Ok(());
            }
            page.add(sequence, self.operation(sequence)?);
            read += 1;
            if page.is_over || read == STEP || page.bytes + page.passed_bytes - bytes >= STEP_BYTES
            {
                return Ok(());
            }
        }
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
        let blocks: Box<dyn Iterator<Item = Result<Vec<u64>, StoreError>> + '_> =
            match (named, facets.split_first()) {
                (Some(checksum), _) => {
                    let (from, mut end) =
                        (from / keys::BLOCK, (below / keys::BLOCK).saturating_add(1));
                    let next = move || {
                        let block =
                            named::last_block(self.index, self.company, from, end).transpose()?;
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
                    let blocks = keys::chunk(first, from / keys::BLOCK)
                        ..=keys::chunk(first, below / keys::BLOCK);
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
        Box::new(all.filter(move |found| {
            found.as_ref().map_or(true, |sequence| (from..below).contains(sequence))
        }))
    }

    /// The numbers of one block's operations that also have all these facets, highest first.
    fn having(
        &self,
        block: u64,
        mut found: Posting,
        facets: &[Vec<u8>],
    ) -> Result<Vec<u64>, StoreError> {
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

    fn at_or_behind(
        &self,
        sequence: u64,
        below: u64,
    ) -> Result<Option<(u64, Timestamp)>, StoreError> {
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
    let handles = operation
        .records
        .iter()
        .chain(&operation.cited)
        .map(|handle| handle.provider_record_id.as_str().len());
    let parts = operation.records.len()
        + operation.cited.len()
        + operation.jobs.len()
        + operation.usage.len();
    texts.chain(handles).sum::<usize>() + 1_024 + 256 * parts
}

/// Every company that has keys in a tree, by seeking from one to the next. Keys of the host itself
/// begin with a zero byte: operators' tokens, and idempotency keys of requests that are about no
/// company.
pub(super) fn companies(name: &str, tree: &Tree) -> Result<BTreeSet<CompanyId>, StoreError> {
    let mut all = BTreeSet::new();
    let mut from = vec![1];
    while let Some(entry) = tree.range(from..).next() {
        let (key, _) = entry.map_err(failed("reading"))?;
        let Some(company) = company_of(&key) else {
            return Err(StoreError::Corrupt {
                what: format!("tree `{name}`"),
                message: format!(
                    "the key {:?} does not begin with a company",
                    String::from_utf8_lossy(&key)
                ),
            });
        };
        from = keys::behind(&company);
        all.insert(company);
    }
    Ok(all)
}
