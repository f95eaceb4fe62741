//! The marks of one operation, from its plan to the moment when its end is on disk.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::marks::PrivateWrite;
use super::{Owner, Ownership, Records};
use memhost_store::{StoreError, Table, TableWrite};
use memhost_types::{Binding, Operation, OperationErrorCode};

/// How far an operation came with its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No provider was called.
    NotCalled,
    /// The provider was called and gave no answer, for this reason where one is known.
    Called(Option<OperationErrorCode>),
    /// The provider answered.
    Answered,
}

/// One operation's part of the marks.
#[derive(Debug, Default)]
pub struct OperationMarks {
    /// The private write that it plans.
    planned: Option<PrivateWrite>,
    /// The same once a mark on disk says so.
    begun: Option<PrivateWrite>,
    taken_from: BTreeSet<Owner>,
    lacks_rows: bool,
}

impl OperationMarks {
    /// Notes the ownership of what the operation will write.
    pub fn plan(&mut self, operation: &Operation, binding: &Binding, ownership: &Ownership) {
        self.planned = PrivateWrite::of(operation, binding, ownership);
    }

    /// Notes that these owners lose a private record.
    pub fn take_from(&mut self, owners: impl IntoIterator<Item = Owner>) {
        self.taken_from.extend(owners);
    }

    /// Notes that the provider has records whose rows could not be made.
    pub fn rows_are_missing(&mut self) {
        self.lacks_rows = true;
    }

    /// The rows that go with the intent of a write, before the provider is called: from here on a
    /// record without a row may be this operation's.
    ///
    /// # Errors
    /// Where a mark cannot be encoded.
    pub fn begin(&mut self, records: &Records) -> Result<Vec<TableWrite>, StoreError> {
        self.begun = self.planned.take();
        self.begun.as_ref().map_or_else(|| Ok(Vec::new()), |write| records.begin(write))
    }

    /// The intent could not be stored: the provider is not called.
    pub fn abandon(&mut self, records: &Records) {
        if let Some(write) = self.begun.take() {
            records.ended(&write);
        }
    }

    /// The rows that go with the completion. Where it is not known what the provider did, a mark
    /// keeps the time in which the write ran: not every failure says that nothing was written.
    ///
    /// # Errors
    /// Where a mark cannot be encoded.
    pub fn end(
        &self,
        records: &Records,
        progress: Progress,
        now: Timestamp,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let Some(write) = &self.begun else { return Ok(Vec::new()) };
        let is_known = match progress {
            Progress::NotCalled => true,
            Progress::Answered => !self.lacks_rows,
            Progress::Called(error) => error.is_some_and(|code| !code.is_worth_another_try()),
        };
        records.end(write, is_known, now)
    }

    /// The completion, with these rows, is on disk. Answers the owners who may have no private
    /// record any more; [`Records::remove_stale`] is called with them once the operation's locks
    /// are free.
    pub fn ended(&mut self, records: &Records, completion: &[TableWrite]) -> BTreeSet<Owner> {
        if let Some(write) = &self.begun {
            records.ended(write);
            // A write that made no row leaves its owner as it was.
            if !completion.iter().any(|row| row.table == Table::Records && row.new.is_some()) {
                self.taken_from.insert(write.owner.clone());
            }
        }
        std::mem::take(&mut self.taken_from)
    }
}
