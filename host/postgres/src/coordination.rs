//! Leases and locks. A company has one home, so those of its host are enough.

use std::sync::Arc;

use async_trait::async_trait;

use crate::store::PostgresStore;
use memhost_store::{ChangeFeed, Coordination, DueKind, Lease, Leases, LockKind, StoreError};

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

    fn changes(&self) -> Option<Box<dyn ChangeFeed>> {
        None
    }
}
