//! Deliveries: accepted once for each event and binding, due when they are to be tried, ended or given up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::watch;

use memhost_ports::Clock;
use memhost_store::{
    self as store, Change, DueKind, Expected, Found, Store, StoreError, Table, TableWrite, Transacted,
};
use memhost_types::{BindingId, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus};

/// At most so many due deliveries are looked at for one round.
const LOOKS: usize = 10_000;
/// How long until the next round goes on where one had to stop.
const PAUSE: SignedDuration = SignedDuration::from_millis(50);

/// What this room fails with.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// There is no such delivery.
    #[error("the company has no delivery {id}; `memhost hook list` shows those that it has")]
    NotFound {
        /// Which.
        id: String,
    },
    /// It is in no state for that.
    #[error("the delivery {id} is {status}; only one that is dead can be replayed")]
    Status {
        /// Which.
        id: String,
        /// How it is.
        status: DeliveryStatus,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Deliveries that somebody is at, and to which binding.
type InFlight = Arc<Mutex<HashMap<DeliveryId, BindingId>>>;
/// A provider that hangs keeps no more of them from everybody else.
const MOST_OF_A_BINDING: usize = 8;

/// Every delivery of this host.
pub struct Hooks {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    in_flight: InFlight,
    resume: Mutex<Option<Vec<u8>>>,
    /// Goes up whenever a delivery has got somewhere.
    moved: watch::Sender<u64>,
}

/// A delivery that somebody is at. Nobody else gets it before this is dropped.
pub struct TakenDelivery {
    /// As it was when it was taken.
    pub delivery: Delivery,
    in_flight: InFlight,
}

impl Drop for TakenDelivery {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.delivery.id);
    }
}

