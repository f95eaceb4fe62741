//! Forgetting and listing by source, in all bindings of a company, and forgetting what arrives of a
//! source or a scope that was forgotten before.

use std::collections::HashSet;

use super::wanted::{Wanted, What};
use crate::prelude::*;
use async_recursion::async_recursion as boxed;
use memhost_access::{Act, Denied, Guard};
use memhost_records::{Owner, Selection, Since};
use memhost_store::{self as store, Lease, LockKind, StoreError};
use memhost_tenancy::{forgetter_of, reader_of};
use memhost_types::{
    Binding, CompanyId, Delivery, FieldError, ForgetRequest, ForgottenSources, MAX_SOURCE_RECORDS,
    OperationErrorCode, Principal, RecordHandle, RecordId, RecordRow, Scope, SourceRecord,
    SourceRecords, SourceRef, SourceSelector, SourcesRequest, limits,
};

impl Operations {
    /// Forgets what came from sources, at every binding of the company, whoever may read it: what
    /// is there, what waits to be captured, and what comes later of material that was captured
    /// before. What is captured from them afterwards is kept. A binding that fails does not stop
    /// the others.
    ///
    /// # Errors
    /// Where a field is not valid, the caller may not forget or is confined to an agent or a
    /// person, or the store fails.
    #[boxed]
    pub async fn forget_sources(
        &self,
        caller: &Caller,
        mut request: SourcesRequest,
    ) -> Result<ForgottenSources, ServiceError> {
        let company = request.scope.company_id.clone();
        self.admit_sources(caller, OperationKind::Forget, &mut request).await?;
        let SourcesRequest { scope, sources } = request;
        let reader = forgetter_of(true, caller, &scope);
        let wanted = Wanted {
            what: What::Sources(sources),
            scope,
            reader,
            received: self.clock.now(),
            by: None,
            guard: Guard::default(),
        };
        let all = self.bindings.list(&company);
        let active = self.bindings.resolve(&company, None, None).ok();
        let active = active.map(|found| found.binding.key.clone());
        let (bindings, is_complete) = self.forget_wanted(caller, &wanted, &all, active).await?;
        let is_meant = |delivery: &Delivery| wanted.has_delivery(delivery);
        let discarded = self.discard_of(caller, &company, wanted.received, is_meant).await?;
        Ok(ForgottenSources { bindings, discarded, is_complete })
    }

    async fn admit_sources(
        &self,
        caller: &Caller,
        kind: OperationKind,
        request: &mut SourcesRequest,
    ) -> Result<(), ServiceError> {
        // Before the token's own run is filled in.
        let narrow = names_no_more_than_whose(&request.scope);
        let may = caller.may_in(Act::Operate(kind), &mut request.scope);
        if let Err(denied) = may.and_then(|()| is_for_all(caller, kind)) {
            return Err(self
                .tenancy
                .deny(caller, kind, Some(&request.scope.company_id), &denied)
                .await);
        }
        self.tenancy.usable(caller, &request.scope.company_id).await?;
        request.check()?;
        Ok(narrow?)
    }

    /// What is known of the records that came from sources, in all bindings, of those that the
    /// caller may read.
    ///
    /// # Errors
    /// Where a field is not valid, the caller may not list records, a binding is over its rate, or
    /// the store fails.
    #[boxed]
    pub async fn list_sources(
        &self,
        caller: &Caller,
        mut request: SourcesRequest,
    ) -> Result<SourceRecords, ServiceError> {
        self.admit_sources(caller, OperationKind::List, &mut request).await?;
        let opened = self.begin(caller, OperationKind::List, &mut request.scope, true).await?;
        let listed = match self.take_rates(&request.scope.company_id) {
            Ok(()) => self.listed_sources(caller, &request).await.map_err(Refusal::from),
            Err(refusal) => Err(refusal),
        };
        let found = match listed {
            Ok(found) => found,
            Err(refusal) => return Err(opened.refuse(refusal).await.into()),
        };
        let mut ending = opened.without_a_call();
        ending.set_records(
            found.records.iter().map(|record| record.handle.clone()).collect(),
            found.records.len(),
        );
        Ok(ending.complete(Ended::Succeeded(found), Vec::new()).await.into_result()?)
    }

    /// Takes what reads all bindings from the rate of each that has a limit and serves.
    fn take_rates(&self, company: &CompanyId) -> Result<(), Refusal> {
        for binding in self.bindings.list(company) {
            let serving =
                self.serving.warm(binding.id).filter(|_| binding.limits.calls_per_second > 0);
            if let Some(Err(wait)) = serving.map(|serving| serving.rate.take()) {
                let per_second = binding.limits.calls_per_second;
                let message = format!(
                    "the binding `{}` is over its limit `callsPerSecond` of {per_second}",
                    binding.key
                );
                self.oplog.metrics.limit_hit("callsPerSecond");
                return Err(
                    Refusal::new(OperationErrorCode::RateLimited, message).retry_after(wait)
                );
            }
        }
        Ok(())
    }

