//! Forgetting at each binding of a company, in as many operations as it takes.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use jiff::SignedDuration;

use super::at_once::ForgetAtOnce;
use super::step::ForgetWanted;
use super::wanted::{Wanted, What, number};
use crate::prelude::*;
use memhost_access::Guard;
use memhost_records::{HostPartitions, Reader};
use memhost_sandbox::OptionalInterface;
use memhost_store::{StoreError, TableWrite};
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingKey, ForgottenAt, OperationErrorCode, RecordHandle, RecordRow, Scope,
};

/// The most operations of one call at a binding; each forgets at most 1,000 records.
const MOST_ROUNDS: usize = 100;
/// The longest time that one request works on a binding. A call that has begun by then is finished.
const MOST_TIME: Duration = Duration::from_secs(300);

impl Operations {
    /// Forgets at these bindings. One that fails does not stop the others. Answers what was
    /// forgotten at each, and whether it is all. `named`: the binding that refuses, where there is
    /// none.
    pub(super) async fn forget_wanted(
        &self,
        caller: &Caller,
        wanted: &Wanted,
        asked: &[Arc<Binding>],
        named: Option<BindingKey>,
    ) -> Result<(Vec<ForgottenAt>, bool), ServiceError> {
        let (mut bindings, mut is_complete) = (Vec::with_capacity(asked.len()), true);
        for binding in asked {
            let guard = match wanted.what {
                // A policy of a system in front is not asked about a source.
                What::Sources(_) => Guard::protection(caller.principal(), binding),
                What::Scope => self.policies.guard(caller.principal(), binding),
            };
            let wanted = Wanted { guard, ..wanted.clone() };
            let mut at = match self.never_served(binding).await? {
                true => self.forget_waiting_at(caller, &wanted, binding).await?,
                false => self.forget_at(caller, &wanted, binding).await?,
            };
            at.protected = self.protected_at(&wanted, binding).await?;
            if let Some(leaver) = wanted.leaver() {
                self.records.disown(binding, leaver).await?;
            }
            is_complete &= at.error.is_none();
            bindings.push(at);
        }
        if asked.is_empty() {
            // Whether the caller may do it, and that no binding answers, is said as for every
            // operation.
            let mut step = ForgetWanted::new(self, wanted, named, HashSet::new());
            self.operate(caller, &mut step).await?;
        }
        Ok((bindings, is_complete))
    }

    /// How many of the records the binding keeps from whoever asked, of those they may read.
    async fn protected_at(&self, wanted: &Wanted, binding: &Binding) -> Result<u32, StoreError> {
        if !wanted.guard.is_protecting() {
            return Ok(0);
        }
        let is_left = |row: &RecordRow| wanted.reader.may_read(row) && wanted.guard.protects(row);
        let left = self.records.select(binding, wanted.selection(), usize::MAX, is_left).await?;
        Ok(number(left.len()))
    }

    pub(super) async fn forget_at(
        &self,
        caller: &Caller,
        wanted: &Wanted,
        binding: &Arc<Binding>,
    ) -> Result<ForgottenAt, ServiceError> {
        let (mut at, key) = (nothing_at(&binding.key), binding.key.clone());
        // What was never granted what it needs cannot be asked, and has nothing of a scope. A
        // source is asked for there, too: only an operation checks the request and is in the log.
        let of_scope = matches!(wanted.what, What::Scope);
        if of_scope
            && self.serving.get(binding).await.is_err()
            && self.holds_no_data(binding).await?
        {
            return Ok(at);
        }
        let (mut wanted, mut tried, began) = (wanted.clone(), HashSet::new(), Instant::now());
        if self.forgets_at_once(&wanted, binding).await {
            let mut step = ForgetAtOnce::new(&wanted, key.clone());
            match self.operate(caller, &mut step).await {
                Ok(gone) => {
                    at.operation_ids.push(gone.operation_id);
                    at.forgotten += gone.forgotten;
                    at.hidden += gone.hidden;
                    wanted.goes_on_from(gone.operation_id);
                    tried = step.hidden();
                }
                // Its record says why. What it has is looked for and forgotten.
                Err(ServiceError::Operation { error, .. })
                    if error.code == OperationErrorCode::Unsupported => {}
                Err(error) => return self.not_forgotten(&wanted.what, at, error, binding).await,
            }
        }
        for _ in 0..MOST_ROUNDS {
            let mut step = ForgetWanted::new(self, &wanted, Some(key.clone()), tried);
            match self.operate(caller, &mut step).await {
                Ok(gone) => {
                    at.operation_ids.push(gone.operation_id);
                    at.forgotten = at.forgotten.saturating_add(gone.forgotten);
                    at.hidden = at.hidden.saturating_add(gone.hidden);
                    wanted.goes_on_from(gone.operation_id);
                }
                Err(error) => return self.not_forgotten(&wanted.what, at, error, binding).await,
            }
            if step.is_last() {
                return Ok(at);
            }
            if began.elapsed() > MOST_TIME {
                break;
            }
            tried = step.tried;
        }
        at.error = Some("there is more than one request forgets; send it again".to_owned());
        Ok(at)
    }

