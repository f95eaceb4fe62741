//! The store: its companies, its lanes and its connections for reading.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use deadpool_postgres::Object;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::ask::Value;
use crate::company::{Company, RowKey};
use crate::database::Database;
use crate::error::{OpenError, PATIENCE, failed, no_answer, unavailable};
use crate::group::Term;
use crate::lane::Lane;
use crate::place::HOST;
use memhost_store::{LocalLeases, LocalLocks, StoreError};
use memhost_types::CompanyId;

/// How often a question is repeated whose connection broke: the pool has others, and reading twice
/// changes nothing.
const TRIES: usize = 4;

/// How a store on PostgreSQL is opened.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://USER:PASSWORD@HOST/DATABASE?sslmode=…&sslrootcert=FILE`, with
    /// `prepared=false` behind a pooler in transaction mode.
    pub address: String,
    /// The bytes at which new data of a company is refused; 0: never.
    pub company_bytes: u64,
    /// Connections for writing. A company always has the same one.
    pub lanes: usize,
    /// The most connections for reading.
    pub readers: usize,
    /// How many companies are loaded before those are dropped that nobody uses.
    pub keeps_loaded: usize,
    /// The term in which this host is the home of a group, which is all that the store serves.
    /// `None`: the store takes over each company that it is asked for, whoever has it.
    pub term: Option<Term>,
    /// The connections of the host, if it has them already.
    pub database: Option<Arc<Database>>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            address: String::new(),
            company_bytes: 0,
            lanes: 4,
            readers: 8,
            keeps_loaded: 10_000,
            term: None,
            database: None,
        }
    }
}

/// Without the address, which has a password.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address: _, company_bytes, lanes, readers, keeps_loaded, term, database: _ } =
            self;
        formatter
            .debug_struct("PostgresOptions")
            .field("company_bytes", company_bytes)
            .field("lanes", lanes)
            .field("readers", readers)
            .field("keeps_loaded", keeps_loaded)
            .field("term", term)
            .finish_non_exhaustive()
    }
}

/// A store on PostgreSQL. Where another store takes a company over, this one writes nothing of it
/// any more, and its calls about the company fail with [`StoreError::NotHome`] until it takes the
/// company over again.
#[derive(Clone)]
pub struct PostgresStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) database: Arc<Database>,
    pub(crate) term: Option<Term>,
    /// The host itself, as a company.
    pub(crate) own: Arc<Company>,
    pub(crate) companies: Mutex<HashMap<CompanyId, Arc<Company>>>,
    pub(crate) keeps_loaded: usize,
    /// How many companies are in memory before unused ones are dropped.
    pub(crate) most_loaded: AtomicUsize,
    /// Companies are loaded one after the other.
    pub(crate) loading: AsyncMutex<()>,
    pub(crate) quota: u64,
    pub(crate) jobs: Arc<LocalLeases>,
    pub(crate) deliveries: Arc<LocalLeases>,
    pub(crate) locks: LocalLocks,
}

/// Which plan PostgreSQL is to make. What it knows about most companies is wrong about a large one,
/// and about how a condition narrows what another one finds.
#[derive(Clone, Copy)]
pub(crate) enum Plan {
    /// The one that it thinks the best.
    Any,
    /// It reads an index in its order and sorts nothing.
    InOrder,
    /// It reads all that an index of arrays finds.
    Several,
    /// It goes from company to company.
    OfAll,
}

impl Plan {
    fn begin(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::InOrder => Some(
                "BEGIN READ ONLY; SET LOCAL plan_cache_mode = force_generic_plan; \
                 SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
                 SET LOCAL enable_sort = off; SET LOCAL enable_hashjoin = off; \
                 SET LOCAL enable_mergejoin = off",
            ),
            Self::OfAll => Some(
                "BEGIN READ ONLY; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
                 SET LOCAL enable_mergejoin = off; SET LOCAL enable_bitmapscan = off",
            ),
            Self::Several => Some(
                "BEGIN READ ONLY; SET LOCAL plan_cache_mode = force_generic_plan; \
                 SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off; \
                 SET LOCAL enable_mergejoin = off",
            ),
        }
    }
}

impl PostgresStore {
    /// Opens a store, and brings the schema up to date. Call it in a runtime of tokio, which drives
    /// the connections.
    ///
    /// # Errors
    /// Where the address cannot be read, or the database cannot be reached or cannot keep memory.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let database = match options.database {
            Some(database) => database,
            None => {
                // A store that is opened again is another host.
                let host = options.term.map_or_else(Uuid::new_v4, |term| term.host);
                let counts = (options.lanes, options.readers);
                Database::open(&options.address, host, counts, Arc::default()).await?
            }
        };
        let lanes = database.lanes.len();
        Ok(Self(Arc::new(Inner {
            database,
            term: options.term,
            own: Arc::new(Company::new(HOST, None, (0, options.term), lanes)),
            companies: Mutex::default(),
            keeps_loaded: options.keeps_loaded,
            most_loaded: AtomicUsize::new(options.keeps_loaded),
            loading: AsyncMutex::default(),
            quota: options.company_bytes,
            jobs: Arc::default(),
            deliveries: Arc::default(),
            locks: LocalLocks::default(),
        })))
    }
}

