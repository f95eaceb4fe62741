//! Marks that nobody needs any more: an owner whose last private record of a binding is gone hides
//! nothing there.
//!
//! Rows of private records and the mark of their owner are written by different operations, so a
//! mark is removed in a step of its own, after the rows. A private write that begins meanwhile
//! writes the mark again with its intent; where that was too early, it is written here once more,
//! before the write can end. A crash in between loses nothing: a write that goes on, or whose end
//! is not known, says by its own mark that its owner has private records.

use std::collections::BTreeSet;

use super::{Mark, Owner, Records};
use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{BindingId, CompanyId, RecordRow};

impl Records {
    /// Removes the marks of those of these owners who have no private record at a binding any more.
    /// It reads rows of the binding until it has found one of each of them.
    pub(crate) async fn settle(
        &self,
        company: &CompanyId,
        binding: BindingId,
        mut owners: BTreeSet<Owner>,
    ) -> Result<(), StoreError> {
        owners.retain(|owner| self.marks.read().is_idle(binding, owner));
        if owners.is_empty() {
            return Ok(());
        }
        // No private write ends from here on: its rows are written under this lock.
        let _lock = self.lock(binding).await?;
        owners.retain(|owner| self.marks.read().is_idle(binding, owner));
        let mut rows = store::scan_all(
            &*self.store,
            Table::Records,
            &store::company_key(company, binding.0.as_bytes()),
        );
        while !owners.is_empty()
            && let Some((_, row)) = rows.next_row::<RecordRow>("record row").await?
        {
            if let Some(owner) = Owner::of(row.visibility, &row.scope) {
                owners.remove(&owner);
            }
        }
        drop(rows);
        let marks: Vec<Mark> =
            owners.iter().map(|owner| Mark::owns(company, binding, owner.clone())).collect();
        let gone: Vec<Change> = marks
            .iter()
            .map(|mark| Change::always(Table::PrivateWrites, mark.key(), None))
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        store::write(&*self.store, &gone).await?;
        let began = self.marks.write().disown(binding, &owners);
        let mut again = Vec::new();
        for owner in began {
            again.push(Change::from(Mark::owns(company, binding, owner).write()?));
        }
        if !again.is_empty() {
            store::write(&*self.store, &again).await?;
        }
        Ok(())
    }

    /// The same for all marks of a company, where `seen` are the owners of its private rows: what a
    /// crash left behind.
    pub(super) async fn settle_others(
        &self,
        company: &CompanyId,
        seen: &BTreeSet<(BindingId, Owner)>,
    ) -> Result<(), StoreError> {
        let prefix = store::company_key(company, b"");
        let mut rows = store::scan_all(&*self.store, Table::PrivateWrites, &prefix);
        let mut stale = Vec::new();
        while let Some((_, mark)) = rows.next_row::<Mark>("private write").await? {
            stale.extend(mark.owner_only().filter(|owned| !seen.contains(owned)));
        }
        drop(rows);
        for (binding, owner) in stale {
            self.settle(company, binding, BTreeSet::from([owner])).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use tempfile::TempDir;
    use uuid::Uuid;

    use super::*;
    use crate::records::{PrivateWrite, Reader};
    use memhost_store::{SledOptions, SledStore, Store, TableWrite};
    use memhost_types::OperationId;

    const BINDING: BindingId = BindingId(Uuid::from_u128(7));

    fn ada() -> BTreeSet<Owner> {
        BTreeSet::from([Owner::Agent("ada".parse().unwrap())])
    }

    fn acme() -> CompanyId {
        "acme".parse().unwrap()
    }

    fn begins(number: u64) -> PrivateWrite {
        PrivateWrite {
            company_id: acme(),
            binding_id: BINDING,
            operation_id: OperationId::new(1, number, 1),
            owner: ada().pop_first().unwrap(),
            since: Timestamp::UNIX_EPOCH,
        }
    }

    async fn opened(store: &Arc<dyn Store>) -> Records {
        Records::open(Arc::clone(store), Timestamp::UNIX_EPOCH).await.unwrap()
    }

    async fn put(store: &Arc<dyn Store>, rows: Vec<TableWrite>) {
        store::write(&**store, &rows.into_iter().map(Change::from).collect::<Vec<_>>())
            .await
            .unwrap();
    }

    /// Whether something is hidden from other readers, now and after a restart.
    async fn hides(store: &Arc<dyn Store>, records: &Records) -> (bool, bool) {
        let again = Records { store: Arc::clone(store), marks: opened_marks(store).await };
        (records.hides_from(BINDING, &Reader::Nobody), again.hides_from(BINDING, &Reader::Nobody))
    }

    async fn opened_marks(store: &Arc<dyn Store>) -> parking_lot::RwLock<super::super::Marks> {
        parking_lot::RwLock::new(super::super::Marks::as_written(&**store, b"").await.unwrap())
    }

    #[tokio::test]
    async fn a_mark_goes_only_when_no_private_write_goes_on() {
        let directory = TempDir::new().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(SledStore::open(directory.path(), SledOptions::default()).unwrap());
        let records = opened(&store).await;
        put(&store, records.begin(&begins(1)).unwrap()).await;
        records.settle(&acme(), BINDING, ada()).await.unwrap();
        assert_eq!(hides(&store, &records).await, (true, true), "it may make a record");
        put(&store, records.end(&begins(1), true, Timestamp::UNIX_EPOCH).unwrap()).await;
        records.ended(&begins(1));
        assert_eq!(hides(&store, &records).await, (true, true));
        // Nothing settles the owner again, as after a crash: the sweep removes the mark.
        records.sweep(&acme(), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(hides(&store, &records).await, (false, false));
        // A write that ended without an answer may have made a private record.
        put(&store, records.begin(&begins(2)).unwrap()).await;
        put(&store, records.end(&begins(2), false, Timestamp::UNIX_EPOCH).unwrap()).await;
        records.ended(&begins(2));
        records.sweep(&acme(), Timestamp::UNIX_EPOCH).await.unwrap();
        assert_eq!(hides(&store, &records).await, (true, true));
    }

    #[tokio::test]
    async fn a_write_that_begins_while_a_mark_goes_has_it() {
        let directory = TempDir::new().unwrap();
        let store: Arc<dyn Store> =
            Arc::new(SledStore::open(directory.path(), SledOptions::default()).unwrap());
        let records = opened(&store).await;
        let rows = records.begin(&begins(3)).unwrap();
        assert_eq!(
            records.marks.write().disown(BINDING, &ada()),
            ada().into_iter().collect::<Vec<_>>()
        );
        assert!(records.hides_from(BINDING, &Reader::Nobody));
        // The mark of the owner was removed after the write had written it, and then the host
        // crashed.
        let (going, owns): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| {
            let mark: Mark = store::decode("mark", row.new.as_deref().unwrap()).unwrap();
            mark.owner_only().is_none()
        });
        assert_eq!((going.len(), owns.len()), (1, 1));
        put(&store, going).await;
        assert!(
            opened(&store).await.hides_from(BINDING, &Reader::Nobody),
            "the write may have made a record"
        );
    }
}
