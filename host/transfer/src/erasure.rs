//! The erasure of a company.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Transfer;
use memhost_access::Caller;
use memhost_queues::waiting;
use memhost_registry::versions::remove_company_directory;
use memhost_tenancy::ServiceError;
use memhost_tenancy::{Erased, Tombstone};
use memhost_types::{
    Binding, BindingKey, CompanyId, FieldError, ForgetEffect, ForgetRequest, ListRequest,
    OperationErrorCode, RecordHandle, Scope, counted,
};

impl Transfer {
    /// Erases a company: tells every provider to forget, removes everything that the host stores of
    /// it, and writes a signed tombstone. Operations of the company are refused from the start. The
    /// call can be repeated.
    ///
    /// Nothing that the host stores is removed before every provider has confirmed that it has
    /// forgotten everything. What the bindings `abandoned` have is given up: the tombstone names
    /// it.
    ///
    /// # Errors
    /// Where the store fails, a provider is being compiled, or one has not confirmed it.
    #[boxed]
    pub async fn erase_company(
        &self,
        caller: &Caller,
        company: &CompanyId,
        abandoned: &[BindingKey],
    ) -> Result<Arc<Erased>, ServiceError> {
        // Its rows would come after the erasure.
        if self.tenancy.is_importing(company) {
            return Err(ServiceError::Importing { company: company.clone() });
        }
        let before = self.tenancy.tombstone(company);
        if let Some(erased) = &before
            && erased.tombstone.is_complete
        {
            // The host may have ended while operations of it were in progress.
            self.store.close_company(company).await?;
            self.finish_deletions(company).await?;
            self.remove_all(company).await?;
            self.remove_directory(company).await?;
            self.tenancy.write_tombstone(&erased.tombstone, false).await?;
            return Ok(Arc::clone(erased));
        }
        let mut tombstone = before.map_or_else(
            || Tombstone {
                company_id: company.clone(),
                erased_at: self.clock.now(),
                erased_by: caller.principal().clone(),
                forgotten: BTreeMap::new(),
                not_forgotten: Vec::new(),
                abandoned: BTreeMap::new(),
                is_complete: false,
                removed_keys: 0,
            },
            // An erasure was cut short: it goes on.
            |erased| erased.tombstone.clone(),
        );
        let bindings = self.bindings.list(company);
        if let Some(unknown) =
            abandoned.iter().find(|key| !bindings.iter().any(|binding| binding.key == **key))
        {
            let message = format!("names `{unknown}`, and the company has no such binding");
            return Err(FieldError::new("abandon", message).into());
        }
        for binding in bindings.iter().filter(|binding| !abandoned.contains(&binding.key)) {
            self.check_loaded(binding).await?;
        }
        // An erasure that was begun goes on: its company is closed.
        if self.tenancy.tombstone(company).is_none() {
            self.can_forget(company, &bindings, abandoned).await?;
        }
        // From here on only the host itself can use the company, also after a crash.
        self.tenancy.write_tombstone(&tombstone, true).await?;
        self.waiting.remove_company(company).await?;
        let mut unconfirmed = Vec::new();
        for binding in &bindings {
            // Where an erasure goes on, the provider may have forgotten some already.
            let name = format!("the binding `{}`: ", binding.key);
            tombstone.not_forgotten.retain(|sentence| !sentence.starts_with(&name));
            match self.forget_everything(binding).await {
                Ok(count) => {
                    *tombstone.forgotten.entry(binding.key.to_string()).or_default() += count;
                }
                Err(error) => {
                    tombstone.not_forgotten.push(format!("{name}{error}"));
                    match abandoned.contains(&binding.key) {
                        true => {
                            tombstone
                                .abandoned
                                .insert(binding.key.to_string(), caller.principal().clone());
                        }
                        false => unconfirmed.push(binding.key.to_string()),
                    }
                }
            }
        }
        self.tenancy.write_tombstone(&tombstone, true).await?;
        if !unconfirmed.is_empty() {
            let (company, reasons) = (company.clone(), tombstone.not_forgotten.join("; "));
            return Err(ServiceError::NotForgotten { company, bindings: unconfirmed, reasons });
        }
        for binding in &bindings {
            let _lock = self.serving.lock(binding.id).await?;
            self.serving.close(binding.id).await;
            self.serving.remove_stored(binding).await?;
            self.reviews.forget(binding.id);
            self.operations.forget_binding(binding.id);
            self.records.forget_binding(binding.id);
        }
        self.finish_deletions(company).await?;
        // Requests that were admitted before the tombstone may still be on their way, such as those
        // whose body is.
        self.store.close_company(company).await?;
        // Before everything is removed: a refusal of such a token would be written behind it.
        self.tenancy.forget_tokens(company);
        self.oplog.feed.forget(company);
        tombstone.removed_keys = self.remove_all(company).await?;
        waiting::remove_marks(&*self.store, company).await?;
        self.waiting.forget(company);
        self.bindings.forget(company);
        self.oplog.ledger.forget(company);
        self.oplog.recent.forget_company(company);
        self.tenancy.forget(company);
        self.remove_directory(company).await?;
        tombstone.is_complete = true;
        let erased = self.tenancy.write_tombstone(&tombstone, false).await?;
        tracing::info!(%company, by = %caller.principal(), keys = tombstone.removed_keys, "a \
            company was erased");
        Ok(erased)
    }

