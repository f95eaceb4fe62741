//! The operation log's writing side: one thread applies and flushes what many callers hand in, in groups.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use sled::{Batch, Db, Tree};
use tokio::sync::oneshot;

use super::index::Applied;
use super::{failed, keys};
use crate::contract::{CompanyId, Operation, Outcome};
use crate::store::{self, Commit, StoreError, decode};

/// So many groups of one company may be on their way before its callers wait who need not.
const BEHIND: usize = 2;

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A record on its way to the disk.
struct Item {
    operation: Arc<Operation>,
    waiter: Mutex<Option<Waiter>>,
}

impl Item {
    fn sequence(&self) -> u64 {
        self.operation.id.sequence()
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
    /// Who waits for a flush without a record of its own.
    waiters: Vec<Waiter>,
    /// What the thread is writing now: still to be seen by readers.
    in_flight: Arc<Vec<Item>>,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// What is known of a company in memory.
#[derive(Default)]
pub(super) struct CompanyState {
    last: u64,
    /// Numbers that were given out and are not indexed yet.
    pub(super) open: BTreeSet<u64>,
}

pub(super) type Companies = Arc<Mutex<HashMap<CompanyId, CompanyState>>>;

/// The writing side of the log.
pub(super) struct Log {
    tree: Tree,
    shared: Arc<Shared>,
    pub(super) companies: Companies,
    max_batch: usize,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    pub(super) fn start(
        db: Db,
        tree: Tree,
        companies: Companies,
        index: Sender<Applied>,
        max_batch: usize,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new() });
        let worker = Worker { db, tree: tree.clone(), shared: Arc::clone(&shared), index, max_batch };
        let thread = std::thread::Builder::new()
            .name("memhost-commit".to_owned())
            .spawn(move || worker.run())
            .map_err(|error| StoreError::Io { action: "starting the commit thread", message: error.to_string() })?;
        Ok(Self { tree, shared, companies, max_batch, thread: Some(thread) })
    }

    pub(super) fn next_sequence(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let mut companies = self.companies.lock();
        if let Some(state) = companies.get_mut(company) {
            return Ok(state.next());
        }
        // Everything that was stored when the store was opened is in the map: this company is new.
        Ok(companies.entry(company.clone()).or_default().next())
    }

    pub(super) fn write(&self, operation: Arc<Operation>) -> Commit {
        let (sender, commit) = Commit::pair();
        let item = Item { operation, waiter: Mutex::new(Some(sender)) };
        self.shared.queue.lock().items.push_back(item);
        self.shared.wake.notify_one();
        commit
    }

    /// Whether more of the company's operations are neither at rest nor indexed than some flushes take.
    pub(super) fn is_behind(&self, company: &CompanyId) -> bool {
        let companies = self.companies.lock();
        companies.get(company).is_some_and(|state| state.open.len() > self.max_batch * BEHIND)
    }

    /// Resolves when everything that was applied so far is on disk.
    pub(super) fn commit(&self) -> Commit {
        let (sender, commit) = Commit::pair();
        self.shared.queue.lock().waiters.push(sender);
        self.shared.wake.notify_one();
        commit
    }

    /// A record as it was written last, whether or not it is applied yet.
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
        let found = self.tree.get(keys::record(company, sequence)).map_err(|error| failed("reading", &error))?;
        found.map(|value| decode("operation", &value)).transpose()
    }

    /// Numbers of the company's records that may not be applied yet.
    pub(super) fn queued(&self, company: &CompanyId) -> BTreeSet<u64> {
        let queue = self.shared.queue.lock();
        let all = queue.items.iter().chain(queue.in_flight.iter());
        all.filter(|item| item.operation.company_id == *company).map(Item::sequence).collect()
    }
}

impl CompanyState {
    pub(super) fn after(last: u64) -> Self {
        Self { last, open: BTreeSet::new() }
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last);
        self.last
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    db: Db,
    tree: Tree,
    shared: Arc<Shared>,
    index: Sender<Applied>,
    max_batch: usize,
}

impl Worker {
    fn run(self) {
        loop {
            let (items, waiters) = {
                let mut queue = self.shared.queue.lock();
                while queue.items.is_empty() && queue.waiters.is_empty() {
                    if queue.closed {
                        return;
                    }
                    self.shared.wake.wait(&mut queue);
                }
                // Only as much as is taken is touched: writers wait for this lock, however much is queued.
                let count = queue.items.len().min(self.max_batch);
                let items: Arc<Vec<Item>> = Arc::new(queue.items.drain(..count).collect());
                queue.in_flight = Arc::clone(&items);
                (items, std::mem::take(&mut queue.waiters))
            };
            let applied = self.tree.apply_batch(encode(&items)).map_err(|error| failed("writing", &error));
            if applied.is_ok() {
                // Readers find the records in the tree from here on.
                self.shared.queue.lock().in_flight = Arc::default();
            }
            let done = applied.and_then(|()| self.db.flush().map(drop).map_err(|error| failed("flushing", &error)));
            if done.is_err() {
                self.shared.queue.lock().in_flight = Arc::default();
            }
            for waiter in waiters {
                let _ = waiter.send(done.clone());
            }
            items.iter().for_each(|item| item.answer(done.clone()));
            if done.is_ok() {
                for item in items.iter().filter(|item| item.has_ended()) {
                    let applied = Applied {
                        company: item.operation.company_id.clone(),
                        sequence: item.sequence(),
                        facets: keys::facets_of(&item.operation),
                    };
                    // The indexer ends after this thread; what it did not take is indexed at the next opening.
                    let _ = self.index.send(applied);
                }
            }
        }
    }
}

/// Who wrote a record that cannot be encoded is told at once; the others' are written.
fn encode(items: &[Item]) -> Batch {
    let mut batch = Batch::default();
    for item in items {
        let (company, sequence) = (&item.operation.company_id, item.sequence());
        match store::encode("operation", item.operation.as_ref()) {
            Ok(value) => batch.insert(keys::record(company, sequence), value),
            Err(error) => {
                item.answer(Err(error));
                continue;
            }
        }
        if !item.has_ended() {
            batch.insert(keys::intent(company, sequence), &[]);
        } else if item.operation.kind.is_write() {
            batch.remove(keys::intent(company, sequence));
        }
    }
    batch
}
