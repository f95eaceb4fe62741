//! What every store does.

use memhost_store::Store;

use crate::server;

memhost_store::store_suite!(on_postgres);

fn on_postgres(quota: u64, test: fn(&dyn Store)) {
    let opened = server::runtime().block_on(async {
        let address = server::database().await?;
        Some(server::open(&address, quota).await)
    });
    if let Some(store) = opened {
        test(&store);
    }
}
