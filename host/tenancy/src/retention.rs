//! How long a company's operations and other records are kept, and the removal of what is older.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::Tenancy;
use crate::error::ServiceError;
use crate::settings::Retention;
use memhost_access::Caller;
use memhost_oplog::events;
use memhost_registry::NewActivity;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{ActivityAction, CompanyId, FieldError};

impl Tenancy {
    /// How long a company's records are kept.
    pub fn retention(&self, company: &CompanyId) -> Retention {
        self.settings.retention.read().get(company).copied().unwrap_or_default()
    }

    /// Sets how long a company's records are kept. What is too old is removed at once.
    ///
    /// # Errors
    /// Where a number is 0 or the store fails.
    #[boxed]
    pub async fn set_retention(
        &self,
        caller: &Caller,
        company: &CompanyId,
        retention: Retention,
    ) -> Result<Retention, ServiceError> {
        if let Some(field) = retention.zero() {
            return Err(FieldError::new(field, "is 0; give at least 1, or null for no end").into());
        }
        let before = self.retention(company);
        let entry =
            NewActivity::new(caller.principal(), ActivityAction::RetentionChanged, "company");
        let (key, new) =
            (store::company_key(company, b"retention"), store::encode("retention", &retention)?);
        let change = Change::always(Table::Companies, key, Some(new));
        self.activity
            .record_with(company, entry.with(Some(&before), Some(&retention)), vec![change])
            .await?;
        self.settings.retention.write().insert(company.clone(), retention);
        self.sweep(company).await?;
        Ok(retention)
    }

    /// Removes what is too old, of every company, in a task of its own.
    pub fn sweep_all(self: &Arc<Self>) {
        let service = Arc::clone(self);
        memhost_executor::spawn(async move {
            // With many companies one round may take longer than the time to the next.
            let Ok(_one) = service.sweeping.try_lock() else { return };
            let companies: BTreeSet<CompanyId> = match service.store.companies().await {
                Ok(companies) => companies,
                Err(error) => return tracing::error!(%error, "old records could not be removed"),
            };
            for company in companies {
                match service.sweep(&company).await {
                    Ok(0) => {}
                    Ok(count) => {
                        tracing::info!(%company, count, "records that were too old are gone");
                    }
                    Err(error) => {
                        tracing::error!(%error, %company, "old records could not be removed");
                    }
                }
            }
        });
    }

    /// Removes a company's records that are too old. Answers how many there were.
    async fn sweep(&self, company: &CompanyId) -> Result<u64, ServiceError> {
        if self.is_importing(company) {
            return Ok(0);
        }
        let (kept, now) = (self.retention(company), self.clock.now());
        let before = |days: Option<u32>| days.and_then(|days| days_before(now, days));
        let mut count = operations(&*self.store, company, kept, now).await?;
        if let Some(cutoff) = before(kept.deliveries_max_age_days) {
            count += self.deliveries.sweep(company, cutoff).await?;
        }
        if let Some(cutoff) = before(kept.jobs_max_age_days) {
            count += self.jobs.sweep(company, cutoff).await?;
        }
        if let Some(cutoff) = before(kept.events_max_age_days) {
            count += events::sweep(&*self.store, company, cutoff).await?;
        }
        if let Some(days) = kept.cost_events_max_age_days {
            count += self.oplog.ledger.trim_cost_events(company, days).await?;
        }
        if let Some(cutoff) = before(kept.activity_max_age_days) {
            count += self.activity.sweep(company, cutoff).await?;
        }
        if let Some(cutoff) = before(kept.review_texts_max_age_days) {
            count += self.reviews.sweep(company, cutoff).await?;
        }
        self.records.sweep(company).await?;
        count += self.records.sweep_forgotten(company, now).await?;
        if count > 0 {
            self.note_forgetting().await?;
        }
        Ok(count)
    }
}

fn days_before(now: Timestamp, days: u32) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::from_hours(i64::from(days) * 24)).ok()
}

/// Removes operations that are too old or too many. Refusals are removed with the operations that
/// they lie between; they are not counted, so they push no other record out. Answers how many were
/// removed.
async fn operations(
    store: &dyn Store,
    company: &CompanyId,
    retention: Retention,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let Some((first, last)) = store.operation_range(company).await? else { return Ok(0) };
    let by_count = match retention.operations_max_count {
        Some(most) if last + 1 - first > most => store.newest_operations(company, most).await?,
        _ => None,
    };
    let by_age = match retention.operations_max_age_days.and_then(|days| days_before(now, days)) {
        Some(oldest) => Some(store.first_operation_at(company, oldest).await?),
        None => None,
    };
    match by_count.max(by_age) {
        Some(below) => store.trim_operations(company, below).await,
        None => Ok(0),
    }
}
