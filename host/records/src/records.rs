//! The rows of all records in the store, and what changes them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;

use super::keys::{key, key_of, prefix};
use super::marks::Marks;
use super::{Owner, Reader, expiry_index, source_index};
use memhost_store::{self as store, Change, Lease, LockKind, Store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, RecordId, RecordRow};

/// Rows that are removed in one step.
pub(super) const AT_ONCE: usize = 500;

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
    pub(super) store: Arc<dyn Store>,
    pub(super) marks: RwLock<Marks>,
    /// The bindings with records that expire. No entry of their index is of an earlier time.
    pub(super) expiring: RwLock<HashMap<BindingId, Timestamp>>,
    /// Whether a binding has rows, for those of which it was asked or written.
    with_rows: RwLock<HashMap<BindingId, bool>>,
}

impl Records {
    /// Reads the marks. A private write that a crash cut off is recorded as ended at this moment.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn open(store: Arc<dyn Store>, now: Timestamp) -> Result<Self, StoreError> {
        let marks = Marks::read(&*store, b"", now).await?;
        let expiring = RwLock::new(expiry_index::first_times(&*store, b"").await?);
        Ok(Self { store, marks: RwLock::new(marks), expiring, with_rows: RwLock::default() })
    }

    /// Reads the marks of a company that was imported.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn reload(&self, company: &CompanyId, now: Timestamp) -> Result<(), StoreError> {
        let found = Marks::read(&*self.store, &store::company_key(company, b""), now).await?;
        self.marks.write().extend(found);
        let prefix = store::company_key(company, b"");
        for (binding, at) in expiry_index::first_times(&*self.store, &prefix).await? {
            self.expires(binding, at);
        }
        self.with_rows.write().clear();
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

    /// The same, from memory: many bindings have none, and a query need not read any then.
    pub(super) async fn has_rows(&self, binding: &Binding) -> Result<bool, StoreError> {
        if let Some(known) = self.with_rows.read().get(&binding.id) {
            return Ok(*known);
        }
        let has = self.has_any(binding).await?;
        // A write that came in between knows better.
        Ok(*self.with_rows.write().entry(binding.id).or_insert(has))
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
    pub(super) fn write(
        &self,
        row: &RecordRow,
        before: Option<&RecordRow>,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let value = Some(store::encode("record row", row)?);
        let mut writes = vec![TableWrite::new(Table::Records, key_of(row), value)];
        change_indexes(before, Some(row), &mut writes);
        if self.with_rows.read().get(&row.binding_id) != Some(&true) {
            self.with_rows.write().insert(row.binding_id, true);
        }
        row.expires_at.into_iter().for_each(|at| self.expires(row.binding_id, at));
        Ok(writes)
    }

    /// Notes that a record of a binding expires at this time.
    fn expires(&self, binding: BindingId, at: Timestamp) {
        let mut all = self.expiring.write();
        all.entry(binding).and_modify(|first| *first = at.min(*first)).or_insert(at);
    }

    /// The index entries of a row that an import brings.
    pub fn index_of(row: &RecordRow) -> Vec<TableWrite> {
        let mut writes = Vec::new();
        change_indexes(None, Some(row), &mut writes);
        writes
    }

    /// The key of a row in its table.
    pub fn key_of(row: &RecordRow) -> Vec<u8> {
        key_of(row)
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
            change_indexes(row.as_ref(), None, &mut changes.writes);
            let key = key(&binding.company_id, binding.id, record);
            changes.writes.push(TableWrite::new(Table::Records, key, None));
        }
        Ok(changes)
    }

    /// Forgets the marks of a binding that was deleted. [`remove_binding`] removes its rows.
    pub fn forget_binding(&self, binding: BindingId) {
        self.marks.write().forget(binding);
        self.expiring.write().remove(&binding);
        self.with_rows.write().remove(&binding);
    }

    /// Writes changes and empties the list once there are this many.
    pub(super) async fn write_many(
        &self,
        changes: &mut Vec<Change>,
        from: usize,
    ) -> Result<(), StoreError> {
        if changes.len() >= from {
            store::write(&*self.store, &std::mem::take(changes)).await?;
        }
        Ok(())
    }
}

/// Adds what changes in the indexes when a row takes the place of another one.
fn change_indexes(
    before: Option<&RecordRow>,
    after: Option<&RecordRow>,
    writes: &mut Vec<TableWrite>,
) {
    source_index::change(before, after, writes);
    expiry_index::change(before, after, writes);
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

/// Removes everything that the five tables have of a binding.
///
/// # Errors
/// Where the store fails. Some of it is removed then.
pub async fn remove_binding(
    store: &dyn Store,
    company: &CompanyId,
    binding: BindingId,
) -> Result<(), StoreError> {
    let prefix = prefix(company, binding);
    for table in [
        Table::Records,
        Table::RecordSources,
        Table::RecordExpiries,
        Table::PrivateWrites,
        Table::ForgottenSources,
    ] {
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
