//! Changes of tables, with the conditions under which they are made.

use crate::{Commit, Table};

/// One change of a table, made only if the present value is the expected one.
#[derive(Debug, Clone)]
pub struct Change {
    /// Where.
    pub table: Table,
    /// Which record.
    pub key: Vec<u8>,
    /// The state that the whole transaction requires.
    pub expected: Expected,
    /// The new value. `None` deletes it.
    pub new: Option<Vec<u8>>,
}

/// One record of a table that is written together with an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableWrite {
    /// Where.
    pub table: Table,
    /// Which record.
    pub key: Vec<u8>,
    /// The new value. `None` deletes it.
    pub new: Option<Vec<u8>>,
}

impl TableWrite {
    /// Writes a record, or deletes it.
    pub fn new(table: Table, key: Vec<u8>, new: Option<Vec<u8>>) -> Self {
        Self { table, key, new }
    }
}

impl Change {
    /// Writes a record, or deletes it, whatever is there.
    pub fn always(table: Table, key: Vec<u8>, new: Option<Vec<u8>>) -> Self {
        Self { table, key, expected: Expected::Anything, new }
    }

    /// Writes a record that must not be there yet.
    pub fn insert(table: Table, key: Vec<u8>, new: Vec<u8>) -> Self {
        Self { table, key, expected: Expected::Absent, new: Some(new) }
    }
}

impl From<TableWrite> for Change {
    fn from(TableWrite { table, key, new }: TableWrite) -> Self {
        Self::always(table, key, new)
    }
}

/// A condition on a record's present value.
#[derive(Debug, Clone)]
pub enum Expected {
    /// No condition.
    Anything,
    /// There is no such record.
    Absent,
    /// Exactly this value.
    Value(Vec<u8>),
}

/// The result of a transaction.
#[derive(Debug)]
pub enum Transacted {
    /// All changes were made.
    Done(Commit),
    /// Nothing was changed: the change at this index found something else than it expected.
    Conflict(usize),
}

/// One page of a table's records.
#[derive(Debug, Clone, Default)]
pub struct TablePage {
    /// Keys and values, in key order.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where the next page begins.
    pub next: Option<Vec<u8>>,
}
