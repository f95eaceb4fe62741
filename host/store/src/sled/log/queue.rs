//! The records and callers that wait for the thread of the log.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use sled::IVec;
use tokio::sync::oneshot;

use crate::sled::gate::{HELD, OPERATIONS, Place};
use crate::sled::keys;
use crate::sled::state::Erased;
use crate::sled::tree::KeyChange;
use crate::{StoreError, TableWrite};
use memhost_types::{CompanyId, Operation, Outcome};

pub(super) type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A record on its way to the disk.
pub(super) struct Item {
    pub(super) operation: Arc<Operation>,
    /// `None`: the thread encodes it, because nobody waits for it.
    pub(super) encoded: Option<Encoded>,
    /// Written in the same step.
    pub(super) beside: Vec<TableWrite>,
    pub(super) waiter: Mutex<Option<Waiter>>,
}

/// A record as it is written.
#[derive(Clone)]
pub(super) struct Encoded {
    /// The changes of the log's tree, in the form that sled takes without a copy.
    pub(super) changes: Vec<KeyChange>,
    /// The length of the record.
    pub(super) bytes: usize,
}

impl Encoded {
    pub(super) fn new(operation: &Operation) -> Result<Self, StoreError> {
        let (company, sequence) = (&operation.company_id, operation.id.sequence());
        let value = crate::encode("operation", operation)?;
        let bytes = value.len();
        let mut changes = vec![(keys::record(company, sequence).into(), Some(value.into()))];
        if operation.outcome == Outcome::InProgress {
            changes.push((keys::intent(company, sequence).into(), Some(IVec::default())));
        } else if operation.kind.is_write() {
            changes.push((keys::intent(company, sequence).into(), None));
        }
        Ok(Self { changes, bytes })
    }
}

impl Item {
    pub(super) fn sequence(&self) -> u64 {
        self.operation.id.sequence()
    }

    /// Where its record, the mark of its intent and what its company has are.
    pub(super) fn places(&self) -> [Place; 3] {
        let (company, sequence) = (&self.operation.company_id, self.sequence());
        let record = (OPERATIONS, keys::record(company, sequence));
        [record, (OPERATIONS, keys::intent(company, sequence)), (HELD, keys::all(company))]
    }

    pub(super) fn has_ended(&self) -> bool {
        self.operation.outcome != Outcome::InProgress
    }

    /// Whether somebody waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiter.lock().as_ref().is_some_and(|waiter| !waiter.is_closed())
    }

    pub(super) fn answer(&self, done: Result<(), StoreError>) {
        if let Some(waiter) = self.waiter.lock().take() {
            let _ = waiter.send(done);
        }
    }
}

#[derive(Default)]
pub(super) struct Queue {
    pub(super) items: VecDeque<Item>,
    /// How many items were ever taken from `items`.
    pub(super) taken: u64,
    /// Callers that wait for a flush without a record of their own, each with the number of items
    /// before it.
    pub(super) waiters: Vec<(u64, Waiter)>,
    /// Companies to remove, each with the number of items before it.
    pub(super) erasures: Vec<(u64, CompanyId, Erased)>,
    /// The items that the thread is writing. Readers still look here.
    pub(super) in_flight: Arc<Vec<Item>>,
    /// The items whose callers wait for the flush in progress, and those who wait for it without a
    /// record of their own.
    pub(super) flushing: Arc<Vec<Item>>,
    pub(super) waiting: Vec<Waiter>,
    /// How many callers the thread waits for; fewer do not wake it.
    pub(super) wanted: usize,
    /// Whether somebody waits for what is queued.
    pub(super) is_awaited: bool,
    /// Whether the thread waits for more records because nobody waits for those that are queued.
    pub(super) is_patient: bool,
    pub(super) closed: bool,
}

impl Queue {
    /// How many callers wait for the next group.
    pub(super) fn len(&self) -> usize {
        self.items.len() + self.waiters.len() + self.erasures.len()
    }

    /// How many items were ever queued.
    pub(super) fn handed_in(&self) -> u64 {
        self.taken + self.items.len() as u64
    }
}

pub(super) struct Shared {
    pub(super) queue: Mutex<Queue>,
    pub(super) wake: Condvar,
}

impl Shared {
    /// Wakes the thread for what was queued, if there is enough or somebody waits for it.
    pub(super) fn wake(&self, queue: &mut Queue, is_awaited: bool) {
        queue.is_awaited |= is_awaited;
        let ends_patience = is_awaited && std::mem::take(&mut queue.is_patient);
        if ends_patience || queue.len() >= queue.wanted {
            self.wake.notify_one();
        }
    }
}
