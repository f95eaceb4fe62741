//! Several stores on one database, and connections that break.

use std::sync::Arc;
use std::time::Duration;

use memhost_postgres::{PostgresOptions, PostgresStore};
use memhost_store::suite::{Blocking, all, block_on, company, make, operation, put, row, size};
use memhost_store::{Maintenance, OperationLog, Store, StoreError, Table, Tables, Transacted};
use memhost_types::{OperationFilter, OperationKind, Outcome};

use crate::server;
use crate::steps::{done, wrote};

/// Two stores on a new database.
fn two() -> Option<(String, PostgresStore, PostgresStore)> {
    server::runtime().block_on(async {
        let address = server::database().await?;
        let stores = (server::open(&address, 0).await, server::open(&address, 0).await);
        Some((address, stores.0, stores.1))
    })
}

#[test]
fn a_store_that_is_opened_again_has_everything() {
    let Some((_, first, second)) = two() else { return };
    let written =
        operation(&first, "acme", Some("ada"), OperationKind::Capture, Outcome::Succeeded);
    block_on(first.write_operation(Arc::new(written.clone()), Vec::new())).unwrap();
    let unended = operation(&first, "acme", None, OperationKind::Capture, Outcome::InProgress);
    drop(first.write_operation(Arc::new(unended.clone()), Vec::new()));
    make(&first, &[row("acme", Table::Events, b"a", Some(b"text"))]).unwrap();
    let storage = Blocking::open(&first, b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 10));
    storage.apply(vec![put(b"k", b"v")]).unwrap();
    block_on(first.commit()).unwrap();
    let held = first.held(&company("acme")).unwrap();

    assert_eq!(all(&second, "acme", &OperationFilter::default(), 10), [2, 1]);
    let found = block_on(second.operation(&company("acme"), written.id)).unwrap();
    assert_eq!(found, Some(written));
    let found = block_on(second.operation(&company("acme"), unended.id)).unwrap().unwrap();
    assert_eq!(found.outcome, Outcome::Interrupted);
    let storage = Blocking::open(&second, b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 10));
    assert_eq!(
        (storage.get(b"k").unwrap().as_deref(), storage.used()),
        (Some(&b"v"[..]), size(2, 1))
    );
    assert!(second.held(&company("acme")).unwrap().bytes >= held.bytes);
    assert!(block_on(second.verify()).unwrap().is_empty());
    assert_eq!(block_on(memhost_store::next_sequence(&second, &company("acme"))).unwrap(), 3);
}

