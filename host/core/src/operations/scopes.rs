//! Forgetting a scope: all that was written for an agent, a subject, a namespace, a run and so on,
//! at every binding of a company. `sources` does the same by where records came from.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use async_recursion::async_recursion as boxed;
use jiff::{SignedDuration, Timestamp};

mod at_once;
mod step;

use self::at_once::ForgetAtOnce;
use self::step::ForgetScope;
use crate::access::{Act, Guard};
use crate::operations::forgotten::Origin;
use crate::operations::prelude::*;
use crate::operations::rows::reader_of;
use crate::operations::sources::{MOST_ROUNDS, nothing_at};
use memhost_records::{HostPartitions, Reader, Selection};
use memhost_sandbox::OptionalInterface;
use memhost_store::{self as store, LockKind, StoreError, TableWrite};
use memhost_types::{
    Binding, Delivery, ForgetScopeRequest, ForgottenAt, ForgottenScope, OperationErrorCode,
    RecordHandle, RecordRow, Scope,
};

/// The longest time that one request works on a binding. A call that has begun by then is finished.
const MOST_TIME: Duration = Duration::from_secs(300);

/// What is to be forgotten at a binding.
#[derive(Clone)]
struct Wanted {
    scope: Scope,
    /// Who is to forget it: what somebody may not read stays.
    reader: Reader,
    /// When the request came.
    received: Timestamp,
    /// The first operation of the request at the binding: what came later stays.
    by: Option<OperationId>,
    /// What the binding's policies keep stays.
    guard: Guard,
}

impl Wanted {
    /// Whether a record of the scope is to be forgotten from this operation on.
    fn has(&self, row: &RecordRow, by: OperationId) -> bool {
        let by = self.by.unwrap_or(by);
        let is_before = row.operation_id.sequence() < by.sequence();
        is_before && self.reader.may_read(row) && self.guard.may_change(row).is_ok()
    }
}

impl Service {
    /// Forgets what was written in a scope, at the binding that the request names or at every one
    /// of the company: what is there, what waits to be captured, and what comes later of material
    /// that was captured before. What is captured for the scope afterwards is kept. Whoever is
    /// confined to an agent or a person forgets what they may read; everybody else also what is
    /// private to somebody. A binding that fails does not stop the others, and the same request
    /// goes on with what is left.
    ///
    /// # Errors
    /// Where the scope names nothing beside the company or a field is not valid, the caller may not
    /// forget in this scope, or the store fails.
    #[boxed]
    pub async fn forget_scope(
        &self,
        caller: &Caller,
        mut request: ForgetScopeRequest,
    ) -> Result<ForgottenScope, ServiceError> {
        self.admit_scope(caller, &mut request).await?;
        let ForgetScopeRequest { binding_key, scope } = request;
        let company = scope.company_id.clone();
        // One at a time: each reads all rows of the company's bindings, and many at once would keep
        // others from an answer.
        let _turn =
            self.store.lock(LockKind::Records, &store::company_key(&company, b"a scope")).await?;
        let reader = match caller.is_for_everybody() {
            true => Reader::All,
            false => reader_of(caller, &scope),
        };
        let (received, guard) = (self.clock.now(), Guard::default());
        let wanted = Wanted { scope, reader, received, by: None, guard };
        let asked: Vec<Arc<Binding>> = match &binding_key {
            Some(key) => self.bindings.get(&company, key).into_iter().collect(),
            None => self.bindings.list(&company),
        };
        let (mut bindings, mut is_complete) = (Vec::with_capacity(asked.len()), true);
        for binding in &asked {
            let guard = self.policies.guard(caller.principal(), binding);
            let wanted = Wanted { guard, ..wanted.clone() };
            let at = match self.never_served(binding).await? {
                true => self.forget_waiting_scope(caller, &wanted, binding).await?,
                false => self.forget_scope_at(caller, &wanted, binding).await?,
            };
            is_complete &= at.error.is_none();
            bindings.push(at);
        }
        if asked.is_empty() {
            // Whether the caller may do it, and that no binding answers, is said as for every
            // operation.
            let mut step = ForgetScope::new(self, &wanted, binding_key.clone(), HashSet::new());
            self.operate(caller, &mut step).await?;
        }
        let is_meant = |delivery: &Delivery| {
            let visibility = delivery.visibility.unwrap_or_default();
            let is_asked = binding_key.is_none()
                || asked.iter().any(|binding| binding.id == delivery.binding_id);
            is_asked
                && wanted.scope.covers(&delivery.scope)
                && wanted.reader.may_forget_of(visibility, &delivery.scope)
        };
        let discarded = self.discard_of(caller, &company, wanted.received, is_meant).await?;
        Ok(ForgottenScope { bindings, discarded, is_complete })
    }

