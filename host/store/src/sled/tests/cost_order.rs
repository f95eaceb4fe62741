//! The numbers of cost events.

use super::*;
use crate::{TableWrite, company_key, cost_number, cost_numbers};

fn event(name: &str) -> TableWrite {
    TableWrite::new(
        Table::CostEvents,
        company_key(&company("acme"), name.as_bytes()),
        Some(b"{}".to_vec()),
    )
}

/// A record is written a second time where nobody knows whether the first time has worked.
#[test]
fn an_event_that_is_written_again_keeps_its_number() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let made =
        Arc::new(operation(&store, "acme", None, OperationKind::Capture, Outcome::Succeeded));
    for beside in
        [vec![event("a")], vec![event("a"), event("b")], vec![event("b")], vec![event("c")]]
    {
        block_on(store.write_operation(Arc::clone(&made), beside)).unwrap();
    }
    let rows =
        block_on(store.scan(Table::CostOrder, &cost_numbers(&company("acme")), None, 10)).unwrap();
    let numbers: Vec<_> =
        rows.entries.iter().map(|(key, _)| cost_number(&company("acme"), key)).collect();
    assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
}
