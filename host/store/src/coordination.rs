//! What the tasks of a host must agree on. A company has one home, the host that serves it, so
//! leases and locks of that host's memory are enough, and what is in memory for a company stays
//! exact: numbers, budgets, rates, settings. A store that several hosts share decides which host
//! that is, and refuses what another one writes with [`StoreError::NotHome`].

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use uuid::Uuid;

use crate::{DueKind, StoreError, TableWrite};
use memhost_types::CompanyId;

/// Who works on what.
#[async_trait]
pub trait Coordination: Send + Sync {
    /// The leases of one kind of work. Every call answers the same leases.
    fn leases(&self, kind: DueKind) -> Arc<dyn Leases>;

    /// Waits for the lock of a key. One task of the host has it at a time, until the lease is
    /// dropped.
    ///
    /// # Errors
    /// Where the store takes no more calls.
    async fn lock(&self, kind: LockKind, key: &[u8]) -> Result<Lease, StoreError>;

    /// Whether this store serves a company. Where it does not, another host does, or another
    /// service of this one, and its calls about the company fail with [`StoreError::NotHome`].
    fn is_home(&self, _company: &CompanyId) -> bool {
        true
    }

    /// The same for what belongs to no company.
    fn is_hosts_home(&self) -> bool {
        true
    }

    /// The row of the token whose value has this digest, in hex, where another host may be its
    /// home.
    ///
    /// # Errors
    /// Where it cannot be read.
    async fn token_elsewhere(&self, _digest: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    /// What other processes write from now on. `None` if no other process can write.
    fn changes(&self) -> Option<Box<dyn ChangeFeed>>;
}

/// The subject of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Which build serves a binding, and the binding's deletion.
    Binding,
    /// A company's bindings: their rows and the caches of them change in the same order.
    Bindings,
    /// One job.
    Job,
    /// Telling the provider that one job is cancelled.
    Cancellation,
    /// The jobs that a binding's provider has left.
    NewJobs,
    /// The review of one record, or the decision about one item.
    Review,
    /// The records of an import that wait for one binding.
    Waiting,
    /// The rows of a binding's records, where some are not for the whole company.
    Records,
    /// The request with one idempotency key.
    Request,
}

/// Leases: a record that one task works on is taken by no other.
#[async_trait]
pub trait Leases: Send + Sync {
    /// Takes the record at `key`, unless somebody has it or `most` records of its group are taken
    /// already.
    ///
    /// # Errors
    /// Where the store takes no more calls.
    async fn take(&self, key: &[u8], group: Uuid, most: usize)
    -> Result<Option<Lease>, StoreError>;

    /// How many leases are held.
    fn held(&self) -> usize;
}

/// A record that a task works on, or a lock that it has, until this is dropped.
#[must_use = "the lease ends when this is dropped"]
pub struct Lease {
    _guard: Box<dyn Send + Sync>,
}

impl Lease {
    /// A lease that ends when `guard` is dropped.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Lease").finish_non_exhaustive()
    }
}

/// What other processes have written of what belongs to no company.
#[async_trait]
pub trait ChangeFeed: Send {
    /// Waits for the next changes, in the order in which they were made. `None` once the store is
    /// closed.
    ///
    /// # Errors
    /// Where changes were lost: the process must read its caches again, or restart.
    async fn next(&mut self) -> Result<Option<Vec<TableWrite>>, StoreError>;
}

type Held = Arc<Mutex<HashMap<Vec<u8>, Uuid>>>;

/// Leases in memory: they end with the process.
#[derive(Debug, Default)]
pub struct LocalLeases {
    held: Held,
}

struct LocalLease {
    key: Vec<u8>,
    held: Held,
}

impl Drop for LocalLease {
    fn drop(&mut self) {
        self.held.lock().remove(&self.key);
    }
}

#[async_trait]
impl Leases for LocalLeases {
    async fn take(
        &self,
        key: &[u8],
        group: Uuid,
        most: usize,
    ) -> Result<Option<Lease>, StoreError> {
        let mut held = self.held.lock();
        let of_group = held.values().filter(|other| **other == group).count();
        if of_group >= most || held.contains_key(key) {
            return Ok(None);
        }
        held.insert(key.to_vec(), group);
        Ok(Some(Lease::new(LocalLease { key: key.to_vec(), held: Arc::clone(&self.held) })))
    }

    fn held(&self) -> usize {
        self.held.lock().len()
    }
}

type Waiting = Arc<Mutex<HashMap<(LockKind, Vec<u8>), Arc<AsyncMutex<()>>>>>;

/// Locks in memory.
#[derive(Debug, Default)]
pub struct LocalLocks(Waiting);

struct LocalLock {
    guard: Option<OwnedMutexGuard<()>>,
    locks: Waiting,
}

impl LocalLocks {
    /// Waits for the lock of a key.
    pub async fn lock(&self, kind: LockKind, key: &[u8]) -> Lease {
        let lock = Arc::clone(self.0.lock().entry((kind, key.to_vec())).or_default());
        let guard = Some(lock.lock_owned().await);
        Lease::new(LocalLock { guard, locks: Arc::clone(&self.0) })
    }
}

impl Drop for LocalLock {
    fn drop(&mut self) {
        self.guard = None;
        // A holder of a lock, or a waiter for it, shares it with the map.
        self.locks.lock().retain(|_, lock| Arc::strong_count(lock) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_task_has_a_lock_at_a_time_and_nothing_is_left_of_it() {
        let locks = LocalLocks::default();
        let first = locks.lock(LockKind::Job, b"a").await;
        drop(locks.lock(LockKind::Job, b"b").await);
        drop(locks.lock(LockKind::NewJobs, b"a").await);
        let mut second = Box::pin(locks.lock(LockKind::Job, b"a"));
        tokio::select! {
            biased;
            _ = &mut second => panic!("two have the lock"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        drop(second.await);
        assert!(locks.0.lock().is_empty());
    }

    #[tokio::test]
    async fn a_record_has_one_lease_and_a_group_as_many_as_allowed() {
        let leases = LocalLeases::default();
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = leases.take(b"a", one, 2).await.unwrap().unwrap();
        assert!(leases.take(b"a", other, 2).await.unwrap().is_none(), "it is taken");
        let second = leases.take(b"b", one, 2).await.unwrap().unwrap();
        assert!(leases.take(b"c", one, 2).await.unwrap().is_none(), "its group is full");
        let third = leases.take(b"c", other, 2).await.unwrap();
        assert!(third.is_some() && leases.held() == 3);
        drop(first);
        assert!(leases.take(b"a", one, 2).await.unwrap().is_some());
        drop((second, third));
        assert_eq!(leases.held(), 0);
    }
}
