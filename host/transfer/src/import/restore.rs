//! Restores the records of a company in place, from an export. Every binding that can be restored
//! gets another one in its place, which the providers fill while what was there stays untouched;
//! one transaction at the end puts all of them in place. Settings, tokens, budgets and the log stay
//! as they are, and what was forgotten here stays forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::lines::Importing;
use super::options::{ImportOptions, Restored};
use super::restoring::Restoring;
use super::row::Row;
use crate::Transfer;
use memhost_access::Caller;
use memhost_queues::Reviews;
use memhost_records::{Mark, Owner, Records, Since};
use memhost_registry::NewActivity;
use memhost_store::{self as store, Change, Table};
use memhost_tenancy::ServiceError;
use memhost_types::{
    ActivityAction, Binding, BindingKey, CompanyId, ForgetRequest, OperationFilter, OperationKind,
    RecordHandle, RecordId, RecordRow, ReviewItem, ReviewStatus, Scope, Snippet, SourceRef,
};

/// Records that one operation forgets.
const AT_ONCE: usize = 500;

impl Transfer {
    /// Puts the records of an export of the company in the place of those that its bindings have.
    /// Until then the old ones stay, and where a line is not valid, the host ends or the caller
    /// goes away, nothing has changed. The company cannot be used meanwhile. A binding that cannot
    /// be restored is named and stays as it is.
    ///
    /// # Errors
    /// Where the file is not a whole export of the company, an operation does not end, or the store
    /// fails.
    pub fn restore(
        self: &Arc<Self>,
        caller: &Caller,
        company: &CompanyId,
        accepts_unscoped: bool,
        lines: mpsc::Receiver<Result<String, String>>,
    ) -> impl Future<Output = Result<Restored, ServiceError>> + Send + use<> {
        let options = ImportOptions { accepts_unscoped, ..ImportOptions::default() };
        let (service, caller, company) = (Arc::clone(self), caller.clone(), company.clone());
        let (send, done) = oneshot::channel();
        // A task of its own: a caller that goes away cuts the lines off, and what was staged is
        // removed.
        memhost_executor::spawn(async move {
            let restored = match service.tenancy.begin_import(&company) {
                Some(_guard) => service.restore_alone(&caller, &company, options, lines).await,
                None => Err(ServiceError::Importing { company: company.clone() }),
            };
            service.wake.notify_one();
            drop(send.send(restored));
        });
        async move { done.await.map_err(ServiceError::host)? }
    }

    async fn restore_alone(
        &self,
        caller: &Caller,
        company: &CompanyId,
        options: ImportOptions,
        mut lines: mpsc::Receiver<Result<String, String>>,
    ) -> Result<Restored, ServiceError> {
        if !self.settle(company).await? {
            return Err(ServiceError::Host(format!(
                "operations of {company} that began before the restore have not ended; restore it \
                 again"
            )));
        }
        let mut importing = Importing::new(self, company, options);
        importing.restoring = Some(self.forgotten_here(company).await?);
        let mut result = self.take(&mut importing, company, &mut lines).await;
        if result.is_ok() {
            result = importing.finish_restore().await;
        }
        let records = importing.done.records;
        let Restoring { staged, not_restored, left_out, .. } =
            importing.restoring.take().unwrap_or_default();
        let (given_up, restored): (Vec<_>, Vec<_>) =
            staged.into_iter().partition(|(key, _)| not_restored.contains_key(key));
        let done = Restored {
            bindings: restored.iter().map(|(key, _)| key.clone()).collect(),
            records,
            forgotten: left_out,
            not_restored,
        };
        let restored: Vec<_> = restored.into_iter().map(|(_, both)| both).collect();
        if result.is_ok() {
            let action = ActivityAction::CompanyRestored;
            let entry = NewActivity::new(caller.principal(), action, company.as_str())
                .with(None::<&()>, Some(&done));
            result = self.bindings.replace_all(company, &restored, entry).await.map_err(Into::into);
        }
        let is_done = result.is_ok();
        let gone = restored.iter().map(|(before, staged)| if is_done { before } else { staged });
        let gone: Vec<&Arc<Binding>> =
            gone.chain(given_up.iter().map(|(_, (_, staged))| staged)).collect();
        // Their marks are on disk: what is not removed now is removed at the next start.
        if let Err(error) = self.remove_replaced(company, &gone).await {
            tracing::error!(%error, %company, "what a restore has replaced could not be removed; \
                the next start removes it");
        }
        result?;
        tracing::info!(%company, by = %caller.principal(), records, "a company was restored");
        Ok(done)
    }

