//! Comparing the whole operation log with its indexes, slowly. A start compares what was written
//! since the last stop; damage of what is older is found here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::Background;
use memhost_store::{DiskLevel, StoreError};

/// Time between two parts of a log: the comparison must not be felt.
const BETWEEN: Duration = Duration::from_secs(10);
/// Time after all logs were compared.
const REST: Duration = Duration::from_secs(24 * 60 * 60);

/// Starts comparing; it ends once the host is dropped.
pub(crate) fn start(background: &Arc<Background>) {
    let weak = Arc::downgrade(background);
    memhost_executor::spawn(async move {
        loop {
            let mut left = match weak.upgrade() {
                Some(background) => background.bindings.companies(),
                None => return,
            };
            while let Some(company) = left.pop() {
                let mut next = Some(0);
                while let Some(from) = next {
                    tokio::time::sleep(BETWEEN).await;
                    let ended =
                        |host: &Arc<Background>| host.is_shutting_down.load(Ordering::Relaxed);
                    let Some(background) = weak.upgrade().filter(|host| !ended(host)) else {
                        return;
                    };
                    if background.store.disk().level != DiskLevel::Plenty {
                        continue;
                    }
                    next = match background.store.mend_part(&company, from).await {
                        Ok((mended, next)) => {
                            mended.iter().for_each(|mended| {
                                tracing::warn!(mended, "an index was made again from the log");
                            });
                            next
                        }
                        Err(error @ StoreError::Erased { .. }) => {
                            tracing::debug!(%error, "its log is not compared");
                            None
                        }
                        Err(error) => {
                            tracing::error!(%error, "a log could not be compared with its index");
                            None
                        }
                    };
                }
            }
            // A host among several has such a task for each group that it takes over.
            let until = tokio::time::Instant::now() + REST;
            while weak.strong_count() > 0 && tokio::time::Instant::now() < until {
                tokio::time::sleep(BETWEEN).await;
            }
        }
    });
}