    /// Refuses an erasure whose providers cannot be asked, before the company is closed.
    async fn can_forget(
        &self,
        company: &CompanyId,
        bindings: &[Arc<Binding>],
        abandoned: &[BindingKey],
    ) -> Result<(), ServiceError> {
        let (mut found, mut reasons) = (Vec::new(), Vec::new());
        for binding in bindings.iter().filter(|binding| !abandoned.contains(&binding.key)) {
            if self.operations.never_served(binding).await?
                || self.operations.holds_no_data(binding).await?
            {
                continue;
            }
            let missing = self.serving.missing_secrets(binding).await;
            // Its provider is to answer, and not an open circuit.
            self.serving.close_circuit(binding.id).await?;
            let reason = match missing.is_empty() {
                true => match self.first_record(binding).await {
                    // It can be asked; whether it forgets is seen when it is told to.
                    Err(ServiceError::Operation { error, .. })
                        if error.code == OperationErrorCode::BadAnswer =>
                    {
                        None
                    }
                    asked => asked.err().map(|error| error.to_string()),
                },
                false => Some(format!("the secret `{}` is not set", missing.join("`, `"))),
            };
            if let Some(reason) = reason {
                reasons.push(format!("the binding `{}` cannot forget: {reason}", binding.key));
                found.push(binding.key.to_string());
            }
        }
        match found.is_empty() {
            true => Ok(()),
            false => Err(ServiceError::CannotForget {
                company: company.clone(),
                bindings: found,
                reasons: reasons.join("; "),
            }),
        }
    }

