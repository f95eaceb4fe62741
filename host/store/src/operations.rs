//! The operation log: one record for each operation of a company, under a number that only grows.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::{Commit, StoreError, TableWrite};
use memhost_types::{
    CompanyId, Operation, OperationError, OperationErrorCode, OperationFilter, OperationId,
    Outcome, Rollup, RollupKey,
};

/// An operation's number is given out just before its time is read, so two operations that begin
/// together may have their times in the other order. No more than this many can begin within such a
/// moment.
pub const TIME_SLACK: u64 = 1_024;

/// One page of the log, newest first.
#[derive(Debug, Clone, Default)]
pub struct LogPage {
    /// At most as many as asked for. The page ends before that with the operation that makes it
    /// larger than [`memhost_types::limits::MAX_PAGE_BYTES`], or after many operations that were
    /// read and do not match. So it may be empty and have a next page.
    pub operations: Vec<Operation>,
    /// Pass it as `before` to get the next page. `None` after the last one.
    pub next_before: Option<u64>,
}

/// The number of the company's next operation, from 1.
///
/// # Errors
/// Where the company cannot be loaded.
pub async fn next_sequence(
    store: &dyn OperationLog,
    company: &CompanyId,
) -> Result<u64, StoreError> {
    loop {
        if let Some(number) = store.take_sequence(company) {
            return Ok(number);
        }
        store.reserve_sequences(company).await?;
    }
}

/// Makes the record of an operation in progress that of one whose host has ended.
pub fn interrupted_at_start(operation: &mut Operation) {
    operation.outcome = Outcome::Interrupted;
    operation.error = Some(OperationError {
        code: OperationErrorCode::Interrupted,
        message: "the host ended while the provider was at work; whether the write happened is \
                  not known: look for its records, and repeat it if they are missing"
            .to_owned(),
        field: None,
        retry_after_ms: None,
    });
}

/// The operation log.
#[async_trait]
pub trait OperationLog: Send + Sync {
    /// A number for the company's next operation, from 1. `None` if the company must be loaded
    /// first. Use [`next_sequence`], which does both.
    ///
    /// No number is given twice while the store is open. After a crash, a number whose record was
    /// never written may be given again; the operation's id differs then.
    ///
    /// This call never waits: every operation makes it. Only the home of a company gives its
    /// numbers, so they are in the order in which operations begin.
    fn take_sequence(&self, company: &CompanyId) -> Option<u64>;

    /// Loads a company for [`OperationLog::take_sequence`].
    ///
    /// # Errors
    /// Where the store cannot be reached.
    async fn reserve_sequences(&self, company: &CompanyId) -> Result<(), StoreError>;

    /// Takes back a number that no record was written for and none will be: the operation was a
    /// refusal that is counted in an earlier record.
    fn return_sequence(&self, company: &CompanyId, sequence: u64);

    /// Writes an operation's record. The first write of an id appends; a second one replaces it,
    /// which only a completion after an intent does. The record is encoded on the caller's thread:
    /// the log has one, for which everybody waits. `beside` is written in the same step: all of it
    /// and the record, or nothing. For each new row of [`crate::Table::CostEvents`] in it, a row of
    /// [`crate::Table::CostOrder`] is written with the company's next number. Rows become visible
    /// in the order of their numbers.
    ///
    /// A record that is still `in_progress` after its process ended is rewritten as `interrupted`:
    /// when the embedded store is opened, and where hosts share a store when another one becomes
    /// the company's home.
    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit;

    /// The same for a record that nobody waits for: a store may write it together with those of the
    /// next few milliseconds. It is found as soon as this returns.
    fn write_operation_later(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) {
        drop(self.write_operation(operation, beside));
    }

    /// Whether this company's writes queue faster than the disk takes them. A caller that does not
    /// wait for its own commits must wait for one then: otherwise the queue grows without bound and
    /// delays all companies.
    fn is_behind(&self, company: &CompanyId) -> bool;

    /// Whether every operation of a company that began in this process has ended and is on disk and
    /// indexed.
    fn is_settled(&self, company: &CompanyId) -> bool;

    /// One operation.
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError>;

    /// Operations that match, newest first, with numbers below `before`. Includes everything that
    /// this process wrote before the call, whether or not it is on disk yet.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError>;

    /// The number of the oldest of a company's newest `count` operations. Refusals are not counted.
    /// None where there are fewer.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError>;

    /// The numbers of a company's first and last operation in the log. `None` if it has none.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError>;

    /// The number of the first operation that began at or after a moment; the last number plus one
    /// where there is none.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError>;

    /// The sums over a company's operations that began on these days, both included, one row for
    /// each key.
    ///
    /// # Errors
    /// Where they cannot be read.
    async fn rollups(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<Vec<(RollupKey, Rollup)>, StoreError>;

    /// Removes the operations below a number, with their indexes. Sums stay. Operations in progress
    /// stay, and so does the newest operation, so that no number is given twice. Answers how many
    /// were removed.
    ///
    /// # Errors
    /// Where the disk fails; some of them may be removed then.
    async fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError>;

    /// Starts the numbers of a company without operations at 1 again, so that imported operations
    /// can keep theirs.
    ///
    /// # Errors
    /// Where the company has operations.
    async fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError>;

    /// Whether a row of sums from outside is well formed and has its own key. Answers the highest
    /// number of an operation that it says is summed, or 0.
    fn check_sums(&self, company: &CompanyId, key: &[u8], value: &[u8]) -> Option<u64>;

    /// Imports an operation that another host recorded, under its own number, which must be above
    /// all present ones.
    ///
    /// # Errors
    /// Where its number is taken or the disk fails.
    async fn import_operation(&self, operation: Operation) -> Result<(), StoreError>;
}
