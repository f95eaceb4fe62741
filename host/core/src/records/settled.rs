//! Marks that nobody needs any more: an owner whose last private record of a binding is gone hides nothing there.
//!
//! Rows of private records and the mark of their owner are written by different operations, so a mark is removed in a step
//! of its own, after the rows. A private write that begins meanwhile writes the mark again with its intent; where that
//! was too early, it is written here once more, before the write can end. A crash in between loses nothing: a write
//! that goes on, or whose end is not known, says by its own mark that its owner has private records.

use std::collections::BTreeSet;

use super::{Mark, Owner, Records};
use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{BindingId, CompanyId, RecordRow};

impl Records {
    /// Removes the marks of those of these owners who have no private record at a binding any more. It reads rows of the
    /// binding until it has found one of each of them.
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
        let mut rows =
            store::scan_all(&*self.store, Table::Records, &store::company_key(company, binding.0.as_bytes()));
        while !owners.is_empty()
            && let Some((_, row)) = rows.next_row::<RecordRow>("record row").await?
        {
            if let Some(owner) = Owner::of(row.visibility, &row.scope) {
                owners.remove(&owner);
            }
        }
        drop(rows);
        let marks: Vec<Mark> = owners.iter().map(|owner| Mark::owns(company, binding, owner.clone())).collect();
        let gone: Vec<Change> =
            marks.iter().map(|mark| Change::always(Table::PrivateWrites, mark.key(), None)).collect();
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

    /// The same for all marks of a company, where `seen` are the owners of its private rows: what a crash left behind.
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