    /// What the company's log says of records that were forgotten.
    async fn forgotten_here(&self, company: &CompanyId) -> Result<Restoring, ServiceError> {
        let mut known = Restoring::default();
        let kind = Some(OperationKind::Forget);
        let filter = OperationFilter { kind, ..OperationFilter::default() };
        let mut before = None;
        loop {
            let page = self.store.operations(company, &filter, before, AT_ONCE).await?;
            for operation in page.operations {
                let at = operation.finished_at.unwrap_or(operation.started_at);
                let Some(key) = operation.binding_key else { continue };
                for handle in operation.records {
                    let record = (key.clone(), handle.provider_record_id);
                    // The newest operation comes first.
                    known.forgotten.entry(record).or_insert(at);
                }
            }
            before = page.next_before;
            if before.is_none() {
                break;
            }
        }
        if let Some((first, _)) = self.store.operation_range(company).await?.filter(|(n, _)| *n > 1)
        {
            let all = OperationFilter::default();
            let page = self.store.operations(company, &all, Some(first + 1), 1).await?;
            known.log_from = page.operations.first().map(|operation| operation.started_at);
        }
        Ok(known)
    }

    /// Removes what is stored of bindings whose place others have, or that never got one.
    async fn remove_replaced(
        &self,
        company: &CompanyId,
        gone: &[&Arc<Binding>],
    ) -> Result<(), ServiceError> {
        self.bindings.reload(company).await?;
        for binding in gone {
            let _lock = self.serving.lock(binding.id).await?;
            self.serving.close(binding.id).await;
            self.reviews.forget(binding.id);
            self.operations.forget_binding(binding.id);
            self.records.forget_binding(binding.id);
        }
        self.tenancy.note_forgetting().await?;
        self.finish_deletions(company).await?;
        self.records.reload(company, self.clock.now()).await?;
        Ok(self.tenancy.note_forgetting().await?)
    }

    /// Why the records of a binding cannot be put in the place of those that it has.
    fn cannot_restore(&self, wanted: &Binding, present: Option<&Binding>) -> Option<String> {
        let Some(present) = present else {
            return Some("it was deleted here; create it, and restore again".to_owned());
        };
        if present.provider_key != wanted.provider_key {
            return Some(format!(
                "its provider is `{}` here, and `{}` in the file",
                present.provider_key, wanted.provider_key
            ));
        }
        if present.requested.is_some() {
            return Some(format!(
                "its grants wait for a decision; `memhost binding grant {}` decides",
                present.key
            ));
        }
        let grants = present.grants.http.iter().chain(&wanted.grants.http);
        let origins: BTreeSet<String> = grants.map(|grant| grant.origin.to_string()).collect();
        (!origins.is_empty()).then(|| {
            format!(
                "its provider may keep records at {}, and the host replaces nothing there",
                origins.into_iter().collect::<Vec<_>>().join(", ")
            )
        })
    }
}

