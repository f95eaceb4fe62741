//! What each company has in the store, and its quota.

use super::*;
use crate::{TableWrite, company_key};

fn held(store: &SledStore, name: &str) -> u64 {
    store.held(&company(name)).unwrap().bytes
}

/// The same, added up by hand.
fn added_up(store: &SledStore, name: &str) -> u64 {
    let trees = store.trees.of_companies().filter(|(tree, _)| *tree != Table::Sums.name());
    let of = |tree: &super::super::tree::Tree| {
        let entries = tree.scan_prefix(format!("{name}\0")).map(Result::unwrap);
        entries.map(|(key, value)| (key.len() + value.len()) as u64).sum::<u64>()
    };
    trees.map(|(_, tree)| of(tree)).sum()
}

#[test]
fn what_a_company_has_is_counted_exactly_in_every_write() {
    let directory = TempDir::new().unwrap();
    let store = open(&directory.path().join("data"));
    for name in ["acme", "acm"] {
        make(
            &store,
            &[
                row(name, Table::Events, b"a", Some(&[1; 500])),
                row(name, Table::Host, b"h", Some(&[1; 99])),
            ],
        )
        .unwrap();
        // Longer, shorter, and gone.
        make(&store, &[row(name, Table::Events, b"b", Some(&[1; 50]))]).unwrap();
        make(&store, &[row(name, Table::Events, b"b", Some(&[1; 5_000]))]).unwrap();
        make(
            &store,
            &[row(name, Table::Events, b"a", Some(b"")), row(name, Table::Events, b"c", None)],
        )
        .unwrap();
        for number in 0..10 {
            let made =
                operation(&store, name, Some("ada"), OperationKind::Query, Outcome::Succeeded);
            block_on(store.write_operation(Arc::new(made), Vec::new())).unwrap();
            let mut made =
                operation(&store, name, None, OperationKind::Capture, Outcome::InProgress);
            let intent = store.write_operation(Arc::new(made.clone()), Vec::new());
            made.outcome = Outcome::Succeeded;
            let key = company_key(&company(name), &[number]);
            let beside = vec![TableWrite::new(Table::Jobs, key, Some(vec![7; 300]))];
            block_on(store.write_operation(Arc::new(made), beside)).unwrap();
            block_on(intent).unwrap();
        }
    }
    let now = held(&store, "acme");
    assert!(now > 8_000, "{now}");
    assert_eq!((now, held(&store, "acm")), (added_up(&store, "acme"), added_up(&store, "acm")));
    indexed(&store);
    block_on(store.trim_operations(&company("acme"), 10)).unwrap();
    assert!(held(&store, "acme") < now);
    assert_eq!(held(&store, "acme"), added_up(&store, "acme"));
    // A backup does not have the numbers, and a compacted store has them.
    let (file, now) = (directory.path().join("backup"), held(&store, "acme"));
    block_on(store.backup(&file, Box::new(|| ()))).unwrap();
    block_on(store.compact(Box::new(|| false))).unwrap().unwrap();
    assert_eq!(held(&store, "acme"), now);
    let restored = directory.path().join("restored");
    SledStore::restore(&file, &restored).unwrap();
    assert_eq!(held(&open(&restored), "acme"), now);
    drop(store);
    let store = open(&directory.path().join("data"));
    assert_eq!(held(&store, "acme"), now);
    block_on(store.erase_company(&company("acme"))).unwrap();
    assert_eq!((held(&store, "acme"), held(&store, "acm")), (0, added_up(&store, "acm")));
}