#[test]
fn a_store_whose_company_was_taken_over_writes_nothing_of_it() {
    let Some((_, first, second)) = two() else { return };
    make(&first, &[row("acme", Table::Events, b"a", Some(b"1"))]).unwrap();
    make(&first, &[row("other", Table::Events, b"a", Some(b"1"))]).unwrap();
    block_on(first.commit()).unwrap();
    let late = operation(&first, "acme", None, OperationKind::Capture, Outcome::Succeeded);
    // The second one becomes the home by reading.
    let key = memhost_store::company_key(&company("acme"), b"a");
    assert_eq!(block_on(second.get(Table::Events, &key)).unwrap().as_deref(), Some(&b"1"[..]));
    let refused = block_on(first.write_operation(Arc::new(late), Vec::new()));
    assert!(matches!(refused, Err(StoreError::NotHome { .. })), "{refused:?}");
    assert!(all(&second, "acme", &OperationFilter::default(), 10).is_empty());
    // The other company is still its own.
    make(&first, &[row("other", Table::Events, b"a", Some(b"2"))]).unwrap();
    // It may take the company over again, and has what the other one wrote.
    make(&second, &[row("acme", Table::Events, b"a", Some(b"2"))]).unwrap();
    block_on(second.commit()).unwrap();
    assert_eq!(block_on(first.get(Table::Events, &key)).unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn whoever_takes_over_waits_for_a_write_in_flight() {
    let Some((address, first, second)) = two() else { return };
    make(&first, &[row("acme", Table::Events, b"a", Some(b"1"))]).unwrap();
    block_on(first.commit()).unwrap();
    server::runtime().block_on(async {
        // Somebody has the row, so the transaction of the first one is held up behind its fence.
        let client = server::client(&address).await;
        client.batch_execute("BEGIN; SELECT 1 FROM entries FOR UPDATE").await.unwrap();
        let written =
            first.transact(&[row("acme", Table::Events, b"a", Some(b"2"))]).await.unwrap();
        let Transacted::Done(commit) = written else { panic!() };
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event_type = 'Lock'";
        let watching = server::client(&address).await;
        let count = async || watching.query_one(waits, &[]).await.unwrap().get::<_, i64>(0);
        while count().await < 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let key = memhost_store::company_key(&company("acme"), b"a");
        let taking = tokio::spawn({
            let second = second.clone();
            async move { second.get(Table::Events, &key).await }
        });
        // Whether it waits, too: nothing else could hold it up.
        while count().await < 2 && !taking.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!taking.is_finished(), "it took the company over beside a write");
        client.batch_execute("COMMIT").await.unwrap();
        commit.await.unwrap();
        assert_eq!(taking.await.unwrap().unwrap().as_deref(), Some(&b"2"[..]));
    });
}

#[test]
fn every_acknowledged_write_is_there_once_although_connections_break() {
    let Some((address, store, other)) = two() else { return };
    drop(other);
    let written: Vec<u64> = server::runtime().block_on(async {
        let client = server::client(&address).await;
        let breaking = tokio::spawn(async move {
            for _ in 0..12 {
                tokio::time::sleep(Duration::from_millis(40)).await;
                let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE \
                           datname = current_database() AND application_name = 'memhost'";
                client.batch_execute(sql).await.unwrap();
            }
        });
        let mut writers = Vec::new();
        for writer in 0..8 {
            let store = store.clone();
            writers.push(tokio::spawn(async move {
                let name = format!("company-{}", writer % 3);
                let company = company(&name);
                let mut acknowledged = 0;
                for _ in 0..60 {
                    let Ok(number) = memhost_store::next_sequence(&store, &company).await else {
                        continue;
                    };
                    let made = memhost_store::suite::numbered(
                        &name,
                        None,
                        OperationKind::Query,
                        Outcome::Succeeded,
                        number,
                    );
                    if store.write_operation(Arc::new(made), Vec::new()).await.is_ok() {
                        acknowledged += 1;
                    }
                }
                acknowledged
            }));
        }
        let mut written = Vec::new();
        for writer in writers {
            written.push(writer.await.unwrap());
        }
        breaking.await.unwrap();
        written
    });
    let acknowledged: u64 = written.iter().sum();
    assert_eq!(acknowledged, 480, "a broken connection is no reason to refuse");
    let stored: usize = (0..3)
        .map(|n| all(&store, &format!("company-{n}"), &OperationFilter::default(), 50).len())
        .sum();
    assert_eq!(stored, 480);
    let day = jiff::civil::date(1970, 1, 1);
    let summed: u64 = (0..3)
        .flat_map(|n| block_on(store.rollups(&company(&format!("company-{n}")), day, day)).unwrap())
        .map(|(_, row)| row.counts.operations)
        .sum();
    assert_eq!(summed, 480);
    assert!(block_on(store.verify()).unwrap().is_empty());
}

/// An operation that was in progress when its host lost the company: what its provider wrote before
/// may be lost, so its end is not written, although the same host has the company again.
#[test]
fn an_operation_does_not_end_in_a_company_that_was_loaded_again() {
    let Some((_, first, second)) = two() else { return };
    let mut capture = operation(&first, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(first.write_operation(Arc::new(capture.clone()), Vec::new())).unwrap();
    let storage = Blocking::open(&first, b"acme\0aaaaaaaaaaaaaaaa", size(1_000, 10));
    block_on(second.companies()).unwrap();
    make(&second, &[row("acme", Table::Events, b"a", Some(b"1"))]).unwrap();
    storage.apply(vec![put(b"k", b"lost")]).unwrap();
    assert!(block_on(first.commit()).is_err(), "the other one is the home");
    // The first one takes it over again. The guest's call does not go on, its next one does.
    assert!(storage.get(b"k").is_err());
    storage.begin_call();
    assert_eq!(storage.get(b"k").unwrap(), None);
    capture.outcome = Outcome::Succeeded;
    let ended = block_on(first.write_operation(Arc::new(capture.clone()), Vec::new()));
    assert!(matches!(ended, Err(StoreError::NotHome { .. })), "{ended:?}");
    let found = block_on(first.operation(&company("acme"), capture.id)).unwrap().unwrap();
    assert_eq!(found.outcome, Outcome::Interrupted);
}

/// What waits for its commit while its company is lost and loaded again was made under an earlier
/// token of the same host.
#[test]
fn a_write_under_an_earlier_token_of_the_same_host_is_refused() {
    let Some((address, first, _)) = two() else { return };
    make(&first, &[row("acme", Table::Events, b"a", Some(b"1"))]).unwrap();
    block_on(first.commit()).unwrap();
    server::runtime().block_on(async {
        let client = server::client(&address).await;
        client.batch_execute("UPDATE homes SET token = token + 1").await.unwrap();
        let change = [row("acme", Table::Events, b"a", Some(b"2"))];
        let Transacted::Done(commit) = first.transact(&change).await.unwrap() else { panic!() };
        let refused = commit.await;
        assert!(matches!(refused, Err(StoreError::NotHome { .. })), "{refused:?}");
        let found = client.query_one("SELECT value FROM entries WHERE key = 'a'", &[]).await;
        assert_eq!(found.unwrap().get::<_, &[u8]>(0), b"1");
    });
}

/// A host remembers the newest operations that were cut short. The database refuses the others.
#[test]
fn the_database_refuses_the_end_of_an_operation_that_was_cut_short() {
    let Some((address, first, _)) = two() else { return };
    let mut capture = operation(&first, "acme", None, OperationKind::Capture, Outcome::InProgress);
    block_on(first.write_operation(Arc::new(capture.clone()), Vec::new())).unwrap();
    server::runtime().block_on(async {
        let client = server::client(&address).await;
        client.batch_execute("UPDATE operations SET outcome = 'interrupted'").await.unwrap();
    });
    capture.outcome = Outcome::Succeeded;
    let ended = block_on(first.write_operation(Arc::new(capture), Vec::new()));
    assert!(matches!(ended, Err(StoreError::NotHome { .. })), "{ended:?}");
}

/// Companies that nobody uses are dropped from memory, and are as they were when they are used
/// again.
#[test]
fn a_company_that_was_dropped_goes_on_where_it_was() {
    server::runtime().block_on(async {
        let Some(address) = server::database().await else { return };
        let options = PostgresOptions { address, keeps_loaded: 3, ..Default::default() };
        let store = PostgresStore::open(options).await.unwrap();
        let names: Vec<String> = (0..12).map(|number| format!("company-{number}")).collect();
        for round in 1..=3_u8 {
            for name in &names {
                let made = wrote(&store, name).await;
                assert_eq!(made.id.sequence(), u64::from(round), "{name}");
                done(&store, &[row(name, Table::Events, b"last", Some(&[round]))]).await;
            }
        }
        for name in &names {
            let all = OperationFilter::default();
            let page = store.operations(&company(name), &all, None, 10).await.unwrap();
            assert_eq!(page.operations.len(), 3, "{name}");
            let key = memhost_store::company_key(&company(name), b"last");
            assert_eq!(store.get(Table::Events, &key).await.unwrap().unwrap(), [3]);
        }
        assert!(store.verify().await.unwrap().is_empty());
    });
}