impl Hooks {
    /// All deliveries are in the store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, in_flight: Arc::default(), resume: Mutex::default(), moved: watch::Sender::new(0) }
    }

    /// Accepts deliveries, durably, all or none. Where one of the same hook and binding is there already, that one is
    /// answered, and the second half is false.
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
            match self.store.transact(&changes)? {
                Transacted::Done(commit) => {
                    commit.await?;
                    return Ok(answer);
                }
                Transacted::Conflict(at) => {
                    let (delivery, is_new) = &mut answer[owners[at]];
                    if let Some(known) = self.known(delivery)? {
                        (*delivery, *is_new) = (known, false);
                    }
                }
            }
        }
    }

    /// The changes that make a delivery what it is now, if it still is as it was.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn changes(&self, before: &Delivery, after: &Delivery) -> Result<Vec<Change>, StoreError> {
        let mut changes: Vec<Change> = Self::writes(Some(before), after)?.into_iter().map(Change::from).collect();
        let key = key(&before.company_id, before.id);
        let expected = store::unchanged(&*self.store, Table::Deliveries, &key, "delivery", before)?;
        for change in changes.iter_mut().filter(|change| change.table == Table::Deliveries) {
            change.expected = expected.clone();
        }
        Ok(changes)
    }

    /// What must be written for a delivery to be as it is now.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn writes(before: Option<&Delivery>, after: &Delivery) -> Result<Vec<TableWrite>, StoreError> {
        let key = key(&after.company_id, after.id);
        let due = |delivery: &Delivery| delivery.due_at.map(|at| store::due_key(DueKind::Delivery, at, &key));
        let (old, new) = (before.and_then(due), due(after));
        let mut writes = Vec::with_capacity(3);
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            writes.push(TableWrite { table: Table::Due, key: old, new: None });
        }
        if let Some(new) = new {
            writes.push(TableWrite { table: Table::Due, key: new, new: Some(Vec::new()) });
        }
        let value = Some(store::encode("delivery", after)?);
        writes.push(TableWrite { table: Table::Deliveries, key, new: value });
        Ok(writes)
    }

    /// Writes a delivery that no operation is about, if it still is as it was; it is durable when this returns. Answers
    /// whether it was.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn write(&self, before: &Delivery, after: &Delivery) -> Result<bool, StoreError> {
        match self.store.transact(&self.changes(before, after)?)? {
            Transacted::Done(commit) => commit.await?,
            Transacted::Conflict(_) => return Ok(false),
        }
        self.moved();
        Ok(true)
    }

    /// Whoever waits for a delivery looks again.
    pub fn moved(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    /// Waits until a delivery is no longer pending, for at most so long; answers it as it is then.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn wait(&self, company: &CompanyId, id: DeliveryId, most: Duration) -> Result<Delivery, HookError> {
        let until = tokio::time::Instant::now() + most;
        let mut moved = self.moved.subscribe();
        loop {
            // What moves from here on is seen by the wait below.
            moved.mark_unchanged();
            let delivery = self.get(company, id)?;
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
    pub fn get(&self, company: &CompanyId, id: DeliveryId) -> Result<Delivery, HookError> {
        let stored = self.store.get(Table::Deliveries, &key(company, id))?;
        let stored = stored.ok_or_else(|| HookError::NotFound { id: id.0.to_string() })?;
        Ok(store::decode("delivery", &stored)?)
    }

    /// The delivery of the same event to the same binding, if there is one.
    fn known(&self, same: &Delivery) -> Result<Option<Delivery>, StoreError> {
        let mark = hook_key(same);
        let Some(id) = self.store.get(Table::Deliveries, &mark)? else { return Ok(None) };
        if let Ok(uuid) = uuid::Uuid::from_slice(&id)
            && let Some(stored) = self.store.get(Table::Deliveries, &key(&same.company_id, DeliveryId(uuid)))?
        {
            return store::decode("delivery", &stored).map(Some);
        }
        // A mark that leads nowhere would keep the event out for ever.
        let (table, expected) = (Table::Deliveries, Expected::Value(id));
        drop(self.store.transact(&[Change { table, key: mark, expected, new: None }])?);
        Ok(None)
    }

    /// How many deliveries somebody is at.
    pub fn in_flight(&self) -> usize {
        self.in_flight.lock().len()
    }

    /// One page of a company's deliveries, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn list(
        &self,
        company: &CompanyId,
        filter: &DeliveryFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let prefix = store::company_key(company, b"d");
        let table = (Table::Deliveries, "delivery");
        store::matching(&*self.store, table, &prefix, from, limit, |delivery| filter.matches(delivery))
    }

    /// Takes one delivery, unless somebody is at it, or at too many of its binding.
    fn take(&self, delivery: Delivery) -> Option<TakenDelivery> {
        let mut in_flight = self.in_flight.lock();
        let of_binding = in_flight.values().filter(|binding| **binding == delivery.binding_id).count();
        if in_flight.contains_key(&delivery.id) || of_binding >= MOST_OF_A_BINDING {
            return None;
        }
        in_flight.insert(delivery.id, delivery.binding_id);
        Some(TakenDelivery { delivery, in_flight: Arc::clone(&self.in_flight) })
    }

    /// Deliveries that are due and that nobody is at, until so many are at work in all, and when the next one is.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn take_due(&self, most: usize) -> Result<(Vec<TakenDelivery>, Option<Timestamp>), StoreError> {
        // Where the last round had to stop: what is behind a long row of those that cannot begin gets its turn, too.
        let (mut taken, mut from, mut looks) = (Vec::new(), self.resume.lock().take(), 0);
        let now = self.clock.now();
        loop {
            let page = self.store.scan(Table::Due, &store::due_prefix(DueKind::Delivery), from.as_deref(), 256)?;
            for (due, _) in &page.entries {
                let Some((at, key)) = store::due_at(due) else { continue };
                looks += 1;
                if at > now {
                    return Ok((taken, Some(at)));
                }
                // Whoever ends makes room and looks again.
                if self.in_flight() >= most {
                    return Ok((taken, None));
                }
                if looks > LOOKS {
                    *self.resume.lock() = Some(due.clone());
                    return Ok((taken, Some(now.checked_add(PAUSE).unwrap_or(now))));
                }
                let Some(delivery) = self.due_delivery(due, key)? else { continue };
                let Some(mut mine) = self.take(delivery) else { continue };
                // Whoever was at it may have ended it between the look and the taking.
                if let Some(delivery) = self.due_delivery(due, key)? {
                    mine.delivery = delivery;
                    taken.push(mine);
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok((taken, None)),
            }
        }
    }

    /// The delivery behind a due entry. An entry without a delivery that is due then is left over, and goes.
    fn due_delivery(&self, due: &[u8], key: &[u8]) -> Result<Option<Delivery>, StoreError> {
        let stored = self.store.get(Table::Deliveries, key)?;
        let delivery: Option<Delivery> = stored.map(|value| store::decode("delivery", &value)).transpose()?;
        let is_due = |at: Timestamp| store::due_key(DueKind::Delivery, at, key) == due;
        if let Some(delivery) = delivery.filter(|delivery| delivery.due_at.is_some_and(is_due)) {
            return Ok(Some(delivery));
        }
        let (table, expected) = (Table::Due, Expected::Anything);
        drop(self.store.transact(&[Change { table, key: due.to_vec(), expected, new: None }])?);
        Ok(None)
    }
}

/// Records stand behind a `d`, newest first; what tells duplicates behind a `k`.
fn key(company: &CompanyId, id: DeliveryId) -> Vec<u8> {
    let inverted = id.0.into_bytes().map(|byte| !byte);
    store::company_key(company, &[b"d".as_slice(), &inverted].concat())
}

/// What tells one event from another: its kind, its id and whose scope it is in, so that nobody gets, or takes, the event of
/// another agent by its id. Ids hold no zero byte.
fn hook_key(delivery: &Delivery) -> Vec<u8> {
    let (hook, agent) = (&delivery.hook, delivery.scope.agent_id.as_ref().map_or("", |id| id.as_str()));
    let parts =
        [b"k", hook.hook_kind.as_str().as_bytes(), b"\0", hook.hook_id.as_bytes(), b"\0", agent.as_bytes(), b"\0"];
    store::company_key(&delivery.company_id, &[&parts.concat()[..], delivery.binding_id.0.as_bytes()].concat())
}
