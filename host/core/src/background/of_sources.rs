//! What waits of forgotten sources and scopes: deliveries are discarded, and the review queue keeps
//! no text of them.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::Service;
use crate::access::Caller;
use crate::background::DeliveryAction;
use crate::error::ServiceError;
use crate::review::ReviewError;
use memhost_store::{self as store, Change, Table};
use memhost_types::{
    CompanyId, Decision, Delivery, DeliveryId, DeliveryStatus, ReviewDecision, ReviewId,
    ReviewItem, ReviewSubject,
};

impl Service {
    /// Gives up deliveries that are meant, came until then and have not been captured, those that
    /// wait for a person, too: their material must not stay. Answers which.
    pub(crate) async fn discard_of(
        &self,
        caller: &Caller,
        company: &CompanyId,
        until: Timestamp,
        is_meant: impl Fn(&Delivery) -> bool + Send + Sync,
    ) -> Result<Vec<DeliveryId>, ServiceError> {
        let mut all = self.deliveries.all(company);
        let (mut found, mut waiting) = (HashSet::new(), Vec::new());
        while let Some(delivery) = all.next().await? {
            if delivery.received_at > until || !is_meant(&delivery) {
                continue;
            }
            found.insert(delivery.id);
            if matches!(
                delivery.status,
                DeliveryStatus::Pending | DeliveryStatus::Dead | DeliveryStatus::Held
            ) {
                waiting.push(delivery);
            }
        }
        drop(all);
        let mut discarded = Vec::with_capacity(waiting.len());
        for delivery in waiting {
            if delivery.status != DeliveryStatus::Held {
                self.change_one(caller, &delivery, DeliveryAction::Discard).await?;
            } else if !self.reject_held(caller, company, delivery.id).await? {
                continue;
            }
            discarded.push(delivery.id);
        }
        self.clear_reviews_of(company, &found).await?;
        Ok(discarded)
    }

    /// False: a person has decided meanwhile. What an approval lets through is forgotten when it is
    /// captured.
    async fn reject_held(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: DeliveryId,
    ) -> Result<bool, ServiceError> {
        let decision = ReviewDecision { decision: Decision::Reject, text: None };
        match self.decide(caller, company, ReviewId(id.0), decision).await {
            Ok(_) => Ok(true),
            Err(ServiceError::Review(ReviewError::Decided { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes the texts of deliveries that a person has approved out of the queue.
    async fn clear_reviews_of(
        &self,
        company: &CompanyId,
        of: &HashSet<DeliveryId>,
    ) -> Result<(), ServiceError> {
        if of.is_empty() {
            return Ok(());
        }
        let mut rows =
            store::scan_all(&*self.store, Table::Reviews, &store::company_key(company, b""));
        let mut found = Vec::new();
        while let Some((_, item)) = rows.next_row::<ReviewItem>("review").await? {
            let is_of = matches!(&item.subject, ReviewSubject::Delivery(id) if of.contains(id));
            if is_of && !item.is_without_text() {
                found.push(item.id);
            }
        }
        drop(rows);
        for id in found {
            let _lock = self.reviews.lock_item(id).await?;
            let item = self.reviews.get(company, id).await?;
            let mut changes: Vec<Change> =
                vec![self.reviews.replace(&item, &item.clone().without_text()).await?];
            changes.extend(self.forgetting()?);
            store::write(&*self.store, &changes).await?;
        }
        Ok(())
    }
}