    /// Refuses an erasure while a provider is being compiled that would have to forget.
    async fn check_loaded(&self, binding: &Arc<Binding>) -> Result<(), ServiceError> {
        if self.operations.never_served(binding).await?
            || self.operations.holds_no_data(binding).await?
        {
            return Ok(());
        }
        match self.serving.get(binding).await {
            Err(refusal) if refusal.error.code == OperationErrorCode::ProviderLoading => {
                Err(ServiceError::ProviderLoading { key: binding.provider_key.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Waits until the company's operations in progress have ended, 10 seconds at most. Answers
    /// whether they have.
    pub(crate) async fn settle(&self, company: &CompanyId) -> Result<bool, ServiceError> {
        const MOST: u32 = 1_000;
        for _ in 0..MOST {
            self.store.commit().await?;
            if self.store.is_settled(company) {
                return Ok(true);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(false)
    }

    /// Removes everything that the store has of a company, once its operations in progress have
    /// ended.
    pub(crate) async fn remove_all(&self, company: &CompanyId) -> Result<u64, ServiceError> {
        self.settle(company).await?;
        self.tenancy.note_forgetting().await?;
        // Others count their refusals meanwhile.
        let before = self.store.erase_company(company).await?;
        let removed = {
            // No number may be written into a record that is removed meanwhile.
            let _writing = self.oplog.refusals.hold_writes().await;
            let removed = self.store.erase_company(company).await;
            self.oplog.refusals.forget(company);
            before + removed?
        };
        self.tenancy.note_forgetting().await?;
        Ok(removed)
    }

    /// Removes the directory of a company, with whatever is still in it.
    async fn remove_directory(&self, company: &CompanyId) -> Result<(), ServiceError> {
        match &self.files_dir {
            Some(files) => {
                remove_company_directory(files, company).await.map_err(ServiceError::host)
            }
            None => Ok(()),
        }
    }

    /// Finishes the company's deletions of bindings that were cut short.
    pub(crate) async fn finish_deletions(&self, company: &CompanyId) -> Result<(), ServiceError> {
        let registry = (&*self.bindings, &*self.serving);
        Ok(memhost_control::finish_cut_deletions(&*self.store, registry, Some(company)).await?)
    }

    /// Goes on with erasures that were cut short.
    ///
    /// # Errors
    /// Where their marks cannot be read.
    #[boxed]
    pub async fn finish_erasures(&self) -> Result<(), ServiceError> {
        for company in self.tenancy.cut_erasures().await? {
            // A provider that is still being compiled must be asked, too.
            self.plugins.idle().await;
            tracing::warn!(%company, "an erasure was cut short; it goes on now");
            // One that cannot be finished does not stop the others; it is tried again at the next
            // start.
            if let Err(error) = self.erase_company(&Caller::system(), &company, &[]).await {
                tracing::error!(%error, %company, "an erasure that was cut short is not complete; \
                    erase the company again");
            }
        }
        Ok(())
    }

    /// Has a binding's provider forget every record, also those that wait for a person: at once
    /// where it can do that, and then page by page from the start, until none is left.
    async fn forget_everything(&self, binding: &Arc<Binding>) -> Result<u64, ServiceError> {
        const PAGE: u32 = 500;
        const MOST: Duration = Duration::from_secs(600);
        if self.operations.never_served(binding).await?
            || self.operations.holds_no_data(binding).await?
        {
            return Ok(0);
        }
        // Nobody can reset the binding of a company that is closed.
        self.serving.close_circuit(binding.id).await?;
        let (caller, mut count, started) = (Caller::system(), 0_u64, Instant::now());
        let (mut seen, mut kept) = (HashSet::<RecordHandle>::new(), 0_u64);
        let (key, scope) = (Some(binding.key.clone()), Scope::company(binding.company_id.clone()));
        if let Some(forgotten) = self.operations.forget_at_once(&caller, binding).await? {
            count += forgotten.count.unwrap_or_default();
            kept += if forgotten.is_gone { 0 } else { forgotten.count.unwrap_or(1) };
        }
        loop {
            let (binding_key, cursor) = (key.clone(), None);
            let list = ListRequest {
                binding_key,
                scope: scope.clone(),
                cursor,
                limit: Some(PAGE),
                metadata_filter: None,
                filter: None,
            };
            let page = self.operations.list_all(&caller, list).await?;
            let handles: Vec<RecordHandle> =
                page.items.into_iter().map(|item| item.handle).collect();
            if handles.is_empty() && kept == 0 {
                return Ok(count);
            }
            if handles.is_empty() {
                let (records, them) = match kept {
                    1 => ("1 record is".to_owned(), "it"),
                    _ => (format!("{kept} records are"), "them"),
                };
                let message = format!(
                    "{records} hidden, and its provider or a history elsewhere still has {them}"
                );
                return Err(ServiceError::Host(message));
            }
            // A provider that lists forgotten records again must not prevent the erasure.
            let is_new = handles.iter().filter(|handle| seen.insert((*handle).clone())).count();
            if is_new == 0 || started.elapsed() > MOST {
                let records = counted(handles.len(), "record is", "records are");
                let message = format!("{records} still listed after they were forgotten");
                return Err(ServiceError::Host(message));
            }
            count += is_new as u64;
            let request = ForgetRequest { binding_key: key.clone(), scope: scope.clone(), handles };
            let answer = self.operations.forget(&caller, request).await?;
            let is_kept = |effect| matches!(effect, ForgetEffect::Soft | ForgetEffect::HistoryKept);
            kept += answer.outcomes.iter().filter(|outcome| is_kept(outcome.effect)).count() as u64;
        }
    }
}
