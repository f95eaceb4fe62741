//! Comparing the log with its indexes, and the companies of a store.

use super::super::fit;
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
        let known = (std::collections::BTreeSet::new(), last);
        let acme = company("acme");
        let found = fit::compare(&store.trees, &store.companies, &acme, &fit::EVERY, known);
        found.unwrap().derived
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
        let first = crate::Posting::decode(&[1, 0]).unwrap().encode();
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

/// Writes an operation, and waits until it is indexed.
fn write(store: &SledStore, operation: Operation) -> Operation {
    block_on(store.write_operation(Arc::new(operation.clone()), Vec::new())).unwrap();
    indexed(store);
    operation
}

fn refused(store: &SledStore) -> u64 {
    let day = "1970-01-01".parse().unwrap();
    let rows = block_on(store.rollups(&company("acme"), day, "3000-01-01".parse().unwrap()));
    rows.unwrap().iter().map(|(_, row)| row.counts.refused).sum()
}

#[test]
fn what_does_not_fit_the_log_is_made_again() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    for _ in 0..3 {
        let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Refused);
        write(&store, Operation { records: vec![named::handle("p", "a")], ..made });
    }
    let index = &store.trees.index;
    let chunk = |facet: u8, value: &str| {
        super::super::keys::chunk(&super::super::keys::facet(&acme, facet, value), 0)
    };
    let sums = store.trees.table(Table::Sums);
    let summed = crate::summed_key(&acme, 0);
    let rows: Vec<_> = index.scan_prefix(super::super::keys::named(&acme)).keys().collect();
    // Missing, damaged, with one too many, and without what names a record.
    index.remove(chunk(b'a', "ada")).unwrap();
    index.insert(chunk(b'o', "refused"), &[9, 9, 9]).unwrap();
    index.insert(chunk(b'k', "query"), &[1, 0, 2, 0, 3, 0, 77, 0]).unwrap();
    index.insert(chunk(b'k', "forget"), &[1, 0]).unwrap();
    rows.into_iter().for_each(|key| drop(index.remove(key.unwrap()).unwrap()));
    sums.insert(summed, &[1, 0]).unwrap();
    let findings = block_on(store.verify()).unwrap();
    assert_eq!(findings.len(), 6, "{findings:#?}");
    let mended = block_on(crate::mend(&store)).unwrap();
    assert_eq!(mended.len(), 6, "{mended:#?}");
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    let filter: OperationFilter = serde_json::from_value(serde_json::json!({
        "agentId": "ada", "outcome": "refused", "kind": "query", "providerRecordId": "a"
    }))
    .unwrap();
    assert_eq!(all(&store, "acme", &filter, 10), [3, 2, 1]);
    assert_eq!(block_on(crate::mend(&store)).unwrap(), Vec::<String>::new());
}

#[test]
fn a_start_mends_what_was_written_since_the_last_stop() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    let made = operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded);
    write(&store, made);
    let key = super::super::keys::chunk(&super::super::keys::facet(&acme, b'a', "ada"), 0);
    store.trees.index.remove(&key).unwrap();
    // As where the host is killed: nothing says that it was closed with a whole index.
    store.companies.lock().get_mut(&acme).unwrap().open.insert(99);
    drop(store);
    let store = open(directory.path());
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
}

#[test]
fn a_start_goes_on_past_what_is_damaged() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    let made = || operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Refused);
    let (first, second) = (write(&store, made()), write(&store, made()));
    let chunk = super::super::keys::chunk(&super::super::keys::facet(&acme, b'a', "ada"), 0);
    // As where the host is killed before the second operation is indexed, with a damaged index.
    let watermark = super::super::keys::watermark(&acme);
    store.trees.index.insert(watermark, &first.id.sequence().to_be_bytes()).unwrap();
    store.trees.index.insert(&chunk, &[9, 9, 9]).unwrap();
    let summed = crate::summed_key(&acme, 0);
    store.trees.table(Table::Sums).insert(summed, &[9, 9, 9]).unwrap();
    let third = write_record(&store, &made(), b"no operation");
    store.companies.lock().get_mut(&acme).unwrap().open.insert(99);
    drop(store);
    let store = open(directory.path());
    let filter = OperationFilter { agent_id: "ada".parse().ok(), ..OperationFilter::default() };
    let found = all(&store, "acme", &filter, 10);
    assert_eq!(found, [second.id.sequence(), first.id.sequence()]);
    assert_eq!(refused(&store), 3, "the second one is counted twice, and none is lost");
    let findings = block_on(store.verify()).unwrap();
    assert!(
        findings.len() == 1 && findings[0].contains(&format!("number {third}")),
        "{findings:?}"
    );
}

