//! The store: its companies, its lanes and its connections for reading.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::company::{Company, RowKey};
use crate::connect::{self, Address};
use crate::error::{OpenError, again, failed, unavailable};
use crate::item::{Item, Record, Replaces};
use crate::lane::Lane;
use crate::place::HOST;
use memhost_store::{Commit, LocalLeases, LocalLocks, StoreError, interrupted_at_start};
use memhost_types::{CompanyId, Operation};

/// How many operations of a company that were cut short are remembered, the newest of them. The end
/// of an older one is refused by the statement that writes records.
const MOST_CUT: i64 = 10_000;

/// How a store on PostgreSQL is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// `postgres://USER:PASSWORD@HOST/DATABASE?sslmode=…&sslrootcert=FILE`.
    pub address: String,
    /// The bytes at which new data of a company is refused; 0: never.
    pub company_bytes: u64,
    /// Connections for writing. A company always has the same one.
    pub lanes: usize,
    /// The most connections for reading.
    pub readers: usize,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self { address: String::new(), company_bytes: 0, lanes: 4, readers: 8 }
    }
}

/// A store on PostgreSQL. Where another store takes a company over, this one writes nothing of it
/// any more, and its calls about the company fail with [`StoreError::NotHome`] until it takes the
/// company over again.
#[derive(Clone)]
pub struct PostgresStore(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// Which host this is. A store that is opened again is another one.
    host: Uuid,
    pool: Pool,
    lanes: Vec<Lane>,
    /// Where the store's own tasks run.
    tasks: Handle,
    /// The host itself, as a company.
    own: Arc<Company>,
    companies: Mutex<HashMap<CompanyId, Arc<Company>>>,
    /// Companies are loaded one after the other.
    loading: AsyncMutex<()>,
    pub(crate) quota: u64,
    pub(crate) jobs: Arc<LocalLeases>,
    pub(crate) deliveries: Arc<LocalLeases>,
    pub(crate) locks: LocalLocks,
}

impl PostgresStore {
    /// Opens a store, and brings the schema up to date. Call it in a runtime of tokio, which drives
    /// the connections.
    ///
    /// # Errors
    /// Where the address cannot be read, or the database cannot be reached or cannot keep memory.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let address = Address::parse(&options.address)?;
        connect::prepare(&address).await?;
        let host = Uuid::new_v4();
        let count = options.lanes.max(1);
        let lanes = (0..count).map(|number| Lane::start(address.clone(), host, number)).collect();
        Ok(Self(Arc::new(Inner {
            host,
            pool: address.pool(options.readers.max(1))?,
            lanes,
            tasks: Handle::current(),
            own: Arc::new(Company::new(HOST, None, 0, count)),
            companies: Mutex::default(),
            loading: AsyncMutex::default(),
            quota: options.company_bytes,
            jobs: Arc::default(),
            deliveries: Arc::default(),
            locks: LocalLocks::default(),
        })))
    }
}

impl Inner {
    pub(crate) async fn reader(&self, action: &'static str) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(unavailable(action))
    }

    pub(crate) fn own(&self) -> &Arc<Company> {
        &self.own
    }

    /// A company that this host serves, if it is loaded.
    pub(crate) fn loaded(&self, name: &CompanyId) -> Option<Arc<Company>> {
        let found = self.companies.lock().get(name).map(Arc::clone)?;
        let is_alive = found.state.lock().failed.is_none();
        is_alive.then_some(found)
    }

    /// A company, which is made if there is none. This host is its home afterwards.
    pub(crate) async fn home(&self, name: &CompanyId) -> Result<Arc<Company>, StoreError> {
        match self.loaded(name) {
            Some(company) => Ok(company),
            None => again!(self.load(name, true))?.ok_or_else(|| StoreError::Corrupt {
                what: format!("company {name}"),
                message: "its row was removed while it was loaded".to_owned(),
            }),
        }
    }

    /// A company, if there is one. This host is its home afterwards.
    pub(crate) async fn find(&self, name: &CompanyId) -> Result<Option<Arc<Company>>, StoreError> {
        match self.loaded(name) {
            Some(company) => Ok(Some(company)),
            None => again!(self.load(name, false)),
        }
    }

