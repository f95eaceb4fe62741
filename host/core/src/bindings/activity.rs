//! The activity log: an entry is written in one transaction with the change that it describes.

use serde::Serialize;
use serde_json::Value;

use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, StoreError, Table};
use memhost_types::{Activity, ActivityAction, CompanyId, Principal};

/// An entry for a change that is about to be made.
#[derive(Debug, Clone)]
pub(crate) struct NewActivity {
    principal: Principal,
    action: ActivityAction,
    subject: String,
    before: Option<Value>,
    after: Option<Value>,
}

impl NewActivity {
    /// What somebody does to a thing.
    pub(crate) fn new(
        principal: &Principal,
        action: ActivityAction,
        subject: impl Into<String>,
    ) -> Self {
        Self {
            principal: principal.clone(),
            action,
            subject: subject.into(),
            before: None,
            after: None,
        }
    }

    /// Who does it.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// How it is and how it will be.
    pub(crate) fn with(
        mut self,
        before: Option<&impl Serialize>,
        after: Option<&impl Serialize>,
    ) -> Self {
        self.before = before.and_then(|before| serde_json::to_value(before).ok());
        self.after = after.and_then(|after| serde_json::to_value(after).ok());
        self
    }
}

/// The change that writes an entry.
pub(crate) fn change(
    clock: &dyn Clock,
    company: &CompanyId,
    new: NewActivity,
) -> Result<Change, StoreError> {
    let (at, id) = (clock.now(), new_id(clock));
    let NewActivity { principal, action, subject, before, after } = new;
    let entry =
        Activity { id, company_id: company.clone(), at, principal, action, subject, before, after };
    let (key, new) = (store::newest_first(company, id), store::encode("activity", &entry)?);
    Ok(Change::always(Table::Activity, key, Some(new)))
}