    async fn listed_sources(
        &self,
        caller: &Caller,
        request: &SourcesRequest,
    ) -> Result<SourceRecords, StoreError> {
        let company = &request.scope.company_id;
        let reader = reader_of(caller, &request.scope);
        let waits =
            |row: &RecordRow| self.reviews.waits(row.binding_id, &row.handle.provider_record_id);
        let user = request.scope.subject_id.as_ref();
        let is_theirs = |row: &RecordRow| match (user, &row.scope.subject_id) {
            (Some(user), Some(of)) => user == of,
            _ => true,
        };
        let mut records = Vec::new();
        for binding in self.bindings.list(company) {
            // As with every other read: what was written for a user is told to no other, and no
            // agent names one.
            let guard = self.policies.guard(caller.principal(), &binding);
            let may_list = |row: &RecordRow| {
                let may = reader.may_read(row) && is_theirs(row) && !waits(row);
                may && guard.check(&row.scope).is_ok()
            };
            let most = MAX_SOURCE_RECORDS + 1 - records.len();
            let what = Selection::Sources(&request.sources);
            let rows = self.records.select(&binding, what, most, may_list).await?;
            records.extend(rows.into_iter().filter_map(|row| {
                Some(SourceRecord {
                    binding_key: binding.key.clone(),
                    handle: row.handle,
                    source: row.source?,
                    scope: row.scope,
                    operation_id: row.operation_id,
                    created_at: row.created_at,
                    visibility: row.visibility,
                })
            }));
            if records.len() > MAX_SOURCE_RECORDS {
                break;
            }
        }
        let more = records.len() > MAX_SOURCE_RECORDS;
        records.truncate(MAX_SOURCE_RECORDS);
        Ok(SourceRecords { records, more })
    }

    /// Hold this while something replaces what came from a source before, so that of two revisions
    /// one waits.
    ///
    /// # Errors
    /// Where the store fails.
    #[boxed]
    pub async fn lock_source(&self, source: &SourceRef) -> Result<Lease, StoreError> {
        let selector = SourceSelector::of(source).unwrap_or_default();
        let name = memhost_executor::to_json(&selector).unwrap_or_default();
        self.store.lock(LockKind::Records, &store::company_key(&source.company_id, &name)).await
    }

    /// Forgets what an operation has just written for a scope, where that or its source was
    /// forgotten meanwhile. Answers which.
    pub(crate) async fn forget_arrived(
        &self,
        binding: &Binding,
        scope: &Scope,
        arrived: Vec<(RecordHandle, Option<SourceRef>)>,
        owner: Option<&Owner>,
        since: Since,
    ) -> Result<HashSet<RecordId>, Refusal> {
        let gone = self.records.forgotten_of(binding, scope, owner, since, arrived).await?;
        self.forget_for_host(binding, gone.clone(), None).await?;
        Ok(gone.into_iter().map(|handle| handle.provider_record_id).collect())
    }

    /// Forgets records at a binding for the host itself; a record of the operation says so, or for
    /// whom and of which source.
    pub(crate) async fn forget_for_host(
        &self,
        binding: &Binding,
        gone: Vec<RecordHandle>,
        of: Option<(&Principal, &SourceRef)>,
    ) -> Result<(), Refusal> {
        for handles in gone.chunks(limits::MAX_ITEMS) {
            let request = ForgetRequest {
                binding_key: Some(binding.key.clone()),
                scope: Scope::company(binding.company_id.clone()),
                handles: handles.to_vec(),
            };
            let forgotten = self.forget_of(&Caller::system(), request, of).await;
            forgotten.map_err(|error| {
                let message =
                    format!("what was forgotten meanwhile could not be forgotten here: {error}");
                Refusal::new(OperationErrorCode::Host, message)
            })?;
        }
        Ok(())
    }
}

/// A source is forgotten for everybody, so whoever is confined to an agent or a person may not do
/// it.
fn is_for_all(caller: &Caller, kind: OperationKind) -> Result<(), Denied> {
    if kind != OperationKind::Forget || caller.agent().is_none() && caller.person().is_none() {
        return Ok(());
    }
    let whom = if caller.agent().is_some() { "agent" } else { "person" };
    Err(Denied::whole(format!(
        "this token acts for one {whom}, and a source is forgotten for the whole company; forget \
         its records by handle, \
         or send this with the token of an operator or of a company's administrator"
    )))
}

/// Sources are compared with those of records, whatever these were written for: a narrower scope
/// would promise more.
fn names_no_more_than_whose(scope: &Scope) -> Result<(), FieldError> {
    let Scope { project_id, run_id, issue_id, namespace, session_key, .. } = scope;
    let set = [
        ("scope.projectId", project_id),
        ("scope.runId", run_id),
        ("scope.issueId", issue_id),
        ("scope.namespace", namespace),
        ("scope.sessionKey", session_key),
    ];
    match set.into_iter().find(|(_, value)| value.is_some()) {
        Some((field, _)) => Err(FieldError::new(
            field,
            "is set, and sources are not narrowed by it; leave it out, and name the source",
        )),
        None => Ok(()),
    }
}
