//! What each company has in the store, and its quota.

use super::*;
use crate::{DiskLevel, TableWrite, company_key};

fn held(store: &SledStore, name: &str) -> u64 {
    block_on(store.held(&company(name))).unwrap().bytes
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

fn row(name: &str, table: Table, key: &[u8], value: Option<&[u8]>) -> Change {
    Change::always(table, company_key(&company(name), key), value.map(<[u8]>::to_vec))
}

fn make(store: &SledStore, changes: &[Change]) -> Result<(), StoreError> {
    block_on(store.transact(changes)).map(drop)
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

#[test]
fn a_company_at_its_quota_gets_no_new_rows_and_others_do() {
    let directory = TempDir::new().unwrap();
    let options = SledOptions { company_bytes: 1_000, ..SledOptions::default() };
    let store = SledStore::open(directory.path(), options).unwrap();
    make(&store, &[row("acme", Table::Deliveries, b"a", Some(&[1; 1_000]))]).unwrap();
    assert_eq!(block_on(store.held(&company("acme"))).unwrap().level(), DiskLevel::Low);
    for table in [Table::Events, Table::Deliveries, Table::Reviews, Table::Jobs, Table::Waiting] {
        let refused = make(&store, &[row("acme", table, b"b", Some(b"1"))]);
        assert!(
            matches!(refused, Err(StoreError::CompanyFull { quota: 1_000, .. })),
            "{table:?}: {refused:?}"
        );
    }
    // What changes or removes something, what a deletion writes, and what ends an operation.
    make(&store, &[row("acme", Table::Deliveries, b"a", Some(&[1; 1_100]))]).unwrap();
    make(&store, &[row("acme", Table::Activity, b"a", Some(b"1"))]).unwrap();
    let done = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    let beside = vec![TableWrite::new(
        Table::Reviews,
        company_key(&company("acme"), b"r"),
        Some(b"1".to_vec()),
    )];
    block_on(store.write_operation(Arc::new(done), beside)).unwrap();
    make(&store, &[row("other", Table::Events, b"b", Some(b"1"))]).unwrap();
    make(
        &store,
        &[row("acme", Table::Deliveries, b"a", None), row("acme", Table::Events, b"x", None)],
    )
    .unwrap();
    make(&store, &[row("acme", Table::Events, b"b", Some(b"1"))]).unwrap();
}
