//! Replaying and discarding deliveries. Those of forgotten sources and scopes are discarded, and
//! the review queue keeps no text of them.

use async_recursion::async_recursion as boxed;
use std::collections::HashSet;

use jiff::Timestamp;

use crate::Operations;
use memhost_access::Caller;
use memhost_queues::{BackgroundError, ReviewError};
use memhost_registry::{BindingError, NewActivity};
use memhost_store::{self as store, Change};
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityAction, CompanyId, Decision, Delivery, DeliveryId, DeliveryStatus, ReviewDecision,
    ReviewId, ReviewSubject,
};

/// A person's action on a delivery that was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryAction {
    /// Tries a dead one again.
    Replay,
    /// Gives up one that is dead or pending.
    Discard,
}

impl DeliveryAction {
    /// Whether it is possible for a delivery of this status.
    pub fn takes(self, status: DeliveryStatus) -> bool {
        match self {
            Self::Replay => status == DeliveryStatus::Dead,
            Self::Discard => matches!(status, DeliveryStatus::Dead | DeliveryStatus::Pending),
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::Replay => "only one that is dead can be replayed",
            Self::Discard => {
                "only one that is dead or pending can be discarded; decide about a held one with \
                              `memhost review reject`"
            }
        }
    }
}

impl Operations {
    /// Changes a delivery that was not delivered, if its status allows it.
    ///
    /// # Errors
    /// Where it does not, or the store fails.
    #[boxed]
    pub async fn change_one(
        &self,
        caller: &Caller,
        before: &Delivery,
        action: DeliveryAction,
    ) -> Result<Delivery, ServiceError> {
        if !action.takes(before.status) {
            let (id, status) = (before.id.0, before.status);
            return Err(
                BackgroundError::DeliveryStatus { id, status, advice: action.advice() }.into()
            );
        }
        let now = self.clock.now();
        let (activity, after) = match action {
            DeliveryAction::Replay => {
                let (status, due_at) = (DeliveryStatus::Pending, Some(now));
                let after =
                    Delivery { status, attempts: 0, due_at, finished_at: None, ..before.clone() };
                (ActivityAction::DeliveryReplayed, after)
            }
            DeliveryAction::Discard => {
                let (status, finished_at) = (DeliveryStatus::Discarded, Some(now));
                let gone =
                    Delivery { payload: None, metadata: None, due_at: None, ..before.clone() };
                (ActivityAction::DeliveryDiscarded, Delivery { status, finished_at, ..gone })
            }
        };
        let entry = NewActivity::new(caller.principal(), activity, before.id.0.to_string());
        let mut changes = self.deliveries.changes(before, &after).await?;
        if action == DeliveryAction::Discard {
            changes.extend(self.tenancy.forgetting()?);
        }
        self.activity.record_with(&before.company_id, entry, changes).await?;
        self.deliveries.moved();
        self.wake.notify_one();
        Ok(after)
    }

    /// Changes a delivery if its status still allows it, and answers whether it did. If something
    /// else changes the delivery at the same time, it is read again.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn change_if_possible(
        &self,
        caller: &Caller,
        mut delivery: Delivery,
        action: DeliveryAction,
    ) -> Result<bool, ServiceError> {
        while action.takes(delivery.status) {
            match self.change_one(caller, &delivery, action).await {
                Ok(_) => return Ok(true),
                Err(ServiceError::Binding(BindingError::Conflict { .. })) => {}
                Err(error) => return Err(error),
            }
            match self.deliveries.get(&delivery.company_id, delivery.id.0).await {
                Ok(changed) => delivery = changed,
                Err(BackgroundError::NoDelivery { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

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
            let id = delivery.id;
            let is_discarded = match delivery.status {
                DeliveryStatus::Held => self.reject_held(caller, company, id).await?,
                _ => self.change_if_possible(caller, delivery, DeliveryAction::Discard).await?,
            };
            if is_discarded {
                discarded.push(id);
            }
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
        let (mut texts, mut found) = (self.reviews.texts(company), Vec::new());
        while let Some(item) = texts.next().await? {
            if matches!(&item.subject, ReviewSubject::Delivery(id) if of.contains(id)) {
                found.push(item.id);
            }
        }
        drop(texts);
        for id in found {
            let _lock = self.reviews.lock_item(id).await?;
            let item = self.reviews.get(company, id).await?;
            let mut changes: Vec<Change> =
                vec![self.reviews.replace(&item, &item.clone().without_text()).await?];
            changes.extend(self.tenancy.forgetting()?);
            store::write(&*self.store, &changes).await?;
        }
        Ok(())
    }
}
