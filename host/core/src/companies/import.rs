//! Import of a company that another host exported: all of it or nothing. The company cannot be used meanwhile.

use async_recursion::async_recursion as boxed;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::companies::export::{FORMAT, Line, TABLES};
use crate::error::ServiceError;
use crate::work::due_queue::{Due, DueQueue};
use memhost_store::{self as store, Change, Store, StoreError, Table, Transacted};
use memhost_types::{
    ActivityAction, Binding, BindingKey, CompanyId, FieldError, Operation, RecordWrite, Scope, Snippet, UpsertRequest,
    limits,
};

/// The prefix of the marks of imports in progress.
const IMPORTING: &[u8] = b"importing\0";
/// Rows, or deliveries, that are written between two waits for the disk.
const AT_ONCE: usize = 256;

/// What was imported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Rows of tables.
    pub rows: u64,
    /// Operations.
    pub operations: u64,
    /// Records, written through their providers.
    pub records: u64,
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(digits).collect()
}

impl Service {
    /// Imports a company that another host exported, under its own id. All of it or nothing: where a line is not valid,
    /// everything that was imported before it is removed again.
    ///
    /// # Errors
    /// Where the company exists already, a line is not valid, or a provider is missing or refuses a record.
    #[boxed]
    pub async fn import(
        &self,
        caller: &Caller,
        company: &CompanyId,
        mut lines: mpsc::Receiver<Result<String, String>>,
    ) -> Result<Imported, ServiceError> {
        if self.is_erased(company) {
            return Err(ServiceError::Erased { company: company.clone() });
        }
        if self.store.operation_range(company).await?.is_some() || !self.bindings.list(company).is_empty() {
            let message = "has operations or bindings here already; a company is imported as a whole or not at all";
            return Err(FieldError::new("companyId", message).into());
        }
        if !self.companies.importing.lock().insert(company.clone()) {
            return Err(ServiceError::Importing { company: company.clone() });
        }
        let done = self.import_alone(caller, company, &mut lines).await;
        self.companies.importing.lock().remove(company);
        self.wake.notify_one();
        done
    }

    async fn import_alone(
        &self,
        caller: &Caller,
        company: &CompanyId,
        lines: &mut mpsc::Receiver<Result<String, String>>,
    ) -> Result<Imported, ServiceError> {
        self.store.begin_numbers(company).await?;
        // A host that ends during the import removes the imported part when it opens again.
        self.mark_import(company, true).await?;
        let mut importing = Importing {
            service: self,
            company,
            done: Imported::default(),
            number: 0,
            ended: false,
            waiting: (None, String::new()),
        };
        let mut result = Ok(());
        while let Some(line) = lines.recv().await {
            result = match line {
                Ok(line) => importing.line(&line).await,
                Err(error) => Err(FieldError::new("body", error).into()),
            };
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() && !importing.ended {
            result = Err(importing.wrong("the last line is missing: the export was cut off"));
        }
        let done = importing.done;
        if result.is_ok() {
            // Jobs and deliveries are due from now on, when everything is imported.
            result = begin_imported(&self.jobs, company).await;
        }
        if result.is_ok() {
            result = begin_imported(&self.deliveries, company).await;
        }
        if let Err(error) = result {
            self.undo_import(company).await?;
            self.mark_import(company, false).await?;
            return Err(error);
        }
        self.mark_import(company, false).await?;
        let entry = NewActivity::new(caller.principal(), ActivityAction::CompanyImported, company.as_str());
        self.bindings.record_with(company, entry.with(None::<&()>, Some(&done)), Vec::new()).await?;
        Ok(done)
    }

    async fn mark_import(&self, company: &CompanyId, is_begun: bool) -> Result<(), ServiceError> {
        let key = [IMPORTING, company.as_str().as_bytes()].concat();
        store::write(&*self.store, &[Change::always(Table::Host, key, is_begun.then(Vec::new))]).await?;
        Ok(())
    }

    async fn undo_import(&self, company: &CompanyId) -> Result<(), ServiceError> {
        for binding in self.bindings.list(company) {
            self.serving.forget(binding.id);
            self.serving.remove_stored(&binding).await?;
            self.reviews.forget(binding.id);
        }
        self.remove_all(company).await?;
        self.bindings.forget(company);
        self.recorder.ledger.forget(company);
        Ok(())
    }
}

/// Accepts imported records as new ones, with their due entries and marks.
async fn begin_imported<T: Due>(queue: &DueQueue<T>, company: &CompanyId) -> Result<(), ServiceError> {
    let (mut imported, mut some) = (queue.all(company), Vec::new());
    while let Some(record) = imported.next().await? {
        some.push(record);
        if some.len() == AT_ONCE {
            queue.accept(std::mem::take(&mut some)).await?;
        }
    }
    queue.accept(some).await?;
    Ok(())
}

struct Importing<'a> {
    service: &'a Service,
    company: &'a CompanyId,
    done: Imported,
    number: u64,
    ended: bool,
    /// Lines in a provider's own format that the provider has not got yet.
    waiting: (Option<BindingKey>, String),
}