/// The start that could not compare leaves that to the next one.
#[test]
fn what_a_start_could_not_compare_the_next_one_compares() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    write(&store, operation(&store, "acme", Some("ada"), OperationKind::Query, Outcome::Succeeded));
    let key = super::super::keys::chunk(&super::super::keys::facet(&acme, b'a', "ada"), 0);
    store.trees.index.remove(&key).unwrap();
    store.trees.index.insert(super::super::keys::compared(&acme), &[0; 8]).unwrap();
    store.companies.lock().get_mut(&acme).unwrap().is_uncompared = true;
    drop(store);
    let store = open(directory.path());
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
}

/// Puts this in the place of an operation's record. Answers its number.
fn write_record(store: &SledStore, operation: &Operation, record: &[u8]) -> u64 {
    let sequence = operation.id.sequence();
    let key = super::super::keys::record(&operation.company_id, sequence);
    store.trees.records.insert(key, record).unwrap();
    sequence
}

#[test]
fn an_interrupted_operation_is_found_although_the_index_is_past_it() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    let lost = operation(&store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(store.write_operation(Arc::new(lost.clone()), Vec::new())).unwrap();
    // Its end could not be written.
    store.companies.lock().get_mut(&acme).unwrap().open.remove(&lost.id.sequence());
    let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
    write(&store, made);
    drop(store);
    let store = open(directory.path());
    let filter =
        OperationFilter { outcome: Some(Outcome::Interrupted), ..OperationFilter::default() };
    assert_eq!(all(&store, "acme", &filter, 10), [lost.id.sequence()]);
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
}

#[test]
fn the_sums_have_an_entry_as_often_as_it_says() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Refused);
    let first = write(&store, made);
    assert_eq!(refused(&store), 1);
    for count in [5, 5, 7] {
        write(&store, Operation { count, ..first.clone() });
        assert_eq!(refused(&store), count);
    }
    assert_eq!(block_on(store.verify()).unwrap(), Vec::<String>::new());
    let key = crate::summed_count_key(&company("acme"), first.id.sequence());
    assert!(store.trees.table(Table::Sums).contains_key(key).unwrap());
    drop(store);
    let store = open(directory.path());
    write(&store, Operation { count: 9, ..first });
    assert_eq!(refused(&store), 9, "also after a restart");
}

#[test]
fn a_backup_whose_log_and_sums_do_not_fit_is_reported() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let acme = company("acme");
    let check = |store: &SledStore, name: &str| {
        let path = directory.path().join(name);
        block_on(store.backup(&path, Box::new(|| {}))).unwrap();
        SledStore::check_backup(&path).unwrap()
    };
    let lost = operation(&store, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(store.write_operation(Arc::new(lost.clone()), Vec::new())).unwrap();
    // All but the one in progress are indexed when this returns.
    let write = |later: i64| {
        let made = operation(&store, "acme", None, OperationKind::Query, Outcome::Succeeded);
        let started_at = made.started_at + jiff::SignedDuration::from_mins(later);
        let made = Arc::new(Operation { started_at, ..made });
        block_on(store.write_operation(made, Vec::new())).unwrap();
        while store.companies.lock()[&acme].open.len() > 1 {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    write(0);
    write(0);
    assert_eq!(check(&store, "whole"), Vec::<String>::new(), "a call may be in progress");
    store.trees.records.remove(super::super::keys::intent(&acme, lost.id.sequence())).unwrap();
    write(30);
    store.trees.table(Table::Sums).insert(crate::summed_key(&acme, 0), &[3, 0]).unwrap();
    let found = check(&store, "damaged");
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(found[0].contains("the end of 1 operation"), "{found:#?}");
    assert!(found[1].contains("the sums lack 1 operation"), "{found:#?}");
    store.trees.records.insert(super::super::keys::record(&acme, 2), b"no operation").unwrap();
    let found = check(&store, "broken");
    assert!(found.iter().any(|line| line.contains("operation number 2")), "{found:#?}");
}

#[test]
fn the_index_has_the_issue_and_the_run_that_only_the_source_or_the_hook_names() {
    let directory = TempDir::new().unwrap();
    let store = open(directory.path());
    let made = operation(&store, "acme", None, OperationKind::Capture, Outcome::Succeeded);
    let source = serde_json::json!({
        "kind": "run", "companyId": "acme", "issueId": "i1", "runId": "r1"
    });
    let hook = serde_json::json!({
        "hookKind": "post_run_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
        "heartbeatRunId": "r2"
    });
    let (source, hook) = (serde_json::from_value(source).unwrap(), serde_json::from_value(hook));
    write(&store, Operation { source: Some(source), hook: Some(hook.unwrap()), ..made });
    for wanted in [
        serde_json::json!({"issueId": "i1"}),
        serde_json::json!({"runId": "r1"}),
        serde_json::json!({"runId": "r2", "issueId": "i1"}),
    ] {
        let filter: OperationFilter = serde_json::from_value(wanted).unwrap();
        assert_eq!(all(&store, "acme", &filter, 10), [1], "{filter:?}");
    }
}
