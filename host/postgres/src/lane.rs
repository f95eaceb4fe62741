//! A lane: one connection that writes what waits, in one transaction after the other. A company
//! always has the same lane, so its writes are committed in the order in which they were made.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use crate::batch::{self, Batch, Connection, Failure, NewHeld, Statements};
use crate::connect::Address;
use crate::costs::Costs;
use crate::error::{passes, said};
use crate::item::Item;
use crate::sums::Sums;
use memhost_store::StoreError;

/// The most items of one transaction, and about the most bytes.
const MOST_ITEMS: usize = 1_000;
const MOST_BYTES: usize = 8 << 20;
/// How long a lane tries again before it gives up what it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause between two tries, which doubles up to the last one.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Items that wait, from which on writers wait, too.
pub(crate) const MANY: usize = 4 * MOST_ITEMS;

/// What a lane does, in this order.
pub(crate) enum Work {
    Write(Box<Item>),
    /// Everything before it is committed or given up once this is answered.
    Reach(oneshot::Sender<Option<StoreError>>),
    /// What it remembers of a company's sums and cost events is not true any more.
    Forget(i64, oneshot::Sender<()>),
}

/// The writing end of a lane.
pub(crate) struct Lane {
    work: mpsc::UnboundedSender<Work>,
    waiting: Arc<AtomicUsize>,
}

impl Lane {
    pub(crate) fn start(address: Address, host: Uuid, number: usize) -> Self {
        let (work, incoming) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let task = Task {
            address,
            host,
            number: i32::try_from(number).unwrap_or(i32::MAX),
            batch: 0,
            connection: None,
            sums: Sums::default(),
            costs: Costs::default(),
            last_failure: None,
            waiting: Arc::clone(&waiting),
        };
        tokio::spawn(task.run(incoming));
        Self { work, waiting }
    }

    /// Writes an item behind all that were given before. The caller holds the locks of the item's
    /// companies, so that what it has shown there and what is written have one order.
    pub(crate) fn write(&self, item: Item) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if let Err(mpsc::error::SendError(Work::Write(item))) =
            self.work.send(Work::Write(Box::new(item)))
        {
            // The runtime ends. Whoever waits is told that the store was closed.
            drop(item.reply);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until everything that was given before is committed. Answers why something of it was
    /// given up lately.
    pub(crate) async fn reach(&self) -> Option<StoreError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.work.send(Work::Reach(reply));
        answer.await.unwrap_or_else(|_| Some(closed()))
    }

    /// Lets the lane read a company's sums again, behind everything that was given before.
    pub(crate) async fn forget(&self, company: i64) {
        let (reply, answer) = oneshot::channel();
        let _ = self.work.send(Work::Forget(company, reply));
        let _ = answer.await;
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
    /// When something was given up, and why.
    last_failure: Option<(Instant, StoreError)>,
    waiting: Arc<AtomicUsize>,
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
                    let mut items = vec![*item];
                    while items.len() < MOST_ITEMS && bytes < MOST_BYTES {
                        match incoming.try_recv() {
                            Ok(Work::Write(item)) => {
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
                    self.waiting.fetch_sub(count, Ordering::Relaxed);
                }
                Work::Reach(reply) => {
                    let lately =
                        self.last_failure.as_ref().filter(|(at, _)| at.elapsed() < SAYS_SO);
                    let _ = reply.send(lately.map(|(_, error)| error.clone()));
                }
                Work::Forget(company, reply) => {
                    self.sums.forget(company);
                    self.costs.forget(company);
                    let _ = reply.send(());
                }
            }
        }
    }

    /// Writes items, or gives them up.
    async fn write(&mut self, mut items: Vec<Item>) {
        let begun = Instant::now();
        let mut pause = PAUSE;
        self.batch += 1;
        loop {
            self.drop_refused(&mut items);
            if items.is_empty() {
                return;
            }
            let error = match self.attempt(&items).await {
                Ok(held) => {
                    for (company, held) in held {
                        let part = items.iter().flat_map(|item| &item.parts);
                        if let Some(part) = part.into_iter().find(|part| part.company.id == company)
                        {
                            part.company.state.lock().held = held;
                        }
                    }
                    for item in items {
                        item.committed().await;
                    }
                    return;
                }
                Err(Failure::NotHome(lost)) => {
                    self.lose(&items, &lost);
                    continue;
                }
                Err(Failure::Database(error)) => error,
            };
            // What is remembered may have been changed for a batch that was not written.
            (self.sums, self.costs) = (Sums::default(), Costs::default());
            let message = said(&error);
            if !passes(&error) || begun.elapsed() >= PATIENCE {
                tracing::error!(message, items = items.len(), "a batch was given up");
                let why = match passes(&error) {
                    true => StoreError::Unavailable { action: "writing", message },
                    false => StoreError::Io { action: "writing", message },
                };
                self.last_failure = Some((Instant::now(), why.clone()));
                for item in items {
                    item.failed(why.clone());
                }
                return;
            }
            tracing::warn!(message, "a batch is written again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Items of a company that was given up are not written.
    fn drop_refused(&mut self, items: &mut Vec<Item>) {
        let (refused, rest): (Vec<_>, Vec<_>) =
            items.drain(..).map(|item| (item.refused(), item)).partition(|(why, _)| why.is_some());
        *items = rest.into_iter().map(|(_, item)| item).collect();
        for (why, item) in refused {
            if let Some(why) = why {
                self.last_failure = Some((Instant::now(), why.clone()));
                item.failed(why);
            }
        }
    }

    /// Gives up companies that another host serves.
    fn lose(&self, items: &[Item], lost: &[i64]) {
        for part in items.iter().flat_map(|item| &item.parts) {
            if lost.contains(&part.company.id)
                && let Some(company) = part.company.name.clone()
            {
                part.company.fail(&StoreError::NotHome { company });
            }
        }
    }

    async fn attempt(&mut self, items: &[Item]) -> Result<NewHeld, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = self.connect().await?;
                // The last try may have been committed although its connection broke.
                let last =
                    batch::last_committed(&connection.client, self.host, self.number).await?;
                if last >= self.batch {
                    let held = read_held(&connection, items).await?;
                    self.connection = Some(connection);
                    return Ok(held);
                }
                self.batch = self.batch.max(last + 1);
                connection
            }
        };
        let mut derived = self.sums.add(&connection.client, items).await?;
        derived.extend(self.costs.number(&connection.client, items).await?);
        let batch = Batch::of(items, &derived);
        let place = (self.host, self.number, self.batch);
        let done =
            batch::commit(&mut connection.client, &connection.statements, &batch, place).await;
        if !connection.client.is_closed() {
            self.connection = Some(connection);
        }
        done
    }

    async fn connect(&self) -> Result<Connection, tokio_postgres::Error> {
        let client = self.address.connect().await?;
        let statements = Arc::new(Statements::prepare(&client).await?);
        Ok(Connection { client, statements })
    }
}

/// What the companies of items have by now, in bytes.
async fn read_held(
    connection: &Connection,
    items: &[Item],
) -> Result<NewHeld, tokio_postgres::Error> {
    let companies: Vec<i64> =
        items.iter().flat_map(|item| &item.parts).map(|part| part.company.id).collect();
    let rows = connection
        .client
        .query("SELECT id, held FROM companies WHERE id = ANY($1)", &[&companies])
        .await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
