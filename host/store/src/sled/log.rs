//! The writing side of the operation log: one thread applies and flushes the records of many callers, in groups.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use sled::{Batch, Tree};
use tokio::sync::oneshot;

use super::disk::{Disk, PIECE};
use super::gate::{OPERATIONS, Place};
use super::room::Need;
use super::state::{Applied, Companies, Erased, Message};
use super::trees::{KeyChange, Trees};
use super::{failed, keys};
use crate::{Commit, DiskStep, StoreError, TableWrite, decode};
use memhost_types::{CompanyId, Operation, OperationKind, Outcome, Rollup};

/// Groups of one company that may be queued before its callers must wait for a commit.
const BEHIND: usize = 2;

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A record on its way to the disk.
struct Item {
    operation: Arc<Operation>,
    /// Written in the same step.
    beside: Vec<TableWrite>,
    waiter: Mutex<Option<Waiter>>,
}

impl Item {
    fn sequence(&self) -> u64 {
        self.operation.id.sequence()
    }

    /// Where its record and the mark of its intent are.
    fn places(&self) -> [Place; 2] {
        let (company, sequence) = (&self.operation.company_id, self.sequence());
        [(OPERATIONS, keys::record(company, sequence)), (OPERATIONS, keys::intent(company, sequence))]
    }

    fn has_ended(&self) -> bool {
        self.operation.outcome != Outcome::InProgress
    }

    fn answer(&self, done: Result<(), StoreError>) {
        if let Some(waiter) = self.waiter.lock().take() {
            let _ = waiter.send(done);
        }
    }
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// How many items were ever taken from `items`.
    taken: u64,
    /// Callers that wait for a flush without a record of their own, each with the number of items before it.
    waiters: Vec<(u64, Waiter)>,
    /// Companies to remove, each with the number of items before it.
    erasures: Vec<(u64, CompanyId, Erased)>,
    /// The items that the thread is writing. Readers still look here.
    in_flight: Arc<Vec<Item>>,
    /// The items whose callers wait for the flush in progress, and those who wait for it without a record of their own.
    flushing: Arc<Vec<Item>>,
    waiting: Vec<Waiter>,
    closed: bool,
}

impl Queue {
    /// How many items were ever queued.
    fn handed_in(&self) -> u64 {
        self.taken + self.items.len() as u64
    }
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// Answers everybody who waits for the disk, where the database never will.
pub(super) struct Abandon(Arc<Shared>);

impl Abandon {
    pub(super) fn all(&self, error: &StoreError) {
        let mut queue = self.0.queue.lock();
        queue.flushing.iter().chain(&queue.items).for_each(|item| item.answer(Err(error.clone())));
        let queue = &mut *queue;
        for waiter in queue.waiting.drain(..).chain(queue.waiters.drain(..).map(|(_, waiter)| waiter)) {
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
        max_batch: usize,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let tree = trees.records.clone();
        let worker = Worker {
            trees: trees.clone(),
            shared: Arc::clone(&shared),
            companies: Arc::clone(&companies),
            index,
            max_batch,
        };
        let thread = std::thread::Builder::new()
            .name("memhost-commit".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| StoreError::Io { action: "starting the commit thread", message: error.to_string() })?;
        Ok(Self { tree, disk: Arc::clone(&trees.disk), shared, companies, max_batch, thread: Some(thread) })
    }

    pub(super) fn abandon(&self) -> Abandon {
        Abandon(Arc::clone(&self.shared))
    }

    pub(super) fn next_sequence(&self, company: &CompanyId) -> u64 {
        let mut companies = self.companies.lock();
        if let Some(state) = companies.get_mut(company) {
            return state.next();
        }
        // Every company that had operations when the store was opened is in the map: this one is new.
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

    pub(super) fn write(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        // Refused here, alone: a group has records that end something, too. What an operation ends is always taken.
        if operation.outcome == Outcome::InProgress && operation.kind != OperationKind::Forget {
            let checked = self.disk.alive().and_then(|()| self.disk.room.check(Need::New, 0));
            if let Err(error) = checked {
                return Commit::failed(error);
            }
        }
        let (sender, commit) = Commit::pair();
        let item = Item { operation, beside, waiter: Mutex::new(Some(sender)) };
        self.shared.queue.lock().items.push_back(item);
        self.shared.wake.notify_one();
        commit
    }

    /// Whether more of the company's operations wait for the disk or the index than a few flushes take.
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
        drop(queue);
        self.shared.wake.notify_one();
        commit
    }

    /// Removes a company, after everything that was queued before.
    pub(super) async fn erase(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.shared.queue.lock();
            let after = queue.handed_in();
            queue.erasures.push((after, company.clone(), sender));
        }
        self.shared.wake.notify_one();
        receiver.await.unwrap_or_else(|_| Err(failed("erasing")("the store was closed meanwhile")))
    }