    /// Why a binding could not forget. One that fails does not stop the others, and a request that
    /// is at fault has the same fault everywhere. Nothing of a scope is left where the provider can
    /// have nothing, as where its storage was never granted.
    pub(super) async fn not_forgotten(
        &self,
        what: &What,
        at: ForgottenAt,
        error: ServiceError,
        binding: &Binding,
    ) -> Result<ForgottenAt, ServiceError> {
        match error {
            ServiceError::Operation { error, .. } if error.field.is_none() => {
                let is_nothing = matches!(what, What::Scope) && self.holds_no_data(binding).await?;
                let error = (!is_nothing).then_some(error.message);
                Ok(ForgottenAt { error, ..at })
            }
            error => Err(error),
        }
    }

    /// Whether a binding's provider may be asked to forget a scope at once: it can, it tells apart
    /// all that the scope names, and nothing of it is somebody else's.
    pub(super) async fn forgets_at_once(&self, wanted: &Wanted, binding: &Arc<Binding>) -> bool {
        if matches!(wanted.what, What::Sources(_)) {
            return false;
        }
        let Scope { project_id, issue_id, run_id, session_key, agent_id, .. } = &wanted.scope;
        let has_context =
            [project_id, issue_id, run_id, session_key].into_iter().any(Option::is_some);
        // The records of an agent's own partition are the agent's. Those of a subject may be
        // private to any agent.
        let is_theirs = wanted.reader == Reader::All || agent_id.is_some();
        if has_context || !is_theirs || !wanted.guard.may_change_all() {
            return false;
        }
        let Ok(serving) = self.serving.get(binding).await else { return false };
        let component = &serving.plugin.component;
        component.exports(OptionalInterface::Erasure)
            && HostPartitions::of(&component.description().declarations, &wanted.scope).is_empty()
    }

    /// The same at a binding that came with an import and waits for a decision as a whole: its
    /// provider has nothing, and is not asked.
    pub(super) async fn forget_waiting_at(
        &self,
        caller: &Caller,
        wanted: &Wanted,
        binding: &Binding,
    ) -> Result<ForgottenAt, ServiceError> {
        let mut opened =
            self.begin(caller, OperationKind::Forget, &mut wanted.scope.clone(), true).await?;
        opened.set_binding(binding);
        if let Err(error) = wanted.check() {
            return Err(opened.refuse(error.into()).await.into());
        }
        let by = opened.id();
        let rows = self.remembered(binding, wanted, by).await?;
        let mut ending = opened.write_intent(rows).await?.called();
        let is_meant = |row: &RecordRow| wanted.has(row, by);
        let found = self.records.select(binding, wanted.selection(), usize::MAX, is_meant).await?;
        let found: Vec<RecordHandle> = found.into_iter().map(|row| row.handle).collect();
        let waited = self.forget_waiting(binding, &found).await?;
        self.remove_traces_of(binding, &found, wanted.origin(by)).await?;
        let gone: Vec<_> = found
            .iter()
            .filter(|handle| waited.contains(&handle.provider_record_id))
            .cloned()
            .collect();
        let mut at = ForgottenAt { forgotten: number(gone.len()), ..nothing_at(&binding.key) };
        at.operation_ids.push(by);
        if gone.len() < found.len() {
            at.error = Some(
                "its records were given to its provider meanwhile; send the request again"
                    .to_owned(),
            );
        }
        let removed = gone.iter().map(|handle| &handle.provider_record_id);
        ending.change_rows(self.records.remove(binding, removed).await?);
        ending.set_records(gone, waited.len());
        Ok(ending.complete(Ended::Succeeded(at), Vec::new()).await.into_result()?)
    }

    /// The rows that remember what is forgotten from this operation on, with what came before the
    /// request.
    pub(super) async fn remembered(
        &self,
        binding: &Binding,
        wanted: &Wanted,
        by: OperationId,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let (Wanted { reader, received, .. }, now) = (wanted, self.clock.now());
        // What came of a source until this operation is meant; of a scope, until the request.
        let last = if matches!(wanted.what, What::Scope) { *received } else { now };
        let before = last.checked_add(SignedDuration::from_nanos(1)).unwrap_or(last);
        let times = (before, now);
        self.records.forgets(reader, binding, wanted.selection(), by, times).await
    }
}

fn nothing_at(key: &BindingKey) -> ForgottenAt {
    ForgottenAt {
        binding_key: key.clone(),
        operation_ids: Vec::new(),
        forgotten: 0,
        hidden: 0,
        protected: 0,
        error: None,
    }
}
