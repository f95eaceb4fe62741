//! The operation log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::ask::Value;
use crate::place::{behind, kind};
use crate::store::PostgresStore;
use crate::sums::key_of_day;
use memhost_store::{
    Commit, LogPage, OperationLog, StoreError, Table, TableWrite, check_sum_row, decode, encode,
};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{CompanyId, Operation, OperationFilter, OperationId, Rollup, RollupKey};

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
        let Some(company) = self.0.loaded(&operation.company_id) else {
            let company = operation.company_id.clone();
            return Commit::failed(StoreError::NotHome { company });
        };
        let written = self.0.write_record(&company, operation, beside, None);
        written.unwrap_or_else(Commit::failed)
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
        let sql = "SELECT record FROM operations WHERE company = $1 AND number = $2 AND id = $3";
        let number = whole(id.sequence());
        let row = self.0.ask_one("reading", sql, &[&home.id, &number, &id.uuid()]).await?;
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
        let (stored, seen_to) = self.0.find_operations(home.id, filter, before, limit).await?;
        let mut found: BTreeMap<u64, Operation> = stored.into_iter().collect();
        {
            let state = home.state.lock();
            state.alive()?;
            // What is below the last one that was looked at belongs to later pages.
            let from = seen_to.unwrap_or(0);
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
        page.next_before = seen_to;
        Ok(page)
    }

    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(None) };
        self.0.reach(&home).await?;
        let sql = "SELECT number FROM operations WHERE company = $1 AND outcome <> 'refused' \
                   ORDER BY number DESC OFFSET $2 LIMIT 1";
        let newer = whole(count.saturating_sub(1));
        let row = self.0.ask_one("reading", sql, &[&home.id, &newer]).await?;
        Ok(row.map(|row| number_in(&row, 0)))
    }

    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(None) };
        self.0.reach(&home).await?;
        let sql = "SELECT min(number), max(number) FROM operations WHERE company = $1";
        let row = self.0.ask_one("reading", sql, &[&home.id]).await?;
        let ends = row.and_then(|row| {
            let (first, last): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
            Some((number(first?), number(last?)))
        });
        Ok(ends)
    }

    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError> {
        let Some(home) = self.0.find(company).await? else { return Ok(1) };
        self.0.reach(&home).await?;
        let sql = "SELECT number FROM operations WHERE company = $1 AND started_us >= $2 \
                   ORDER BY started_us, number LIMIT 1";
        let row = self.0.ask_one("reading", sql, &[&home.id, &first_microsecond(moment)]).await?;
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
        let sql = "SELECT value FROM entries WHERE company = $1 AND kind = $2 AND key >= $3 \
                   AND key < $4 ORDER BY key";
        let (first, end) = (key_of_day(company, since), behind(&key_of_day(company, until)));
        let values: [&dyn Value; 4] = [&home.id, &kind(Table::Sums), &first, &end];
        let rows = self.0.ask("reading", sql, &values).await?;
        rows.iter().map(|row| decode("sums", row.get::<_, &[u8]>(0))).collect()
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
        (state.last, state.given) = (0, BTreeSet::new());
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
        self.0.write_record(&home, Arc::new(operation), Vec::new(), Some(counted)).map(drop)
    }
}

/// The first whole microsecond at or after a moment.
fn first_microsecond(moment: Timestamp) -> i64 {
    let cut = moment.as_microsecond();
    let is_whole = i128::from(cut) * 1_000 == moment.as_nanosecond();
    cut.saturating_add(i64::from(!is_whole))
}

pub(crate) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

pub(crate) fn number_in(row: &tokio_postgres::Row, column: usize) -> u64 {
    number(row.get(column))
}
