//! The thread that applies and flushes groups of records.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::queue::{Encoded, Item, Shared};
use crate::error::failed;
use crate::reserve::Need;
use crate::sled::cost_order;
use crate::sled::disk::PIECE;
use crate::sled::remove;
use crate::sled::state::{Applied, Companies, Erased, Message, is_settled};
use crate::sled::trees::Trees;
use crate::{DiskStep, StoreError};
use memhost_types::CompanyId;

/// How long a group waits for the callers of the group before it, at most: this part of what that
/// group took. A longer wait makes larger but fewer groups: 64 callers write as much in a second.
const LINGER_PART: u32 = 8;
/// Records of at most so many bytes are kept in memory until they are indexed.
const SHORT: usize = 4 << 10;
const MAX_LINGER: Duration = Duration::from_millis(5);

/// The thread.
pub(super) struct Worker {
    pub(super) trees: Trees,
    pub(super) shared: Arc<Shared>,
    pub(super) companies: Companies,
    pub(super) index: Sender<Message>,
    pub(super) max_batch: usize,
    pub(super) patience: Duration,
}

impl Worker {
    /// Goes on until the log is dropped.
    pub(super) fn run(self) {
        // Callers of the last group often write again at once. A group that begins without them
        // makes each of them wait for two flushes, so it waits for them, a little.
        let (mut expected, mut linger) = (0, Duration::ZERO);
        loop {
            let (items, late, erasures) = {
                let mut queue = self.shared.queue.lock();
                while queue.len() == 0 {
                    if queue.closed {
                        return;
                    }
                    self.shared.wake.wait(&mut queue);
                }
                // Nobody waits for these records, so let more of them share the flush.
                queue.wanted = self.max_batch / 2;
                let until = Instant::now() + self.patience;
                while !queue.is_awaited && queue.len() < queue.wanted && !queue.closed {
                    queue.is_patient = true;
                    if self.shared.wake.wait_until(&mut queue, until).timed_out() {
                        break;
                    }
                }
                queue.is_patient = false;
                let until = Instant::now() + linger;
                queue.wanted = expected;
                while queue.len() < expected && !queue.closed {
                    if self.shared.wake.wait_until(&mut queue, until).timed_out() {
                        break;
                    }
                }
                queue.wanted = 0;
                // Touches only the items of this group: writers wait for this lock, and the queue
                // may be long.
                let count = queue.items.len().min(self.max_batch);
                let (late, items): (Vec<Item>, Vec<Item>) =
                    queue.items.drain(..count).partition(|item| self.is_late(item));
                let items = Arc::new(items);
                (queue.in_flight, queue.flushing) = (Arc::clone(&items), Arc::clone(&items));
                queue.taken += count as u64;
                queue.is_awaited &= !queue.items.is_empty();
                let taken = queue.taken;
                let waiters: Vec<_> =
                    queue.waiters.extract_if(.., |(after, _)| *after <= taken).collect();
                queue.waiting = waiters.into_iter().map(|(_, waiter)| waiter).collect();
                let erasures: Vec<_> =
                    queue.erasures.extract_if(.., |(after, ..)| *after <= taken).collect();
                (items, late, erasures)
            };
            self.give_up(late.iter());
            for item in &late {
                item.answer(Err(StoreError::Erased { company: item.operation.company_id.clone() }));
            }
            let began = Instant::now();
            // Where the disk is full in the middle, what was written before is in the log, and
            // counts.
            let mut written = vec![None; items.len()];
            let applied = self.apply(&items, &mut written);
            // Readers find the records in the tree from here on.
            self.shared.queue.lock().in_flight = Arc::default();
            let flushed = match applied.is_ok() || written.iter().any(Option::is_some) {
                true => self.trees.disk.flush(),
                false => applied.clone(),
            };
            let done_of =
                |number: usize| if written[number].is_some() { &flushed } else { &applied };
            let failed = items
                .iter()
                .enumerate()
                .filter(|(number, _)| written[*number].is_none() || flushed.is_err());
            self.give_up(failed.map(|(_, item)| item));
            let done = applied.clone().and(flushed.clone());
            let _ = self.trees.disk.step(DiskStep::Answer);
            linger = (began.elapsed() / LINGER_PART).min(MAX_LINGER);
            let waiting = {
                let mut queue = self.shared.queue.lock();
                let awaited = items.iter().filter(|item| item.is_awaited()).count();
                expected = (awaited + queue.waiting.len() + queue.len()).min(self.max_batch);
                std::mem::take(&mut queue.waiting)
            };
            for waiter in waiting {
                let _ = waiter.send(done.clone());
            }
            items
                .iter()
                .enumerate()
                .for_each(|(number, item)| item.answer(done_of(number).clone()));
            self.shared.queue.lock().flushing = Arc::default();
            if flushed.is_ok() {
                for (item, bytes) in items.iter().zip(&written) {
                    let Some(bytes) = bytes.filter(|_| item.has_ended()) else { continue };
                    let message = match bytes <= SHORT {
                        true => Message::Ended(Arc::clone(&item.operation)),
                        false => Message::Applied(Applied::of(&item.operation)),
                    };
                    // The indexer ends after this thread. What it did not receive is indexed at the
                    // next opening.
                    let _ = self.index.send(message);
                }
            }
            for (_, company, reply) in erasures {
                self.erase(company, reply);
            }
        }
    }

