//! Becoming a company's home, and what the home before has left.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::company::Company;
use crate::error::not_leading;
use crate::group::{Group, Term, on_this_timeline};
use crate::store::Inner;
use memhost_store::{Commit, StoreError, interrupted_at_start};
use memhost_types::{CompanyId, Operation};

/// How many operations of a company that were cut short are remembered, the newest of them. The end
/// of an older one is refused by the statement that writes records.
const MOST_CUT: i64 = 10_000;

const LOADING: &str = "loading a company";

impl Inner {
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
            None => self.load(name, true).await?.ok_or_else(|| StoreError::Corrupt {
                what: format!("company {name}"),
                message: "its row was removed while it was loaded".to_owned(),
            }),
        }
    }

    /// A company, if there is one. This host is its home afterwards.
    pub(crate) async fn find(&self, name: &CompanyId) -> Result<Option<Arc<Company>>, StoreError> {
        match self.loaded(name) {
            Some(company) => Ok(Some(company)),
            None => self.load(name, false).await,
        }
    }

    /// The same, where no name means the host itself.
    pub(crate) async fn find_of(
        &self,
        name: Option<&CompanyId>,
    ) -> Result<Option<Arc<Company>>, StoreError> {
        match name {
            Some(name) => self.find(name).await,
            None => Ok(Some(Arc::clone(&self.own))),
        }
    }

    async fn load(&self, name: &CompanyId, make: bool) -> Result<Option<Arc<Company>>, StoreError> {
        if self.term.is_some_and(|term| term.group != Group::of(name)) {
            return Err(StoreError::NotHome { company: name.clone() });
        }
        let _one = self.loading.lock().await;
        if let Some(company) = self.loaded(name) {
            return Ok(Some(company));
        }
        let text = name.as_str();
        if make {
            let sql = "INSERT INTO companies (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
            self.ask(LOADING, sql, &[&text]).await?;
        }
        let sql = "SELECT id FROM companies WHERE name = $1";
        let Some(row) = self.ask_one(LOADING, sql, &[&text]).await? else { return Ok(None) };
        let id: i64 = row.get(0);
        let token = self.take_over(id).await?;
        let sql = "SELECT held, greatest(last_number, o.number), o.started_us FROM companies \
                   LEFT JOIN LATERAL (SELECT number, started_us FROM operations \
                     WHERE company = $1 ORDER BY number DESC LIMIT 1) AS o ON true WHERE id = $1";
        let Some(row) = self.ask_one(LOADING, sql, &[&id]).await? else { return Ok(None) };
        if let Some(started) = row.get(2) {
            self.database.lease.reach(started);
        }
        let company = Arc::new(Company::new(
            id,
            Some(name.clone()),
            (token, self.term),
            self.database.lanes.len(),
        ));
        // What was closed stays closed. Numbers that this host gave before it lost the company are
        // not given again: an operation that goes on would take the place of another one.
        let (last, closed) = self.companies.lock().get(name).map_or((0, None), |before| {
            let before = before.state.lock();
            (before.last, before.closed)
        });
        {
            let mut state = company.state.lock();
            state.held = row.get(0);
            state.last = u64::try_from(row.get::<_, i64>(1)).unwrap_or(0).max(last);
            state.closed = closed;
        }
        // Another home may have changed what the lane remembers.
        drop(self.lane(&company).pause(id).await);
        for commit in self.interrupt(&company).await? {
            commit.await?;
        }
        let mut companies = self.companies.lock();
        companies.insert(name.clone(), Arc::clone(&company));
        if companies.len() >= self.most_loaded.load(Ordering::Relaxed) {
            // One that somebody else holds is in use.
            companies.retain(|_, one| Arc::strong_count(one) > 1 || !one.state.lock().is_idle());
            let most = self.keeps_loaded.max(companies.len() + self.keeps_loaded / 10 + 1);
            self.most_loaded.store(most, Ordering::Relaxed);
        }
        drop(companies);
        Ok(Some(company))
    }

    /// Makes this host the home, which waits for transactions of the one before and ends its right
    /// to write. Answers the new token. A host with a term does so only while that lasts.
    async fn take_over(&self, company: i64) -> Result<i64, StoreError> {
        let raise = "ON CONFLICT (company) DO UPDATE SET host = $2, token = homes.token + 1 \
                     RETURNING token";
        let raised = match self.term {
            None => {
                let sql =
                    format!("INSERT INTO homes (company, host, token) VALUES ($1, $2, 1) {raise}");
                self.ask_one(LOADING, &sql, &[&company, &self.database.host]).await?
            }
            Some(Term { host, token, group }) => {
                // Whoever takes the group over waits for this statement, and then raises the token
                // that it has set.
                let sql = format!(
                    "WITH term AS MATERIALIZED (SELECT 1 FROM homes h \
                       WHERE company = $3 AND host = $2 AND token = $4 AND {} FOR SHARE) \
                     INSERT INTO homes (company, host, token) SELECT $1, $2, 1 FROM term {raise}",
                    on_this_timeline()
                );
                self.ask_one(LOADING, &sql, &[&company, &host, &group.row(), &token]).await?
            }
        };
        raised.map(|row| row.get(0)).ok_or_else(|| not_leading(LOADING))
    }

    /// Records that operations were cut short, and remembers which. Answers the commits.
    async fn interrupt(&self, company: &Arc<Company>) -> Result<Vec<Commit>, StoreError> {
        // Those in progress are the newest: whoever became the home ended all that were before.
        let sql = "SELECT number, CASE WHEN outcome = 'in_progress' THEN record END \
                   FROM operations WHERE company = $1 \
                   AND outcome IN ('in_progress', 'interrupted') ORDER BY number DESC LIMIT $2";
        let rows = self.ask(LOADING, sql, &[&company.id, &MOST_CUT]).await?;
        company.state.lock().interrupted =
            rows.iter().filter_map(|row| u64::try_from(row.get::<_, i64>(0)).ok()).collect();
        let mut commits = Vec::new();
        for bytes in rows.iter().filter_map(|row| row.get::<_, Option<&[u8]>>(1)) {
            match memhost_store::decode::<Operation>("operation", bytes) {
                Ok(mut operation) => {
                    interrupted_at_start(&mut operation);
                    let counted = company.record_prefix() + bytes.len();
                    company.state.lock().open.insert(operation.id.sequence(), counted);
                    commits.push(self.write_record(company, Arc::new(operation), vec![], None)?);
                }
                // The rest is served.
                Err(error) => tracing::error!(%error, "an operation in progress is damaged"),
            }
        }
        Ok(commits)
    }
}