    async fn admit_scope(
        &self,
        caller: &Caller,
        request: &mut ForgetScopeRequest,
    ) -> Result<(), ServiceError> {
        let kind = OperationKind::Forget;
        // Before what the token fixes is filled in: nobody forgets a scope that they have not
        // named.
        let checked = request.check();
        if let Err(denied) = caller.may_in(Act::Operate(kind), &mut request.scope) {
            return Err(self.deny(caller, kind, Some(&request.scope.company_id), &denied).await);
        }
        self.usable(caller, &request.scope.company_id).await?;
        let ForgetScopeRequest { scope, binding_key } = &*request;
        let is_asked =
            |binding: &&Arc<Binding>| binding_key.as_ref().is_none_or(|key| *key == binding.key);
        for binding in self.bindings.list(&scope.company_id).iter().filter(is_asked) {
            let guard = self.policies.guard(caller.principal(), binding);
            if let Err(denied) = guard.may_clear(scope) {
                return Err(self.deny(caller, kind, Some(&scope.company_id), &denied).await);
            }
        }
        Ok(checked?)
    }

    async fn forget_scope_at(
        &self,
        caller: &Caller,
        wanted: &Wanted,
        binding: &Arc<Binding>,
    ) -> Result<ForgottenAt, ServiceError> {
        let (mut at, key) = (nothing_at(&binding.key), binding.key.clone());
        // What was never granted what it needs cannot be asked, and has nothing.
        if self.serving.get(binding).await.is_err() && self.holds_no_data(binding).await? {
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
                    wanted.by = Some(gone.operation_id);
                    tried = step.hidden();
                }
                // Its record says why. What it has is looked for and forgotten.
                Err(ServiceError::Operation { error, .. })
                    if error.code == OperationErrorCode::Unsupported => {}
                Err(error) => return self.not_forgotten(at, error, binding).await,
            }
        }
        for _ in 0..MOST_ROUNDS {
            let mut step = ForgetScope::new(self, &wanted, Some(key.clone()), tried);
            match self.operate(caller, &mut step).await {
                Ok(gone) => {
                    at.operation_ids.push(gone.operation_id);
                    at.forgotten = at.forgotten.saturating_add(gone.forgotten);
                    at.hidden = at.hidden.saturating_add(gone.hidden);
                    wanted.by.get_or_insert(gone.operation_id);
                }
                Err(error) => return self.not_forgotten(at, error, binding).await,
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
    /// is at fault has the same fault everywhere. Nothing is left where the provider can have
    /// nothing, as where its storage was never granted.
    async fn not_forgotten(
        &self,
        at: ForgottenAt,
        error: ServiceError,
        binding: &Binding,
    ) -> Result<ForgottenAt, ServiceError> {
        match error {
            ServiceError::Operation { error, .. } if error.field.is_none() => {
                let error = (!self.holds_no_data(binding).await?).then_some(error.message);
                Ok(ForgottenAt { error, ..at })
            }
            error => Err(error),
        }
    }

    /// Whether a binding's provider may be asked to forget a scope at once: it can, it tells apart
    /// all that the scope names, and nothing of it is somebody else's.
    async fn forgets_at_once(&self, wanted: &Wanted, binding: &Arc<Binding>) -> bool {
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
    async fn forget_waiting_scope(
        &self,
        caller: &Caller,
        wanted: &Wanted,
        binding: &Binding,
    ) -> Result<ForgottenAt, ServiceError> {
        let mut opened =
            self.begin(caller, OperationKind::Forget, &mut wanted.scope.clone(), true).await?;
        opened.set_binding(binding);
        let by = opened.id();
        let rows = self.remembered_scope(binding, wanted, by).await?;
        let mut ending = opened.write_intent(rows).await?.called();
        let found = self.of_scope(binding, wanted, by).await?;
        let waited = self.forget_waiting(binding, &found).await?;
        self.remove_traces_of(binding, &found, Origin::Scope(&wanted.scope, &wanted.reader, by))
            .await?;
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

    /// All records of a scope at a binding that the host knows and that are to be forgotten.
    async fn of_scope(
        &self,
        binding: &Binding,
        wanted: &Wanted,
        by: OperationId,
    ) -> Result<Vec<RecordHandle>, StoreError> {
        let (what, is_meant) =
            (Selection::Scope(&wanted.scope), |row: &RecordRow| wanted.has(row, by));
        let rows = self.records.select(binding, what, usize::MAX, is_meant).await?;
        Ok(rows.into_iter().map(|row| row.handle).collect())
    }

    /// The rows that remember that a scope is forgotten from this operation on, with what came
    /// before the request.
    async fn remembered_scope(
        &self,
        binding: &Binding,
        wanted: &Wanted,
        by: OperationId,
    ) -> Result<Vec<TableWrite>, StoreError> {
        let Wanted { scope, reader, received, .. } = wanted;
        let before = received.checked_add(SignedDuration::from_nanos(1)).unwrap_or(*received);
        let what = Selection::Scope(scope);
        self.records.forgets(reader, binding, what, by, (before, self.clock.now())).await
    }
}

/// What one operation has forgotten.
struct Gone {
    operation_id: OperationId,
    forgotten: u32,
    hidden: u32,
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
