//! Reads operators' tokens again where another host has changed them: each host has all of them in
//! memory. All else that is in memory belongs to companies, and only their home changes it.

use std::sync::Arc;

use memhost_operations::Parts;

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
                if let Err(error) = parts.tenancy.follow(row) {
                    tracing::error!(%error, table = row.table.name(), "a change of another host \
                        could not be read");
                }
            }
        }
    });
}