    /// The company of a name, or the host itself.
    pub(crate) async fn home_of(
        &self,
        name: Option<&CompanyId>,
    ) -> Result<Arc<Company>, StoreError> {
        match name {
            Some(name) => self.home(name).await,
            None => Ok(Arc::clone(&self.own)),
        }
    }

    async fn load(&self, name: &CompanyId, make: bool) -> Result<Option<Arc<Company>>, StoreError> {
        let _one = self.loading.lock().await;
        if let Some(company) = self.loaded(name) {
            return Ok(Some(company));
        }
        let client = self.reader("loading a company").await?;
        let text = name.as_str();
        if make {
            let sql = "INSERT INTO companies (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
            client.execute(sql, &[&text]).await.map_err(failed("making a company"))?;
        }
        let found = client
            .query_opt("SELECT id FROM companies WHERE name = $1", &[&text])
            .await
            .map_err(failed("loading a company"))?;
        let Some(row) = found else { return Ok(None) };
        let id: i64 = row.get(0);
        let token = self.take_over(&client, id).await?;
        let row = client
            .query_one(
                "SELECT held, greatest(last_number, (SELECT number FROM operations \
                 WHERE company = $1 ORDER BY number DESC LIMIT 1)) FROM companies WHERE id = $1",
                &[&id],
            )
            .await
            .map_err(failed("loading a company"))?;
        let last: i64 = row.get(1);
        let company = Arc::new(Company::new(id, Some(name.clone()), token, self.lanes.len()));
        {
            let mut state = company.state.lock();
            state.held = row.get(0);
            // Numbers that this host gave before it lost the company are not given again: an
            // operation that goes on would take the place of another one.
            state.last = u64::try_from(last).unwrap_or(0);
            if let Some(before) = self.companies.lock().get(name) {
                let before = before.state.lock();
                state.last = state.last.max(before.last);
                // What was closed stays closed.
                state.closed = before.closed;
            }
        }
        let ends = self.interrupt(&client, &company).await?;
        // The lane may wait for readers of its own.
        drop(client);
        drop(self.lane(&company).pause(id).await);
        for end in ends {
            end.await?;
        }
        self.companies.lock().insert(name.clone(), Arc::clone(&company));
        Ok(Some(company))
    }

    /// Makes this host the home, which waits for transactions of the one before and ends its right
    /// to write. Answers the new token.
    async fn take_over(&self, client: &Object, company: i64) -> Result<i64, StoreError> {
        let sql = "INSERT INTO homes (company, host, token) VALUES ($1, $2, 0) \
                   ON CONFLICT (company) DO NOTHING";
        client.execute(sql, &[&company, &self.host]).await.map_err(failed("taking over"))?;
        loop {
            let sql = "SELECT token FROM homes WHERE company = $1";
            let row = client.query_one(sql, &[&company]).await.map_err(failed("taking over"))?;
            let token: i64 = row.get(0);
            let sql =
                "UPDATE homes SET host = $2, token = $3 + 1 WHERE company = $1 AND token = $3";
            let values: [&(dyn ToSql + Sync); 3] = [&company, &self.host, &token];
            if client.execute(sql, &values).await.map_err(failed("taking over"))? == 1 {
                return Ok(token + 1);
            }
        }
    }

    /// Operations that were in progress when the home before ended.
    /// Answers the commits of their records.
    async fn interrupt(
        &self,
        client: &Object,
        company: &Arc<Company>,
    ) -> Result<Vec<Commit>, StoreError> {
        let rows = client
            .query(
                "SELECT record FROM operations WHERE company = $1 \
                 AND outcome IN ('in_progress', 'interrupted') AND outcome = 'in_progress' \
                 ORDER BY number",
                &[&company.id],
            )
            .await
            .map_err(failed("loading a company"))?;
        let mut commits = Vec::new();
        let cut = client
            .query(
                "SELECT number FROM operations WHERE company = $1 \
                 AND outcome IN ('in_progress', 'interrupted') ORDER BY number DESC LIMIT $2",
                &[&company.id, &MOST_CUT],
            )
            .await
            .map_err(failed("loading a company"))?;
        company.state.lock().interrupted =
            cut.iter().filter_map(|row| u64::try_from(row.get::<_, i64>(0)).ok()).collect();
        for row in rows {
            match memhost_store::decode::<Operation>("operation", row.get(0)) {
                Ok(mut operation) => {
                    interrupted_at_start(&mut operation);
                    commits.push(self.write_record(company, Arc::new(operation))?);
                }
                // The rest is served.
                Err(error) => tracing::error!(%error, "an operation in progress is damaged"),
            }
        }
        Ok(commits)
    }

