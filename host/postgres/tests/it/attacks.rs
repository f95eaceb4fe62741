//! Attacks on the store: each of these tests is red where a promise is broken.

use std::sync::Arc;
use std::time::Duration;

use memhost_postgres::{PostgresOptions, PostgresStore};
use memhost_store::suite::{company, put, row, size};
use memhost_store::{
    Change, Expected, Maintenance, OperationLog, Partitions, Store, StoreError, Table, TableWrite,
    Tables, Transacted, company_key, next_sequence,
};
use memhost_types::{Operation, OperationFilter, Outcome};

use crate::server;
use crate::steps::{attack, done, hold_up, op, opened, summed, wait_for_locks, wrote};

attack!(sums_are_counted_once_where_another_company_of_the_batch_was_lost, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    wrote(&first, "lost").await;
    wrote(&first, "kept").await;
    let (lost, kept) = (
        op(&first, "lost", Outcome::Succeeded).await,
        op(&first, "kept", Outcome::Succeeded).await,
    );
    let gate = hold_up(&first, &address, "gate").await;
    second.operation_range(&company("lost")).await.unwrap();
    let event = TableWrite::new(
        Table::CostEvents,
        company_key(&company("kept"), b"event"),
        Some(b"{}".to_vec()),
    );
    let lost = first.write_operation(Arc::new(lost), Vec::new());
    let kept = first.write_operation(Arc::new(kept), vec![event]);
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(lost.await.is_err());
    kept.await.unwrap();
    let order =
        first.scan(Table::CostOrder, &company_key(&company("kept"), b""), None, 10).await.unwrap();
    let number = memhost_store::cost_number(&company("kept"), &order.entries[0].0);
    assert_eq!((summed(&first, "kept").await, number), (2, Some(1)));
});

