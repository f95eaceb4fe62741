//! The operation log.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use tokio_postgres::types::ToSql;

use crate::batch::record_prefix;
use crate::company::{Company, State};
use crate::error::{again, failed};
use crate::facets::column;
use crate::item::{Item, Record, Replaces, Row};
use crate::place::{HOST, kind, split};
use crate::store::{Inner, PostgresStore};
use crate::tables::{check_length, prefix_bytes};
use memhost_store::{
    Commit, LogPage, OperationLog, StoreError, Table, TableWrite, check_sum_row, decode, encode,
};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{
    CompanyId, Operation, OperationFilter, OperationId, Outcome, Rollup, RollupKey,
};

#[async_trait]
impl OperationLog for PostgresStore {
    fn take_sequence(&self, company: &CompanyId) -> Option<u64> {
        let home = self.0.loaded(company)?;
        let mut state = home.state.lock();
        if state.failed.is_some() {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.given.insert(number);
        Some(number)
    }

    async fn reserve_sequences(&self, company: &CompanyId) -> Result<(), StoreError> {
        self.0.home(company).await.map(drop)
    }

    fn return_sequence(&self, company: &CompanyId, sequence: u64) {
        let Some(home) = self.0.loaded(company) else { return };
        let mut state = home.state.lock();
        state.given.remove(&sequence);
        if state.last == sequence {
            state.last -= 1;
        }
    }

    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        self.0.write_operation(operation, beside, None).unwrap_or_else(Commit::failed)
    }

    fn is_behind(&self, company: &CompanyId) -> bool {
        let home = self.0.loaded(company);
        home.is_some_and(|home| self.0.lane(&home).is_full())
    }

    fn is_settled(&self, company: &CompanyId) -> bool {
        self.0.loaded(company).is_none_or(|home| {
            let state = home.state.lock();
            let waits = state.operations.values().any(|one| !one.is_committed);
            state.given.is_empty() && state.open.is_empty() && !waits
        })
    }

