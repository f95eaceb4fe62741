//! Import of a company that another host exported: all of it or nothing. The company cannot be used
//! meanwhile.
//!
//! Nothing that the file says is trusted. Every id in it must belong to it. What its bindings may
//! reach and use is a request: an operator decides about it, and until then the records of such a
//! binding wait (`waiting.rs`). Lines, values and bindings are bounded, and so is what is not on
//! disk yet.

mod lines;
mod row;

use async_recursion::async_recursion as boxed;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use self::lines::Importing;
use crate::Service;
use crate::access::{Act, Caller};
use crate::background::due_queue::{Due, DueQueue};
use crate::companies::waiting;
use crate::error::ServiceError;
use memhost_registry::NewActivity;
use memhost_registry::versions::remove_company_directory;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_types::{ActivityAction, BindingKey, CompanyId, FieldError};

/// The prefix of the marks of imports in progress.
const IMPORTING: &[u8] = b"importing\0";
/// Deliveries or jobs that are written between two waits for the disk.
const AT_ONCE: usize = 256;
/// The longest line of an import, in bytes: a record of 1 MiB whose every byte is escaped fits.
pub const MAX_LINE: usize = 16 << 20;

/// An operator's decisions before an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions {
    /// Whether the grants and limits of the file are accepted. Otherwise they are requests.
    pub accepts_grants: bool,
    /// Whether records without a known scope become visible to the whole company. Otherwise they
    /// are refused.
    pub accepts_unscoped: bool,
}

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Imported {
    /// Rows of tables.
    pub rows: u64,
    /// Operations.
    pub operations: u64,
    /// Records, written through their providers.
    pub records: u64,
    /// Records, or parts of a provider's own export, that wait for a decision about the grants of
    /// their binding.
    pub waiting: u64,
    /// Bindings whose grants and limits wait for a decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requested: Vec<BindingKey>,
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(digits).collect()
}

impl Service {
    /// Imports a company that another host exported, under its own id. All of it or nothing: where
    /// a line is not valid, everything that was imported before it is removed again.
    ///
    /// # Errors
    /// Where the company exists already, a line is not valid, or a provider is missing or refuses a
    /// record.
    #[boxed]
    pub async fn import(
        &self,
        caller: &Caller,
        company: &CompanyId,
        options: ImportOptions,
        mut lines: mpsc::Receiver<Result<String, String>>,
    ) -> Result<Imported, ServiceError> {
        if options.accepts_grants {
            self.allow_new(caller, Act::Grant, company).await?;
        }
        let Some(guard) = self.companies.begin_import(company) else {
            return Err(ServiceError::Importing { company: company.clone() });
        };
        // From here on no operation of the company begins, so what is looked at does not change.
        let done = match self.may_import(company).await {
            Ok(()) => self.import_alone(caller, company, options, &mut lines).await,
            Err(error) => Err(error),
        };
        drop(guard);
        self.wake.notify_one();
        done
    }

    async fn may_import(&self, company: &CompanyId) -> Result<(), ServiceError> {
        self.is_not_erased(company)?;
        match self.has_already(company).await? {
            None => Ok(()),
            Some(what) => {
                let message = format!(
                    "has {what} here already; a company is imported as a whole or not at all"
                );
                Err(FieldError::new("companyId", message).into())
            }
        }
    }

    fn is_not_erased(&self, company: &CompanyId) -> Result<(), ServiceError> {
        match self.is_erased(company) {
            false => Ok(()),
            true => {
                let is_complete = self.is_erasure_complete(company);
                Err(ServiceError::Erased { company: company.clone(), is_complete })
            }
        }
    }

