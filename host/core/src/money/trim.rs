//! Removes cost events that are too old, in the order in which they were written.

use jiff::Timestamp;

use memhost_store::{
    self as store, Change, CostsTrimmed, Expected, Store, StoreError, Table, Transacted,
};
use memhost_types::{CompanyId, CostEvent};

/// Events that are removed in one step.
const AT_ONCE: usize = 200;

/// Removes a company's cost events up to the first one that occurred at `cutoff` or later. A reader
/// that comes back learns that they are gone. Answers how many there were.
///
/// # Errors
/// Where the store fails.
pub(crate) async fn cost_events(
    store: &dyn Store,
    company: &CompanyId,
    cutoff: Timestamp,
) -> Result<u64, StoreError> {
    let (mut changes, mut last, mut count) = (Vec::new(), 0, 0);
    let mut rows = store::scan_all(store, Table::CostOrder, &store::cost_numbers(company));
    while let Some((key, value)) = rows.next().await? {
        let Some(number) = store::cost_number(company, &key) else { continue };
        let place = store::cost_place(company, &value)?;
        if let Some(bytes) = store.get(Table::CostEvents, &place).await? {
            if store::decode::<CostEvent>("cost event", &bytes)?.occurred_at >= cutoff {
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
        if changes.len() >= AT_ONCE && !remove(store, company, &mut changes, last, cutoff).await? {
            return Ok(count);
        }
    }
    if !changes.is_empty() {
        remove(store, company, &mut changes, last, cutoff).await?;
    }
    Ok(count)
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
