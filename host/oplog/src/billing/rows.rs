//! The keys of the tables of billing, and the rows of cost events.

use uuid::Uuid;

use memhost_store::{self as store, StoreError, Table, TableWrite};
use memhost_types::{BindingKey, CompanyId, CostEvent, Operation, Period};

/// The name of a cost event's row in errors.
pub(super) const WHAT: &str = "cost event";

/// The key of a budget's row.
pub(super) fn budget_key(
    company: &CompanyId,
    binding: Option<&BindingKey>,
    period: Period,
) -> Vec<u8> {
    let name = format!("{}\0{period}", binding.map_or("", |key| key.as_str()));
    store::company_key(company, name.as_bytes())
}

/// The key of the event with this index among those of its operation.
fn event_key(company: &CompanyId, operation: Uuid, index: usize) -> Vec<u8> {
    let index = u32::try_from(index).unwrap_or(u32::MAX).to_be_bytes();
    [&store::newest_first(company, operation)[..], &index].concat()
}

/// Whether a key is that of an event.
pub(super) fn is_key_of(event: &CostEvent, found: &[u8]) -> bool {
    let of_operation = store::newest_first(&event.company_id, event.operation_id.uuid());
    found.starts_with(&of_operation) && found.len() == of_operation.len() + 4
}

/// Whether a row of the order leads to where an event can be.
pub(super) fn is_place(company: &CompanyId, place: &[u8]) -> bool {
    let length = event_key(company, Uuid::nil(), 0).len();
    store::cost_place(company, place).is_ok_and(|place| place.len() == length)
}

/// The rows of an operation's events.
pub(super) fn writes(
    operation: &Operation,
    events: &[CostEvent],
) -> Result<Vec<TableWrite>, StoreError> {
    let write = |(index, event): (usize, &CostEvent)| {
        let key = event_key(&operation.company_id, operation.id.uuid(), index);
        Ok(TableWrite::new(Table::CostEvents, key, Some(store::encode(WHAT, event)?)))
    };
    events.iter().enumerate().map(write).collect()
}
