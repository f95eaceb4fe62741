//! Cost events: written with their operation, listed, and removed when they are too old.

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ledger::Ledger;
use super::rows::WHAT;
use memhost_store::{
    self as store, Change, CostsTrimmed, Expected, Found, FoundPage, Store, StoreError, Table,
    Transacted,
};
use memhost_types::{CompanyId, CostEvent, CostEventFilter};

/// Events that are removed in one step.
const AT_ONCE: usize = 200;

/// One page of cost events.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostEventPage {
    /// At most as many as asked for. There may be fewer, or none, although more follow.
    pub items: Vec<CostEvent>,
    /// Pass it on to get the next page. Newest first, it is absent at the end. Oldest first, it is
    /// always there, and at the end it leads to the events that are written later, also after a
    /// restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// Whether there may be more now.
    pub more: bool,
    /// Oldest first only: retention has removed events between the cursor and this page, and each
    /// of them occurred before this moment. Sums have their cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed_before: Option<Timestamp>,
}

/// A part of a company's cost events in the order in which they were written.
#[derive(Debug)]
pub struct OldestFirst {
    /// The events that match.
    pub events: Vec<CostEvent>,
    /// Everything up to this number was read or is gone.
    pub through: u64,
    /// Whether there may be more now.
    pub more: bool,
    /// Retention has removed events before these, and each of them occurred before this moment.
    pub trimmed_before: Option<Timestamp>,
}

impl Ledger {
    /// One page of a company's cost events, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn newest_cost_events(
        &self,
        company: &CompanyId,
        filter: &CostEventFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<CostEvent>, StoreError> {
        let (prefix, table) = (store::company_key(company, b""), (Table::CostEvents, WHAT));
        store::matching(&*self.store, table, &prefix, from, limit, |event| filter.matches(event))
            .await
    }

