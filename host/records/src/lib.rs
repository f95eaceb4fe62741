//! The rows of records: what the host knows of each record that an operation made, whose it is, and
//! what was forgotten. Every read asks the rows, whatever a provider does with its own partitions.
//!
//! Four tables belong to this crate, and only it builds their keys: `Records` (a row for each
//! record), `RecordSources` (an index of the rows by source), `PrivateWrites` (marks: which
//! bindings have private records, and which private writes go on) and `ForgottenSources` (sources
//! and scopes that were forgotten). All keys of a binding are below its id, so that they are
//! removed with it.
//!
//! The crate knows no operation that runs and no provider. Its functions return [`RowChanges`],
//! which the caller writes in one step with the operation's completion.

mod binding_of;
mod forgotten;
mod marks;
mod operation_marks;
mod ownership;
mod partition;
mod reader;
mod source_index;
mod visible;
mod written;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use uuid::Uuid;

use self::marks::Marks;

pub use self::forgotten::{Selection, Since};
pub use self::marks::Mark;
pub use self::operation_marks::{OperationMarks, Progress};
pub use self::ownership::{Ownership, check_owner};
pub use self::partition::HostPartitions;
pub use self::reader::{Owner, Reader, Viewer};
pub use self::visible::assert_source;
pub use self::written::{Made, visibility_in};
use memhost_store::{self as store, Change, Lease, LockKind, Store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, RecordId, RecordRow};

/// Rows that are removed in one step.
const AT_ONCE: usize = 500;

/// An operation's changes of the rows.
#[derive(Default)]
pub struct RowChanges {
    /// Written in one step with the operation's completion.
    pub writes: Vec<TableWrite>,
    /// Owners who lose a private record, and may have none left.
    pub taken_from: BTreeSet<Owner>,
    /// Held until the writes are on disk.
    pub lock: Option<Lease>,
}

/// The rows of all records, in the store. The marks are kept in memory, too.
pub struct Records {
    store: Arc<dyn Store>,
    marks: RwLock<Marks>,
}