    /// A record as it was written last, applied or not.
    pub(super) fn read(&self, company: &CompanyId, sequence: u64) -> Result<Option<Operation>, StoreError> {
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

struct Worker {
    trees: Trees,
    shared: Arc<Shared>,
    companies: Companies,
    index: Sender<Message>,
    max_batch: usize,
}

impl Worker {
    fn run(self) {
        loop {
            let (items, erasures) = {
                let mut queue = self.shared.queue.lock();
                while queue.items.is_empty() && queue.waiters.is_empty() && queue.erasures.is_empty() {
                    if queue.closed {
                        return;
                    }
                    self.shared.wake.wait(&mut queue);
                }
                // Touches only the items of this group: writers wait for this lock, and the queue may be long.
                let count = queue.items.len().min(self.max_batch);
                let items: Arc<Vec<Item>> = Arc::new(queue.items.drain(..count).collect());
                (queue.in_flight, queue.flushing) = (Arc::clone(&items), Arc::clone(&items));
                queue.taken += count as u64;
                let taken = queue.taken;
                let waiters: Vec<_> = queue.waiters.extract_if(.., |(after, _)| *after <= taken).collect();
                queue.waiting = waiters.into_iter().map(|(_, waiter)| waiter).collect();
                let erasures: Vec<_> = queue.erasures.extract_if(.., |(after, ..)| *after <= taken).collect();
                (items, erasures)
            };
            let applied = self.apply(&items);
            if applied.is_ok() {
                // Readers find the records in the tree from here on.
                self.shared.queue.lock().in_flight = Arc::default();
            }
            let done = applied.and_then(|()| self.trees.disk.flush());
            if done.is_err() {
                self.shared.queue.lock().in_flight = Arc::default();
                self.give_up(&items);
            }
            let _ = self.trees.disk.step(DiskStep::Answer);
            for waiter in std::mem::take(&mut self.shared.queue.lock().waiting) {
                let _ = waiter.send(done.clone());
            }
            items.iter().for_each(|item| item.answer(done.clone()));
            self.shared.queue.lock().flushing = Arc::default();
            if done.is_ok() {
                for item in items.iter().filter(|item| item.has_ended()) {
                    let applied = Applied {
                        company: item.operation.company_id.clone(),
                        sequence: item.sequence(),
                        facets: keys::facets_of(&item.operation),
                        sums: Rollup::of(&item.operation),
                    };
                    // The indexer ends after this thread. What it did not receive is indexed at the next opening.
                    let _ = self.index.send(Message::Applied(applied));
                }
            }
            for (_, company, reply) in erasures {
                self.erase(company, reply);
            }
        }
    }
}

impl Worker {
    /// Writes nothing until the indexer has removed the company. The indexer has received everything before this.
    fn erase(&self, company: CompanyId, reply: Erased) {
        let (sender, receiver) = oneshot::channel();
        let gone = || failed("erasing")("the store was closed meanwhile");
        let sent = self.index.send(Message::Erase(company, sender)).map_err(|_| gone());
        let erased = sent.and_then(|()| receiver.blocking_recv().unwrap_or_else(|_| Err(gone())));
        let flushed = self.trees.disk.flush();
        let _ = reply.send(erased.and_then(|count| flushed.map(|()| count)));
    }

    /// The numbers of records that were not written are not waited for by the index.
    fn give_up(&self, items: &[Item]) {
        let mut companies = self.companies.lock();
        for item in items.iter().filter(|item| item.has_ended()) {
            if let Some(state) = companies.get_mut(&item.operation.company_id) {
                state.open.remove(&item.sequence());
            }
        }
    }

    /// Records without further writes share a batch. A record with further writes is a transaction of its own, after the
    /// batches: one of them may contain the intent that it completes.
    fn apply(&self, items: &[Item]) -> Result<(), StoreError> {
        let (alone, joined): (Vec<&Item>, Vec<&Item>) = items.iter().partition(|item| item.beside.is_empty());
        let (mut batch, mut bytes, mut first) = (Batch::default(), 0, 0);
        for (number, item) in alone.iter().enumerate() {
            match record(item) {
                Ok(changes) => changes.into_iter().for_each(|(key, value)| match value {
                    Some(value) => {
                        bytes += value.len();
                        batch.insert(key, value);
                    }
                    None => batch.remove(key),
                }),
                // The caller of a record that cannot be encoded gets the error at once; the others are written.
                Err(error) => item.answer(Err(error)),
            }
            if bytes >= PIECE || number + 1 == alone.len() {
                let writing = self.trees.enter(Need::Present, std::mem::take(&mut bytes))?;
                writing.note(|| alone[first..=number].iter().flat_map(|item| item.places()).collect::<Vec<_>>());
                self.trees.disk.wrote("writing", self.trees.records.apply_batch(std::mem::take(&mut batch)))?;
                first = number + 1;
            }
        }
        for item in joined {
            match record(item) {
                Ok(changes) => {
                    let values =
                        changes.iter().map(|(_, value)| value).chain(item.beside.iter().map(|write| &write.new));
                    let bytes = values.flatten().map(Vec::len).sum();
                    let writing = self.trees.enter(Need::Present, bytes)?;
                    writing.note(|| {
                        let beside = item.beside.iter().map(|write| (write.table.name(), write.key.clone()));
                        item.places().into_iter().chain(beside).collect::<Vec<_>>()
                    });
                    self.trees.transact(&changes, &item.beside)?;
                }
                Err(error) => item.answer(Err(error)),
            }
        }
        Ok(())
    }
}

/// The changes of the log's tree that write an operation's record.
fn record(item: &Item) -> Result<Vec<KeyChange>, StoreError> {
    let (company, sequence) = (&item.operation.company_id, item.sequence());
    let value = crate::encode("operation", item.operation.as_ref())?;
    let mut changes = vec![(keys::record(company, sequence), Some(value))];
    if !item.has_ended() {
        changes.push((keys::intent(company, sequence), Some(Vec::new())));
    } else if item.operation.kind.is_write() {
        changes.push((keys::intent(company, sequence), None));
    }
    Ok(changes)
}
