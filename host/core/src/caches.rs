//! Keeps caches of rows in memory current. Each is updated by the crate that writes its rows. The
//! rows that other processes write come through the store's change feed and are applied here.

use std::sync::Arc;

use memhost_operations::Parts;
use memhost_store::TableWrite;
use memhost_tenancy::ServiceError;

/// Follows the writes of other processes until the host is dropped. Does nothing where this process
/// is the only one.
pub(crate) fn follow_changes(parts: &Arc<Parts>) {
    let Some(mut feed) = parts.store.changes() else { return };
    let weak = Arc::downgrade(parts);
    memhost_executor::spawn(async move {
        loop {
            let rows = match feed.next().await {
                Ok(Some(rows)) => rows,
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "changes of other hosts can no longer be read; \
                        restart this host");
                    return;
                }
            };
            let Some(parts) = weak.upgrade() else { return };
            for row in &rows {
                if let Err(error) = follow(&parts, row).await {
                    tracing::error!(%error, table = row.table.name(), "a change of another host \
                        could not be read");
                }
            }
        }
    });
}

/// Updates the caches with a row that another process wrote.
pub(crate) async fn follow(parts: &Parts, row: &TableWrite) -> Result<(), ServiceError> {
    parts.tenancy.follow(row).await?;
    parts.bindings.row_changed(row).await?;
    parts.oplog.ledger.follow(row).await?;
    parts.records.follow(row).await?;
    Ok(parts.reviews.follow(row)?)
}
