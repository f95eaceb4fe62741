//! A lane: one connection that writes what waits, in one transaction after the other. A company
//! always has the same lane, so its writes are committed in the order in which they were made.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use crate::batch::{self, Batch, Connection, Failure, NewHeld};
use crate::connect::Address;
use crate::costs::Costs;
use crate::error::{PATIENCE, no_answer, not_leading, passes, said};
use crate::group::Term;
use crate::item::Item;
use crate::sums::Sums;
use memhost_store::{StoreError, Writing};

/// The most items of one transaction, and about the most bytes.
const MOST_ITEMS: usize = 1_000;
const MOST_BYTES: usize = 8 << 20;
/// The first pause between two tries, which doubles up to the last one.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Items that wait, and bytes, from which on writers wait, too.
const MANY_ITEMS: usize = 4 * MOST_ITEMS;
const MANY_BYTES: usize = 4 * MOST_BYTES;

/// What a lane does, in this order.
pub(crate) enum Work {
    Write(Box<Item>),
    /// Everything before it is committed or given up once this is answered.
    Reach(Option<Term>, oneshot::Sender<Option<StoreError>>),
    /// What it remembers of a company's sums and cost events is not true any more. It goes on once
    /// the other end is dropped.
    Pause(i64, oneshot::Sender<()>, oneshot::Receiver<()>),
}

/// What waits in a lane.
#[derive(Default)]
struct Waiting {
    items: AtomicUsize,
    bytes: AtomicUsize,
}

/// What all lanes have done.
#[derive(Default)]
pub(crate) struct Counts {
    batches: AtomicU64,
    items: AtomicU64,
    batch_us: AtomicU64,
    tried_again: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
}

fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn writing(&self, lanes: &[Lane]) -> Writing {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let waiting = lanes.iter().map(|lane| lane.waiting.items.load(Ordering::Relaxed) as u64);
        Writing {
            batches: read(&self.batches),
            items: read(&self.items),
            batch_us: read(&self.batch_us),
            tried_again: read(&self.tried_again),
            refused: read(&self.refused),
            given_up: read(&self.given_up),
            waiting: waiting.sum(),
        }
    }

    fn committed(&self, items: usize, begun: Instant) {
        count(&self.batches, 1);
        count(&self.items, items);
        let took = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.batch_us.fetch_add(took, Ordering::Relaxed);
    }
}

/// The writing end of a lane.
pub(crate) struct Lane {
    work: mpsc::UnboundedSender<Work>,
    waiting: Arc<Waiting>,
}

/// A lane that writes nothing until this is dropped.
pub(crate) struct Paused {
    _going: oneshot::Sender<()>,
}

impl Lane {
    pub(crate) fn start(
        address: Address,
        (host, number): (Uuid, usize),
        counts: Arc<Counts>,
        timeline: watch::Receiver<i64>,
    ) -> Self {
        let (work, incoming) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let task = Task {
            address,
            host,
            number: i32::try_from(number).unwrap_or(i32::MAX),
            batch: 0,
            connection: None,
            sums: Sums::default(),
            costs: Costs::default(),
            failures: HashMap::new(),
            waiting: Arc::clone(&waiting),
            counts,
            timeline,
        };
        tokio::spawn(task.run(incoming));
        Self { work, waiting }
    }

    /// Writes an item behind all that were given before. The caller holds the locks of the item's
    /// companies, so that what it has shown there and what is written have one order.
    pub(crate) fn write(&self, item: Item) {
        self.waiting.items.fetch_add(1, Ordering::Relaxed);
        self.waiting.bytes.fetch_add(item.bytes(), Ordering::Relaxed);
        // Where the runtime ends, the item goes with its reply: the store was closed meanwhile.
        let _ = self.work.send(Work::Write(Box::new(item)));
    }

    /// Whether so much waits that writers should wait, too.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.items.load(Ordering::Relaxed) >= MANY_ITEMS
            || self.waiting.bytes.load(Ordering::Relaxed) >= MANY_BYTES
    }

    /// Waits until everything that was given before is committed. Answers why something of it was
    /// given up lately that was written in this term.
    pub(crate) async fn reach(&self, term: Option<Term>) -> Option<StoreError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.work.send(Work::Reach(term, reply));
        answer.await.unwrap_or_else(|_| Some(closed()))
    }

    /// Lets the lane forget a company's sums and do nothing, behind everything that was given
    /// before.
    pub(crate) async fn pause(&self, company: i64) -> Paused {
        let (reply, answer) = oneshot::channel();
        let (going, goes_on) = oneshot::channel();
        let _ = self.work.send(Work::Pause(company, reply, goes_on));
        let _ = answer.await;
        Paused { _going: going }
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable { action: "writing", message: "the store was closed".to_owned() }
}