    async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(None) };
        let _reading = home.read();
        let waiting = || {
            home.state.lock().operations.get(&id.sequence()).map(|one| Arc::clone(&one.operation))
        };
        if let Some(operation) = waiting() {
            return Ok((operation.id == id).then(|| Operation::clone(&operation)));
        }
        let number = whole(id.sequence());
        let client = self.0.reader("reading").await?;
        let row = client
            .query_opt(
                "SELECT record FROM operations WHERE company = $1 AND number = $2 AND id = $3",
                &[&home.id, &number, &id.uuid()],
            )
            .await
            .map_err(failed("reading"))?;
        if let Some(operation) = waiting() {
            return Ok((operation.id == id).then(|| Operation::clone(&operation)));
        }
        row.map(|row| decode("operation", row.get(0))).transpose()
    }

    async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(LogPage::default()) };
        let _reading = home.read();
        let before = before.unwrap_or(u64::MAX);
        let (stored, is_all) = again!(self.0.find_operations(&home, filter, before, limit))?;
        let first = stored.last().map(|(number, _)| *number);
        let mut found: BTreeMap<u64, Operation> = BTreeMap::new();
        for (number, operation) in stored {
            found.insert(number, operation);
        }
        {
            let state = home.state.lock();
            state.alive()?;
            // What is below the last one of the database belongs to later pages.
            let from = if is_all { 0 } else { first.unwrap_or(0) };
            for (number, one) in state.operations.range(from..before.max(from)) {
                found.insert(*number, Operation::clone(&one.operation));
            }
        }
        let (mut page, mut bytes) = (LogPage::default(), 0);
        for (number, operation) in found.into_iter().rev() {
            // The columns are hashes where a text is long, and a waiting record may have changed.
            if !filter.matches(&operation) {
                continue;
            }
            if page.operations.len() == limit || bytes >= MAX_PAGE_BYTES {
                page.next_before = Some(number + 1);
                return Ok(page);
            }
            bytes += encode("operation", &operation)?.len();
            page.operations.push(operation);
        }
        if !is_all {
            page.next_before = first;
        }
        Ok(page)
    }

    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(None) };
        self.0.reach(&home).await?;
        let client = self.0.reader("reading").await?;
        let skipped = whole(count.saturating_sub(1));
        let row = client
            .query_opt(
                "SELECT number FROM operations WHERE company = $1 AND outcome <> 'refused' \
                 ORDER BY number DESC OFFSET $2 LIMIT 1",
                &[&home.id, &skipped],
            )
            .await
            .map_err(failed("reading"))?;
        Ok(row.map(|row| number_in(&row, 0)))
    }

    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(None) };
        self.0.reach(&home).await?;
        let client = self.0.reader("reading").await?;
        let row = client
            .query_one(
                "SELECT \
                 (SELECT number FROM operations WHERE company = $1 ORDER BY number LIMIT 1), \
                 (SELECT number FROM operations WHERE company = $1 ORDER BY number DESC LIMIT 1)",
                &[&home.id],
            )
            .await
            .map_err(failed("reading"))?;
        let (first, last): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
        Ok(first.zip(last).map(|(first, last)| (number(first), number(last))))
    }

    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(1) };
        self.0.reach(&home).await?;
        let client = self.0.reader("reading").await?;
        let row = client
            .query_opt(
                "SELECT number FROM operations WHERE company = $1 AND started_us >= $2 \
                 ORDER BY started_us, number LIMIT 1",
                &[&home.id, &first_microsecond(moment)],
            )
            .await
            .map_err(failed("reading"))?;
        Ok(row.map_or_else(|| home.state.lock().last + 1, |row| number_in(&row, 0)))
    }

    async fn rollups(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(Vec::new()) };
        // A sum says not which operations are in it, so nothing of them may wait.
        self.0.reach(&home).await?;
        let client = self.0.reader("reading").await?;
        crate::sums::of_days(&client, &home, company, (since, until)).await
    }

    async fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(0) };
        self.0.reach(&home).await?;
        self.0.trim(&home, below).await
    }

    async fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.operation_range(company).await?.is_some() {
            let message = format!("{company} has operations already");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        let home = self.0.home(company).await?;
        self.0.set_last_number(&home, 0).await?;
        let mut state = home.state.lock();
        (state.last, state.given) = (0, std::collections::BTreeSet::new());
        Ok(())
    }

    fn check_sums(&self, company: &CompanyId, key: &[u8], value: &[u8]) -> Option<u64> {
        check_sum_row(company, key, value)
    }

    async fn import_operation(&self, operation: Operation) -> Result<(), StoreError> {
        let home = self.0.home(&operation.company_id).await?;
        let number = operation.id.sequence();
        let counted = self.0.imported_count(&home, &operation.company_id, number).await?;
        {
            let mut state = home.state.lock();
            if number <= state.last {
                let message = format!("the number {number} is taken");
                return Err(StoreError::Corrupt { what: "import".to_owned(), message });
            }
            state.last = number;
            state.given.insert(number);
        }
        self.0.admit(&home).await;
        self.0.write_operation(Arc::new(operation), Vec::new(), Some(counted)).map(drop)
    }
}

