//! How long a company's operations and other records are kept, and the removal of what is older.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::Service;
use crate::access::Caller;
use crate::background::due_queue::Due;
use crate::companies::cache::Retention;
use crate::error::ServiceError;
use memhost_oplog::events;
use memhost_registry::NewActivity;
use memhost_store::{self as store, Change, Expected, Store, StoreError, Table};
use memhost_types::{
    ActivityAction, CompanyId, Delivery, DeliveryStatus, Event, FieldError, Job, ReviewItem,
    ReviewStatus,
};

/// Rows that are removed in one step.
const AT_ONCE: usize = 200;

impl Service {
    /// How long a company's records are kept.
    pub fn retention(&self, company: &CompanyId) -> Retention {
        self.companies.retention.read().get(company).copied().unwrap_or_default()
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
        self.companies.retention.write().insert(company.clone(), retention);
        self.sweep(company).await?;
        Ok(retention)
    }

    /// Removes what is too old, of every company, in a task of its own.
    pub(crate) fn sweep_all(self: &Arc<Self>) {
        let service = Arc::clone(self);
        memhost_executor::spawn(async move {
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
        let mut count = operations(&*self.store, company, kept, now).await?;
        let sweep = Sweep { store: &*self.store, company, now };
        count +=
            sweep.rows(Table::Deliveries, b"d", kept.deliveries_max_age_days, delivery).await?;
        count += sweep.rows(Table::Jobs, b"", kept.jobs_max_age_days, job).await?;
        count += sweep.rows(Table::Events, b"", kept.events_max_age_days, event).await?;
        if let Some(days) = kept.cost_events_max_age_days {
            count += self.oplog.ledger.trim_cost_events(company, days).await?;
        }
        count += sweep
            .rows(Table::Activity, b"", kept.activity_max_age_days, |_, _| Ok(Old::remove()))
            .await?;
        count += sweep.rows(Table::Reviews, b"", kept.review_texts_max_age_days, review).await?;
        count += self.records.sweep(company, now).await?;
        count += self.records.sweep_forgotten(company, now).await?;
        if count > 0 {
            self.note_forgetting().await?;
        }
        Ok(count)
    }
}

/// The change of a row that is old.
struct Old {
    /// Whether anything changes.
    is_over: bool,
    /// What will be there; none removes the row.
    new: Option<Vec<u8>>,
    /// Rows that go with it.
    beside: Vec<Change>,
}

impl Old {
    fn remove() -> Self {
        Self { is_over: true, new: None, beside: Vec::new() }
    }

    fn stays() -> Self {
        Self { is_over: false, new: None, beside: Vec::new() }
    }
}

/// What is left to do goes on, however old it is. With the record goes its mark: the same event
/// would be a new one.
fn delivery(_: &[u8], value: &[u8]) -> Result<Old, StoreError> {
    let delivery: Delivery = store::decode("delivery", value)?;
    match delivery.status {
        DeliveryStatus::Pending | DeliveryStatus::Held => Ok(Old::stays()),
        DeliveryStatus::Delivered | DeliveryStatus::Dead | DeliveryStatus::Discarded => {
            let (table, key) = delivery.mark();
            Ok(Old { beside: vec![Change::always(table, key, None)], ..Old::remove() })
        }
    }
}

fn job(_: &[u8], value: &[u8]) -> Result<Old, StoreError> {
    let job: Job = store::decode("job", value)?;
    if !job.status.is_end() {
        return Ok(Old::stays());
    }
    let (table, key) = job.mark();
    Ok(Old { beside: vec![Change::always(table, key, None)], ..Old::remove() })
}

fn event(_: &[u8], value: &[u8]) -> Result<Old, StoreError> {
    let event: Event = store::decode("event", value)?;
    let gone = |change: Change| Change::always(change.table, change.key, None);
    Ok(Old { beside: events::index(&event)?.into_iter().map(gone).collect(), ..Old::remove() })
}

/// A decision stays, because it says whether the record is returned. The text goes.
fn review(_: &[u8], value: &[u8]) -> Result<Old, StoreError> {
    let item: ReviewItem = store::decode("review", value)?;
    if item.status == ReviewStatus::Pending || item.is_without_text() {
        return Ok(Old::stays());
    }
    Ok(Old { new: Some(store::encode("review", &item.without_text())?), ..Old::remove() })
}

struct Sweep<'a> {
    store: &'a dyn Store,
    company: &'a CompanyId,
    now: Timestamp,
}

impl Sweep<'_> {
    /// Goes through the rows of a table that are older than so many days. Their keys have the time,
    /// newest first.
    async fn rows(
        &self,
        table: Table,
        prefix: &[u8],
        days: Option<u32>,
        old: impl Fn(&[u8], &[u8]) -> Result<Old, StoreError> + Send + Sync,
    ) -> Result<u64, StoreError> {
        let Some(cutoff) = days.and_then(|days| days_before(self.now, days)) else { return Ok(0) };
        let ms = u64::try_from(cutoff.as_millisecond()).unwrap_or(0);
        let newest = Uuid::from_u128(u128::from(ms) << 80).into_bytes().map(|byte| !byte);
        let prefix = store::company_key(self.company, prefix);
        let from = [&prefix[..], &newest[..]].concat();
        let (mut changes, mut count) = (Vec::new(), 0);
        let mut rows = store::scan_all(self.store, table, &prefix).from(Some(&from));
        while let Some((key, value)) = rows.next().await? {
            let Old { is_over, new, beside } = old(&key, &value)?;
            if !is_over {
                continue;
            }
            count += 1;
            // What somebody changes at this moment stays until the next time.
            let row = Change { table, key, expected: Expected::Value(value), new };
            changes.push([vec![row], beside].concat());
            if changes.len() >= AT_ONCE {
                self.write(&mut changes).await?;
            }
        }
        self.write(&mut changes).await?;
        Ok(count)
    }

    async fn write(&self, changes: &mut Vec<Vec<Change>>) -> Result<(), StoreError> {
        for change in changes.drain(..) {
            drop(self.store.transact(&change).await?);
        }
        self.store.commit().await
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
