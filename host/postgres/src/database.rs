//! The connections of a host to its database, which all its stores share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::{Object, Pool};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::ask::{Value, Way};
use crate::connect::{self, Address};
use crate::error::{OpenError, PATIENCE, failed, no_answer, unavailable};
use crate::lane::{Counts, Lane};
use crate::lease::HostLease;
use crate::place::{HOST, kind};
use memhost_store::{ChangeFeed, StoreError, Table, TableWrite};
use memhost_types::CompanyId;

/// How often a host looks for operators' tokens that another one has changed. A token that is
/// revoked is to be refused everywhere within a second.
const LOOK: Duration = Duration::from_millis(500);

/// How many tokens are looked for at a time.
const MOST_FINDING: usize = 2;
/// How long somebody who follows operators' tokens waits at most, to see whether the store is still
/// there.
const SEEN_AGAIN: Duration = Duration::from_secs(30);

const FINDING: &str = "finding a token";

/// The connections of a host to its database.
pub struct Database {
    /// Which host this is. A store without a membership has an id of its own.
    pub(crate) host: Uuid,
    /// Its lease, which knows the time.
    pub(crate) lease: Arc<HostLease>,
    pub(crate) pool: Pool,
    pub(crate) way: Way,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) counts: Arc<Counts>,
    /// Where the tasks of stores run.
    pub(crate) tasks: Handle,
    /// The operators' tokens as they were last seen, once somebody follows them.
    operators: Mutex<Option<watch::Receiver<Rows>>>,
    /// Questions for tokens at a time.
    finding: Semaphore,
}

/// Rows by their keys.
type Rows = Arc<BTreeMap<Vec<u8>, Vec<u8>>>;

impl Database {
    /// Connects to a database, and brings its schema up to date: with so many connections for
    /// writing, and at most so many for reading. Call it in a runtime of tokio, which drives them.
    ///
    /// # Errors
    /// Where the address cannot be read, or the database cannot be reached or cannot keep memory.
    pub async fn open(
        address: &str,
        host: Uuid,
        (lanes, readers): (usize, usize),
        lease: Arc<HostLease>,
    ) -> Result<Arc<Self>, OpenError> {
        let address = Address::parse(address)?;
        connect::prepare(&address).await?;
        let counts = Arc::<Counts>::default();
        let lane = |number| {
            Lane::start(address.clone(), (host, number), Arc::clone(&counts), lease.timeline())
        };
        let lanes = (0..lanes.max(1)).map(lane).collect();
        let pool = address.pool(readers.max(1), Arc::clone(&lease))?;
        let (tasks, operators) = (Handle::current(), Mutex::default());
        let finding = Semaphore::new(MOST_FINDING);
        let way = address.way;
        Ok(Arc::new(Self { host, lease, pool, way, lanes, counts, tasks, operators, finding }))
    }

    /// What is asked, unless the database's timeline changes before it is answered. None: it does.
    pub(crate) async fn on_this_timeline<T>(&self, asking: impl Future<Output = T>) -> Option<T> {
        let mut timeline = self.lease.timeline();
        // A store without heartbeats knows none, and waits.
        tokio::select! {
            answer = asking => Some(answer),
            Ok(()) = timeline.changed() => None,
        }
    }

