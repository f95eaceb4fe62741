//! Numbers cost events when they are written. Only the log's thread gives numbers, so they are in
//! the order in which readers see the events.

use super::trees::Trees;
use crate::error::failed;
use crate::{
    CostsTrimmed, StoreError, Table, TableWrite, cost_number, cost_number_key, cost_numbers,
    costs_trimmed_key, decode, encode_cost_place,
};
use memhost_types::CompanyId;

/// The rows that number the cost events among these writes. An event that is there already has its
/// number.
pub(super) fn rows(
    trees: &Trees,
    company: &CompanyId,
    beside: &[TableWrite],
) -> Result<Vec<TableWrite>, StoreError> {
    let (mut rows, mut last) = (Vec::new(), None);
    for write in
        beside.iter().filter(|write| write.table == Table::CostEvents && write.new.is_some())
    {
        if trees.table(Table::CostEvents).contains_key(&write.key).map_err(failed("reading"))? {
            continue;
        }
        let number = match last {
            Some(last) => last,
            None => self::last(trees, company)?,
        } + 1;
        last = Some(number);
        let value = encode_cost_place(company, &write.key)?;
        rows.push(TableWrite::new(Table::CostOrder, cost_number_key(company, number), Some(value)));
    }
    Ok(rows)
}

/// The last number that a company's events have or had. Retention removes rows meanwhile, in one
/// step with the change of what it has removed, which is therefore read after them.
fn last(trees: &Trees, company: &CompanyId) -> Result<u64, StoreError> {
    let table = trees.table(Table::CostOrder);
    let newest = table
        .scan_prefix(cost_numbers(company))
        .next_back()
        .transpose()
        .map_err(failed("reading"))?;
    let present = newest.and_then(|(key, _)| cost_number(company, &key)).unwrap_or(0);
    let trimmed = table.get(costs_trimmed_key(company)).map_err(failed("reading"))?;
    let gone =
        trimmed.map(|value| decode::<CostsTrimmed>("trimmed cost events", &value)).transpose()?;
    Ok(present.max(gone.map_or(0, |gone| gone.through)))
}
