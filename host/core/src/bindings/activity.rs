//! The activity log: an entry is written in one transaction with the change that it describes.

use serde::Serialize;
use serde_json::Value;

use crate::bindings::BindingError;
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, Change, Expected, Store, StoreError, Table};
use memhost_types::{Activity, ActivityAction, CompanyId};

/// A change that is about to be made.
#[derive(Debug, Clone)]
pub struct NewActivity {
    /// Who makes it.
    pub principal: String,
    /// What.
    pub action: ActivityAction,
    /// To which thing.
    pub subject: String,
    /// How it is.
    pub before: Option<Value>,
    /// How it will be.
    pub after: Option<Value>,
}

impl NewActivity {
    /// What somebody does to a thing.
    pub fn new(principal: &str, action: ActivityAction, subject: impl Into<String>) -> Self {
        Self { principal: principal.to_owned(), action, subject: subject.into(), before: None, after: None }
    }

    /// How it is and how it will be.
    pub fn with(mut self, before: Option<&impl Serialize>, after: Option<&impl Serialize>) -> Self {
        let value = |value: Result<Value, serde_json::Error>| value.ok();
        self.before = before.map(serde_json::to_value).and_then(value);
        self.after = after.map(serde_json::to_value).and_then(value);
        self
    }
}

/// The change that writes an entry.
pub(crate) fn change(clock: &dyn Clock, company: &CompanyId, new: NewActivity) -> Result<Change, StoreError> {
    let (at, id) = (clock.now(), new_id(clock));
    let NewActivity { principal, action, subject, before, after } = new;
    let entry = Activity { id, company_id: company.clone(), at, principal, action, subject, before, after };
    Ok(Change {
        table: Table::Activity,
        key: store::newest_first(company, id),
        expected: Expected::Anything,
        new: Some(store::encode("activity", &entry)?),
    })
}

/// One page, newest first, and the position of the next.
pub(crate) async fn list(
    store: &dyn Store,
    company: &CompanyId,
    from: Option<&[u8]>,
    limit: usize,
) -> Result<(Vec<Activity>, Option<Vec<u8>>), BindingError> {
    let prefix = store::company_key(company, b"");
    let page = store.scan(Table::Activity, &prefix, from, limit).await?;
    let entries: Result<Vec<Activity>, StoreError> =
        page.entries.iter().map(|(_, value)| store::decode("activity", value)).collect();
    Ok((entries?, page.next))
}
