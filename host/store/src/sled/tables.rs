//! The calls about tables, partitions and the store as a whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::gate::OPERATIONS;
use super::state::Companies;
use super::store::SledStore;
use super::trees::Trees;
use super::{backup, compaction, fit, keys, partition, query, remove, state};
use crate::error::failed;
use crate::{
    BackupReport, Change, ChangeFeed, Commit, Compacted, Coordination, DiskState, DueKind, Held,
    Lease, Leases, LockKind, Maintenance, Partitions, Store, StoreError, Table, TablePage, Tables,
    Transacted,
};
use memhost_ports::{BindingStorage, StorageSize, StorageWrite};
use memhost_types::CompanyId;
use memhost_types::limits::MAX_PAGE_BYTES;

impl Store for SledStore {
    fn commit(&self) -> Commit {
        match self.log() {
            Ok(log) => log.commit(),
            Err(error) => Commit::failed(error),
        }
    }
}

#[async_trait]
impl Tables for SledStore {
    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.trees.disk.alive()?;
        let read = || self.trees.table(table).get(key).map_err(failed("reading"));
        let found = match table {
            Table::Records => self.trees.rows.get(key, read)?,
            _ => read()?,
        };
        Ok(found.map(|value| value.to_vec()))
    }

    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        self.trees.disk.alive()?;
        let (mut page, mut bytes) = (TablePage::default(), 0);
        for entry in self.trees.table(table).range(cursor.unwrap_or(prefix).to_vec()..) {
            let (key, value) = entry.map_err(failed("reading"))?;
            if !key.starts_with(prefix) {
                break;
            }
            if page.entries.len() == limit || bytes >= MAX_PAGE_BYTES {
                page.next = Some(key.to_vec());
                break;
            }
            bytes += key.len() + value.len();
            page.entries.push((key.to_vec(), value.to_vec()));
        }
        Ok(page)
    }

    async fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError> {
        match self.trees.change(changes)? {
            None => Ok(Transacted::Done(self.commit())),
            Some(number) => Ok(Transacted::Conflict(number)),
        }
    }
}

#[async_trait]
impl Partitions for SledStore {
    async fn binding_storage(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Arc<dyn BindingStorage>, StoreError> {
        Ok(Arc::new(self.partition(partition, limit)?))
    }

    async fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.trees.storage.get(partition::state_key(partition));
        Ok(found.map_err(failed("reading"))?.map(|value| value.to_vec()))
    }

    async fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError> {
        let partition = self.partition(partition, limit)?;
        partition.apply_with_state(writes, state).map_err(failed("writing"))?;
        Ok(self.commit())
    }

    async fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError> {
        let removed = partition.to_vec();
        self.blocking("erasing", move |trees, _| remove::partition(trees, &removed)).await?;
        self.partitions.lock().remove(partition);
        Ok(self.commit())
    }
}

#[async_trait]
impl Maintenance for SledStore {
    async fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError> {
        let mut all = BTreeSet::new();
        for (name, tree) in self.trees.of_companies() {
            all.append(&mut query::companies(name, tree)?);
        }
        Ok(all)
    }

    async fn close_company(&self, company: &CompanyId) -> Result<(), StoreError> {
        let own = company.clone();
        // It waits for writes in progress.
        self.blocking("closing a company", move |trees, companies| {
            trees.gate.close(&own, state::last(companies, &own));
            Ok(())
        })
        .await
    }

    async fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError> {
        // While others write. What has come meanwhile is removed while nobody writes.
        let own = company.clone();
        let removed_before = self
            .blocking("erasing", move |trees, _| {
                Ok(remove::company(trees, &own)? + remove::due(trees, &own)?)
            })
            .await?;
        // Its numbers continue, so that a later refusal does not take the number of an erased
        // operation.
        let erased = removed_before + self.log()?.erase(company).await?;
        self.partitions.lock().retain(|partition, _| !keys::is_of(partition, company));
        Ok(erased)
    }

    async fn backup(
        &self,
        file: &Path,
        at_the_end: Box<dyn FnOnce() + Send>,
    ) -> Result<BackupReport, StoreError> {
        let file = file.to_owned();
        self.blocking("writing the backup", move |trees, _| backup::write(trees, &file, at_the_end))
            .await
    }

    async fn compact(
        &self,
        stop: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Option<Compacted>, StoreError> {
        self.trees.disk.alive()?;
        let (trees, lock) = (self.trees.clone(), Arc::clone(&self.lock));
        let (data_dir, cache_bytes) = (self.data_dir.clone(), self.cache_bytes);
        let done = memhost_executor::spawn_blocking(move || {
            let done = compaction::run(&trees, &data_dir, cache_bytes, &*stop);
            drop((trees, lock));
            done
        });
        done.await.map_err(failed("compacting"))?
    }

    fn disk(&self) -> DiskState {
        self.trees.disk.reserve.state()
    }

    fn held(&self, company: &CompanyId) -> Result<Held, StoreError> {
        self.trees.disk.alive()?;
        Ok(self.trees.held(&keys::all(company)))
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        let verify = |trees: &Trees, companies: &Companies| {
            let mut findings = Vec::new();
            for (name, tree) in trees.of_companies() {
                if let Err(error @ StoreError::Corrupt { .. }) = query::companies(name, tree) {
                    findings.push(error.to_string());
                }
            }
            if !findings.is_empty() {
                return Ok(findings);
            }
            for company in query::companies(OPERATIONS, &trees.records)? {
                findings.extend(fit::verify(trees, companies, &company)?);
            }
            Ok(findings)
        };
        self.blocking("reading", verify).await
    }

    async fn mend_part(
        &self,
        company: &CompanyId,
        from: u64,
    ) -> Result<(Vec<String>, Option<u64>), StoreError> {
        let company = company.clone();
        let mend = move |trees: &Trees, companies: &Companies| {
            fit::mend_part(trees, companies, &company, from)
        };
        self.blocking("comparing the index", mend).await
    }
}

#[async_trait]
impl Coordination for SledStore {
    fn leases(&self, kind: DueKind) -> Arc<dyn Leases> {
        match kind {
            DueKind::Job => Arc::clone(&self.jobs) as Arc<dyn Leases>,
            DueKind::Delivery => Arc::clone(&self.deliveries) as Arc<dyn Leases>,
        }
    }

    async fn lock(&self, kind: LockKind, key: &[u8]) -> Result<Lease, StoreError> {
        Ok(self.locks.lock(kind, key).await)
    }

    fn changes(&self) -> Option<Box<dyn ChangeFeed>> {
        // The data directory is locked: no other process writes.
        None
    }
}
