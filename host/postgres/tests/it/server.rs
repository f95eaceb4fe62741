//! The runtime of all connections of these tests, and stores.

use std::sync::OnceLock;

use memhost_postgres::{PostgresOptions, PostgresStore};
use tokio::runtime::Runtime;

pub(crate) use memhost_postgres::testing::{
    by_pooler, client, database, direct, log_from, log_len,
};

/// The runtime of all connections of these tests.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
    })
}

pub(crate) async fn open(address: &str, company_bytes: u64) -> PostgresStore {
    let address = address.to_owned();
    let options = PostgresOptions { address, company_bytes, ..PostgresOptions::default() };
    PostgresStore::open(options).await.unwrap()
}