impl Inner {
    /// A connection for reading, or for a transaction beside those of lanes.
    pub(crate) async fn reader(&self, action: &'static str) -> Result<Object, StoreError> {
        let got = self.database.on_this_timeline(self.database.pool.get()).await;
        got.ok_or_else(|| no_answer(action))?.map_err(unavailable(action))
    }

    /// The rows of a question. It is asked again where the connection breaks, so a statement that
    /// changes something must be as right the second time. Without an answer within [`PATIENCE`] it
    /// fails.
    pub(crate) async fn ask(
        &self,
        action: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, StoreError> {
        self.ask_by(Plan::Any, action, sql, values).await
    }

    /// The same, with a plan of one kind.
    pub(crate) async fn ask_by(
        &self,
        plan: Plan,
        action: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Vec<Row>, StoreError> {
        let until = Instant::now() + PATIENCE;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.ask_once((action, plan), sql, values, until).await {
                Err(StoreError::Unavailable { .. }) if tries < TRIES && Instant::now() < until => {}
                answer => return answer,
            }
        }
    }

    async fn ask_once(
        &self,
        (action, plan): (&'static str, Plan),
        sql: &str,
        values: &[&dyn Value],
        until: Instant,
    ) -> Result<Vec<Row>, StoreError> {
        let late = |_| no_answer(action);
        let client = timeout_at(until, self.reader(action)).await.map_err(late)??;
        let asking = async {
            let statement = self.database.way.keep_pooled(&client, sql).await?;
            let Some(begin) = plan.begin() else { return statement.rows(&client, values).await };
            // All three are sent before the first is answered.
            let (begun, rows, ended) = tokio::join!(
                client.batch_execute(begin),
                statement.rows(&client, values),
                client.batch_execute("COMMIT"),
            );
            begun?;
            ended?;
            rows
        };
        match timeout_at(until, self.database.on_this_timeline(asking)).await {
            Ok(Some(answer)) => answer.map_err(failed(action)),
            Ok(None) | Err(_) => {
                // The next question would wait behind this one.
                drop(Object::take(client));
                Err(no_answer(action))
            }
        }
    }

    /// The first row of a question.
    pub(crate) async fn ask_one(
        &self,
        action: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.ask(action, sql, values).await?.into_iter().next())
    }

    /// Selects `what` of each row that is there among those at the `wanted` places of `keys`, and
    /// answers it with its place. It sees what is committed; the caller reads what waits in their
    /// companies ([`Company::read`]).
    pub(crate) async fn of_rows(
        &self,
        what: &str,
        keys: &[(i64, RowKey)],
        wanted: &[usize],
    ) -> Result<Vec<(usize, Row)>, StoreError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let picked = || wanted.iter().map(|place| &keys[*place]);
        let companies: Vec<i64> = picked().map(|(company, _)| *company).collect();
        let kinds: Vec<i16> = picked().map(|(_, (kind, _))| *kind).collect();
        let rests: Vec<&[u8]> = picked().map(|(_, (_, key))| key.as_slice()).collect();
        let sql = format!(
            "SELECT {what}, w.place FROM unnest($1::bigint[], $2::smallint[], $3::bytea[]) \
             WITH ORDINALITY AS w(company, kind, key, place) CROSS JOIN LATERAL \
             (SELECT value FROM entries e WHERE e.company = w.company AND e.kind = w.kind \
             AND e.key = w.key LIMIT 1) AS e"
        );
        let rows = self.ask("reading", &sql, &[&companies, &kinds, &rests]).await?;
        let place = |row: &Row| usize::try_from(row.get::<_, i64>(1)).ok()?.checked_sub(1);
        let found = rows.into_iter().filter_map(|row| Some((*wanted.get(place(&row)?)?, row)));
        Ok(found.collect())
    }

    pub(crate) fn lane(&self, company: &Company) -> &Lane {
        &self.database.lanes[company.lane]
    }

    /// Waits while a lane has very much to do.
    pub(crate) async fn admit(&self, company: &Company) {
        let lane = self.lane(company);
        while lane.is_full() {
            lane.reach(None).await;
        }
    }

    /// Waits until everything of a company that was written before is committed.
    pub(crate) async fn reach(&self, company: &Company) -> Result<(), StoreError> {
        self.lane(company).reach(None).await;
        company.state.lock().alive()
    }

    /// Waits until everything that was written before is committed.
    pub(crate) async fn reach_all(&self) {
        for lane in &self.database.lanes {
            lane.reach(None).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_options_has_no_password() {
        let address = "postgres://u:secret@db.example/m".to_owned();
        let shown = format!("{:?}", PostgresOptions { address, ..PostgresOptions::default() });
        assert!(shown.contains("lanes") && !shown.contains("secret"), "{shown}");
    }
}
