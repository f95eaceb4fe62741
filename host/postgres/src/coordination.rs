//! Leases and locks. A company has one home, so those of its host are enough.

use std::sync::Arc;

use async_trait::async_trait;

use crate::group::Group;
use crate::store::PostgresStore;
use memhost_store::{ChangeFeed, Coordination, DueKind, Lease, Leases, LockKind, StoreError};
use memhost_types::CompanyId;

#[async_trait]
impl Coordination for PostgresStore {
    fn leases(&self, kind: DueKind) -> Arc<dyn Leases> {
        match kind {
            DueKind::Job => Arc::clone(&self.0.jobs) as Arc<dyn Leases>,
            DueKind::Delivery => Arc::clone(&self.0.deliveries) as Arc<dyn Leases>,
        }
    }

    async fn lock(&self, kind: LockKind, key: &[u8]) -> Result<Lease, StoreError> {
        Ok(self.0.locks.lock(kind, key).await)
    }

    fn is_home(&self, company: &CompanyId) -> bool {
        self.0.term.is_none_or(|term| term.group == Group::of(company))
    }

    fn is_hosts_home(&self) -> bool {
        self.0.term.is_none_or(|term| term.group == Group::HOST)
    }

    async fn token_elsewhere(&self, digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.database.token(digest).await?.map(|(_, row)| row))
    }

    fn changes(&self) -> Option<Box<dyn ChangeFeed>> {
        self.0.term.map(|_| self.0.database.changes())
    }
}
