//! Changes of bindings and targets.

use std::sync::Arc;

use crate::bindings::activity::{self, NewActivity};
use crate::bindings::deletion;
use crate::bindings::registry::{Company, target_change};
use crate::bindings::{BindingError, Bindings};
use crate::companies::known::KnownCompanies;
use memhost_store::{self as store, Change, Found, Lease, LockKind, StoreError, Table};
use memhost_types::{
    Activity, ActivityAction, Binding, BindingId, BindingKey, CompanyId, Principal, Target,
};

fn fresh(present: &Binding, revision: Option<u64>) -> Result<(), BindingError> {
    match revision {
        Some(expected) if expected != present.revision => {
            Err(BindingError::Stale { key: present.key.clone(), expected, found: present.revision })
        }
        _ => Ok(()),
    }
}

/// A target, as the activity log names it.
fn named(target: &Target) -> String {
    match target {
        Target::Company => "the company".to_owned(),
        Target::Agent(agent) => format!("the agent {agent}"),
    }
}

impl Bindings {
    /// Changes a binding; durable, with its entry in the activity log, when this returns.
    /// `revision` is the one that the caller knows; none accepts any.
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
        match self.record_with(company_id, entry, vec![self.replace(&present, new).await?]).await {
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
    /// and the mark of `deletion.rs`, when this returns. Its id is never used again.
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
            changes.push(activity::change(&*self.clock, company_id, entry)?);
        }
        changes.push(deletion::mark(&present)?);
        self.record_with(company_id, entry.with(Some(&*present), None::<&Binding>), changes)
            .await?;
        self.cache(company_id, |company| {
            company.bindings.remove(binding_key);
            company.default.take_if(|key| key == binding_key);
            company.overrides.retain(|_, key| key != binding_key);
        });
        Ok(present)
    }

    /// Removes an erased company from the cache.
    pub fn forget(&self, company_id: &CompanyId) {
        self.companies.write().remove(company_id);
    }

    /// The change that replaces a binding, if it is unchanged.
    async fn replace(
        &self,
        present: &Binding,
        new: Option<Vec<u8>>,
    ) -> Result<Change, BindingError> {
        let key = store::company_key(&present.company_id, present.key.as_str().as_bytes());
        let expected =
            store::unchanged(&*self.store, Table::Bindings, &key, "binding", present).await?;
        Ok(Change { table: Table::Bindings, key, expected, new })
    }

    /// Hold this while you write a change of a company's bindings and update the cache: a later
    /// change must not be overtaken in the cache by an earlier one.
    pub(crate) async fn lock(&self, company: &CompanyId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Bindings, company.as_str().as_bytes()).await
    }

    /// Updates the cache after a change was written. The caller holds the lock.
    pub(crate) fn cache(&self, company: &CompanyId, change: impl FnOnce(&mut Company)) {
        change(self.companies.write().entry(company.clone()).or_default());
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
        self.record_with(company_id, entry.with(before.as_ref(), binding_key), changes).await?;
        self.cache(company_id, |company| match (target, binding_key.cloned()) {
            (Target::Company, binding_key) => company.default = binding_key,
            (Target::Agent(agent), Some(binding_key)) => {
                drop(company.overrides.insert(agent, binding_key));
            }
            (Target::Agent(agent), None) => drop(company.overrides.remove(&agent)),
        });
        Ok(())
    }

    fn target(&self, company: &CompanyId, target: &Target) -> Option<BindingKey> {
        let companies = self.companies.read();
        let company = companies.get(company)?;
        match target {
            Target::Company => company.default.clone(),
            Target::Agent(agent) => company.overrides.get(agent).cloned(),
        }
    }

    /// Records a change that was made elsewhere, such as the version that serves.
    ///
    /// # Errors
    /// Where the store fails.
    pub(crate) async fn record(
        &self,
        company: &CompanyId,
        new: NewActivity,
    ) -> Result<(), BindingError> {
        self.record_with(company, new, Vec::new()).await
    }

    /// The same, in one transaction with the changes that it describes.
    ///
    /// # Errors
    /// Where the store fails or a change's condition does not hold.
    pub(crate) async fn record_with(
        &self,
        company: &CompanyId,
        new: NewActivity,
        mut changes: Vec<Change>,
    ) -> Result<(), BindingError> {
        let is_known = self.known.has(company);
        if !is_known {
            changes.push(KnownCompanies::change(company, new.principal(), self.clock.now())?);
        }
        changes.push(activity::change(&*self.clock, company, new)?);
        match store::write(&*self.store, &changes).await? {
            true => {
                if !is_known {
                    self.known.add(company);
                }
                Ok(())
            }
            false => Err(BindingError::Conflict { company: company.clone() }),
        }
    }

    /// One page of what was changed, newest first, and where the next page begins.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn activity(
        &self,
        company: &CompanyId,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Activity>, BindingError> {
        let (prefix, table) = (store::company_key(company, b""), (Table::Activity, "activity"));
        Ok(store::matching(&*self.store, table, &prefix, from, limit, |_| true).await?)
    }
}
