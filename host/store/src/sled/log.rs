//! The writing side of the operation log: one thread applies and flushes the records of many
//! callers, in groups.
//!
//! A sequence number that was given out and not written before a crash may be used again: an
//! operation's id has time and randomness beside the number, so no id comes twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::disk::Disk;
use super::keys;
use super::state::{Companies, Message};
use super::tree::Tree;
use super::trees::Trees;
use crate::error::failed;
use crate::reserve::Need;
use crate::{Commit, StoreError, TableWrite, decode};
use memhost_types::{CompanyId, Operation, OperationKind, Outcome};

mod queue;
mod worker;

use self::queue::{Encoded, Item, Shared};
use self::worker::Worker;

/// Groups of one company that may be queued before its callers must wait for a commit.
const BEHIND: usize = 2;

/// Answers everybody who waits for the disk, where the database never will.
pub(super) struct Abandon(Arc<Shared>);

impl Abandon {
    pub(super) fn all(&self, error: &StoreError) {
        let mut queue = self.0.queue.lock();
        queue.flushing.iter().chain(&queue.items).for_each(|item| item.answer(Err(error.clone())));
        let queue = &mut *queue;
        for waiter in
            queue.waiting.drain(..).chain(queue.waiters.drain(..).map(|(_, waiter)| waiter))
        {
            let _ = waiter.send(Err(error.clone()));
        }
        for (.., reply) in queue.erasures.drain(..) {
            let _ = reply.send(Err(error.clone()));
        }
    }
}

/// The writing side of the log.
pub(super) struct Log {
    tree: Tree,
    disk: Arc<Disk>,
    shared: Arc<Shared>,
    pub(super) companies: Companies,
    max_batch: usize,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    pub(super) fn start(
        trees: &Trees,
        companies: Companies,
        index: Sender<Message>,
        (max_batch, patience): (usize, Duration),
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let tree = trees.records.clone();
        let worker = Worker {
            trees: trees.clone(),
            shared: Arc::clone(&shared),
            companies: Arc::clone(&companies),
            index,
            max_batch,
            patience,
        };
        let thread = std::thread::Builder::new()
            .name("memhost-commit".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| StoreError::Io {
                action: "starting the commit thread",
                message: error.to_string(),
            })?;
        Ok(Self {
            tree,
            disk: Arc::clone(&trees.disk),
            shared,
            companies,
            max_batch,
            thread: Some(thread),
        })
    }

    pub(super) fn abandon(&self) -> Abandon {
        Abandon(Arc::clone(&self.shared))
    }

    pub(super) fn next_sequence(&self, company: &CompanyId) -> u64 {
        let mut companies = self.companies.lock();
        if let Some(state) = companies.get_mut(company) {
            return state.next();
        }
        // Every company that had operations when the store was opened is in the map: this one is
        // new.
        companies.entry(company.clone()).or_default().next()
    }

    /// Takes back a number that stays without a record.
    pub(super) fn take_back(&self, company: &CompanyId, sequence: u64) {
        if let Some(state) = self.companies.lock().get_mut(company) {
            state.take_back(sequence);
        }
    }

    /// Takes the number of an imported operation.
    pub(super) fn give_out(&self, company: &CompanyId, sequence: u64) -> Result<(), StoreError> {
        let mut companies = self.companies.lock();
        let state = companies.entry(company.clone()).or_default();
        if sequence <= state.last {
            let message = format!("operation number {sequence} of {company} is there already");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        state.last = sequence;
        state.open.insert(sequence);
        Ok(())
    }

    /// Queues a record. The thread writes it as soon as it can.
    pub(super) fn write(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        // Refused here, alone: a group has records that end something, too. What an operation ends
        // is always taken.
        if operation.outcome == Outcome::InProgress && operation.kind != OperationKind::Forget {
            let checked = self.disk.alive().and_then(|()| self.disk.reserve.check(Need::New, 0));
            if let Err(error) = checked {
                return Commit::failed(error);
            }
        }
        self.will_sum_again(&operation);
        // Encoded here and not by the thread of the log: everybody waits for that one.
        let encoded = match Encoded::new(&operation) {
            Ok(encoded) => Some(encoded),
            Err(error) => {
                self.give_up(&operation);
                return Commit::failed(error);
            }
        };
        let (sender, commit) = Commit::pair();
        let waiter = Mutex::new(Some(sender));
        let mut queue = self.shared.queue.lock();
        queue.items.push_back(Item { operation, encoded, beside, waiter });
        self.shared.wake(&mut queue, true);
        commit
    }

    /// Queues a record that nobody waits for. The thread encodes it, and may wait for further
    /// records.
    pub(super) fn write_later(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) {
        let item = Item { operation, encoded: None, beside, waiter: Mutex::default() };
        let mut queue = self.shared.queue.lock();
        queue.items.push_back(item);
        self.shared.wake(&mut queue, false);
    }

    /// An entry that is written again with the number of its refusals has not reached the sums.
    fn will_sum_again(&self, operation: &Operation) {
        let sequence = operation.id.sequence();
        if operation.count > 1
            && let Some(state) = self.companies.lock().get_mut(&operation.company_id)
            && sequence <= state.last
        {
            state.open.insert(sequence);
        }
    }

    /// The number of a record that is not written is not waited for by the index.
    fn give_up(&self, operation: &Operation) {
        if let Some(state) = self.companies.lock().get_mut(&operation.company_id) {
            state.open.remove(&operation.id.sequence());
        }
    }

    /// Whether more of the company's operations wait for the disk or the index than a few flushes
    /// take.
    pub(super) fn is_behind(&self, company: &CompanyId) -> bool {
        let companies = self.companies.lock();
        companies.get(company).is_some_and(|state| state.open.len() > self.max_batch * BEHIND)
    }

    /// Resolves when everything that was applied so far is on disk.
    pub(super) fn commit(&self) -> Commit {
        let (sender, commit) = Commit::pair();
        let mut queue = self.shared.queue.lock();
        let after = queue.handed_in();
        queue.waiters.push((after, sender));
        self.shared.wake(&mut queue, true);
        commit
    }

    /// Removes a company, after everything that was queued before.
    pub(super) async fn erase(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.shared.queue.lock();
            let after = queue.handed_in();
            queue.erasures.push((after, company.clone(), sender));
            self.shared.wake(&mut queue, true);
        }
        receiver.await.unwrap_or_else(|_| Err(failed("erasing")("the store was closed meanwhile")))
    }

    /// A record as it was written last, applied or not.
    pub(super) fn read(
        &self,
        company: &CompanyId,
        sequence: u64,
    ) -> Result<Option<Operation>, StoreError> {
        {
            let queue = self.shared.queue.lock();
            let newest_first = queue.items.iter().rev().chain(queue.in_flight.iter().rev());
            for item in newest_first {
                if item.sequence() == sequence && item.operation.company_id == *company {
                    return Ok(Some(Operation::clone(&item.operation)));
                }
            }
        }
        let found = self.tree.get(keys::record(company, sequence)).map_err(failed("reading"))?;
        found.map(|value| decode("operation", &value)).transpose()
    }

    /// The numbers of the company's records that may not be applied yet.
    pub(super) fn queued(&self, company: &CompanyId) -> BTreeSet<u64> {
        let queue = self.shared.queue.lock();
        let all = queue.items.iter().chain(queue.in_flight.iter());
        all.filter(|item| item.operation.company_id == *company).map(Item::sequence).collect()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_one();
        // A thread that waits for a database that does not answer never ends.
        if let Some(thread) = self.thread.take().filter(|_| self.disk.alive().is_ok()) {
            let _ = thread.join();
        }
    }
}
