//! Deliveries: accepted once for each event and binding, due when they are to be tried, then delivered or dead.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::work::due_queue::{All, Due, DueQueue, Round};
use memhost_ports::Clock;
use memhost_store::{
    self as store, Change, DueKind, Expected, Found, Store, StoreError, Table, TableWrite, Transacted,
};
use memhost_types::{BindingId, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus};

/// Deliveries of one binding that this host tries at a time: a provider that hangs does not block the others.
const MOST_OF_A_BINDING: usize = 8;

/// Why a call about deliveries failed.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// There is no such delivery.
    #[error("the company has no delivery {id}; `memhost hook list` shows those that it has")]
    NotFound {
        /// Which.
        id: String,
    },
    /// Its status does not allow it.
    #[error("the delivery {id} is {status}; only one that is dead can be replayed")]
    Status {
        /// Which.
        id: String,
        /// Its status.
        status: DeliveryStatus,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Due for Delivery {
    const KIND: DueKind = DueKind::Delivery;
    const TABLE: Table = Table::Deliveries;
    const NAME: &'static str = "delivery";

    fn key(&self) -> Vec<u8> {
        key(&self.company_id, self.id)
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    fn binding_id(&self) -> BindingId {
        self.binding_id
    }
}

/// Every delivery of this host.
pub struct Hooks {
    store: Arc<dyn Store>,
    queue: DueQueue<Delivery>,
    /// Counts changes of deliveries in this process. Who waits for a delivery that another process tries is answered at
    /// its deadline: a store for several hosts reports such deliveries through its change feed.
    moved: watch::Sender<u64>,
}

impl Hooks {
    /// The deliveries of a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { queue: DueQueue::new(Arc::clone(&store), clock), store, moved: watch::Sender::new(0) }
    }

    /// Accepts deliveries, durably, all or none. Where the store has a delivery of the same hook and binding already,
    /// that one is answered, with false.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn accept(&self, deliveries: Vec<Delivery>) -> Result<Vec<(Delivery, bool)>, StoreError> {
        let mut answer: Vec<(Delivery, bool)> = deliveries.into_iter().map(|delivery| (delivery, true)).collect();
        loop {
            let (mut changes, mut owners) = (Vec::new(), Vec::new());
            for (index, (delivery, is_new)) in answer.iter().enumerate().filter(|(_, (_, is_new))| *is_new) {
                debug_assert!(is_new);
                changes.push(Change {
                    table: Table::Deliveries,
                    key: hook_key(delivery),
                    expected: Expected::Absent,
                    new: Some(delivery.id.0.as_bytes().to_vec()),
                });
                owners.push(index);
                for write in Self::writes(None, delivery)? {
                    changes.push(write.into());
                    owners.push(index);
                }
            }
            if changes.is_empty() {
                return Ok(answer);
            }
            match self.store.transact(&changes).await? {
                Transacted::Done(commit) => {
                    commit.await?;
                    return Ok(answer);
                }
                Transacted::Conflict(at) => {
                    let (delivery, is_new) = &mut answer[owners[at]];
                    if let Some(known) = self.known(delivery).await? {
                        (*delivery, *is_new) = (known, false);
                    }
                }
            }
        }
    }

    /// The changes that make a delivery what it is in `after`, if it is still as it was in `before`.
    ///
    /// # Errors
    /// Where it cannot be read or encoded.
    pub async fn changes(&self, before: &Delivery, after: &Delivery) -> Result<Vec<Change>, StoreError> {
        self.queue.changes(before, after).await
    }

    /// The writes that make a delivery what it is in `after`.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn writes(before: Option<&Delivery>, after: &Delivery) -> Result<Vec<TableWrite>, StoreError> {
        DueQueue::writes(before, after)
    }

    /// Writes a delivery outside of an operation, if it is still as it was in `before`; durable when this returns.
    /// Answers whether it was written.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn write(&self, before: &Delivery, after: &Delivery) -> Result<bool, StoreError> {
        match self.store.transact(&self.changes(before, after).await?).await? {
            Transacted::Done(commit) => commit.await?,
            Transacted::Conflict(_) => return Ok(false),
        }
        self.moved();
        Ok(true)
    }

    /// Wakes everybody who waits for a delivery.
    pub fn moved(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    /// Waits until a delivery is no longer pending, for at most `most`; answers it as it is then.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn wait(&self, company: &CompanyId, id: DeliveryId, most: Duration) -> Result<Delivery, HookError> {
        let until = tokio::time::Instant::now() + most;
        let mut moved = self.moved.subscribe();
        loop {
            // A change from here on ends the wait below.
            moved.mark_unchanged();
            let delivery = self.get(company, id).await?;
            let is_over = delivery.status != DeliveryStatus::Pending;
            if is_over || !matches!(tokio::time::timeout_at(until, moved.changed()).await, Ok(Ok(()))) {
                return Ok(delivery);
            }
        }
    }

    /// One delivery.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub async fn get(&self, company: &CompanyId, id: DeliveryId) -> Result<Delivery, HookError> {
        let found = self.queue.get(&key(company, id)).await?;
        found.ok_or_else(|| HookError::NotFound { id: id.0.to_string() })
    }

    /// The delivery of the same event to the same binding, if there is one.
    async fn known(&self, same: &Delivery) -> Result<Option<Delivery>, StoreError> {
        let mark = hook_key(same);
        let Some(id) = self.store.get(Table::Deliveries, &mark).await? else { return Ok(None) };
        if let Ok(uuid) = uuid::Uuid::from_slice(&id)
            && let Some(known) = self.queue.get(&key(&same.company_id, DeliveryId(uuid))).await?
        {
            return Ok(Some(known));
        }
        // A mark without its delivery would refuse the event for ever.
        let (table, expected) = (Table::Deliveries, Expected::Value(id));
        drop(self.store.transact(&[Change { table, key: mark, expected, new: None }]).await?);
        Ok(None)
    }

    /// How many deliveries this process is trying.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// One page of a company's deliveries, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(
        &self,
        company: &CompanyId,
        filter: &DeliveryFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let prefix = store::company_key(company, b"d");
        self.queue.list(&prefix, from, limit, |delivery| filter.matches(delivery)).await
    }

    /// All of a company's deliveries, newest first.
    pub fn all(&self, company: &CompanyId) -> All<'_, Delivery> {
        self.queue.all(&store::company_key(company, b"d"))
    }

    /// Takes deliveries that are due and that nobody tries, until this process tries `most` in all; and says when the
    /// next one is due.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn take_due(&self, most: usize) -> Result<Round<Delivery>, StoreError> {
        self.queue.take_due(most, |_| MOST_OF_A_BINDING).await
    }
}

/// Records are under `d`, newest first; the marks of known events are under `k`.
fn key(company: &CompanyId, id: DeliveryId) -> Vec<u8> {
    let inverted = id.0.into_bytes().map(|byte| !byte);
    store::company_key(company, &[b"d".as_slice(), &inverted].concat())
}

/// Identifies an event of a binding: its kind, its id and the agent of its scope. The agent is part of it so that an agent
/// can neither read nor block another agent's event by its id. Ids contain no zero byte.
fn hook_key(delivery: &Delivery) -> Vec<u8> {
    let (hook, agent) = (&delivery.hook, delivery.scope.agent_id.as_ref().map_or("", |id| id.as_str()));
    let parts =
        [b"k", hook.hook_kind.as_str().as_bytes(), b"\0", hook.hook_id.as_bytes(), b"\0", agent.as_bytes(), b"\0"];
    store::company_key(&delivery.company_id, &[&parts.concat()[..], delivery.binding_id.0.as_bytes()].concat())
}
