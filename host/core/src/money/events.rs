//! Lists of cost events: newest first, and oldest first for a reader that wants each of them once.

use async_recursion::async_recursion as boxed;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::Service;
use crate::error::ServiceError;
use memhost_store::{self as store, CostsTrimmed, FoundPage, Store, StoreError, Table};
use memhost_types::{CompanyId, CostEvent, CostEventFilter, FieldError, ListOrder};

/// One page of cost events.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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

impl Service {
    /// One page of a company's cost events. Oldest first they are in the order in which they were
    /// written, so no event ever appears before a cursor that was answered.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn cost_events(
        &self,
        company: &CompanyId,
        filter: &CostEventFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<CostEventPage, ServiceError> {
        filter.check()?;
        let page = self.page_of("cost-events", company, filter, cursor, limit)?;
        if filter.order == ListOrder::Newest {
            let found =
                self.recorder.ledger.cost_events(company, filter, page.from(), page.limit).await?;
            let page = self.sealed(&page, found);
            let (items, next_cursor) = (page.items, page.next_cursor);
            return Ok(CostEventPage {
                items,
                more: next_cursor.is_some(),
                next_cursor,
                trimmed_before: None,
            });
        }
        let after = match page.from() {
            None => 0,
            Some(bytes) => {
                let bytes = bytes
                    .try_into()
                    .map_err(|_| FieldError::new("cursor", "is of another list"))?;
                u64::from_be_bytes(bytes)
            }
        };
        let read = oldest_first(&*self.store, company, filter, after, page.limit).await?;
        let sealed = self.sealed(&page, (read.events, Some(read.through.to_be_bytes().to_vec())));
        let (items, next_cursor) = (sealed.items, sealed.next_cursor);
        Ok(CostEventPage {
            items,
            next_cursor,
            more: read.more,
            trimmed_before: read.trimmed_before,
        })
    }
}

/// What was read of the order of cost events.
struct Read {
    events: Vec<CostEvent>,
    /// Everything up to this number was read or is gone.
    through: u64,
    more: bool,
    trimmed_before: Option<Timestamp>,
}

/// Reads the events whose numbers are above `after`.
async fn oldest_first(
    store: &dyn Store,
    company: &CompanyId,
    filter: &CostEventFilter,
    after: u64,
    limit: usize,
) -> Result<Read, StoreError> {
    let from = store::cost_number_key(company, after.saturating_add(1));
    let mut rows =
        store::scan_all(store, Table::CostOrder, &store::cost_numbers(company)).from(Some(&from));
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
                let event: CostEvent = store::decode("cost event", &bytes)?;
                page.add(filter.matches(&event).then_some(event), bytes.len());
            }
            None => {
                page.add(None, 0);
                trimmed_before = trimmed_before.max(began_before(company, &place));
            }
        }
    }
    // Read after the rows: what is removed meanwhile is said.
    if let Some(bytes) = store.get(Table::CostOrder, &store::costs_trimmed_key(company)).await? {
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
    Ok(Read { events: page.last().0, through, more, trimmed_before })
}

/// A moment after that of an event's key: the key has the operation's id, which begins with its
/// time.
fn began_before(company: &CompanyId, key: &[u8]) -> Option<Timestamp> {
    let rest = key.strip_prefix(&store::company_key(company, b"")[..])?;
    let id: [u8; 16] = rest.get(..16)?.try_into().ok()?;
    let ms = Uuid::from_bytes(id.map(|byte| !byte)).as_u128() >> 80;
    Timestamp::from_millisecond(i64::try_from(ms).ok()? + 1).ok()
}