/// The first whole microsecond at or after a moment.
fn first_microsecond(moment: Timestamp) -> i64 {
    let cut = moment.as_microsecond();
    let is_whole = i128::from(cut) * 1_000 == moment.as_nanosecond();
    cut.saturating_add(i64::from(!is_whole))
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

fn number_in(row: &tokio_postgres::Row, column: usize) -> u64 {
    number(row.get(column))
}

/// The company that a number was taken of is not served here any more.
fn not_home(company: &CompanyId) -> StoreError {
    StoreError::NotHome { company: company.clone() }
}

impl Inner {
    fn write_operation(
        &self,
        operation: Arc<Operation>,
        beside: Vec<TableWrite>,
        imported: Option<u64>,
    ) -> Result<Commit, StoreError> {
        let company = self.loaded(&operation.company_id);
        let company = company.ok_or_else(|| not_home(&operation.company_id))?;
        let bytes = encode("operation", &*operation)?;
        let mut rows = Vec::with_capacity(beside.len());
        for TableWrite { table, key, new } in beside {
            let (name, rest) = split(table, &key);
            check_length(rest)?;
            // It is written in the company's lane, and another one has its own order. A mark of the
            // host is as true in any order.
            let home = match &name {
                Some(name) if *name == operation.company_id => &company,
                None if table == Table::Host => self.own(),
                _ => {
                    let what = format!("row of `{}` beside an operation", table.name());
                    let message = "it belongs to another company or to none".to_owned();
                    return Err(StoreError::Corrupt { what, message });
                }
            };
            let value: Option<Arc<[u8]>> = new.map(Arc::from);
            let prefix_bytes = prefix_bytes(table, home);
            let key = (kind(table), rest.to_vec());
            rows.push((table, Row { company: home.id, key, value, prefix_bytes }));
        }
        let number = operation.id.sequence();
        let of_host = |row: &Row| row.company == HOST;
        // The host's own lock is taken before those of companies, as everywhere.
        let mut host = rows.iter().any(|(_, row)| of_host(row)).then(|| self.own().state.lock());
        let mut state = company.state.lock();
        admit(&state, &operation, &rows)?;
        let record = i64::try_from(record_prefix(company.prefix_bytes()) + bytes.len());
        let mut growth = record.unwrap_or(i64::MAX);
        let mut replaces = Replaces::Unknown;
        let was_open = state.open.remove(&number);
        if state.given.remove(&number) || was_open.is_some() {
            replaces = imported.map_or(Replaces::Unsummed, Replaces::Imported);
        }
        growth -= was_open.map_or(0, |bytes| whole(bytes as u64));
        if operation.outcome == Outcome::InProgress {
            state.open.insert(number, record_prefix(company.prefix_bytes()) + bytes.len());
        }
        // As if all rows were new: the commit says how much it was.
        let more = rows.iter().filter_map(|(_, row)| {
            Some(row.prefix_bytes? + row.key.1.len() + row.value.as_ref()?.len())
        });
        let more = i64::try_from(more.sum::<usize>()).unwrap_or(i64::MAX);
        let part = state.begin(&company, growth.saturating_add(more));
        let mut parts = Vec::with_capacity(2);
        if let Some(host) = &mut host {
            let part = host.begin(self.own(), 0);
            for (_, row) in rows.iter().filter(|(_, row)| of_host(row)) {
                host.show(&part, company.lane, row.key.clone(), row.value.clone());
            }
            parts.push(part);
        }
        for (_, row) in rows.iter().filter(|(_, row)| !of_host(row)) {
            state.show(&part, company.lane, row.key.clone(), row.value.clone());
        }
        state.show_operation(&part, Arc::clone(&operation));
        parts.push(part);
        let (reply, commit) = Commit::pair();
        let record = Record { company: Arc::clone(&company), operation, bytes, replaces };
        self.lane(&company).write(Item {
            parts,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            record: Some(record),
            removed: Vec::new(),
            reply,
        });
        Ok(commit)
    }

    /// Operations of the database that match, newest first, and whether there are no more.
    async fn find_operations(
        &self,
        home: &Company,
        filter: &OperationFilter,
        before: u64,
        limit: usize,
    ) -> Result<(Vec<(u64, Operation)>, bool), StoreError> {
        let mut wanted = Wanted::of(home.id, before);
        wanted.filter(filter);
        let sql = wanted.sql(limit);
        let client = self.reader("reading").await?;
        let statement = client.prepare_cached(&sql).await.map_err(failed("reading"))?;
        let values: Vec<&(dyn ToSql + Sync)> =
            wanted.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let rows = client.query(&statement, &values).await.map_err(failed("reading"))?;
        let bytes: usize = rows.iter().map(|row| row.get::<_, &[u8]>(1).len()).sum();
        let is_all = rows.len() <= limit && bytes <= MAX_PAGE_BYTES;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            found.push((number_in(&row, 0), decode("operation", row.get(1))?));
        }
        Ok((found, is_all))
    }
}