// Another home gave the record's number to another operation.
attack!(a_late_record_takes_the_writes_of_no_other_company, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    let mut late = op(&first, "acme", Outcome::Succeeded).await;
    late.id = memhost_types::OperationId::new(1, late.id.sequence(), 99);
    wrote(&second, "acme").await;
    let lost = first.transact(&[row("acme", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(lost) = lost else { panic!() };
    assert!(lost.await.is_err());
    // It takes the company over again.
    first.operation_range(&company("acme")).await.unwrap();
    let innocent = op(&first, "innocent", Outcome::Succeeded).await;
    let gate = hold_up(&first, &address, "gate").await;
    let late = first.write_operation(Arc::new(late), Vec::new());
    let innocent = first.write_operation(Arc::new(innocent), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    assert!(late.await.is_err());
    innocent.await.unwrap();
});

attack!(a_closed_company_stays_closed_after_it_is_loaded_again, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    done(&first, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    let acme = company("acme");
    first.close_company(&acme).await.unwrap();
    first.erase_company(&acme).await.unwrap();
    second.operation_range(&acme).await.unwrap();
    // A refusal, which is written of a closed company, finds that another one is the home.
    let refusal = op(&first, "acme", Outcome::Refused).await;
    assert!(first.write_operation(Arc::new(refusal), Vec::new()).await.is_err());
    let written = first.transact(&[row("acme", Table::Events, b"a", Some(b"2"))]).await;
    assert!(matches!(written, Err(StoreError::Erased { .. })), "it was written");
});

attack!(a_handle_and_an_operation_do_not_outlive_a_lost_write, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    let running = op(&first, "acme", Outcome::Succeeded).await;
    let storage = first.binding_storage(b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 10)).await.unwrap();
    second.operation_range(&company("acme")).await.unwrap();
    storage.apply(vec![put(b"record", b"text")]).await.unwrap();
    assert!(first.commit().await.is_err());
    // The same call of the same guest goes on.
    let second_write = storage.apply(vec![put(b"index", b"record")]).await;
    let ended = first.write_operation(Arc::new(running), Vec::new()).await;
    storage.begin_call();
    let (record, index) =
        (storage.get(b"record").await.unwrap(), storage.get(b"index").await.unwrap());
    assert!(
        record.is_some() || (index.is_none() && second_write.is_err() && ended.is_err()),
        "record {record:?} index {index:?}, {second_write:?}, the operation: {ended:?}"
    );
});

/// Erases a company, and writes a refusal while the erasure waits for a row.
async fn erase_beside_a_refusal(
    store: &PostgresStore,
    address: &str,
    row: &str,
    refusal: Operation,
) {
    let (client, watching) = (server::client(address).await, server::client(address).await);
    client.batch_execute(&format!("BEGIN; {row} FOR UPDATE")).await.unwrap();
    let erasing = tokio::spawn({
        let store = store.clone();
        async move { store.erase_company(&company("acme")).await }
    });
    wait_for_locks(&watching, 1).await;
    let written = store.write_operation(Arc::new(refusal), Vec::new());
    client.batch_execute("COMMIT").await.unwrap();
    erasing.await.unwrap().unwrap();
    written.await.unwrap();
}

attack!(erased_sums_do_not_come_back, address, {
    let store = opened(&address, 1).await;
    // The lane remembers their sums.
    for _ in 0..5 {
        wrote(&store, "acme").await;
    }
    store.close_company(&company("acme")).await.unwrap();
    let refusal = op(&store, "acme", Outcome::Refused).await;
    let row = "SELECT 1 FROM companies WHERE name = 'acme'";
    erase_beside_a_refusal(&store, &address, row, refusal).await;
    assert_eq!((summed(&store, "acme").await, store.verify().await.unwrap()), (1, vec![]));
});

attack!(held_is_exact_after_a_refusal_beside_an_erasure, address, {
    let store = opened(&address, 1).await;
    wrote(&store, "acme").await;
    store.close_company(&company("acme")).await.unwrap();
    let refusal = op(&store, "acme", Outcome::InProgress).await;
    // It is written between two statements of the erasure.
    erase_beside_a_refusal(&store, &address, "SELECT 1 FROM operations", refusal).await;
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
});

attack!(a_row_of_the_host_that_was_built_on_a_lost_one_is_not_kept, address, {
    let (store, second) = (opened(&address, 1).await, opened(&address, 1).await);
    let change = |key: &[u8], expected, new: &[u8]| Change {
        table: Table::Host,
        key: key.to_vec(),
        expected,
        new: Some(new.to_vec()),
    };
    done(&store, &[row("acme", Table::Events, b"a", Some(b"1"))]).await;
    second.operation_range(&company("acme")).await.unwrap();
    let gate = hold_up(&store, &address, "gate").await;
    let lost = store
        .transact(&[
            change(b"first", Expected::Absent, b"1"),
            row("acme", Table::Events, b"a", Some(b"2")),
        ])
        .await
        .unwrap();
    let built =
        store.transact(&[change(b"first", Expected::Value(b"1".to_vec()), b"2")]).await.unwrap();
    gate.batch_execute("COMMIT").await.unwrap();
    let (Transacted::Done(lost), Transacted::Done(built)) = (lost, built) else { panic!() };
    assert!(lost.await.is_err());
    let built = built.await;
    assert!(built.is_err(), "its condition was a value that never was in the database");
    assert_eq!(store.get(Table::Host, b"first").await.unwrap(), None);
});

attack!(imported_sums_and_a_new_operation_in_one_batch_are_both_counted, address, {
    let (source, store) = (opened(&address, 1).await, opened(&address, 1).await);
    for _ in 0..5 {
        wrote(&source, "acme").await;
    }
    let prefix = company_key(&company("acme"), b"r");
    let page = source.scan(Table::Sums, &prefix, None, 10).await.unwrap();
    let made = op(&store, "bcme", Outcome::Succeeded).await;
    let gate = hold_up(&store, &address, "gate").await;
    let rows: Vec<Change> = page
        .entries
        .into_iter()
        .map(|(key, value)| row("bcme", Table::Sums, &key[5..], Some(&value)))
        .collect();
    assert!(!rows.is_empty());
    drop(store.transact(&rows).await.unwrap());
    let written = store.write_operation(Arc::new(made), Vec::new());
    gate.batch_execute("COMMIT").await.unwrap();
    written.await.unwrap();
    assert_eq!(summed(&store, "bcme").await, 6);
});

// The database keeps moments in microseconds.
attack!(an_operation_and_a_bound_within_one_microsecond_are_compared, address, {
    let store = opened(&address, 1).await;
    let mut made = op(&store, "acme", Outcome::Succeeded).await;
    made.started_at = jiff::Timestamp::from_nanosecond(1_000_000_300).unwrap();
    store.write_operation(Arc::new(made.clone()), Vec::new()).await.unwrap();
    let until = jiff::Timestamp::from_nanosecond(1_000_000_700).unwrap();
    let filter = OperationFilter { until: Some(until), ..OperationFilter::default() };
    assert!(filter.matches(&made));
    let found = store.operations(&company("acme"), &filter, None, 10).await.unwrap();
    assert_eq!(found.operations.len(), 1);
    let first = store.first_operation_at(&company("acme"), until).await.unwrap();
    assert_eq!(first, 2);
});

attack!(a_removed_partition_is_gone_at_once, address, {
    let store = opened(&address, 1).await;
    let partition = b"acme\0aaaaaaaaaaaaaaaa";
    store
        .write_partition_state(partition, size(1_000, 10), b"state", vec![put(b"k", b"v")])
        .await
        .unwrap()
        .await
        .unwrap();
    let removed = store.remove_partition(partition).await.unwrap();
    let found = store.partition_state(partition).await.unwrap();
    removed.await.unwrap();
    assert_eq!(found, None);
});

// Whoever takes the company over waits for one piece, and not for all of them.
attack!(old_operations_go_in_pieces, address, {
    wrote(&opened(&address, 1).await, "acme").await;
    let (client, watching) = (server::client(&address).await, server::client(&address).await);
    let more = "INSERT INTO operations SELECT (jsonb_populate_record(o, jsonb_build_object(\
                'number', number + i, 'id', gen_random_uuid()))).* \
                FROM operations o, generate_series(1, 4999) i";
    client.batch_execute(more).await.unwrap();
    let held = "UPDATE companies SET held = held * 5000 WHERE name = 'acme'";
    client.batch_execute(held).await.unwrap();
    let third = "BEGIN; SELECT 1 FROM operations WHERE number = 4100 FOR UPDATE";
    client.batch_execute(third).await.unwrap();
    let store = opened(&address, 1).await;
    let trimming = tokio::spawn({
        let store = store.clone();
        async move { store.trim_operations(&company("acme"), 4_500).await.unwrap() }
    });
    wait_for_locks(&watching, 1).await;
    let first: i64 =
        watching.query_one("SELECT min(number) FROM operations", &[]).await.unwrap().get(0);
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!((first, trimming.await.unwrap()), (4_001, 4_499));
    assert_eq!(store.operation_range(&company("acme")).await.unwrap(), Some((4_500, 5_000)));
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
});

attack!(held_is_exact_after_trimming_beside_writes, address, {
    let store = opened(&address, 1).await;
    wrote(&store, "acme").await;
    let trimming = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..300 {
                store.trim_operations(&company("acme"), u64::MAX).await.unwrap();
            }
        }
    });
    let mut commits = Vec::new();
    while !trimming.is_finished() {
        let made = op(&store, "acme", Outcome::Succeeded).await;
        commits.push(store.write_operation(Arc::new(made), Vec::new()));
        tokio::time::sleep(Duration::from_micros(300)).await;
    }
    trimming.await.unwrap();
    for commit in commits {
        commit.await.unwrap();
    }
    assert_eq!(store.verify().await.unwrap(), Vec::<String>::new());
});

