//! Calls about the store as a whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use deadpool_postgres::Object;
use tokio_postgres::{Row, Transaction};

use crate::ask::{self, Value};
use crate::batch::fence_sql;
use crate::company::Company;
use crate::error::{failed, no_answer};
use crate::place::{kind, kinds_of_due};
use crate::store::{Inner, PostgresStore};
use memhost_store::{
    BackupReport, Commit, Compacted, DiskState, Held, Maintenance, Store, StoreError, Table,
    Writing,
};
use memhost_types::CompanyId;

impl Store for PostgresStore {
    /// Resolves when every lane has written what it had. Where a lane has given something up in the
    /// last minute, this fails, too: it may have been the caller's.
    fn commit(&self) -> Commit {
        let (reply, commit) = Commit::pair();
        let store = Arc::clone(&self.0);
        self.0.database.tasks.spawn(async move {
            let mut done = Ok(());
            for lane in &store.database.lanes {
                if let Some(error) = lane.reach(store.term).await {
                    done = Err(error);
                }
            }
            let _ = reply.send(done);
        });
        commit
    }
}

#[async_trait]
impl Maintenance for PostgresStore {
    async fn companies(&self) -> Result<BTreeSet<CompanyId>, StoreError> {
        self.0.reach_all().await;
        let sql = "SELECT name FROM companies c WHERE ($2::smallint IS NULL OR company_group = $2) \
                   AND (EXISTS (SELECT 1 FROM operations o WHERE o.company = c.id) OR \
                     EXISTS (SELECT 1 FROM entries e WHERE e.company = c.id \
                       AND e.kind <> ALL($1)))";
        let group = self.0.term.map(|term| term.group.column());
        let rows = self.0.ask("reading", sql, &[&kinds_of_due(), &group]).await?;
        Ok(rows.iter().filter_map(|row| row.get::<_, &str>(0).parse().ok()).collect())
    }

    async fn close_company(&self, company: &CompanyId) -> Result<(), StoreError> {
        let home = self.0.home(company).await?;
        {
            let mut state = home.state.lock();
            state.closed = Some(state.last);
        }
        self.0.reach(&home).await
    }

    async fn erase_company(&self, company: &CompanyId) -> Result<u64, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(0) };
        self.0.reach(&home).await?;
        // Nothing is written meanwhile, and the lane reads sums again afterwards.
        let _paused = self.0.lane(&home).pause(home.id).await;
        let (last, front) = (home.state.lock().last, home.prefix_bytes());
        let last = i64::try_from(last).unwrap_or(i64::MAX);
        let front = i64::try_from(front).unwrap_or(i64::MAX);
        let values: [&dyn Value; 3] = [&last, &front, &counted_kinds()];
        let row = self.0.fenced(&home, "erasing", ERASE, &values).await?;
        home.state.lock().erase(row.get(1));
        Ok(u64::try_from(row.get::<_, i64>(0)).unwrap_or(0))
    }

    async fn backup(
        &self,
        _file: &Path,
        _at_the_end: Box<dyn FnOnce() + Send>,
    ) -> Result<BackupReport, StoreError> {
        let message = "a store on PostgreSQL is backed up with the tools of PostgreSQL, such as \
                       pg_basebackup with its archive of WAL"
            .to_owned();
        Err(StoreError::Refused { action: "writing the backup", message })
    }

    async fn compact(
        &self,
        _stop: Box<dyn Fn() -> bool + Send>,
    ) -> Result<Option<Compacted>, StoreError> {
        // PostgreSQL does it by itself.
        Ok(None)
    }

    fn disk(&self) -> DiskState {
        DiskState::default()
    }

    fn writing(&self) -> Option<Writing> {
        Some(self.0.database.counts.writing(&self.0.database.lanes))
    }

    fn held(&self, company: &CompanyId) -> Result<Held, StoreError> {
        let bytes = self.0.loaded(company).map_or(0, |home| home.held());
        Ok(Held { bytes, quota: self.0.quota })
    }

    async fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.0.reach_all().await;
        // What is derived is written in one transaction with what it is derived from, so only the
        // count of what each company has can be compared.
        let sql = "SELECT c.name, c.held, \
                     coalesce((SELECT sum(octet_length(c.name) + 1 + octet_length(e.key) \
                       + octet_length(e.value)) FROM entries e WHERE e.company = c.id \
                       AND e.kind = ANY($1)), 0)::bigint \
                     + coalesce((SELECT sum(octet_length(c.name) + 10 + octet_length(o.record)) \
                       FROM operations o WHERE o.company = c.id), 0)::bigint \
                   FROM companies c WHERE $2::smallint IS NULL OR c.company_group = $2";
        let group = self.0.term.map(|term| term.group.column());
        let rows = self.0.ask("reading", sql, &[&counted_kinds(), &group]).await?;
        let wrong = rows.iter().filter_map(|row| {
            let (name, held, found): (&str, i64, i64) = (row.get(0), row.get(1), row.get(2));
            (held != found).then(|| format!("{name} has {found} bytes, and {held} are counted"))
        });
        Ok(wrong.collect())
    }

    async fn mend_part(
        &self,
        _company: &CompanyId,
        _from: u64,
    ) -> Result<(Vec<String>, Option<u64>), StoreError> {
        // Nothing is derived later than in the transaction of what it is derived from.
        Ok((Vec::new(), None))
    }
}

