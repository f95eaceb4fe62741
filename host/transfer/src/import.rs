//! Import of a company that another host exported: all of it or nothing. The company cannot be used
//! meanwhile.
//!
//! Nothing that the file says is trusted. Every id in it must belong to it. What its bindings may
//! reach and use is a request: an operator decides about it, and until then the records of such a
//! binding wait (`queues/src/waiting.rs`). Lines, values and bindings are bounded, and so is what
//! is not on disk yet.

mod lines;
mod options;
mod restore;
mod restoring;
mod row;

use async_recursion::async_recursion as boxed;
use std::path::Path;

use tokio::sync::mpsc;

use self::lines::Importing;
pub use self::options::{ImportOptions, Imported, MAX_LINE, Restored};
use crate::Transfer;
use memhost_access::{Act, Caller};
use memhost_queues::waiting;
use memhost_registry::NewActivity;
use memhost_registry::versions::remove_company_directory;
use memhost_store::{self as store, Change, Store, StoreError, Table};
use memhost_tenancy::ServiceError;
use memhost_types::{ActivityAction, CompanyId, FieldError};

/// The prefix of the marks of imports in progress.
const IMPORTING: &[u8] = b"importing\0";

impl Transfer {
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
            self.tenancy.allow_new(caller, Act::Grant, company).await?;
        }
        let Some(guard) = self.tenancy.begin_import(company) else {
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
        self.tenancy.erased(company).map_or(Ok(()), Err)
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
        let result = match self.take(&mut importing, company, lines).await {
            Ok(()) => importing.finish().await,
            error => error,
        };
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

    /// Takes the lines, up to the first one that is not valid.
    async fn take(
        &self,
        importing: &mut Importing<'_>,
        company: &CompanyId,
        lines: &mut mpsc::Receiver<Result<String, String>>,
    ) -> Result<(), ServiceError> {
        while let Some(line) = lines.recv().await {
            let line = line.map_err(|error| FieldError::new("body", error))?;
            self.is_not_erased(company)?;
            importing.line(line).await?;
        }
        Ok(())
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
        self.tenancy.forget(company);
        Ok(())
    }
}

/// Removes what a host imported that ended in the middle of the import. Called before anything is
/// served.
///
/// # Errors
/// Where the store fails.
pub async fn undo_cut_imports(
    store: &dyn Store,
    files_dir: Option<&Path>,
) -> Result<(), StoreError> {
    let mut marks = store::scan_all(store, Table::Host, IMPORTING);
    while let Some((key, _)) = marks.next().await? {
        let name = String::from_utf8_lossy(&key[IMPORTING.len()..]).into_owned();
        if let Ok(company) = name.parse::<CompanyId>() {
            if !store.is_home(&company) {
                continue;
            }
            tracing::warn!(%company, "an import was interrupted; what it had imported is removed");
            store.erase_company(&company).await?;
            waiting::remove_marks(store, &company).await?;
            if let Some(files) = files_dir {
                drop(remove_company_directory(files, &company).await);
            }
        }
        drop(store.transact(&[Change::always(Table::Host, key, None)]).await?);
    }
    Ok(())
}
