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
        match (row.table, store::company_of(&row.key), row.new.as_deref()) {
            (Table::Bindings | Table::Targets, Some(company), _) => {
                self.bindings.reload(&company).await?;
            }
            (Table::Budgets | Table::CostEvents, ..) => self.oplog.ledger.follow(row).await?,
            (Table::Companies, Some(company), _) => self.reload_retention(&company).await?,
            (Table::PrivateWrites, Some(company), _) => {
                self.records.follow(&company, &row.key).await?;
            }
            (Table::Reviews, _, Some(value)) => {
                self.reviews.apply(&store::decode::<ReviewItem>("review", value)?);
            }
            (Table::Host, ..) => {
                self.bindings.known.reload(&*self.store).await?;
                self.companies.reload_erased(&*self.store).await?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::bindings::{Bindings, NewBinding};
    use memhost_ports::{Clock, SystemClock};
    use memhost_store::{SledOptions, SledStore, Store};
    use memhost_types::{
        BindingLimits, BindingPolicy, CompanyId, Grants, JsonObject, Principal, VersionChoice,
    };

    /// One store, and a clock, that two hosts share in these tests.
    fn shared() -> (TempDir, Arc<dyn Store>, Arc<dyn Clock>) {
        let directory = TempDir::new().unwrap();
        let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
        (directory, Arc::new(store), Arc::new(SystemClock))
    }

    fn new_default() -> NewBinding {
        NewBinding {
            key: "default".parse().unwrap(),
            provider_key: "local-markdown".parse().unwrap(),
            config: JsonObject::new(),
            version: VersionChoice::default(),
            grants: Grants::default(),
            reviewed: Vec::new(),
            limits: BindingLimits::default(),
            policy: BindingPolicy::default(),
            make_default: true,
        }
    }

    #[tokio::test]
    async fn a_late_deletion_does_not_reach_the_next_binding_of_the_key() {
        let (_directory, store, clock) = shared();
        let acme: CompanyId = "acme".parse().unwrap();
        let bindings = Bindings::open(store, clock).await.unwrap();
        let first = bindings.create(&Principal::Operator, &acme, new_default()).await.unwrap();
        bindings.delete(&acme, (&first.key, first.id), None, &Principal::Operator).await.unwrap();
        let next = bindings.create(&Principal::Operator, &acme, new_default()).await.unwrap();
        bindings
            .delete(&acme, (&first.key, first.id), Some(first.revision), &Principal::Operator)
            .await
            .unwrap_err();
        assert_eq!(bindings.get(&acme, &first.key).unwrap().id, next.id);
    }

    #[tokio::test]
    async fn bindings_of_another_host_are_read_again() {
        let (_directory, store, clock) = shared();
        let acme: CompanyId = "acme".parse().unwrap();
        let here = Bindings::open(Arc::clone(&store), Arc::clone(&clock)).await.unwrap();
        let there = Bindings::open(Arc::clone(&store), clock).await.unwrap();
        let made = here.create(&Principal::Operator, &acme, new_default()).await.unwrap();
        assert!(there.resolve(&acme, None, None).is_err());
        there.reload(&acme).await.unwrap();
        assert_eq!(there.resolve(&acme, None, None).unwrap().binding.id, made.id);
        here.delete(&acme, (&made.key, made.id), None, &Principal::Operator).await.unwrap();
        there.reload(&acme).await.unwrap();
        assert!(there.list(&acme).is_empty());
    }
}
