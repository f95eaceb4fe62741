//! What the host knows of each record: a row for each handle that an operation made, in one step
//! with the operation's completion. The rows say whose a record is. Every read asks them, whatever
//! the provider does with its own partitions.
//!
//! The rows of a binding are below its id, so that they go with it. `marks` has the writes that may
//! have left a record without a row.

pub(crate) mod home;
pub(crate) mod imported;
mod marks;
pub(crate) mod partition;
mod reader;
mod scopes;
mod settled;
pub(crate) mod shown;
mod source_index;
pub(crate) mod sources;
pub(crate) mod written;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use uuid::Uuid;

use self::marks::Marks;
pub(crate) use self::marks::{Mark, PrivateWrite};
pub(crate) use self::reader::{Owner, Reader};
pub(crate) use self::written::Whose;
use crate::operations::record::Ending;
use memhost_store::{self as store, Change, Lease, LockKind, Store, StoreError, Table, TableWrite};
use memhost_types::{Binding, BindingId, CompanyId, RecordId, RecordRow};

/// Rows that are removed in one step.
const AT_ONCE: usize = 500;

/// The rows of all records, in the store. Which bindings have private ones is kept in memory.
pub(crate) struct Records {
    store: Arc<dyn Store>,
    marks: RwLock<Marks>,
}

impl Records {
    /// Reads the marks. Private writes that a crash cut off are from here on ended at this moment.
    pub(crate) async fn open(store: Arc<dyn Store>, now: Timestamp) -> Result<Self, StoreError> {
        let marks = Marks::read(&*store, b"", now).await?;
        Ok(Self { store, marks: RwLock::new(marks) })
    }

    /// Reads the marks of a company that was imported.
    pub(crate) async fn reload(
        &self,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let found = Marks::read(&*self.store, &store::company_key(company, b""), now).await?;
        self.marks.write().extend(found);
        Ok(())
    }

    /// Reads the marks of a binding after another process has written or removed the one of this
    /// key.
    pub(crate) async fn follow(&self, company: &CompanyId, key: &[u8]) -> Result<(), StoreError> {
        let bytes = key
            .get(store::company_key(company, b"").len()..)
            .and_then(|rest| rest.first_chunk::<16>());
        let Some(binding) = bytes.map(|bytes| BindingId(Uuid::from_bytes(*bytes))) else {
            return Ok(());
        };
        let prefix = store::company_key(company, binding.0.as_bytes());
        let found = Marks::as_written(&*self.store, &prefix).await?;
        let mut marks = self.marks.write();
        marks.forget(binding);
        marks.extend(found);
        Ok(())
    }

    /// What the host knows of a record.
    pub(crate) async fn row(
        &self,
        binding: &Binding,
        record: &RecordId,
    ) -> Result<Option<RecordRow>, StoreError> {
        let stored =
            self.store.get(Table::Records, &key(&binding.company_id, binding.id, record)).await?;
        stored.map(|value| store::decode("record row", &value)).transpose()
    }

    /// Hold this while you look at rows and write them, until they are on disk, where some may be
    /// private.
    pub(crate) async fn lock(&self, binding: BindingId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Records, binding.0.as_bytes()).await
    }

    /// Whether a binding has records, or may have, that are not for the whole company.
    pub(crate) fn has_private(&self, binding: BindingId) -> bool {
        self.marks.read().has_others(binding, &Reader::Nobody)
    }

    /// Whether a binding has records, or may have, that this reader must not see.
    pub(crate) fn hides_from(&self, binding: BindingId, reader: &Reader) -> bool {
        *reader != Reader::All && self.marks.read().has_others(binding, reader)
    }

    /// The row of a record as it is written in the place of another one, and its entries by source.
    pub(crate) fn write(
        row: &RecordRow,
        before: Option<&RecordRow>,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let key = key(&row.company_id, row.binding_id, &row.handle.provider_record_id);
        let mut writes =
            vec![TableWrite::new(Table::Records, key, Some(store::encode("record row", row)?))];
        source_index::change(before, Some(row), &mut writes);
        Ok(writes)
    }

    /// The entries by source of a row that an import brings.
    pub(crate) fn by_source(row: &RecordRow) -> Vec<TableWrite> {
        let mut writes = Vec::new();
        source_index::change(None, Some(row), &mut writes);
        writes
    }

    /// What removes the rows of records and their entries by source, in an operation after which
    /// nobody may have private ones any more.
    pub(crate) async fn remove(
        &self,
        ending: &mut Ending,
        binding: &Binding,
        records: impl Iterator<Item = &RecordId>,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let mut writes = Vec::new();
        for record in records {
            let row = self.row(binding, record).await?;
            ending.takes_from(row.as_ref().and_then(|row| Owner::of(row.visibility, &row.scope)));
            source_index::change(row.as_ref(), None, &mut writes);
            writes.push(TableWrite::new(
                Table::Records,
                key(&binding.company_id, binding.id, record),
                None,
            ));
        }
        Ok(writes)
    }

    /// Forgets a binding that was deleted. Its rows go with [`remove_all`].
    pub(crate) fn forget(&self, binding: BindingId) {
        self.marks.write().forget(binding);
    }

    /// Removes the rows of records that are expired and were for the whole company: they are in no
    /// answer any more. A private one stays private, whatever its provider does. Removes the marks
    /// of owners who have none. Answers how many rows there were.
    pub(crate) async fn sweep(
        &self,
        company: &CompanyId,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut rows =
            store::scan_all(&*self.store, Table::Records, &store::company_key(company, b""));
        let (mut old, mut count, mut owners) = (Vec::new(), 0, BTreeSet::new());
        while let Some((key, row)) = rows.next_row::<RecordRow>("record row").await? {
            owners
                .extend(Owner::of(row.visibility, &row.scope).map(|owner| (row.binding_id, owner)));
            if !row.is_private() && row.expires_at.is_some_and(|at| at <= now) {
                count += 1;
                let mut writes = vec![TableWrite::new(Table::Records, key, None)];
                source_index::change(Some(&row), None, &mut writes);
                old.extend(writes.into_iter().map(Change::from));
            }
            if old.len() >= AT_ONCE {
                store::write(&*self.store, &std::mem::take(&mut old)).await?;
            }
        }
        if !old.is_empty() {
            store::write(&*self.store, &old).await?;
        }
        self.settle_others(company, &owners).await?;
        Ok(count)
    }
}

/// Removes every row and mark of a binding's records, and what it remembers of sources.
pub(crate) async fn remove_all(
    store: &dyn Store,
    company: &CompanyId,
    binding: BindingId,
) -> Result<(), StoreError> {
    let prefix = store::company_key(company, binding.0.as_bytes());
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

/// The key of a row.
pub(crate) fn key(company: &CompanyId, binding: BindingId, record: &RecordId) -> Vec<u8> {
    store::company_key(company, &[binding.0.as_bytes(), record.as_str().as_bytes()].concat())
}