// A call that is no write finds that another one is the home: the lane has not noticed.
attack!(sums_that_another_home_has_changed_are_read_again, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    wrote(&first, "acme").await;
    second.operation_range(&company("acme")).await.unwrap();
    wrote(&second, "acme").await;
    wrote(&second, "acme").await;
    let open = op(&second, "acme", Outcome::InProgress).await;
    second.write_operation(Arc::new(open), Vec::new()).await.unwrap();
    assert!(first.trim_operations(&company("acme"), 0).await.is_err());
    // It takes the company over again, and writes that the last one was cut short.
    assert_eq!(first.operation_range(&company("acme")).await.unwrap(), Some((1, 4)));
    assert_eq!(summed(&first, "acme").await, 4);
});

attack!(a_number_that_was_given_before_the_company_was_lost_is_not_given_again, address, {
    let (first, second) = (opened(&address, 1).await, opened(&address, 1).await);
    let given = op(&first, "acme", Outcome::Succeeded).await.id.sequence();
    second.operation_range(&company("acme")).await.unwrap();
    let lost = first.transact(&[row("acme", Table::Events, b"a", Some(b"1"))]).await.unwrap();
    let Transacted::Done(lost) = lost else { panic!() };
    assert!(lost.await.is_err());
    assert_eq!(next_sequence(&first, &company("acme")).await.unwrap(), given + 1);
});

