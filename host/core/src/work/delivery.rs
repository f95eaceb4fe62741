//! The operator's view of deliveries: lists, and replay of dead ones.

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::paging::Page;
use crate::work::hooks::HookError;
use async_recursion::async_recursion as boxed;
use memhost_types::{ActivityAction, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus};

impl Service {
    /// One page of a company's deliveries, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn deliveries(
        &self,
        company: &CompanyId,
        filter: &DeliveryFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Delivery>, ServiceError> {
        let page = self.page_of("deliveries", company, filter, cursor, limit)?;
        let found = self.hooks.list(company, filter, page.from(), page.limit).await?;
        Ok(self.sealed(&page, found))
    }

    /// One delivery.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn delivery_of(&self, company: &CompanyId, id: DeliveryId) -> Result<Delivery, ServiceError> {
        Ok(self.hooks.get(company, id).await?)
    }

    /// Tries a dead delivery again.
    ///
    /// # Errors
    /// Where there is none of this id, or it is not dead.
    #[boxed]
    pub async fn replay_delivery(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: DeliveryId,
    ) -> Result<Delivery, ServiceError> {
        let before = self.hooks.get(company, id).await?;
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
        self.bindings.record_with(company, entry, self.hooks.changes(&before, &after).await?).await?;
        self.hooks.moved();
        self.wake.notify_one();
        Ok(after)
    }
}