struct Task {
    address: Address,
    host: Uuid,
    number: i32,
    /// The number of the last batch.
    batch: i64,
    connection: Option<Connection>,
    sums: Sums,
    costs: Costs,
    /// When something was given up last, and why, by the term in which it was written.
    failures: HashMap<Option<Term>, (Instant, StoreError)>,
    waiting: Arc<Waiting>,
    counts: Arc<Counts>,
    /// The database's timeline. A connection of another one may be silent for good.
    timeline: watch::Receiver<i64>,
}

/// How long a lane says that it has given something up.
const SAYS_SO: Duration = Duration::from_secs(60);

impl Task {
    async fn run(mut self, mut incoming: mpsc::UnboundedReceiver<Work>) {
        let mut next = None;
        loop {
            let work = match next.take() {
                Some(work) => work,
                None => match incoming.recv().await {
                    Some(work) => work,
                    None => return,
                },
            };
            match work {
                Work::Write(item) => {
                    let mut bytes = item.bytes();
                    let is_alone = item.brings_derived_rows();
                    let mut items = vec![*item];
                    while !is_alone && items.len() < MOST_ITEMS && bytes < MOST_BYTES {
                        match incoming.try_recv() {
                            Ok(Work::Write(item)) if !item.brings_derived_rows() => {
                                bytes += item.bytes();
                                items.push(*item);
                            }
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    let count = items.len();
                    self.write(items).await;
                    self.waiting.items.fetch_sub(count, Ordering::Relaxed);
                    self.waiting.bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                Work::Reach(term, reply) => {
                    let lately = self.failures.get(&term).filter(|(at, _)| at.elapsed() < SAYS_SO);
                    let _ = reply.send(lately.map(|(_, error)| error.clone()));
                }
                Work::Pause(company, reply, goes_on) => {
                    self.sums.forget(company);
                    self.costs.forget(company);
                    let _ = reply.send(());
                    let _ = goes_on.await;
                }
            }
        }
    }

    /// Writes items, or gives them up. Where one of them cannot be written, the others are.
    async fn write(&mut self, mut items: Vec<Item>) {
        let begun = Instant::now();
        let mut pause = PAUSE;
        self.batch += 1;
        loop {
            self.drop_refused(&mut items);
            if items.is_empty() {
                return;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let mut timeline = self.timeline.clone();
            let attempt = tokio::time::timeout(left, self.attempt(&items));
            let attempted = tokio::select! {
                attempted = attempt => attempted,
                Ok(()) = timeline.changed() => {
                    self.timeline.borrow_and_update();
                    (self.connection, self.sums, self.costs) = Default::default();
                    continue;
                }
            };
            let failure = match attempted {
                Ok(Ok(held)) => {
                    self.counts.committed(items.len(), begun);
                    return committed(items, held);
                }
                Ok(Err(failure)) => failure,
                // Its connection is gone with it; whether it was committed is seen by its number.
                Err(_) => return self.give_up(items, &no_answer("writing")),
            };
            // What is remembered may have been changed for a batch that was not written.
            (self.sums, self.costs) = (Sums::default(), Costs::default());
            let error = match failure {
                Failure::NotHome(lost) => {
                    lose(&items, &lost);
                    continue;
                }
                Failure::Late(late) => {
                    self.drop_late(&mut items, &late);
                    continue;
                }
                Failure::Database(error) => error,
            };
            let message = said(&error);
            if !passes(&error) {
                if items.len() > 1 {
                    // One of them is to blame.
                    let rest = items.split_off(items.len() / 2);
                    Box::pin(self.write(items)).await;
                    return Box::pin(self.write(rest)).await;
                }
                let why = StoreError::Refused { action: "writing", message };
                return self.give_up(items, &why);
            }
            if begun.elapsed() >= PATIENCE {
                let why = StoreError::Unavailable { action: "writing", message };
                return self.give_up(items, &why);
            }
            tracing::warn!(why = message, "a batch is written again");
            count(&self.counts.tried_again, 1);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn give_up(&mut self, items: Vec<Item>, why: &StoreError) {
        tracing::error!(%why, items = items.len(), "a batch was given up");
        count(&self.counts.given_up, items.len());
        (self.sums, self.costs) = (Sums::default(), Costs::default());
        for item in items {
            self.note(&item, why);
            item.failed(why.clone());
        }
    }

    fn note(&mut self, item: &Item, why: &StoreError) {
        self.failures.retain(|_, (at, _)| at.elapsed() < SAYS_SO);
        self.failures.insert(item.term(), (Instant::now(), why.clone()));
    }

    /// Items of a company that was given up are not written, and none of an earlier term beside
    /// those of a later one.
    fn drop_refused(&mut self, items: &mut Vec<Item>) {
        let mut newest: HashMap<i64, i64> = HashMap::new();
        for (row, token) in items.iter().flat_map(Item::fences) {
            newest.entry(row).and_modify(|known| *known = token.max(*known)).or_insert(token);
        }
        let is_old = |item: &Item| {
            let mut fences = item.fences();
            fences.any(|(row, token)| newest.get(&row).is_some_and(|newest| token < *newest))
        };
        // One after the other: what is given up may take those behind it along.
        for item in std::mem::take(items) {
            let replaced = || is_old(&item).then(|| not_leading("writing"));
            match item.refused().or_else(replaced) {
                None => items.push(item),
                Some(why) => {
                    count(&self.counts.refused, 1);
                    self.note(&item, &why);
                    item.failed(why);
                }
            }
        }
    }

    /// The ends of operations that were cut short are not written. What stands beside them may have
    /// been built on.
    fn drop_late(&mut self, items: &mut Vec<Item>, late: &[(i64, u64)]) {
        let is_late = |item: &Item| item.number().is_some_and(|place| late.contains(&place));
        let (dropped, rest): (Vec<_>, Vec<_>) = items.drain(..).partition(is_late);
        *items = rest;
        for item in dropped {
            let company = item.record.as_ref().and_then(|record| record.company.name.clone());
            let Some(why) = company.map(|company| StoreError::NotHome { company }) else {
                continue;
            };
            self.note(&item, &why);
            match item.is_record_alone() {
                true => item.refuse(why),
                false => item.failed(why),
            }
        }
    }

    async fn attempt(&mut self, items: &[Item]) -> Result<NewHeld, Failure> {
        let mut connection = self.connection().await?;
        let done = self.transact(&mut connection, items).await;
        // A proxy has led to a standby, perhaps, and leads elsewhere by now.
        let only_reads = matches!(&done, Err(Failure::Database(error))
            if error.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION));
        if !connection.client.is_closed() && !only_reads {
            self.connection = Some(connection);
        }
        done
    }

    async fn transact(
        &mut self,
        Connection { client, statements }: &mut Connection,
        items: &[Item],
    ) -> Result<NewHeld, Failure> {
        let mut batch = Batch::of(items);
        let place = (self.host, self.number, self.batch);
        let Some(transaction) = batch::begin(client, statements, &batch, place).await? else {
            let place = (self.host, self.number);
            return Ok(batch::held_by_now(client, statements, place, items).await?);
        };
        let mut derived = self.sums.add(transaction.client(), items).await?;
        derived.extend(self.costs.number(transaction.client(), items).await?);
        batch.derive(&derived);
        batch::commit(transaction, statements, &batch).await
    }

    async fn connection(&mut self) -> Result<Connection, tokio_postgres::Error> {
        match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(&self.address).await,
        }
    }
}

/// Tells everybody that their items are committed. What companies have is set with their last ones,
/// which is when nothing of the batch is counted as waiting any more.
fn committed(items: Vec<Item>, mut held: HashMap<i64, i64>) {
    let mut last: HashMap<i64, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        last.extend(item.parts.iter().map(|part| (part.company.id, at)));
    }
    for (at, item) in items.into_iter().enumerate() {
        let ended: HashMap<i64, i64> = item
            .parts
            .iter()
            .map(|part| part.company.id)
            .filter(|company| last.get(company) == Some(&at))
            .filter_map(|company| Some((company, held.remove(&company)?)))
            .collect();
        item.committed(&ended);
    }
}

/// Gives up companies that another host serves, or whose group it does.
fn lose(items: &[Item], lost: &[i64]) {
    for part in items.iter().flat_map(|item| &item.parts) {
        if part.company.fence().any(|(row, _)| lost.contains(&row)) {
            part.company.fail(&part.company.is_elsewhere("writing"));
        }
    }
}
