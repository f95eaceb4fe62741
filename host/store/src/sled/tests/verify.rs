//! Comparing the log with its indexes, and the companies of a store.

use super::*;

#[test]
fn what_begins_while_the_index_is_compared_is_no_damage() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let write = || {
        let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
        block_on(store.write_operation(
            Arc::new(Operation { records: vec![named::handle("p", "a")], ..made }),
            Vec::new(),
        ))
        .unwrap();
    };
    write();
    indexed(&store);
    write();
    indexed(&store);
    // `last`: the number that was the last one when the comparison began.
    let compare = |last: u64| {
        let (trees, known) = (&store.trees, (std::collections::BTreeSet::new(), last));
        super::super::index::compare(
            &trees.records,
            &trees.index,
            &store.companies,
            &company("acme"),
            known,
        )
        .unwrap()
    };
    // It is in the index, and was not in the log yet.
    let record = store
        .trees
        .records
        .remove(super::super::keys::record(&company("acme"), 2))
        .unwrap()
        .unwrap();
    assert_eq!(compare(1), Vec::<String>::new());
    assert!(!compare(2).is_empty(), "an entry too many is found");
    // It is in the log, and was not in the index yet.
    store.trees.records.insert(super::super::keys::record(&company("acme"), 2), record).unwrap();
    for key in store.trees.index.scan_prefix(super::super::keys::postings(&company("acme"))).keys()
    {
        let first = super::super::posting::Posting::decode(&[1, 0]).unwrap().encode();
        store.trees.index.insert(key.unwrap(), first).unwrap();
    }
    assert_eq!(compare(1), Vec::<String>::new());
    assert!(!compare(2).is_empty(), "a missing entry is found");
}

#[test]
fn keys_of_the_host_itself_are_of_no_company() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let put = |table: Table, key: &[u8]| {
        let change = Change {
            table,
            key: key.to_vec(),
            expected: Expected::Absent,
            new: Some(b"1".to_vec()),
        };
        drop(block_on(store.transact(&[change])).unwrap());
    };
    put(Table::Tokens, b"\0an operator's token");
    put(Table::Idempotency, b"\0caller\0key");
    put(Table::Idempotency, b"acme\0caller\0key");
    let names = |store: &SledStore| {
        block_on(store.companies())
            .map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(names(&store).unwrap(), ["acme"]);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    // What is of nobody is named, with its table.
    put(Table::Jobs, b"no end of a company");
    let error = names(&store).unwrap_err().to_string();
    assert!(error.contains("`jobs`") && error.contains("no end of a company"), "{error}");
    let findings = block_on(store.verify()).unwrap();
    assert!(findings.len() == 1 && findings[0].contains("`jobs`"), "{findings:?}");
}