/// A host goes on on the schema of the next version, while hosts are upgraded one after the other,
/// and not on one after that.
#[test]
fn a_host_runs_on_the_schema_of_the_next_version_and_not_on_a_later_one() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let store = server::open(&address, 0).await;
        let client = server::client(&address).await;
        let newer = |more: i32| {
            format!(
                "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                 SELECT max(version) + {more}, 'later', '', '0' FROM refinery_schema_history"
            )
        };
        drop(store);
        client.batch_execute(&newer(1)).await.unwrap();
        client.batch_execute("ALTER TABLE operations ADD COLUMN later text").await.unwrap();
        let store = server::open(&address, 0).await;
        wrote(&store, "acme").await;
        client.batch_execute(&newer(1)).await.unwrap();
        let options = PostgresOptions { address, ..PostgresOptions::default() };
        let error = PostgresStore::open(options).await.err().unwrap().to_string();
        assert!(error.contains("upgrade this host"), "{error}");
    });
}

/// What is acknowledged survives a crash of the database, whatever its operator has set for others.
#[test]
fn commits_are_synchronous_where_the_database_says_otherwise() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let client = server::client(&address).await;
        drop(server::open(&address, 0).await);
        let name = client.query_one("SELECT current_database()", &[]).await.unwrap();
        let name: &str = name.get(0);
        let set = format!(
            "ALTER DATABASE {name} SET synchronous_commit = off; \
             CREATE TABLE seen (setting text); \
             CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; \
             END $$; \
             CREATE TRIGGER see BEFORE INSERT ON operations FOR EACH ROW EXECUTE FUNCTION see()"
        );
        client.batch_execute(&set).await.unwrap();
        let store = server::open(&address, 0).await;
        wrote(&store, "acme").await;
        let row = client.query_one("SELECT DISTINCT setting FROM seen", &[]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), "on");
    });
}

/// What an import had brought before its host was killed is removed, and may be imported again.
#[test]
fn a_company_that_was_erased_takes_operations_with_the_numbers_of_those_that_were_cut() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let (first, second) = (server::open(&address, 0).await, server::open(&address, 0).await);
        let cut = op(&first, "acme", Outcome::InProgress).await;
        first.write_operation(Arc::new(cut.clone()), Vec::new()).await.unwrap();
        let acme = company("acme");
        second.reserve_sequences(&acme).await.unwrap();
        second.erase_company(&acme).await.unwrap();
        second.begin_numbers(&acme).await.unwrap();
        let imported = Operation { outcome: Outcome::Succeeded, ..cut };
        second.import_operation(imported.clone()).await.unwrap();
        assert_eq!(second.operation(&acme, imported.id).await.unwrap(), Some(imported));
    });
}
