//! The activity log of companies: the table `Activity`. An entry is written in one transaction with
//! the change that it describes.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::error::BindingError;
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Found, Old, Store, StoreError, Table};
use memhost_types::{Activity, ActivityAction, CompanyId, Principal};

/// An entry for a change that is about to be made.
#[derive(Debug, Clone)]
pub struct NewActivity {
    principal: Principal,
    action: ActivityAction,
    subject: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl NewActivity {
    /// An action of somebody on a thing.
    pub fn new(principal: &Principal, action: ActivityAction, subject: impl Into<String>) -> Self {
        Self {
            principal: principal.clone(),
            action,
            subject: subject.into(),
            before: None,
            after: None,
        }
    }

    /// The principal of the action.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// How it is and how it will be.
    pub fn with(mut self, before: Option<&impl Serialize>, after: Option<&impl Serialize>) -> Self {
        self.before = before.and_then(|before| serde_json::to_value(before).ok());
        self.after = after.and_then(|after| serde_json::to_value(after).ok());
        self
    }
}

/// The companies that the host has. The first entry of a company's activity log makes it known, in
/// the same transaction.
pub trait CompanyRegister: Send + Sync {
    /// Whether the host has this company.
    fn has(&self, company: &CompanyId) -> bool;

    /// The change that makes a company known. It may be written twice.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    fn change(
        &self,
        company: &CompanyId,
        made_by: &Principal,
        made_at: Timestamp,
    ) -> Result<Change, StoreError>;

    /// The change was written.
    fn add(&self, company: &CompanyId);
}

/// The activity log of every company.
pub struct ActivityLog {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    companies: Arc<dyn CompanyRegister>,
}

impl ActivityLog {
    /// The log in a store.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        companies: Arc<dyn CompanyRegister>,
    ) -> Self {
        Self { store, clock, companies }
    }

    /// Records a change that was made elsewhere, such as the version that serves.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn record(&self, company: &CompanyId, new: NewActivity) -> Result<(), BindingError> {
        self.record_with(company, new, Vec::new()).await
    }

    /// The same, in one transaction with the changes that it describes.
    ///
    /// # Errors
    /// Where the store fails or a change's condition does not hold.
    pub async fn record_with(
        &self,
        company: &CompanyId,
        new: NewActivity,
        mut changes: Vec<Change>,
    ) -> Result<(), BindingError> {
        let is_known = self.companies.has(company);
        if !is_known {
            let made = self.companies.change(company, new.principal(), self.clock.now())?;
            changes.push(made);
        }
        changes.push(self.entry(company, new)?);
        match store::write(&*self.store, &changes).await? {
            true => {
                if !is_known {
                    self.companies.add(company);
                }
                Ok(())
            }
            false => Err(BindingError::Conflict { company: company.clone() }),
        }
    }

    /// The change that writes one more entry, beside the one of [`ActivityLog::record_with`].
    pub(crate) fn entry(
        &self,
        company: &CompanyId,
        new: NewActivity,
    ) -> Result<Change, StoreError> {
        let (at, id) = (self.clock.now(), new_id(&*self.clock));
        let company_id = company.clone();
        let NewActivity { principal, action, subject, before, after } = new;
        let entry = Activity { id, company_id, at, principal, action, subject, before, after };
        let new = store::encode("activity", &entry)?;
        Ok(Change::always(Table::Activity, activity_key(&entry), Some(new)))
    }

    /// One page of what was changed, newest first, and where the next page begins.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn page(
        &self,
        company: &CompanyId,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Activity>, StoreError> {
        let (prefix, table) = (store::company_key(company, b""), (Table::Activity, "activity"));
        store::matching(&*self.store, table, &prefix, from, limit, |_| true).await
    }

    /// Removes a company's entries from before `cutoff`. Answers how many went.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep(&self, company: &CompanyId, cutoff: Timestamp) -> Result<u64, StoreError> {
        let old = |_: &[u8]| Ok(Old::Removed(Vec::new()));
        store::sweep(&*self.store, (Table::Activity, b""), company, cutoff, old).await
    }
}

/// The key of an entry's row.
pub fn activity_key(entry: &Activity) -> Vec<u8> {
    store::newest_first(&entry.company_id, entry.id)
}
