//! A company's operations, oldest first, so that they are written in their order elsewhere.

use memhost_store::{Store, StoreError};
use memhost_types::{CompanyId, Operation, OperationFilter};

/// Operations that are read at a time.
const MOST: u64 = 500;

/// Reads a log from its beginning.
pub(crate) struct OldestFirst<'a> {
    store: &'a dyn Store,
    company: &'a CompanyId,
    next: u64,
    last: u64,
    most: u64,
}

impl<'a> OldestFirst<'a> {
    /// What is in the log by now.
    pub(crate) async fn of(
        store: &'a dyn Store,
        company: &'a CompanyId,
    ) -> Result<Self, StoreError> {
        // Nothing is between them where the log is empty.
        let (next, last) = store.operation_range(company).await?.unwrap_or((1, 0));
        Ok(Self { store, company, next, last, most: MOST })
    }

    /// The next ones. Empty: there are no more.
    pub(crate) async fn next(&mut self) -> Result<Vec<Operation>, StoreError> {
        while self.next <= self.last {
            let next = self.next;
            let below = (next + self.most).min(self.last + 1);
            let count = usize::try_from(below - next).unwrap_or(usize::MAX);
            let page = self.page(below, count).await?;
            let lowest = page.0.last().map_or(below, |oldest| oldest.id.sequence());
            // Large operations fill a page before it has all of the oldest ones, which come first.
            if page.1 && page.0.len() < count && lowest > next {
                self.most = (self.most / 2).max(1);
                continue;
            }
            let found = page.0.into_iter().rev();
            let found: Vec<_> = found.filter(|one| one.id.sequence() >= next).collect();
            if found.is_empty() {
                self.next = self.first_from(below).await?;
                continue;
            }
            self.next = below;
            self.most = (self.most * 2).min(MOST);
            return Ok(found);
        }
        Ok(Vec::new())
    }

    /// A page, and whether there are further ones.
    async fn page(&self, below: u64, count: usize) -> Result<(Vec<Operation>, bool), StoreError> {
        let all = OperationFilter::default();
        let page = self.store.operations(self.company, &all, Some(below), count).await?;
        Ok((page.operations, page.next_before.is_some()))
    }

    /// The first number from `from` on that has an operation, by bisection: numbers may have long
    /// gaps.
    async fn first_from(&self, from: u64) -> Result<u64, StoreError> {
        let (mut low, mut high) = (from, self.last + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            let (found, _) = self.page(middle + 1, 1).await?;
            match found.first().is_some_and(|operation| operation.id.sequence() >= from) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(low)
    }
}