/// Refuses what a closed company must not have any more, and the end of an operation that was cut
/// short.
fn admit(state: &State, operation: &Operation, rows: &[(Table, Row)]) -> Result<(), StoreError> {
    state.alive()?;
    let (number, company) = (operation.id.sequence(), operation.company_id.clone());
    if operation.outcome != Outcome::Interrupted && state.interrupted.contains(&number) {
        return Err(StoreError::NotHome { company });
    }
    match state.closed {
        Some(last) if number <= last || rows.iter().any(|(table, _)| table.is_of_company()) => {
            Err(StoreError::Erased { company })
        }
        _ => Ok(()),
    }
}

/// A question for operations.
struct Wanted {
    conditions: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Wanted {
    fn of(company: i64, before: u64) -> Self {
        let mut wanted = Self { conditions: Vec::new(), values: Vec::new() };
        wanted.and("company =", company);
        wanted.and("number <", whole(before));
        wanted
    }

    fn and(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
        self.conditions.push(format!("{condition} ${}", self.values.len()));
    }

    fn text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.and(&format!("{name} ="), column(value));
        }
    }

    fn one_of(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.and(&format!("{name} @>"), vec![column(value)]);
        }
    }

    fn filter(&mut self, filter: &OperationFilter) {
        self.text("agent", filter.agent_id.as_deref());
        self.text("project", filter.project_id.as_deref());
        self.text("session", filter.session_key.as_deref());
        self.text("binding_key", filter.binding_key.as_ref().map(|key| key.as_str()));
        self.text("hook", filter.hook_kind.as_ref().map(|kind| kind.as_str()));
        self.text("source", filter.source_kind.map(|kind| kind.as_str()));
        self.text("kind", filter.kind.map(|kind| kind.as_str()));
        self.text("outcome", filter.outcome.map(|outcome| outcome.as_str()));
        self.one_of("issues", filter.issue_id.as_deref());
        self.one_of("runs", filter.run_id.as_deref());
        match &filter.provider_record_id {
            // Beside a record it is the record's provider, and not the one that was called.
            Some(id) => self.one_of("records", Some(id.as_str())),
            None => self.text("provider", filter.provider_key.as_ref().map(|key| key.as_str())),
        }
        if let Some(id) = filter.binding_id {
            self.and("binding_id =", id.0);
        }
        if let Some(since) = filter.since {
            self.and("started_us >=", since.as_microsecond());
        }
        if let Some(until) = filter.until {
            // What began within the same microsecond is compared as it is.
            self.and("started_us <=", until.as_microsecond());
        }
        if filter.keeps_text {
            self.conditions.push("keeps_text".to_owned());
        }
    }

    /// One more than the limit says that there is a next page. Records are read until they are
    /// large together.
    fn sql(&mut self, limit: usize) -> String {
        let conditions = self.conditions.join(" AND ");
        self.values.push(Box::new(whole(limit as u64).saturating_add(1)));
        let count = self.values.len();
        self.values.push(Box::new(whole(MAX_PAGE_BYTES as u64)));
        let most = self.values.len();
        format!(
            "SELECT number, record FROM (SELECT number, record, \
               sum(octet_length(record)) OVER (ORDER BY number DESC ROWS UNBOUNDED PRECEDING) \
                 - octet_length(record) AS before \
               FROM (SELECT number, record FROM operations WHERE {conditions} \
                 ORDER BY number DESC LIMIT ${count}) AS wanted) AS found \
             WHERE before <= ${most} ORDER BY number DESC"
        )
    }
}
