//! What these tests do again and again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::civil::date;
use memhost_postgres::{PostgresOptions, PostgresStore};
use memhost_store::suite::{company, numbered, row};
use memhost_store::{Change, OperationLog, Table, Tables, Transacted, next_sequence};
use memhost_types::{Operation, OperationKind, Outcome};
use tokio_postgres::Client;

use crate::server;

pub(crate) async fn opened(address: &str, lanes: usize) -> PostgresStore {
    let options = PostgresOptions { address: address.to_owned(), lanes, ..Default::default() };
    PostgresStore::open(options).await.unwrap()
}

pub(crate) async fn op(store: &PostgresStore, name: &str, outcome: Outcome) -> Operation {
    let number = next_sequence(store, &company(name)).await.unwrap();
    numbered(name, None, OperationKind::Query, outcome, number)
}

pub(crate) async fn wrote(store: &PostgresStore, name: &str) -> Operation {
    let made = op(store, name, Outcome::Succeeded).await;
    store.write_operation(Arc::new(made.clone()), Vec::new()).await.unwrap();
    made
}

pub(crate) async fn done(store: &PostgresStore, changes: &[Change]) {
    let Transacted::Done(commit) = store.transact(changes).await.unwrap() else { panic!() };
    commit.await.unwrap();
}

/// Waits until so many sessions wait for a lock.
pub(crate) async fn wait_for_locks(watching: &Client, count: i64) {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND wait_event_type = 'Lock'";
    let until = Instant::now() + Duration::from_secs(5);
    while watching.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < count {
        assert!(Instant::now() < until, "nothing waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Holds up the lane of a company with a write of a row that somebody else has.
pub(crate) async fn hold_up(store: &PostgresStore, address: &str, name: &str) -> Client {
    done(store, &[row(name, Table::Events, b"gate", Some(b"1"))]).await;
    let client = server::client(address).await;
    client
        .batch_execute("BEGIN; SELECT 1 FROM entries WHERE key = 'gate' FOR UPDATE")
        .await
        .unwrap();
    drop(store.transact(&[row(name, Table::Events, b"gate", Some(b"2"))]).await.unwrap());
    let watching = server::client(address).await;
    wait_for_locks(&watching, 1).await;
    client
}

pub(crate) async fn summed(store: &PostgresStore, name: &str) -> u64 {
    let day = date(1970, 1, 1);
    let rows = store.rollups(&company(name), day, day).await.unwrap();
    rows.iter().filter(|(key, _)| key.origin.is_none()).map(|(_, row)| row.counts.operations).sum()
}

/// A test with a database of its own.
macro_rules! attack {
    ($name:ident, $address:ident, $body:block) => {
        #[test]
        fn $name() {
            $crate::server::runtime().block_on(async {
                let Some($address) = $crate::server::database().await else { return };
                let within = std::time::Duration::from_secs(60);
                tokio::time::timeout(within, async { $body }).await.expect("it hangs");
            });
        }
    };
}

pub(crate) use attack;
