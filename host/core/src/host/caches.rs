//! Caches of table rows in memory: bindings and their targets, tokens, review standings, budgets
//! and company settings. Each cache is updated by the code that writes its rows. The rows that
//! other processes write come through the store's change feed and are applied here.

use std::sync::Arc;

use crate::Service;
use crate::error::ServiceError;
use memhost_store::{self as store, Table, TableWrite};
use memhost_types::ReviewItem;

impl Service {
    /// Keeps the caches current with the writes of other processes. Does nothing where this process
    /// is the only one.
    pub(crate) fn follow_changes(self: &Arc<Self>) {
        let Some(mut feed) = self.store.changes() else { return };
        let weak = Arc::downgrade(self);
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
                let Some(service) = weak.upgrade() else { return };
                for row in &rows {
                    if let Err(error) = service.row_changed(row).await {
                        tracing::error!(%error, table = row.table.name(), "a change of another \
                            host could not be read");
                    }
                }
            }
        });
    }

    /// Updates the caches with a row that another process wrote.
    pub(crate) async fn row_changed(&self, row: &TableWrite) -> Result<(), ServiceError> {
        self.tokens.follow(row)?;
        self.bindings.row_changed(row).await?;
        match (row.table, store::company_of(&row.key), row.new.as_deref()) {
            (Table::Budgets | Table::CostEvents, ..) => self.oplog.ledger.follow(row).await?,
            (Table::Companies, Some(company), _) => self.reload_retention(&company).await?,
            (Table::PrivateWrites, Some(company), _) => {
                self.records.follow(&company, &row.key).await?;
            }
            (Table::Reviews, _, Some(value)) => {
                self.reviews.apply(&store::decode::<ReviewItem>("review", value)?);
            }
            (Table::Host, ..) => {
                self.known.reload(&*self.store).await?;
                self.companies.reload_erased(&*self.store).await?;
            }
            _ => {}
        }
        Ok(())
    }
}