impl Importing<'_> {
    fn wrong(&self, message: &str) -> ServiceError {
        FieldError::new(format!("lines.{}", self.number.saturating_sub(1)), message).into()
    }

    async fn line(&mut self, text: &str) -> Result<(), ServiceError> {
        self.number += 1;
        if text.trim().is_empty() {
            return Ok(());
        }
        let line: Line = serde_json::from_str(text).map_err(|error| self.wrong(&error.to_string()))?;
        if !matches!(line, Line::Own { .. }) {
            self.hand_over().await?;
        }
        if self.ended {
            return Err(self.wrong("stands behind the end"));
        }
        match line {
            Line::Company { format, company_id, .. } => {
                if self.number != 1 || format != FORMAT || company_id != *self.company {
                    let message = format!("is not the beginning of an export of {} in format {FORMAT}", self.company);
                    return Err(self.wrong(&message));
                }
                Ok(())
            }
            _ if self.number == 1 => Err(self.wrong("is not the first line of an export")),
            Line::Row { table, key, value } => {
                let value = store::encode("row", &value)?;
                self.row(&table, &key, value).await
            }
            Line::Bytes { table, key, bytes } => match unhex(&bytes) {
                Some(value) => self.row(&table, &key, value).await,
                None => Err(self.wrong("has bytes that are not in hex")),
            },
            Line::Operation { value } => self.operation(*value).await,
            Line::Record { binding_key, value } => self.record(&binding_key, *value).await,
            Line::Own { binding_key, line } => self.own(binding_key, &line).await,
            Line::Secret { .. } | Line::Token { .. } => Ok(()),
            Line::End { lines } => {
                self.ended = true;
                match lines == self.number - 1 {
                    true => Ok(()),
                    false => Err(self.wrong(&format!("counts {lines} lines, and {} came", self.number - 1))),
                }
            }
        }
    }

    async fn row(&mut self, table: &str, key: &str, value: Vec<u8>) -> Result<(), ServiceError> {
        let found = TABLES.into_iter().find(|known| known.name() == table);
        let (Some(table), Some(key)) = (found, unhex(key)) else {
            return Err(self.wrong("has a table or a key that is none"));
        };
        if is_of_another(self.company, &store::decode("row", &value).unwrap_or(Value::Null)) {
            return Err(self.wrong("belongs to another company"));
        }
        let key = store::company_key(self.company, &key);
        match self.service.store.transact(&[Change::insert(table, key, value.clone())]).await? {
            Transacted::Done(commit) if self.done.rows.is_multiple_of(AT_ONCE as u64) => commit.await?,
            Transacted::Done(_) => {}
            Transacted::Conflict(_) => return Err(self.wrong("is there twice")),
        }
        self.done.rows += 1;
        self.take_into_account(table, &value).await
    }

    /// Updates the caches with an imported row.
    async fn take_into_account(&self, table: Table, value: &[u8]) -> Result<(), ServiceError> {
        let service = self.service;
        match table {
            Table::Bindings => {
                let binding: Binding = store::decode("binding", value)?;
                if service.bindings.has_id(binding.id, self.company) {
                    return Err(self.wrong("has the id of another company's binding"));
                }
                service.can_be_served(&binding).await?;
                Ok(service.bindings.reload(self.company).await?)
            }
            Table::Targets => Ok(service.bindings.reload(self.company).await?),
            Table::Reviews => {
                service.reviews.apply_older(&store::decode("review", value)?);
                Ok(())
            }
            Table::Budgets => Ok(service.recorder.ledger.reload(self.company).await?),
            Table::Companies => service.reload_retention(self.company).await,
            _ => Ok(()),
        }
    }

    async fn operation(&mut self, operation: Operation) -> Result<(), ServiceError> {
        let value = serde_json::to_value(&operation).unwrap_or_default();
        if operation.company_id != *self.company || is_of_another(self.company, &value) {
            return Err(self.wrong("belongs to another company"));
        }
        self.service.store.import_operation(operation).await?;
        self.done.operations += 1;
        Ok(())
    }

    /// A line in the provider's own format. Such lines are collected up to the size that one call may have.
    async fn own(&mut self, binding_key: BindingKey, line: &str) -> Result<(), ServiceError> {
        let (key, lines) = &self.waiting;
        let is_full = lines.len() + line.len() >= limits::MAX_TRANSFER_BYTES;
        if is_full || key.as_ref().is_some_and(|key| *key != binding_key) {
            self.hand_over().await?;
        }
        let (key, lines) = &mut self.waiting;
        *key = Some(binding_key);
        lines.push_str(line);
        lines.push('\n');
        Ok(())
    }

    async fn hand_over(&mut self) -> Result<(), ServiceError> {
        let (Some(key), lines) = std::mem::take(&mut self.waiting) else { return Ok(()) };
        let taken = self.service.import_lines(Scope::company(self.company.clone()), &key, lines).await?;
        self.done.records += u64::from(taken);
        Ok(())
    }

    async fn record(&mut self, binding_key: &BindingKey, snippet: Snippet) -> Result<(), ServiceError> {
        let request = UpsertRequest {
            binding_key: Some(binding_key.clone()),
            scope: Scope::company(self.company.clone()),
            source: snippet.source.clone(),
            records: vec![RecordWrite {
                id: Some(snippet.handle.provider_record_id.clone()),
                text: snippet.text,
                summary: snippet.summary,
                metadata: snippet.metadata,
            }],
        };
        self.service.import_upsert(&request).await?;
        self.done.records += 1;
        Ok(())
    }
}

/// Whether a value names another company anywhere: the host would use such a scope or source.
fn is_of_another(company: &CompanyId, value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| {
            (name == "companyId" && value.as_str().is_some_and(|found| found != company.as_str()))
                || is_of_another(company, value)
        }),
        Value::Array(items) => items.iter().any(|item| is_of_another(company, item)),
        _ => false,
    }
}

/// Removes what a host imported that ended in the middle of the import. Called before anything is served.
pub(crate) async fn undo_cut_imports(store: &dyn Store, data_dir: &Path) -> Result<(), StoreError> {
    let mut marks = store::scan_all(store, Table::Host, IMPORTING);
    while let Some((key, _)) = marks.next().await? {
        let name = String::from_utf8_lossy(&key[IMPORTING.len()..]).into_owned();
        if let Ok(company) = name.parse::<CompanyId>() {
            tracing::warn!(%company, "an import was interrupted; what it had imported is removed");
            store.erase_company(&company).await?;
            drop(crate::versions::serving::remove_tree(&data_dir.join("memory").join(company.as_str())));
        }
        drop(store.transact(&[Change::always(Table::Host, key, None)]).await?);
    }
    Ok(())
}
