//! Writing an operation's record, with the rows beside it.

use std::sync::Arc;

use crate::company::{Company, State};
use crate::item::{Item, Record, Replaces, Row};
use crate::place::{HOST, is_due, kind_of, split};
use crate::store::Inner;
use crate::tables::{check_length, prefix_bytes};
use memhost_store::{Commit, StoreError, Table, TableWrite, encode};
use memhost_types::{Operation, Outcome};

impl Inner {
    /// Writes the record of a company's operation. `imported`: how often the sums of an import
    /// count it already.
    pub(crate) fn write_record(
        &self,
        company: &Arc<Company>,
        operation: Arc<Operation>,
        beside: Vec<TableWrite>,
        imported: Option<u64>,
    ) -> Result<Commit, StoreError> {
        let bytes = encode("operation", &*operation)?;
        let rows = beside.into_iter().map(|write| self.row(company, write));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let number = operation.id.sequence();
        let is_hosts = |row: &&Row| row.company == HOST;
        // The host's own lock is taken before those of companies, as everywhere.
        let mut host = rows.iter().any(|row| is_hosts(&row)).then(|| self.own.state.lock());
        let mut state = company.state.lock();
        let has_rows = rows.iter().any(|row| !is_hosts(&row) && !is_due(row.key.0));
        admit(&state, &operation, has_rows)?;
        let counted = company.record_prefix() + bytes.len();
        let was_open = state.open.remove(&number);
        let replaces = match state.given.remove(&number) || was_open.is_some() {
            true => imported.map_or(Replaces::Unsummed, Replaces::Imported),
            false => Replaces::Unknown,
        };
        if operation.outcome == Outcome::InProgress {
            state.open.insert(number, counted);
        }
        // As if all rows were new: the commit says how much it was.
        let added = rows.iter().filter_map(|row| {
            Some(row.prefix_bytes? + row.key.1.len() + row.value.as_ref()?.len())
        });
        let added = i64::try_from(counted + added.sum::<usize>()).unwrap_or(i64::MAX);
        let before = i64::try_from(was_open.unwrap_or(0)).unwrap_or(0);
        let part = state.begin(company, added - before);
        let mut parts = Vec::with_capacity(2);
        if let Some(host) = &mut host {
            let part = host.begin(&self.own, 0);
            for row in rows.iter().filter(is_hosts) {
                host.show(&part, company.lane, row.key.clone(), row.value.clone());
            }
            parts.push(part);
        }
        for row in rows.iter().filter(|row| !is_hosts(row)) {
            state.show(&part, company.lane, row.key.clone(), row.value.clone());
        }
        state.show_operation(&part, Arc::clone(&operation));
        parts.push(part);
        let (reply, commit) = Commit::pair();
        let record = Some(Record { company: Arc::clone(company), operation, bytes, replaces });
        self.lane(company).write(Item { parts, rows, record, removed: Vec::new(), reply });
        Ok(commit)
    }

    /// A row beside a company's operation. It is written in the company's lane, and another lane
    /// has an order of its own, so it is a row of this company, or a mark of the host, which is as
    /// true in any order.
    fn row(&self, company: &Company, write: TableWrite) -> Result<Row, StoreError> {
        let TableWrite { table, key, new } = write;
        let (name, rest) = split(table, &key);
        check_length(rest)?;
        let owner = match name {
            None if table == Table::Host => &self.own,
            Some(_) if name == company.name => company,
            _ => {
                let what = format!("row of `{}` beside an operation", table.name());
                let message = "it belongs to another company or to none".to_owned();
                return Err(StoreError::Corrupt { what, message });
            }
        };
        Ok(Row {
            company: owner.id,
            key: (kind_of(table, name.as_ref()), rest.to_vec()),
            value: new.map(Arc::from),
            prefix_bytes: prefix_bytes(table, owner),
        })
    }
}

/// Refuses what a closed company must not have any more, and the end of an operation that was cut
/// short.
fn admit(state: &State, operation: &Operation, has_rows: bool) -> Result<(), StoreError> {
    state.alive()?;
    let (number, company) = (operation.id.sequence(), operation.company_id.clone());
    if operation.outcome != Outcome::Interrupted && state.interrupted.contains(&number) {
        return Err(StoreError::NotHome { company });
    }
    match state.closed {
        Some(last) if number <= last || has_rows => Err(StoreError::Erased { company }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use memhost_store::suite::{company, numbered};
    use memhost_types::OperationKind;

    use super::*;

    #[test]
    fn the_end_of_an_operation_that_was_cut_short_is_refused_before_it_waits() {
        let acme = Company::new(1, Some(company("acme")), (1, None), 1);
        let mut state = acme.state.lock();
        let ended = numbered("acme", None, OperationKind::Capture, Outcome::Succeeded, 7);
        admit(&state, &ended, false).unwrap();
        state.interrupted.insert(7);
        let refused = admit(&state, &ended, false);
        assert!(matches!(refused, Err(StoreError::NotHome { .. })), "{refused:?}");
    }
}