    /// Reads the events whose numbers are above `after`, in the order in which they were written:
    /// no event ever appears before one that was answered.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn oldest_cost_events(
        &self,
        company: &CompanyId,
        filter: &CostEventFilter,
        after: u64,
        limit: usize,
    ) -> Result<OldestFirst, StoreError> {
        let store = &*self.store;
        let from = store::cost_number_key(company, after.saturating_add(1));
        let mut rows = store::scan_all(store, Table::CostOrder, &store::cost_numbers(company))
            .from(Some(&from));
        let (mut page, mut through, mut more) = (FoundPage::new(limit), after, false);
        // Numbers have no gaps, except where retention has removed the first ones.
        let (mut has_gap, mut trimmed_before) = (false, None);
        while let Some((key, value)) = rows.next().await? {
            if page.is_full() {
                more = true;
                break;
            }
            let Some(number) = store::cost_number(company, &key) else { continue };
            has_gap |= number > through.saturating_add(1);
            through = number;
            let place = store::cost_place(company, &value)?;
            match store.get(Table::CostEvents, &place).await? {
                Some(bytes) => {
                    let event: CostEvent = store::decode(WHAT, &bytes)?;
                    page.add(filter.matches(&event).then_some(event), bytes.len());
                }
                None => {
                    page.add(None, 0);
                    trimmed_before = trimmed_before.max(began_before(company, &place));
                }
            }
        }
        // Read after the rows: what is removed meanwhile is said.
        if let Some(bytes) = store.get(Table::CostOrder, &store::costs_trimmed_key(company)).await?
        {
            let gone: CostsTrimmed = store::decode("trimmed cost events", &bytes)?;
            if has_gap || gone.through > through {
                trimmed_before = trimmed_before.max(Some(gone.before));
                through = through.max(gone.through);
            }
        }
        if through > after {
            // A number that a crash takes back is given to another event.
            store.commit().await?;
        }
        Ok(OldestFirst { events: page.last().0, through, more, trimmed_before })
    }

    /// Whether a company has the cost event of this id. An id does not say where its event is: they
    /// are read until it is found.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn has_cost_event(&self, company: &CompanyId, id: Uuid) -> Result<bool, StoreError> {
        let prefix = store::company_key(company, b"");
        let mut events = store::scan_all(&*self.store, Table::CostEvents, &prefix);
        while let Some((_, event)) = events.next_row::<CostEvent>(WHAT).await? {
            if event.id == id {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes a company's cost events up to the first one that occurred less than so many days
    /// ago. A reader that comes back learns that they are gone. Answers how many there were.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn trim_cost_events(
        &self,
        company: &CompanyId,
        days: u32,
    ) -> Result<u64, StoreError> {
        let day = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
        let before = |days: u32| self.clock.now().checked_sub(day(days)).ok();
        let (Some(cutoff), orphans) = (before(days), before(days.saturating_add(1))) else {
            return Ok(0);
        };
        let count = self.trim_ordered(company, cutoff).await?;
        match orphans {
            Some(cutoff) => Ok(count + self.trim_orphans(company, cutoff).await?),
            None => Ok(count),
        }
    }

    async fn trim_ordered(
        &self,
        company: &CompanyId,
        cutoff: Timestamp,
    ) -> Result<u64, StoreError> {
        let store = &*self.store;
        let (mut changes, mut last, mut count) = (Vec::new(), 0, 0);
        let mut rows = store::scan_all(store, Table::CostOrder, &store::cost_numbers(company));
        while let Some((key, value)) = rows.next().await? {
            let Some(number) = store::cost_number(company, &key) else { continue };
            let place = store::cost_place(company, &value)?;
            if let Some(bytes) = store.get(Table::CostEvents, &place).await? {
                if store::decode::<CostEvent>(WHAT, &bytes)?.occurred_at >= cutoff {
                    break;
                }
                changes.push(Change::always(Table::CostEvents, place, None));
                count += 1;
            }
            last = number;
            changes.push(Change {
                table: Table::CostOrder,
                key,
                expected: Expected::Value(value),
                new: None,
            });
            if changes.len() >= AT_ONCE
                && !remove(store, company, &mut changes, last, cutoff).await?
            {
                return Ok(count);
            }
        }
        if !changes.is_empty() {
            remove(store, company, &mut changes, last, cutoff).await?;
        }
        Ok(count)
    }

    /// Removes events of operations that began before a moment and to which no row of the order
    /// leads. Only an import can bring such an event.
    async fn trim_orphans(
        &self,
        company: &CompanyId,
        cutoff: Timestamp,
    ) -> Result<u64, StoreError> {
        let ms = u64::try_from(cutoff.as_millisecond()).unwrap_or(0);
        let from = store::newest_first(company, Uuid::from_u128(u128::from(ms) << 80));
        let prefix = store::company_key(company, b"");
        let mut rows = store::scan_all(&*self.store, Table::CostEvents, &prefix).from(Some(&from));
        let (mut gone, mut count) = (Vec::new(), 0);
        while let Some((key, _)) = rows.next().await? {
            count += 1;
            gone.push(Change::always(Table::CostEvents, key, None));
            if gone.len() >= AT_ONCE {
                store::write(&*self.store, &std::mem::take(&mut gone)).await?;
            }
        }
        if !gone.is_empty() {
            store::write(&*self.store, &gone).await?;
        }
        Ok(count)
    }
}

/// A moment after that of an event's key: the key has the operation's id, which begins with its
/// time.
fn began_before(company: &CompanyId, key: &[u8]) -> Option<Timestamp> {
    let rest = key.strip_prefix(&store::company_key(company, b"")[..])?;
    let id: [u8; 16] = rest.get(..16)?.try_into().ok()?;
    let ms = Uuid::from_bytes(id.map(|byte| !byte)).as_u128() >> 80;
    Timestamp::from_millisecond(i64::try_from(ms).ok()? + 1).ok()
}

/// Removes these rows, and says so in the same step. Answers whether it did: somebody else may
/// remove them at this moment.
async fn remove(
    store: &dyn Store,
    company: &CompanyId,
    changes: &mut Vec<Change>,
    through: u64,
    before: Timestamp,
) -> Result<bool, StoreError> {
    let trimmed = store::encode("trimmed cost events", &CostsTrimmed { through, before })?;
    changes.push(Change::always(
        Table::CostOrder,
        store::costs_trimmed_key(company),
        Some(trimmed),
    ));
    let done = store.transact(&std::mem::take(changes)).await?;
    store.commit().await?;
    Ok(matches!(done, Transacted::Done(_)))
}
