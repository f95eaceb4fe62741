//! The operator's view of deliveries: lists, and trying again what was given up.

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::paging::Page;
use crate::work::hooks::HookError;
use memhost_types::{ActivityAction, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus};

impl Service {
    /// One page of a company's deliveries, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit will not do.
    pub fn deliveries(
        &self,
        company: &CompanyId,
        filter: &DeliveryFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Delivery>, ServiceError> {
        self.page("deliveries", company, filter, cursor, limit, |from, limit| {
            Ok(self.hooks.list(company, filter, from, limit)?)
        })
    }

    /// One delivery.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub fn delivery_of(&self, company: &CompanyId, id: DeliveryId) -> Result<Delivery, ServiceError> {
        Ok(self.hooks.get(company, id)?)
    }

    /// Tries a delivery again that had been given up.
    ///
    /// # Errors
    /// Where there is none of this id, or it is not dead.
    pub async fn replay_delivery(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: DeliveryId,
    ) -> Result<Delivery, ServiceError> {
        let before = self.hooks.get(company, id)?;
        if before.status != DeliveryStatus::Dead {
            return Err(HookError::Status { id: id.0.to_string(), status: before.status }.into());
        }
        let after = Delivery {
            status: DeliveryStatus::Pending,
            attempts: 0,
            due_at: Some(self.clock.now()),
            finished_at: None,
            ..before.clone()
        };
        let entry = NewActivity::new(caller.principal(), ActivityAction::DeliveryReplayed, id.0.to_string());
        self.bindings.record_with(company, entry, self.hooks.changes(&before, &after)?).await?;
        self.hooks.moved();
        self.wake.notify_one();
        Ok(after)
    }
}