/// The kinds of rows that count as what a company has.
fn counted_kinds() -> Vec<i16> {
    Table::ALL.iter().filter(|table| table.counts()).map(|table| kind(*table)).collect()
}

/// Removes a company's rows and operations, and what they count. Its numbers continue. Answers how
/// many there were, and the bytes that they counted.
const ERASE: &str = "WITH rows AS (DELETE FROM entries WHERE company = $1 \
       RETURNING CASE WHEN kind = ANY($4) \
         THEN $3::bigint + octet_length(key) + octet_length(value) ELSE 0 END AS bytes), \
     log AS (DELETE FROM operations WHERE company = $1 \
       RETURNING $3::bigint + 9 + octet_length(record) AS bytes), \
     gone AS (SELECT bytes FROM rows UNION ALL SELECT bytes FROM log), \
     total AS (SELECT count(*) AS count, coalesce(sum(bytes), 0)::bigint AS bytes FROM gone) \
     UPDATE companies SET held = greatest(0, held - total.bytes), \
       last_number = greatest(last_number, $2::bigint) \
     FROM total WHERE id = $1 RETURNING total.count, total.bytes";

/// How many operations one transaction removes: whoever takes the company over waits for it.
const PIECE: i64 = 2_000;

/// The same of a piece of the operations from a number to before another one. Those in progress
/// stay, and so does the newest. Answers the last one's number, too.
const TRIM: &str = "WITH log AS (DELETE FROM operations WHERE company = $1 AND number IN (\
         SELECT number FROM operations WHERE company = $1 AND number >= $2 AND number < $3 \
         AND outcome <> 'in_progress' \
         AND number < (SELECT max(number) FROM operations WHERE company = $1) \
         ORDER BY number LIMIT $5) \
       RETURNING number, $4::bigint + octet_length(record) AS bytes), \
     total AS (SELECT count(*) AS count, coalesce(sum(bytes), 0)::bigint AS bytes, \
       max(number) AS last FROM log) \
     UPDATE companies SET held = greatest(0, held - total.bytes) \
     FROM total WHERE id = $1 RETURNING total.count, total.bytes, total.last";

impl Inner {
    /// A statement about one company, its first value, in a transaction while this host is its
    /// home. Answers its row. It takes as long as the company is large.
    async fn fenced(
        &self,
        home: &Company,
        action: &'static str,
        sql: &str,
        values: &[&dyn Value],
    ) -> Result<Row, StoreError> {
        let mut client = self.reader(action).await?;
        let asking = self.fenced_on(&mut client, home, (action, sql), values);
        match self.database.on_this_timeline(asking).await {
            Some(answer) => answer,
            None => {
                drop(Object::take(client));
                Err(no_answer(action))
            }
        }
    }

    async fn fenced_on(
        &self,
        client: &mut Object,
        home: &Company,
        (action, sql): (&'static str, &str),
        values: &[&dyn Value],
    ) -> Result<Row, StoreError> {
        let transaction = client.transaction().await.map_err(failed(action))?;
        // Somebody who takes over waits for it.
        let idle = "SET LOCAL idle_in_transaction_session_timeout = '2s'";
        transaction.batch_execute(idle).await.map_err(failed(action))?;
        self.is_home(&transaction, home, action).await?;
        let company: &dyn Value = &home.id;
        let values: Vec<_> = std::iter::once(company).chain(values.iter().copied()).collect();
        let row = ask::the_row(transaction.client(), sql, &values).await.map_err(failed(action))?;
        transaction.commit().await.map_err(failed(action))?;
        Ok(row)
    }

    /// Holds up whoever takes the company over until the transaction has ended.
    async fn is_home(
        &self,
        transaction: &Transaction<'_>,
        home: &Company,
        action: &'static str,
    ) -> Result<(), StoreError> {
        let (rows, tokens): (Vec<i64>, Vec<i64>) = home.fence().unzip();
        let (sql, values): (_, [&dyn Value; 3]) =
            (fence_sql(), [&rows, &tokens, &self.database.host]);
        let found = ask::rows(transaction.client(), &sql, &values).await.map_err(failed(action))?;
        if found.len() == rows.len() {
            return Ok(());
        }
        let error = home.is_elsewhere(action);
        home.fail(&error);
        Err(error)
    }

    /// Removes the operations below a number, in pieces. Those in progress stay, and so does the
    /// newest.
    pub(crate) async fn trim(&self, home: &Company, below: u64) -> Result<u64, StoreError> {
        let below = i64::try_from(below).unwrap_or(i64::MAX);
        let front = i64::try_from(home.record_prefix()).unwrap_or(0);
        let (mut from, mut trimmed) = (0, 0);
        loop {
            let values: [&dyn Value; 4] = [&from, &below, &front, &PIECE];
            let row = self.fenced(home, "trimming", TRIM, &values).await?;
            let (count, bytes, last): (i64, i64, Option<i64>) =
                (row.get(0), row.get(1), row.get(2));
            home.state.lock().held -= bytes;
            trimmed += u64::try_from(count).unwrap_or(0);
            match last {
                Some(last) if count == PIECE => from = last + 1,
                _ => return Ok(trimmed),
            }
        }
    }

    /// Lets a company's numbers continue behind this one.
    pub(crate) async fn set_last_number(
        &self,
        home: &Company,
        number: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE companies SET last_number = $2 WHERE id = $1 RETURNING id";
        self.fenced(home, "setting a number", sql, &[&number]).await.map(drop)
    }
}