    /// Writes nothing until the company is removed. Most of it is gone by then, see
    /// `erase_company`.
    fn erase(&self, company: CompanyId, reply: Erased) {
        let erased = self.remove(company);
        let flushed = self.trees.disk.flush();
        let _ = reply.send(erased.and_then(|count| flushed.map(|()| count)));
    }

    fn remove(&self, company: CompanyId) -> Result<u64, StoreError> {
        if is_settled(&self.companies, &company) {
            // At most the batch that is being indexed is waited for, not all that waits for the
            // thread of the index: that thread has a low priority, and nobody writes meanwhile.
            let _indexing = self.trees.indexing.lock();
            return remove::company(&self.trees, &company);
        }
        // What waits for the index must not come after the removal. The indexer has received
        // everything before this.
        let (sender, receiver) = oneshot::channel();
        let gone = || failed("erasing")("the store was closed meanwhile");
        self.index.send(Message::Erase(company, sender)).map_err(|_| gone())?;
        receiver.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Whether the item's company was closed while its operation was in progress. An erasure is
    /// queued after that, so it removes what was written before.
    fn is_late(&self, item: &Item) -> bool {
        self.trees.gate.is_late(&item.operation.company_id, item.sequence())
    }

    /// The numbers of records that were not written are not waited for by the index.
    fn give_up<'a>(&self, items: impl Iterator<Item = &'a Item>) {
        let mut items = items.filter(|item| item.has_ended()).peekable();
        if items.peek().is_none() {
            return;
        }
        let mut companies = self.companies.lock();
        for item in items {
            if let Some(state) = companies.get_mut(&item.operation.company_id) {
                state.open.remove(&item.sequence());
            }
        }
    }

    /// Records without further writes share a transaction. A record with further writes has one of
    /// its own, after those: one of them may contain the intent that it completes. Sets the length
    /// of each written record in `written`, also when it fails.
    fn apply(&self, items: &[Item], written: &mut [Option<usize>]) -> Result<(), StoreError> {
        let (mut shared, mut own, mut done) = (Vec::new(), Vec::new(), Ok(()));
        for (place, item) in items.iter().enumerate() {
            let encoded = match &item.encoded {
                Some(encoded) => Cow::Borrowed(encoded),
                None => match Encoded::new(&item.operation) {
                    Ok(encoded) => Cow::Owned(encoded),
                    // The others are written all the same.
                    Err(error) => {
                        let id = item.operation.id;
                        tracing::error!(%error, %id, "an operation is not recorded");
                        done = Err(error);
                        continue;
                    }
                },
            };
            let kind = if item.beside.is_empty() { &mut shared } else { &mut own };
            kind.push((place, item, encoded));
        }
        let (mut changes, mut bytes, mut piece) = (Vec::new(), 0, Vec::new());
        let mut shared = shared.into_iter().peekable();
        while let Some((place, item, encoded)) = shared.next() {
            bytes += encoded.bytes;
            piece.push((place, item, encoded.bytes));
            match encoded {
                Cow::Borrowed(encoded) => changes.extend_from_slice(&encoded.changes),
                Cow::Owned(encoded) => changes.extend(encoded.changes),
            }
            if bytes >= PIECE || shared.peek().is_none() {
                let writing = self.trees.enter(Need::Present, std::mem::take(&mut bytes))?;
                writing.note(|| {
                    piece.iter().flat_map(|(_, item, _)| item.places()).collect::<Vec<_>>()
                });
                self.trees.transact(&changes, &[])?;
                piece.drain(..).for_each(|(place, _, bytes)| written[place] = Some(bytes));
                changes.clear();
            }
        }
        for (place, item, encoded) in own {
            let order = cost_order::rows(&self.trees, &item.operation.company_id, &item.beside)?;
            let numbered = (!order.is_empty()).then(|| [&item.beside[..], &order].concat());
            let beside = numbered.as_ref().unwrap_or(&item.beside);
            let bytes: usize =
                beside.iter().filter_map(|write| write.new.as_ref()).map(Vec::len).sum();
            let writing = self.trees.enter(Need::Present, encoded.bytes + bytes)?;
            writing.note(|| {
                let beside = beside.iter().map(|write| (write.table.name(), write.key.clone()));
                item.places().into_iter().chain(beside).collect::<Vec<_>>()
            });
            self.trees.transact(&encoded.changes, beside)?;
            written[place] = Some(encoded.bytes);
        }
        done
    }
}