impl Records {
    /// Reads the marks. A private write that a crash cut off is recorded as ended at this moment.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn open(store: Arc<dyn Store>, now: Timestamp) -> Result<Self, StoreError> {
        let marks = Marks::read(&*store, b"", now).await?;
        Ok(Self { store, marks: RwLock::new(marks) })
    }

    /// Reads the marks of a company that was imported.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn reload(&self, company: &CompanyId, now: Timestamp) -> Result<(), StoreError> {
        let found = Marks::read(&*self.store, &store::company_key(company, b""), now).await?;
        self.marks.write().extend(found);
        Ok(())
    }

    /// Reads the marks of a binding after another process has written or removed the one of this
    /// key.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn follow(&self, row: &TableWrite) -> Result<(), StoreError> {
        let (Table::PrivateWrites, Some(company)) = (row.table, store::company_of(&row.key)) else {
            return Ok(());
        };
        let company = &company;
        let bytes = row
            .key
            .get(store::company_key(company, b"").len()..)
            .and_then(|rest| rest.first_chunk::<16>());
        let Some(binding) = bytes.map(|bytes| BindingId(Uuid::from_bytes(*bytes))) else {
            return Ok(());
        };
        let found = Marks::as_written(&*self.store, &prefix(company, binding)).await?;
        let mut marks = self.marks.write();
        marks.forget(binding);
        marks.extend(found);
        Ok(())
    }

    /// The row of a record.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn row(
        &self,
        binding: &Binding,
        record: &RecordId,
    ) -> Result<Option<RecordRow>, StoreError> {
        let stored =
            self.store.get(Table::Records, &key(&binding.company_id, binding.id, record)).await?;
        stored.map(|value| store::decode("record row", &value)).transpose()
    }

    /// All rows of a binding, in the order of the records' ids.
    pub fn rows(&self, company: &CompanyId, binding: BindingId) -> Rows<'_> {
        Rows(store::scan_all(&*self.store, Table::Records, &prefix(company, binding)))
    }

    /// Whether a binding has a row.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn has_any(&self, binding: &Binding) -> Result<bool, StoreError> {
        let prefix = prefix(&binding.company_id, binding.id);
        Ok(!self.store.scan(Table::Records, &prefix, None, 1).await?.entries.is_empty())
    }

    /// A lock for whoever reads rows and writes them, held until they are on disk, where some may
    /// be private.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock(&self, binding: BindingId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Records, binding.0.as_bytes()).await
    }

    /// Whether a binding has records, or may have, that are not for the whole company.
    pub fn has_private(&self, binding: BindingId) -> bool {
        self.marks.read().has_others(binding, &Reader::Nobody)
    }

    /// Whether a binding has records, or may have, that this reader must not see.
    pub fn hides_from(&self, binding: BindingId, reader: &Reader) -> bool {
        *reader != Reader::All && self.marks.read().has_others(binding, reader)
    }

    /// The row of a record as it is written in the place of another one, and its index entries.
    fn write(row: &RecordRow, before: Option<&RecordRow>) -> Result<Vec<TableWrite>, StoreError> {
        let value = Some(store::encode("record row", row)?);
        let mut writes = vec![TableWrite::new(Table::Records, key_of(row), value)];
        source_index::change(before, Some(row), &mut writes);
        Ok(writes)
    }

    /// The index entries of a row that an import brings.
    pub fn index_of(row: &RecordRow) -> Vec<TableWrite> {
        let mut writes = Vec::new();
        source_index::change(None, Some(row), &mut writes);
        writes
    }

    /// Whether a row has this key in its table.
    pub fn is_key_of(row: &RecordRow, found: &[u8]) -> bool {
        found == key_of(row)
    }

    /// Removes the rows of records and their index entries.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn remove(
        &self,
        binding: &Binding,
        records: impl Iterator<Item = &RecordId>,
    ) -> Result<RowChanges, StoreError> {
        let mut changes = RowChanges::default();
        for record in records {
            let row = self.row(binding, record).await?;
            changes.taken_from.extend(row.as_ref().and_then(Owner::of_row));
            source_index::change(row.as_ref(), None, &mut changes.writes);
            let key = key(&binding.company_id, binding.id, record);
            changes.writes.push(TableWrite::new(Table::Records, key, None));
        }
        Ok(changes)
    }

    /// Forgets the marks of a binding that was deleted. [`remove_binding`] removes its rows.
    pub fn forget_binding(&self, binding: BindingId) {
        self.marks.write().forget(binding);
    }

    /// Removes the rows of company-wide records that are expired: no answer has them any more. The
    /// row of a private record stays, because its provider may still answer it. Removes the marks
    /// of owners without private records. Answers the number of removed rows.
    ///
    /// # Errors
    /// Where the store fails. Some of them are removed then.
    pub async fn sweep(&self, company: &CompanyId, now: Timestamp) -> Result<u64, StoreError> {
        let mut rows =
            store::scan_all(&*self.store, Table::Records, &store::company_key(company, b""));
        let (mut old, mut count, mut owners) = (Vec::new(), 0, BTreeSet::new());
        while let Some((key, row)) = rows.next_row::<RecordRow>("record row").await? {
            owners.extend(Owner::of_row(&row).map(|owner| (row.binding_id, owner)));
            if !row.is_private() && row.expires_at.is_some_and(|at| at <= now) {
                count += 1;
                let mut writes = vec![TableWrite::new(Table::Records, key, None)];
                source_index::change(Some(&row), None, &mut writes);
                old.extend(writes.into_iter().map(Change::from));
            }
            self.write_many(&mut old, AT_ONCE).await?;
        }
        self.write_many(&mut old, 1).await?;
        self.remove_stale_of(company, &owners).await?;
        Ok(count)
    }

    /// Writes changes and empties the list once there are this many.
    async fn write_many(&self, changes: &mut Vec<Change>, from: usize) -> Result<(), StoreError> {
        if changes.len() >= from {
            store::write(&*self.store, &std::mem::take(changes)).await?;
        }
        Ok(())
    }
}

/// The rows of a binding, read page by page.
pub struct Rows<'a>(store::Scan<'a>);

impl Rows<'_> {
    /// The next row.
    ///
    /// # Errors
    /// Where it cannot be read or decoded.
    pub async fn next(&mut self) -> Result<Option<RecordRow>, StoreError> {
        Ok(self.0.next_row("record row").await?.map(|(_, row)| row))
    }
}

/// Removes everything that the four tables have of a binding.
///
/// # Errors
/// Where the store fails. Some of it is removed then.
pub async fn remove_binding(
    store: &dyn Store,
    company: &CompanyId,
    binding: BindingId,
) -> Result<(), StoreError> {
    let prefix = prefix(company, binding);
    for table in
        [Table::Records, Table::RecordSources, Table::PrivateWrites, Table::ForgottenSources]
    {
        let mut rows = store::scan_all(store, table, &prefix);
        let mut gone = Vec::new();
        while let Some((key, _)) = rows.next().await? {
            gone.push(Change::always(table, key, None));
            if gone.len() >= AT_ONCE {
                store::write(store, &std::mem::take(&mut gone)).await?;
            }
        }
        if !gone.is_empty() {
            store::write(store, &gone).await?;
        }
    }
    Ok(())
}

/// The beginning of every key of a binding.
fn prefix(company: &CompanyId, binding: BindingId) -> Vec<u8> {
    store::company_key(company, binding.0.as_bytes())
}

fn key(company: &CompanyId, binding: BindingId, record: &RecordId) -> Vec<u8> {
    [&prefix(company, binding)[..], record.as_str().as_bytes()].concat()
}

fn key_of(row: &RecordRow) -> Vec<u8> {
    key(&row.company_id, row.binding_id, &row.handle.provider_record_id)
}
