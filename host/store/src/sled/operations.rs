//! The operation log's calls.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;

use super::state::{self, last};
use super::store::SledStore;
use super::{keys, newest, remove, sums};
use crate::error::failed;
use crate::{Commit, LogPage, OperationLog, StoreError, TableWrite};
use memhost_executor::off_executor;
use memhost_types::{CompanyId, Operation, OperationFilter, OperationId, Rollup, RollupKey};

#[async_trait]
impl OperationLog for SledStore {
    fn take_sequence(&self, company: &CompanyId) -> Option<u64> {
        self.log.as_ref().map(|log| log.next_sequence(company))
    }

    fn return_sequence(&self, company: &CompanyId, sequence: u64) {
        if let Some(log) = &self.log {
            log.take_back(company, sequence);
        }
    }

    async fn reserve_sequences(&self, _company: &CompanyId) -> Result<(), StoreError> {
        // All numbers are this process's own.
        self.log().map(drop)
    }

    fn write_operation(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) -> Commit {
        match self.log() {
            Ok(log) => log.write(operation, beside),
            Err(error) => Commit::failed(error),
        }
    }

    fn write_operation_later(&self, operation: Arc<Operation>, beside: Vec<TableWrite>) {
        if let Ok(log) = self.log() {
            log.write_later(operation, beside);
        }
    }

    fn is_behind(&self, company: &CompanyId) -> bool {
        self.log().is_ok_and(|log| log.is_behind(company))
    }

    fn is_settled(&self, company: &CompanyId) -> bool {
        state::is_settled(&self.companies, company)
    }

    async fn operation(
        &self,
        company: &CompanyId,
        id: OperationId,
    ) -> Result<Option<Operation>, StoreError> {
        Ok(self.reader(company)?.operation(id.sequence())?.filter(|operation| operation.id == id))
    }

    async fn operations(
        &self,
        company: &CompanyId,
        filter: &OperationFilter,
        before: Option<u64>,
        limit: usize,
    ) -> Result<LogPage, StoreError> {
        self.reader(company)?.page(filter, before, limit).await
    }

    async fn newest_operations(
        &self,
        company: &CompanyId,
        count: u64,
    ) -> Result<Option<u64>, StoreError> {
        let company = company.clone();
        self.blocking("reading", move |trees, companies| {
            newest::of(trees, companies, &company, count)
        })
        .await
    }

    async fn operation_range(&self, company: &CompanyId) -> Result<Option<(u64, u64)>, StoreError> {
        let last = last(&self.companies, company);
        self.trees.disk.alive()?;
        let first =
            self.trees.records.range(keys::record(company, 0)..=keys::record(company, last)).next();
        let first = first.transpose().map_err(failed("reading"))?;
        Ok(first.and_then(|(key, _)| Some((keys::sequence(&key)?, last))))
    }

    async fn first_operation_at(
        &self,
        company: &CompanyId,
        moment: Timestamp,
    ) -> Result<u64, StoreError> {
        let reader = self.reader(company)?;
        off_executor(usize::MAX, || reader.first_at(moment))
    }

    async fn rollups(
        &self,
        company: &CompanyId,
        since: Date,
        until: Date,
    ) -> Result<Vec<(RollupKey, Rollup)>, StoreError> {
        let log = self.log()?;
        off_executor(usize::MAX, || sums::rows(&self.trees, log, company, since, until))
    }

    async fn trim_operations(&self, company: &CompanyId, below: u64) -> Result<u64, StoreError> {
        let company = company.clone();
        self.blocking("trimming", move |trees, companies| {
            remove::operations(trees, companies, &company, below)
        })
        .await
    }

    async fn begin_numbers(&self, company: &CompanyId) -> Result<(), StoreError> {
        if self.operation_range(company).await?.is_some() {
            let message = format!("{company} has operations already");
            return Err(StoreError::Corrupt { what: "import".to_owned(), message });
        }
        self.companies.lock().remove(company);
        Ok(())
    }

    fn check_sums(&self, company: &CompanyId, key: &[u8], value: &[u8]) -> Option<u64> {
        crate::check_sum_row(company, key, value)
    }

    async fn import_operation(&self, operation: Operation) -> Result<(), StoreError> {
        let log = self.log()?;
        log.give_out(&operation.company_id, operation.id.sequence())?;
        log.write_later(Arc::new(operation), Vec::new());
        Ok(())
    }
}