    fn write_record(
        &self,
        company: &Arc<Company>,
        operation: Arc<Operation>,
    ) -> Result<Commit, StoreError> {
        let bytes = memhost_store::encode("operation", &*operation)?;
        let (reply, commit) = Commit::pair();
        let mut state = company.state.lock();
        let part = state.begin(company, 0);
        state.show_operation(&part, Arc::clone(&operation));
        let replaces = Replaces::Unsummed;
        let record = Record { company: Arc::clone(company), operation, bytes, replaces };
        self.lane(company).write(Item {
            parts: vec![part],
            rows: Vec::new(),
            record: Some(record),
            removed: Vec::new(),
            reply,
        });
        Ok(commit)
    }

    pub(crate) fn lane(&self, company: &Company) -> &Lane {
        &self.lanes[company.lane]
    }

    pub(crate) fn lane_of(&self, number: usize) -> &Lane {
        &self.lanes[number]
    }

    pub(crate) fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Waits while a lane has very much to do.
    pub(crate) async fn admit(&self, company: &Company) {
        let lane = self.lane(company);
        while lane.is_full() {
            lane.reach().await;
        }
    }

    /// Waits until everything of a company that was written before is committed.
    pub(crate) async fn reach(&self, company: &Company) -> Result<(), StoreError> {
        self.lane(company).reach().await;
        company.state.lock().alive()
    }

    pub(crate) fn tasks(&self) -> &Handle {
        &self.tasks
    }

    pub(crate) fn host(&self) -> Uuid {
        self.host
    }

    /// The values of rows that do not wait for their commit, by their place in `keys`. The caller
    /// holds up the retiring of their companies.
    pub(crate) async fn stored(
        &self,
        keys: &[(i64, RowKey)],
        wanted: &[usize],
    ) -> Result<BTreeMap<usize, Vec<u8>>, StoreError> {
        again!(self.read_values(keys, wanted))
    }

    async fn read_values(
        &self,
        keys: &[(i64, RowKey)],
        wanted: &[usize],
    ) -> Result<BTreeMap<usize, Vec<u8>>, StoreError> {
        if wanted.is_empty() {
            return Ok(BTreeMap::new());
        }
        let picked = || wanted.iter().map(|place| &keys[*place]);
        let companies: Vec<i64> = picked().map(|(company, _)| *company).collect();
        let kinds: Vec<i16> = picked().map(|(_, (kind, _))| *kind).collect();
        let rests: Vec<&[u8]> = picked().map(|(_, (_, key))| key.as_slice()).collect();
        let client = self.reader("reading").await?;
        let statement = client
            .prepare_cached(
                "SELECT w.place, (SELECT e.value FROM entries e WHERE e.company = w.company AND \
                 e.kind = w.kind AND e.key = w.key) \
                 FROM unnest($1::bigint[], $2::smallint[], $3::bytea[]) WITH ORDINALITY \
                 AS w(company, kind, key, place)",
            )
            .await
            .map_err(failed("reading"))?;
        let rows = client
            .query(&statement, &[&companies, &kinds, &rests])
            .await
            .map_err(failed("reading"))?;
        let found = rows.iter().filter_map(|row| {
            let place = usize::try_from(row.get::<_, i64>(0)).ok()?.checked_sub(1)?;
            Some((*wanted.get(place)?, row.get::<_, Option<Vec<u8>>>(1)?))
        });
        Ok(found.collect())
    }
}
