//! What every store does.

use memhost_postgres::testing::UNPREPARED;
use memhost_store::Store;

use crate::server;

memhost_store::store_suite!(on_postgres);

mod by_pooler {
    memhost_store::store_suite!(super::by_pooler);
}

fn on_postgres(quota: u64, test: fn(&dyn Store)) {
    on_store(quota, test, Some);
}

fn by_pooler(quota: u64, test: fn(&dyn Store)) {
    on_store(quota, test, |address| {
        let address = server::by_pooler(&address)?;
        Some(format!("{address}?{UNPREPARED}"))
    });
}

fn on_store(quota: u64, test: fn(&dyn Store), change: fn(String) -> Option<String>) {
    let opened = server::runtime().block_on(async {
        let address = change(server::database().await?)?;
        Some(server::open(&address, quota).await)
    });
    if let Some(store) = opened {
        test(&store);
    }
}
