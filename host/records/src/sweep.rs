//! Removes what nobody needs any more: marks of owners without private records, who hide nothing.
//!
//! Different operations write the rows of private records and the mark of their owner, so a mark is
//! removed in a step of its own, after the rows. A private write that begins meanwhile writes the
//! mark again with its intent; where that was too early, it is written here once more, before the
//! write can end. A crash in between loses nothing: a write that runs, or whose end is not known,
//! says by its own mark that its owner has private records.

use std::collections::BTreeSet;

use super::keys::prefix;
use super::marks::Mark;
use super::{Owner, Records};
use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{BindingId, CompanyId, RecordRow};

impl Records {
    /// Removes the marks of owners without private records.
    ///
    /// # Errors
    /// Where the store fails. Some of them are removed then.
    pub async fn sweep(&self, company: &CompanyId) -> Result<(), StoreError> {
        let mut rows =
            store::scan_all(&*self.store, Table::Records, &store::company_key(company, b""));
        let mut owners = BTreeSet::new();
        while let Some((_, row)) = rows.next_row::<RecordRow>("record row").await? {
            owners.extend(Owner::of_row(&row).map(|owner| (row.binding_id, owner)));
        }
        drop(rows);
        self.remove_stale_of(company, &owners).await
    }

    /// Removes the marks of those of these owners who have no private record at a binding any more.
    /// It reads rows of the binding until it has found one of each of them.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn remove_stale(
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
        let mut rows = store::scan_all(&*self.store, Table::Records, &prefix(company, binding));
        while !owners.is_empty()
            && let Some((_, row)) = rows.next_row::<RecordRow>("record row").await?
        {
            if let Some(owner) = Owner::of_row(&row) {
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
    async fn remove_stale_of(
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
            self.remove_stale(company, binding, BTreeSet::from([owner])).await?;
        }
        Ok(())
    }
}
