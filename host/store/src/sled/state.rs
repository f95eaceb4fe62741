//! What is known of each company in memory, and what the log passes to the indexer.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{keys, named};
use crate::StoreError;
use memhost_types::{CompanyId, Operation, Rollup, RollupKey};

/// The state of a company in memory.
#[derive(Default)]
pub(super) struct CompanyState {
    pub(super) last: u64,
    /// Numbers that were given out and whose operations are not indexed yet.
    pub(super) open: BTreeSet<u64>,
    /// The start could not compare the log with the index, so the next one does.
    pub(super) is_uncompared: bool,
}

pub(super) type Companies = Arc<Mutex<HashMap<CompanyId, CompanyState>>>;

impl CompanyState {
    pub(super) fn after(last: u64) -> Self {
        Self { last, ..Self::default() }
    }

    /// Gives out a number.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last);
        self.last
    }
}

impl CompanyState {
    /// Takes back a number that stays without a record. The last one is given out again, so that a
    /// flood of refusals leaves no gap.
    pub(super) fn take_back(&mut self, sequence: u64) {
        self.open.remove(&sequence);
        if self.last == sequence {
            self.last -= 1;
        }
    }
}

/// The highest number that a company's operations have.
pub(super) fn last(companies: &Companies, company: &CompanyId) -> u64 {
    companies.lock().get(company).map_or(0, |state| state.last)
}

/// Whether every operation of a company is indexed.
pub(super) fn is_settled(companies: &Companies, company: &CompanyId) -> bool {
    companies.lock().get(company).is_none_or(|state| state.open.is_empty())
}

/// The number up to which every operation is indexed or was never written.
pub(super) fn watermark(companies: &Companies, company: &CompanyId) -> u64 {
    let companies = companies.lock();
    let Some(state) = companies.get(company) else { return 0 };
    state.open.first().map_or(state.last, |open| open - 1)
}

/// Receives how many keys of a company were removed.
pub(super) type Erased = oneshot::Sender<Result<u64, StoreError>>;

/// An operation whose record is on disk.
pub(super) struct Applied {
    pub(super) company: CompanyId,
    pub(super) sequence: u64,
    pub(super) facets: Vec<Vec<u8>>,
    /// The checksums of the records that it names.
    pub(super) named: Vec<u32>,
    pub(super) sums: Vec<(RollupKey, Rollup)>,
    /// How many refusals it stands for, and the row of one more of them.
    pub(super) count: u64,
    pub(super) again: Option<Box<(RollupKey, Rollup)>>,
}

impl Applied {
    pub(super) fn of(operation: &Operation) -> Self {
        Self {
            company: operation.company_id.clone(),
            sequence: operation.id.sequence(),
            facets: keys::facets_of(operation),
            named: named::checksums_of(operation),
            sums: Rollup::of(operation),
            count: operation.count,
            again: Rollup::again(operation, 1).filter(|_| operation.count > 1).map(Box::new),
        }
    }
}

/// The messages from the log to the indexer, in order.
pub(super) enum Message {
    /// A short operation. The indexer has the time to look at it, the log has not.
    Ended(Arc<Operation>),
    /// A long operation: only what the index takes of it is kept in memory.
    Applied(Applied),
    /// Remove a company from every tree. The log writes nothing until this is answered.
    Erase(CompanyId, Erased),
}