    /// The company of the token whose value has this digest, in hex; `Some(None)`: it is an
    /// operator's. `None`: there is no such token.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn company_of_token(
        &self,
        digest: &str,
    ) -> Result<Option<Option<CompanyId>>, StoreError> {
        Ok(self.token(digest).await?.map(|(company, _)| company))
    }

    /// The same with the token's row.
    pub(crate) async fn token(
        &self,
        digest: &str,
    ) -> Result<Option<(Option<CompanyId>, Vec<u8>)>, StoreError> {
        let sql = "SELECT c.name, t.value FROM (\
                     SELECT company, value FROM entries WHERE token = $1 \
                     UNION ALL SELECT company, value FROM entries WHERE token_before = $1 LIMIT 1\
                   ) AS t LEFT JOIN companies c ON c.id = t.company";
        // Whoever sends wrong tokens leaves connections for the others.
        let asking = async {
            let _turn = self.finding.acquire().await;
            self.ask(FINDING, sql, &[&digest]).await
        };
        let rows = timeout(PATIENCE, asking).await.map_err(|_| no_answer(FINDING))??;
        Ok(rows.into_iter().next().map(|row| {
            let name: Option<&str> = row.get(0);
            (name.and_then(|name| name.parse().ok()), row.get(1))
        }))
    }

    async fn operators(&self) -> Result<Rows, StoreError> {
        let sql = "SELECT key, value FROM entries WHERE company = $1 AND kind = $2";
        let rows =
            self.ask("reading operators' tokens", sql, &[&HOST, &kind(Table::Tokens)]).await?;
        Ok(Arc::new(rows.iter().map(|row| (row.get(0), row.get(1))).collect()))
    }

    async fn ask(
        &self,
        action: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, StoreError> {
        let getting = self.on_this_timeline(self.pool.get());
        let got = timeout(PATIENCE, getting).await.ok().flatten();
        let client = got.ok_or_else(|| no_answer(action))?.map_err(unavailable(action))?;
        let asking = async {
            let statement = self.way.keep_pooled(&client, sql).await?;
            statement.rows(&client, values).await
        };
        match timeout(PATIENCE, self.on_this_timeline(asking)).await {
            Ok(Some(answer)) => answer.map_err(failed(action)),
            Ok(None) | Err(_) => {
                // The next question would wait behind this one.
                drop(Object::take(client));
                Err(no_answer(action))
            }
        }
    }

    /// What changes of operators' tokens, wherever it is changed.
    pub(crate) fn changes(self: &Arc<Self>) -> Box<dyn ChangeFeed> {
        let mut operators = self.operators.lock();
        let seen = operators.get_or_insert_with(|| {
            let (send, seen) = watch::channel(Rows::default());
            let database = Arc::downgrade(self);
            self.tasks.spawn(async move {
                while let Some(database) = database.upgrade() {
                    match database.operators().await {
                        Ok(rows) => drop(send.send_if_modified(|seen| {
                            let is_new = *seen != rows;
                            if is_new {
                                *seen = rows;
                            }
                            is_new
                        })),
                        // Without the database this host answers nothing.
                        Err(error) => tracing::debug!(%error, "operators' tokens are not read"),
                    }
                    drop(database);
                    sleep(LOOK).await;
                }
            });
            seen
        });
        Box::new(OperatorChanges { seen: seen.clone(), known: Rows::default(), is_begun: false })
    }
}

struct OperatorChanges {
    seen: watch::Receiver<Rows>,
    known: Rows,
    is_begun: bool,
}

#[async_trait]
impl ChangeFeed for OperatorChanges {
    async fn next(&mut self) -> Result<Option<Vec<TableWrite>>, StoreError> {
        loop {
            // What is there at the beginning may be newer than what the caller has read.
            if std::mem::replace(&mut self.is_begun, true) {
                match timeout(SEEN_AGAIN, self.seen.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Ok(None),
                    Err(_) => return Ok(Some(Vec::new())),
                }
            }
            let rows = Arc::clone(&self.seen.borrow_and_update());
            let gone = self.known.keys().filter(|key| !rows.contains_key(*key));
            let gone = gone.map(|key| TableWrite::new(Table::Tokens, key.clone(), None));
            let changed = rows.iter().filter(|(key, value)| self.known.get(*key) != Some(*value));
            let changed = changed.map(|(key, value)| {
                TableWrite::new(Table::Tokens, key.clone(), Some(value.clone()))
            });
            let writes: Vec<TableWrite> = gone.chain(changed).collect();
            self.known = rows;
            if !writes.is_empty() {
                return Ok(Some(writes));
            }
        }
    }
}
