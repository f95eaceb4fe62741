//! Finance events: flat charges that a person enters.

use uuid::Uuid;

use super::{BillingError, Ledger};
use memhost_ports::new_id;
use memhost_store::{self as store, Change, Found, StoreError, Table};
use memhost_types::{CompanyId, FieldError, FinanceEvent, NewFinanceEvent, Principal};

/// The name of a row in errors.
pub(super) const WHAT: &str = "finance event";

pub(super) fn key(company: &CompanyId, id: Uuid) -> Vec<u8> {
    store::newest_first(company, id)
}

impl Ledger {
    /// The event that enters a flat charge, and the change that writes it.
    ///
    /// # Errors
    /// Where a field is not valid, the company has no such cost event, or it cannot be read.
    pub async fn finance_event(
        &self,
        company: &CompanyId,
        by: &Principal,
        entered: NewFinanceEvent,
    ) -> Result<(FinanceEvent, Change), BillingError> {
        if let Some(id) = entered.cost_event_id
            && !self.has_cost_event(company, id).await?
        {
            let message = format!(
                "is {id}, and the company has no such cost event; `memhost cost list` shows those \
                 that it has"
            );
            return Err(FieldError::new("costEventId", message).into());
        }
        entered.check()?;
        let event = FinanceEvent {
            id: new_id(&*self.clock),
            company_id: company.clone(),
            entered,
            created_by: by.clone(),
            created_at: self.clock.now(),
        };
        let new = store::encode(WHAT, &event)?;
        let change = Change::insert(Table::FinanceEvents, key(company, event.id), new);
        Ok((event, change))
    }

    /// One page of a company's finance events, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn finance_events(
        &self,
        company: &CompanyId,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<FinanceEvent>, StoreError> {
        let (prefix, table) = (store::company_key(company, b""), (Table::FinanceEvents, WHAT));
        store::matching(&*self.store, table, &prefix, from, limit, |_| true).await
    }
}
