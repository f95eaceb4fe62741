//! Changes of bindings and targets.

use std::sync::Arc;

use crate::activity::NewActivity;
use crate::bindings::registry::{Bindings, named, target_change};
use crate::error::BindingError;
use memhost_ports::new_id;
use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{ActivityAction, Binding, BindingId, BindingKey, CompanyId, Principal, Target};

/// The prefix of the marks of deleted bindings.
const DELETING: &[u8] = b"deleting\0";

fn fresh(present: &Binding, revision: Option<u64>) -> Result<(), BindingError> {
    match revision {
        Some(expected) if expected != present.revision => {
            Err(BindingError::Stale { key: present.key.clone(), expected, found: present.revision })
        }
        _ => Ok(()),
    }
}

impl Bindings {
    /// Changes a binding; durable, with its entry in the activity log, when this returns.
    /// `revision` is the one that the caller knows; `None` accepts any.
    ///
    /// # Errors
    /// Where there is no such binding, it was changed meanwhile, or the store fails.
    pub async fn update(
        &self,
        company_id: &CompanyId,
        binding_key: &BindingKey,
        revision: Option<u64>,
        (principal, action): (&Principal, ActivityAction),
        change: impl FnOnce(&mut Binding),
    ) -> Result<Arc<Binding>, BindingError> {
        let _lock = self.lock(company_id).await?;
        let present = self.get(company_id, binding_key)?;
        fresh(&present, revision)?;
        let mut changed = (*present).clone();
        change(&mut changed);
        if changed == *present {
            return Ok(present);
        }
        changed.revision += 1;
        changed.updated_at = self.clock.now();
        let changed = Arc::new(changed);
        let entry = NewActivity::new(principal, action, binding_key.as_str())
            .with(Some(&*present), Some(&*changed));
        let new = Some(store::encode("binding", &*changed)?);
        match self
            .activity
            .record_with(company_id, entry, vec![self.replace(&present, new).await?])
            .await
        {
            Ok(()) => {}
            // Another process changed it. The caller's revision is checked against what is there
            // now.
            Err(conflict @ BindingError::Conflict { .. }) => {
                self.reload(company_id).await?;
                fresh(&*self.get(company_id, binding_key)?, revision)?;
                return Err(conflict);
            }
            Err(error) => return Err(error),
        }
        self.cache(company_id, |company| {
            drop(company.bindings.insert(binding_key.clone(), Arc::clone(&changed)));
        });
        Ok(changed)
    }

    /// Deletes a binding with the targets that name it; durable, with an entry in the activity log
    /// and a mark (see [`Bindings::deleted`]), when this returns. Its id is never used again.
    ///
    /// # Errors
    /// Where there is no such binding, another one has its key by now, it was changed meanwhile, or
    /// the store fails.
    pub async fn delete(
        &self,
        company_id: &CompanyId,
        (binding_key, id): (&BindingKey, BindingId),
        revision: Option<u64>,
        principal: &Principal,
    ) -> Result<Arc<Binding>, BindingError> {
        let _lock = self.lock(company_id).await?;
        let present = self.get(company_id, binding_key)?;
        if present.id != id {
            return Err(BindingError::NotFound {
                company: company_id.clone(),
                key: binding_key.clone(),
            });
        }
        fresh(&present, revision)?;
        let pointing = self.targets(company_id).into_iter().filter(|(_, key)| key == binding_key);
        let targets: Vec<Target> = pointing.map(|(target, _)| target).collect();
        let entry =
            NewActivity::new(principal, ActivityAction::BindingDeleted, binding_key.as_str());
        let mut changes = vec![self.replace(&present, None).await?];
        for target in &targets {
            changes.push(target_change(company_id, target, None)?);
            let entry = NewActivity::new(principal, ActivityAction::TargetChanged, named(target));
            let entry = entry.with(Some(binding_key), None::<&BindingKey>);
            changes.push(self.activity.entry(company_id, entry)?);
        }
        let mark = store::encode("deleted binding", &*present)?;
        changes.push(Change::always(Table::Host, mark_key(&present), Some(mark)));
        self.activity
            .record_with(company_id, entry.with(Some(&*present), None::<&Binding>), changes)
            .await?;
        self.cache(company_id, |company| {
            company.bindings.remove(binding_key);
            company.default.take_if(|key| key == binding_key);
            company.overrides.retain(|_, key| key != binding_key);
        });
        Ok(present)
    }