impl Importing<'_> {
    /// Takes a row that belongs to records.
    pub(super) async fn restore_row(&mut self, row: Row) -> Result<(), ServiceError> {
        match row {
            Row::Binding(wanted) => self.restore_binding(*wanted).await,
            Row::Record(mut row) => {
                let Some(staged) = self.bindings.get(&row.binding_id).cloned() else {
                    return Ok(());
                };
                if row.handle.provider_key != staged.provider_key {
                    return Err(self.wrong("is of a binding of another provider"));
                }
                if self.is_forgotten(&staged, &row).await? {
                    return Ok(());
                }
                let mark = self.keep_present(&staged, &mut row).await?;
                row.binding_id = staged.id;
                let encoded = store::encode("record row", &*row)?;
                let mut changes =
                    vec![Change::insert(Table::Records, Records::key_of(&row), encoded)];
                changes.extend(mark.map(|mark| mark.write()).transpose()?.map(Change::from));
                changes.extend(Records::index_of(&row).into_iter().map(Change::from));
                self.write(&changes).await
            }
            Row::Private(mut mark) => {
                let Some(staged) = self.bindings.get(&mark.binding_id) else { return Ok(()) };
                mark.binding_id = staged.id;
                let change = Change::from(mark.write()?);
                self.write(&[change]).await
            }
            Row::Review(item) => self.restore_review(*item).await,
            _ => Ok(()),
        }
    }

    /// Lets the row of a file be as private, and expire as early, as the record does here now.
    /// Answers the mark that its owner has private records.
    async fn keep_present(
        &self,
        staged: &Binding,
        row: &mut RecordRow,
    ) -> Result<Option<Mark>, ServiceError> {
        let restoring = self.restoring.as_ref();
        let Some((present, _)) = restoring.and_then(|known| known.staged.get(&staged.key)) else {
            return Ok(None);
        };
        let record = &row.handle.provider_record_id;
        let Some(here) = self.service.records.row(present, record).await? else { return Ok(None) };
        row.expires_at = row.expires_at.into_iter().chain(here.expires_at).min();
        let Some(owner) = Owner::of_row(&here) else { return Ok(None) };
        (row.visibility, row.scope) = (here.visibility, here.scope);
        Ok(Some(Mark::owns(self.company, staged.id, owner)))
    }

    /// What waited for a person when the file was made waits again, unless somebody has decided
    /// about it here as it is in the file. What was decided before is decided.
    async fn restore_review(&mut self, mut item: ReviewItem) -> Result<(), ServiceError> {
        let Some(staged) = self.bindings.get(&item.binding_id).cloned() else { return Ok(()) };
        if item.subject.record().is_none() {
            return Ok(());
        }
        let (company, service) = (self.company, self.service);
        match service.reviews.get(company, item.id).await {
            Ok(now) if now.status != ReviewStatus::Pending && now.digest == item.digest => {
                item = now;
            }
            _ => {}
        }
        // The item that is here stays as it is if the restore fails. The other id has the same
        // place in the order: of several items of a record, the latest counts.
        item.id = item.id.beside(service.clock.random());
        (item.binding_id, item.binding_key) = (staged.id, staged.key);
        self.write(&[Change::from(Reviews::row(&item)?)]).await?;
        service.reviews.apply_older(&item);
        Ok(())
    }

    async fn restore_binding(&mut self, wanted: Binding) -> Result<(), ServiceError> {
        let Some(restoring) = &self.restoring else { return Ok(()) };
        if self.bindings.contains_key(&wanted.id)
            || restoring.staged.contains_key(&wanted.key)
            || restoring.not_restored.contains_key(&wanted.key)
        {
            return Err(self.wrong("is a binding that is there twice"));
        }
        let service = self.service;
        let present = service.bindings.get(self.company, &wanted.key).ok();
        let reason = service.cannot_restore(&wanted, present.as_deref());
        let Some(present) = present.filter(|_| reason.is_none()) else {
            if let Some(restoring) = &mut self.restoring {
                restoring.not_restored.insert(wanted.key, reason.unwrap_or_default());
            }
            return Ok(());
        };
        let staged = service.bindings.stage(&present).await?;
        self.bindings.insert(wanted.id, (*staged).clone());
        let marks = service.records.forgotten_at_another(&present, &staged).await?;
        if let Some(restoring) = &mut self.restoring {
            restoring.staged.insert(wanted.key, (present, staged));
        }
        match marks.is_empty() {
            true => Ok(()),
            false => self.write(&marks).await,
        }
    }

    /// Whether a record of the file was forgotten here since it was written.
    async fn is_forgotten(
        &mut self,
        staged: &Binding,
        row: &RecordRow,
    ) -> Result<bool, ServiceError> {
        let Some(restoring) = &self.restoring else { return Ok(false) };
        let Some((present, _)) = restoring.staged.get(&staged.key) else { return Ok(false) };
        let record = (staged.key.clone(), row.handle.provider_record_id.clone());
        let by_handle = restoring.forgotten.get(&record).is_some_and(|at| row.created_at < *at);
        // The log may have lost what was forgotten before it begins; then the row is gone.
        let is_before = restoring.log_from.is_some_and(|from| row.created_at < from);
        let records = &self.service.records;
        let is_gone = by_handle
            || is_before && records.row(present, &row.handle.provider_record_id).await?.is_none()
            || self
                .was_forgotten(
                    staged,
                    (&row.scope, row.source.as_ref(), &row.handle),
                    Owner::of_row(row).as_ref(),
                    row.happened_at.unwrap_or(row.created_at),
                )
                .await?;
        if let Some(restoring) = &mut self.restoring {
            match is_gone {
                true => {
                    restoring.left_out += 1;
                    restoring.forgotten.insert(record, Timestamp::MAX);
                }
                // It was written again later.
                false => drop(restoring.forgotten.remove(&record)),
            }
        }
        Ok(is_gone)
    }

    /// Whether the source or the scope of a record was forgotten.
    async fn was_forgotten(
        &self,
        binding: &Binding,
        (scope, source, handle): (&Scope, Option<&SourceRef>, &RecordHandle),
        owner: Option<&Owner>,
        at: Timestamp,
    ) -> Result<bool, ServiceError> {
        let arrived = vec![(handle.clone(), source.cloned())];
        let since = Since::Happened(at);
        let records = &self.service.records;
        Ok(!records.forgotten_of(binding, scope, owner, since, arrived).await?.is_empty())
    }

    /// Whether a record of the file is left out, because it was forgotten.
    pub(super) async fn leaves_out(
        &mut self,
        binding: &Binding,
        snippet: &Snippet,
    ) -> Result<bool, ServiceError> {
        let id = &snippet.handle.provider_record_id;
        let Some(restoring) = &self.restoring else { return Ok(false) };
        if restoring.forgotten.contains_key(&(binding.key.clone(), id.clone())) {
            return Ok(true);
        }
        if self.service.records.row(binding, id).await?.is_some() {
            return Ok(false);
        }
        let scope = snippet.scope.clone();
        let scope = scope.unwrap_or_else(|| Scope::company(self.company.clone()));
        let what = (&scope, snippet.source.as_ref(), &snippet.handle);
        let at = snippet.created_at.unwrap_or(Timestamp::MIN);
        self.was_forgotten(binding, what, None, at).await
    }

    /// What a provider has answered. Where records are restored, a failure concerns its binding
    /// only, which stays as it is.
    pub(super) fn answered<T>(
        &mut self,
        key: &BindingKey,
        answer: Result<T, ServiceError>,
    ) -> Result<Option<T>, ServiceError> {
        match (answer, &mut self.restoring) {
            (Ok(answer), _) => Ok(Some(answer)),
            (Err(error @ ServiceError::Operation { .. }), Some(restoring)) => {
                restoring.not_restored.insert(key.clone(), error.to_string());
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }

    /// What needs every line: the records of providers' own lines that were forgotten here.
    async fn finish_restore(&mut self) -> Result<(), ServiceError> {
        self.has_ended()?;
        self.service.store.commit().await?;
        let Some(restoring) = &mut self.restoring else { return Ok(()) };
        for present in self.service.bindings.list(self.company) {
            if !restoring.staged.contains_key(&present.key) && !restoring.leaves(&present.key) {
                let reason = self.service.cannot_restore(&present, Some(&present));
                let reason = reason.unwrap_or_else(|| "the file has no such binding".to_owned());
                restoring.not_restored.insert(present.key.clone(), reason);
            }
        }
        let mut gone: BTreeMap<BindingKey, Vec<RecordId>> = BTreeMap::new();
        for (key, record) in restoring.forgotten.keys() {
            if restoring.with_lines.contains(key) && !restoring.leaves(key) {
                gone.entry(key.clone()).or_default().push(record.clone());
            }
        }
        for (key, records) in gone {
            let Some(binding) = self.bindings.values().find(|own| own.key == key) else { continue };
            let provider_key = binding.provider_key.clone();
            for records in records.chunks(AT_ONCE) {
                let handle = |id: &RecordId| RecordHandle {
                    provider_key: provider_key.clone(),
                    provider_record_id: id.clone(),
                };
                let request = ForgetRequest {
                    binding_key: Some(key.clone()),
                    scope: Scope::company(self.company.clone()),
                    handles: records.iter().map(handle).collect(),
                };
                let forgotten = self.service.operations.forget(&Caller::system(), request).await;
                if self.answered(&key, forgotten)?.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }
}
