//! Writes the numbers of counted refusals into their records.

use std::sync::Arc;

use super::Recorder;
use memhost_oplog::refusals::Counted;
use memhost_store::StoreError;
use memhost_types::Operation;

impl Recorder {
    /// Writes the numbers of the minutes that have ended; with `also_this` those of the current
    /// minute, too. They are on disk when this returns.
    pub(crate) async fn write_refusals(&self, also_this: bool) -> Result<(), StoreError> {
        let _writing = self.refusals.writing.lock().await;
        self.write_counted(self.refusals.ended(self.clock.now(), also_this)).await
    }

    /// Writes numbers that a refusal of a later minute has displaced.
    pub(crate) async fn write_displaced(&self, counted: Vec<Counted>) -> Result<(), StoreError> {
        if counted.is_empty() {
            return Ok(());
        }
        let _writing = self.refusals.writing.lock().await;
        self.write_counted(counted).await
    }

    /// Writes numbers into their records. A number may be written again: it is the whole count.
    /// What the store does not take is kept for the next minute.
    async fn write_counted(&self, mut counted: Vec<Counted>) -> Result<(), StoreError> {
        counted.retain(|counted| counted.count > 1);
        let written = self.try_write_counted(&counted).await;
        if written.is_err() {
            self.refusals.keep(counted);
        }
        written
    }

    /// A record that is gone was too old, or its company was erased.
    async fn try_write_counted(&self, counted: &[Counted]) -> Result<(), StoreError> {
        let mut last = None;
        for Counted { company, first, count } in counted {
            let Some(operation) = self.store.operation(company, *first).await? else { continue };
            let operation = Arc::new(Operation { count: *count, ..operation });
            last = Some(self.store.write_operation(Arc::clone(&operation), Vec::new()));
            self.feed.operation(&operation);
        }
        match last {
            Some(commit) => commit.await,
            None => Ok(()),
        }
    }
}