    /// Assigns a binding to the company or an agent, or removes the assignment; durable when this
    /// returns.
    ///
    /// # Errors
    /// Where there is no such binding or the store fails.
    pub async fn set_target(
        &self,
        principal: &Principal,
        company_id: &CompanyId,
        target: Target,
        binding_key: Option<&BindingKey>,
    ) -> Result<(), BindingError> {
        let _lock = self.lock(company_id).await?;
        let mut changes = vec![target_change(company_id, &target, binding_key)?];
        if let Some(binding_key) = binding_key {
            let present = self.get(company_id, binding_key)?;
            // Written unchanged: its condition makes sure that the binding is there when its target
            // is written.
            changes.push(self.replace(&present, Some(store::encode("binding", &*present)?)).await?);
        }
        let subject = named(&target);
        let before = self.target(company_id, &target);
        let entry = NewActivity::new(principal, ActivityAction::TargetChanged, subject);
        self.activity
            .record_with(company_id, entry.with(before.as_ref(), binding_key), changes)
            .await?;
        self.cache(company_id, |company| match (target, binding_key.cloned()) {
            (Target::Company, key) => (company.default, company.is_decided) = (key, true),
            (Target::Agent(agent), Some(binding_key)) => {
                drop(company.overrides.insert(agent, binding_key));
            }
            (Target::Agent(agent), None) => drop(company.overrides.remove(&agent)),
        });
        Ok(())
    }

    /// Puts another binding in the place of one for the running host only: with the same key and
    /// settings, an id of its own, and so without anything stored. Logs know both by one id. The
    /// mark of a deletion is its one row: where the host ends before [`Bindings::replace_all`], the
    /// next start removes what was stored for it, and the binding that was there is there again.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn stage(&self, present: &Binding) -> Result<Arc<Binding>, StoreError> {
        let mut staged = present.clone();
        staged.goes_on_as = Some(present.known_as());
        staged.id = BindingId(new_id(&*self.clock));
        staged.revision += 1;
        staged.updated_at = self.clock.now();
        let mark = store::encode("deleted binding", &staged)?;
        store::write(&*self.store, &[Change::always(Table::Host, mark_key(&staged), Some(mark))])
            .await?;
        let staged = Arc::new(staged);
        self.add_imported((*staged).clone());
        Ok(staged)
    }

    /// Puts staged bindings in the place of those that were there, all or none; durable, with an
    /// entry in the activity log, when this returns. What was there is a deleted binding then.
    ///
    /// # Errors
    /// Where one was changed meanwhile, or the store fails. Nothing has changed then.
    pub async fn replace_all(
        &self,
        company_id: &CompanyId,
        replaced: &[(Arc<Binding>, Arc<Binding>)],
        entry: NewActivity,
    ) -> Result<(), BindingError> {
        let _lock = self.lock(company_id).await?;
        let mut changes = Vec::new();
        for (before, staged) in replaced {
            let row = store::encode("binding", &**staged)?;
            changes.push(self.replace(before, Some(row)).await?);
            changes.push(Change::always(Table::Host, mark_key(staged), None));
            let mark = store::encode("deleted binding", &**before)?;
            changes.push(Change::always(Table::Host, mark_key(before), Some(mark)));
        }
        self.activity.record_with(company_id, entry, changes).await
    }

    /// Deleted bindings whose records, storage and files may still be there: of a company, or all.
    /// A deletion leaves such a mark in its own transaction, so that one that was cut short is
    /// finished at the next start, or when the company is erased.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn deleted(&self, company: Option<&CompanyId>) -> Result<Vec<Binding>, StoreError> {
        let of_company =
            company.map(|company| store::company_key(company, b"")).unwrap_or_default();
        let prefix = [DELETING, &of_company].concat();
        let (mut all, mut marks) =
            (Vec::new(), store::scan_all(&*self.store, Table::Host, &prefix));
        while let Some((_, binding)) = marks.next_row::<Binding>("deleted binding").await? {
            if self.store.is_home(&binding.company_id) {
                all.push(binding);
            }
        }
        Ok(all)
    }

    /// Nothing of a deleted binding is left: removes its mark.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn deletion_is_complete(&self, binding: &Binding) -> Result<(), StoreError> {
        let change = Change::always(Table::Host, mark_key(binding), None);
        store::write(&*self.store, &[change]).await.map(drop)
    }
}

fn mark_key(binding: &Binding) -> Vec<u8> {
    [DELETING, &store::company_key(&binding.company_id, binding.id.0.as_bytes())].concat()
}
