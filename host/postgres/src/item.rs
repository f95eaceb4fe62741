//! What a lane writes: rows, operations, and what they change.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::company::{Company, Part, RowKey};
use memhost_store::StoreError;
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
    /// The rows of a company and kind below a prefix, which are deleted after the rows were written.
    pub(crate) removed: Vec<(i64, RowKey)>,
    pub(crate) reply: oneshot::Sender<Result<(), StoreError>>,
}

impl Item {
    /// Why it must not be written: a company of it was given up.
    pub(crate) fn refused(&self) -> Option<StoreError> {
        self.parts.iter().find_map(|part| part.company.state.lock().failed.clone())
    }

    pub(crate) fn bytes(&self) -> usize {
        let rows = self.rows.iter().map(|row| row.value.as_ref().map_or(0, |value| value.len()));
        rows.sum::<usize>() + self.record.as_ref().map_or(0, |record| record.bytes.len())
    }

    /// Takes it out of the memory of its companies.
    fn retire(&self) {
        for part in &self.parts {
            let own = self.rows.iter().filter(|row| row.company == part.company.id);
            let keys: Vec<_> = own.map(|row| row.key.clone()).collect();
            let record = self.record.as_ref().filter(|one| one.company.id == part.company.id);
            part.retire(&keys, record.map(|record| record.operation.id.sequence()));
        }
    }

    /// It is committed: whoever waits is told, and readers find it in the database.
    pub(crate) async fn committed(self) {
        let mut guards = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            guards.push(part.company.retiring.write().await);
        }
        self.retire();
        drop(guards);
        let _ = self.reply.send(Ok(()));
    }

    /// It was not written, and never will be.
    pub(crate) fn failed(self, error: StoreError) {
        for part in &self.parts {
            part.company.fail(&error);
        }
        self.retire();
        let _ = self.reply.send(Err(error));
    }
}
