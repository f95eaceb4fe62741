//! Erasing a company beside others.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::company_key;

const ROWS: u32 = 20_000;

#[test]
fn others_write_while_a_large_company_is_erased() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    for some in (0..ROWS).collect::<Vec<_>>().chunks(1_000) {
        let row = |number: &u32| {
            let key = company_key(&company("large"), &number.to_be_bytes());
            Change::always(Table::Events, key, Some(vec![7; 200]))
        };
        drop(block_on(store.transact(&some.iter().map(row).collect::<Vec<_>>())).unwrap());
    }
    let write = || {
        let made = operation(&store, "small", None, OperationKind::Query, Outcome::Succeeded);
        block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
    };
    write();
    let is_erased = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(block_on(store.erase_company(&company("large"))).unwrap(), u64::from(ROWS));
            is_erased.store(true, Ordering::Relaxed);
        });
        let mut written = 0;
        while !is_erased.load(Ordering::Relaxed) {
            write();
            written += 1;
        }
        written
    });
    // The removal is flushed twenty times. A caller who waits for all of it writes once or twice.
    assert!(written >= 5, "{written} operations");
    assert_eq!(all(&store, "small", &OperationFilter::default(), 1_000).len(), written + 1);
}
