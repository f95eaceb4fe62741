//! What a lane writes: rows, operations, and what they change.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::company::{Company, Part, RowKey};
use crate::group::Term;
use crate::place::kind;
use memhost_store::{StoreError, Table};
use memhost_types::Operation;

/// One row. `None`: it is deleted.
pub(crate) struct Row {
    pub(crate) company: i64,
    pub(crate) key: RowKey,
    pub(crate) value: Option<Arc<[u8]>>,
    /// What counts of it as what its company has; none for kinds that do not count.
    pub(crate) prefix_bytes: Option<usize>,
}

/// What is known of the record that an operation's record replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaces {
    /// Nothing that is in the sums: there is none, or it was in progress.
    Unsummed,
    /// A record of an import, whose own sums count it so many times.
    Imported(u64),
    /// The database must be asked.
    Unknown,
}

/// An operation's record.
pub(crate) struct Record {
    pub(crate) company: Arc<Company>,
    pub(crate) operation: Arc<Operation>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) replaces: Replaces,
}

/// What is written as a whole or not at all.
pub(crate) struct Item {
    /// Each company whose rows are in it.
    pub(crate) parts: Vec<Part>,
    pub(crate) rows: Vec<Row>,
    pub(crate) record: Option<Record>,
    /// The rows of a company and kind below a prefix. They are deleted after rows were written.
    pub(crate) removed: Vec<(i64, RowKey)>,
    pub(crate) reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Item {
    /// Why it must not be written: a company of it was given up.
    pub(crate) fn refused(&self) -> Option<StoreError> {
        self.parts.iter().find_map(Part::refused)
    }

    /// The rows of `homes` that must have these tokens when it is written.
    pub(crate) fn fences(&self) -> impl Iterator<Item = (i64, i64)> {
        self.parts.iter().flat_map(|part| part.company.fence())
    }

    /// The term in which it is written.
    pub(crate) fn term(&self) -> Option<Term> {
        self.parts.first().and_then(|part| part.company.term)
    }

    pub(crate) fn bytes(&self) -> usize {
        let rows = self
            .rows
            .iter()
            .map(|row| row.key.1.len() + row.value.as_ref().map_or(0, |value| value.len()));
        rows.sum::<usize>() + self.record.as_ref().map_or(0, |record| record.bytes.len())
    }

    /// Whether it brings rows that a lane otherwise derives: those of an import.
    pub(crate) fn brings_derived_rows(&self) -> bool {
        let derived = [Table::Sums, Table::CostOrder].map(kind);
        self.rows.iter().any(|row| derived.contains(&row.key.0))
    }

    /// Whether it is nothing but the record of this operation.
    pub(crate) fn is_record_alone(&self) -> bool {
        self.rows.is_empty() && self.removed.is_empty()
    }

    /// The company and the number of its record.
    pub(crate) fn number(&self) -> Option<(i64, u64)> {
        let record = self.record.as_ref()?;
        Some((record.company.id, record.operation.id.sequence()))
    }

    /// Takes it out of the memory of its companies. `held` are the new counts of what they have.
    fn settle(&self, is_committed: bool, held: &HashMap<i64, i64>) {
        for part in &self.parts {
            let company = part.company.id;
            let own = self.rows.iter().filter(|row| row.company == company);
            let keys = own.map(|row| row.key.clone()).collect();
            let number = self.number().filter(|(of, _)| *of == company).map(|(_, number)| number);
            part.settle(keys, number, (is_committed, held.get(&company).copied()));
        }
    }

    /// It is committed: whoever waits is told, and later readers find it in the database.
    pub(crate) fn committed(self, held: &HashMap<i64, i64>) {
        self.settle(true, held);
        let _ = self.reply.send(Ok(()));
    }

    /// It was not written, and never will be. Nothing that is built on it is kept.
    pub(crate) fn failed(self, error: StoreError) {
        for part in &self.parts {
            part.company.fail(&error);
        }
        self.refuse(error);
    }

    /// It was not written, and nothing can be built on it.
    pub(crate) fn refuse(self, error: StoreError) {
        self.settle(false, &HashMap::new());
        let _ = self.reply.send(Err(error));
    }
}