    /// What a company has on this host. `None` if nothing is stored of it. An import that fails
    /// removes everything of its company, so nothing may be there that is not the import's.
    async fn has_already(&self, company: &CompanyId) -> Result<Option<String>, ServiceError> {
        if !self.store.is_settled(company) {
            return Ok(Some("operations in progress".to_owned()));
        }
        if self.store.operation_range(company).await?.is_some() {
            return Ok(Some("operations".to_owned()));
        }
        let prefix = store::company_key(company, b"");
        // An answer to a request, and the sums of operations that were removed, are nothing that
        // can be lost.
        let passing = [Table::Host, Table::Due, Table::Idempotency, Table::Sums];
        for table in Table::ALL.iter().filter(|table| !passing.contains(table)) {
            if !self.store.scan(*table, &prefix, None, 1).await?.entries.is_empty() {
                return Ok(Some(format!("records in `{}`", table.name())));
            }
        }
        Ok(None)
    }

    async fn import_alone(
        &self,
        caller: &Caller,
        company: &CompanyId,
        options: ImportOptions,
        lines: &mut mpsc::Receiver<Result<String, String>>,
    ) -> Result<Imported, ServiceError> {
        self.store.begin_numbers(company).await?;
        // A host that ends during the import removes the imported part when it opens again.
        self.mark_import(company, true).await?;
        let mut importing = Importing::new(self, company, options);
        let mut result = Ok(());
        while let Some(line) = lines.recv().await {
            result = match line {
                Ok(line) => match self.is_not_erased(company) {
                    Ok(()) => importing.line(line).await,
                    erased => erased,
                },
                Err(error) => Err(FieldError::new("body", error).into()),
            };
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            result = importing.finish().await;
        }
        // An erasure that began at the same moment has not seen all of it.
        let result = result.and_then(|()| self.is_not_erased(company));
        let done = importing.done;
        if let Err(error) = result {
            self.undo_import(company).await?;
            self.mark_import(company, false).await?;
            return Err(error);
        }
        self.mark_import(company, false).await?;
        let entry =
            NewActivity::new(caller.principal(), ActivityAction::CompanyImported, company.as_str());
        self.activity
            .record_with(company, entry.with(None::<&()>, Some(&done)), Vec::new())
            .await?;
        Ok(done)
    }

    async fn mark_import(&self, company: &CompanyId, is_begun: bool) -> Result<(), ServiceError> {
        let key = [IMPORTING, company.as_str().as_bytes()].concat();
        store::write(&*self.store, &[Change::always(Table::Host, key, is_begun.then(Vec::new))])
            .await?;
        Ok(())
    }

    async fn undo_import(&self, company: &CompanyId) -> Result<(), ServiceError> {
        for binding in self.bindings.list(company) {
            // What is known of another company's binding must not be forgotten.
            if !self.bindings.has_id(binding.id, company) {
                self.serving.forget(binding.id);
                self.reviews.forget(binding.id);
                self.records.forget_binding(binding.id);
            }
            self.serving.remove_stored(&binding).await?;
        }
        self.waiting.forget(company);
        waiting::remove_marks(&*self.store, company).await?;
        self.remove_all(company).await?;
        self.bindings.forget(company);
        self.oplog.ledger.forget(company);
        self.companies.retention.write().remove(company);
        Ok(())
    }
}

/// Accepts imported records as new ones, with their due entries and marks.
async fn begin_imported<T: Due>(
    queue: &DueQueue<T>,
    company: &CompanyId,
) -> Result<(), ServiceError> {
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

/// Removes what a host imported that ended in the middle of the import. Called before anything is
/// served.
pub(crate) async fn undo_cut_imports(store: &dyn Store, data_dir: &Path) -> Result<(), StoreError> {
    let mut marks = store::scan_all(store, Table::Host, IMPORTING);
    while let Some((key, _)) = marks.next().await? {
        let name = String::from_utf8_lossy(&key[IMPORTING.len()..]).into_owned();
        if let Ok(company) = name.parse::<CompanyId>() {
            tracing::warn!(%company, "an import was interrupted; what it had imported is removed");
            store.erase_company(&company).await?;
            waiting::remove_marks(store, &company).await?;
            drop(remove_company_directory(data_dir, &company).await);
        }
        drop(store.transact(&[Change::always(Table::Host, key, None)]).await?);
    }
    Ok(())
}
