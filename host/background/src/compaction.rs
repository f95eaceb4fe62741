//! Compaction of the store after something was forgotten, when the mark says that it is time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;

use crate::Background;
use memhost_store::{self as store, Compacted};
use memhost_tenancy::ServiceError;

impl Background {
    /// Compacts the store in a task of its own, if it is time.
    pub(crate) fn compact_if_due(self: &Arc<Self>) {
        let Some(began) = self.oplog.compaction.begin(self.clock.now()) else { return };
        let service = Arc::clone(self);
        memhost_executor::spawn(async move {
            let compacted = service.compact(began).await;
            match compacted {
                Ok(Some(Compacted { bytes_before, bytes_after })) => {
                    let (before, after) = (bytes_before >> 10, bytes_after >> 10);
                    tracing::info!(
                        before,
                        after,
                        "what was forgotten is no longer in the store's files; sizes in KiB"
                    );
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "what was forgotten is still in the store's files");
                }
            }
            service.wake.notify_one();
        });
    }

    async fn compact(
        self: &Arc<Self>,
        began: Timestamp,
    ) -> Result<Option<Compacted>, ServiceError> {
        let weak = Arc::downgrade(self);
        let stop = move || {
            weak.upgrade().is_none_or(|service| service.is_shutting_down.load(Ordering::Relaxed))
        };
        let compacted = self.store.compact(Box::new(stop)).await;
        let is_done = matches!(compacted, Ok(Some(_)));
        if let Some(change) = self.oplog.compaction.end(began, self.clock.now(), is_done)? {
            store::write(&*self.store, &[change]).await?;
        }
        Ok(compacted?)
    }
}
