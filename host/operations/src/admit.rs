//! Admission: who asks, which binding answers, and whether it may answer now.

use std::sync::Arc;

use crate::Operations;
use async_recursion::async_recursion as boxed;
use memhost_access::{Act, Caller};
use memhost_oplog::billing::MayCost;
use memhost_oplog::operation::Opened;
use memhost_registry::versions::{RateState, Serving};
use memhost_store::{DiskLevel, StoreError};
use memhost_tenancy::ServiceError;
use memhost_types::{
    AgentId, AttributionMode, BindingKey, CompanyId, OperationErrorCode, OperationKind, Refusal,
    Scope,
};

/// Whether a call may cost something. A used-up budget stops only such calls: what a company has
/// can always be read, exported and forgotten.
fn may_cost(kind: OperationKind, serving: &Serving) -> MayCost {
    let is_free = matches!(
        kind,
        OperationKind::Forget
            | OperationKind::List
            | OperationKind::Get
            | OperationKind::Export
            | OperationKind::Review
            | OperationKind::Health
            | OperationKind::Control
    );
    let is_billed = serving
        .binding
        .policy
        .attribution
        .is_none_or(|mode| mode == AttributionMode::BilledDirectly);
    match is_free || !is_billed {
        true => MayCost::Nothing,
        false if serving.grants.http.is_empty() => MayCost::IfItDidBefore,
        false => MayCost::Something,
    }
}

impl Operations {
    /// Begins an operation of a caller. A caller that may not do it gets a refusal, in its own
    /// company's log. If the scope is invalid, the operation has only its company and agent.
    pub(crate) async fn begin(
        &self,
        caller: &Caller,
        kind: OperationKind,
        scope: &mut Scope,
        is_checked: bool,
    ) -> Result<Opened, ServiceError> {
        match caller.may_in(Act::Operate(kind), scope) {
            // Imported operations keep their sequence numbers, so none may be allocated until the
            // import has ended.
            Ok(())
                if self.tenancy.is_importing(&scope.company_id) && *caller != Caller::system() =>
            {
                Err(ServiceError::Importing { company: scope.company_id.clone() })
            }
            Ok(()) => {
                self.check_disk(caller, kind)?;
                let room = self.tenancy.check_quota(caller, kind, &scope.company_id)?;
                let mut opened = match is_checked {
                    true => Opened::begin(&self.oplog, caller, kind, scope).await?,
                    false => {
                        Opened::begin(&self.oplog, caller, kind, &scope.only_checked()).await?
                    }
                };
                // An import that has begun since then has looked for operations before this one had
                // a number.
                if self.tenancy.is_importing(&scope.company_id) && *caller != Caller::system() {
                    opened.withdraw();
                    return Err(ServiceError::Importing { company: scope.company_id.clone() });
                }
                opened.set_room(room);
                Ok(opened)
            }
            Err(denied) => {
                Err(self.tenancy.deny(caller, kind, Some(&scope.company_id), &denied).await)
            }
        }
    }

    /// Refuses what the disk has no room for. There is no record of it: the record would take the
    /// room of a deletion's.
    fn check_disk(&self, caller: &Caller, kind: OperationKind) -> Result<(), StoreError> {
        let disk = self.store.disk();
        let has_room = match disk.level {
            DiskLevel::Plenty => true,
            DiskLevel::Low => !kind.is_write(),
            DiskLevel::Spent => false,
        };
        if has_room || kind == OperationKind::Forget || *caller == Caller::system() {
            return Ok(());
        }
        Err(StoreError::DiskFull {
            free: disk.free_bytes.unwrap_or(0),
            reserve: disk.reserve_bytes,
        })
    }

    /// The rate limit of the binding that answers. `None` if it has no limit, or has not served
    /// yet.
    pub fn rate(
        &self,
        company: &CompanyId,
        agent: Option<&AgentId>,
        named: Option<&BindingKey>,
    ) -> Option<RateState> {
        let binding = self.bindings.resolve(company, agent, named).ok()?.binding;
        // What is warm may have an earlier revision's limit.
        if binding.limits.calls_per_second == 0 {
            return None;
        }
        self.serving.warm(binding.id)?.rate.state()
    }

    /// Finds the binding that answers, and whether it may.
    pub(crate) async fn admit(
        &self,
        opened: &mut Opened,
        scope: &Scope,
        named: Option<&BindingKey>,
    ) -> Result<Arc<Serving>, Refusal> {
        // No policy stops the host's own exports and erasures.
        let is_system = opened.is_systems();
        if !is_system && let Some(erased) = self.tenancy.erased(&scope.company_id) {
            return Err(Refusal::new(OperationErrorCode::CompanyErased, erased.to_string()));
        }
        let agent = scope.agent_id.as_ref();
        let binding = match self.bindings.resolve(&scope.company_id, agent, named) {
            Ok(resolution) => resolution.binding,
            Err(error) => {
                Box::pin(self.answering_default(opened.operation(), named, error)).await?
            }
        };
        opened.set_binding(&binding);
        if !is_system {
            let guard = self.policies.guard(&opened.operation().principal, &binding);
            guard.check(scope).map_err(|denied| Refusal::from(&denied))?;
        }
        if !binding.enabled && !is_system {
            let update = format!("memhost binding update {} --enabled true", binding.key);
            let message = format!(
                "the binding `{}` is disabled; type `{update}`, or name another one",
                binding.key
            );
            return Err(Refusal::new(OperationErrorCode::BindingDisabled, message));
        }
        let serving = self.serving.get(&binding).await?;
        opened.set_version(serving.version.clone());
        if is_system {
            return Ok(serving);
        }
        if let Err(wait) = serving.rate.take() {
            let per_second = binding.limits.calls_per_second;
            let message = format!(
                "the binding `{}` is over its limit `callsPerSecond` of {per_second}",
                binding.key
            );
            self.oplog.metrics.limit_hit("callsPerSecond");
            return Err(Refusal::new(OperationErrorCode::RateLimited, message).retry_after(wait));
        }
        if let Some(refusal) = self.over_budget(opened.operation().kind, &serving).await? {
            self.oplog.metrics.limit_hit("budget");
            return Err(refusal);
        }
        Ok(serving)
    }

    /// The refusal of a call for which a budget has nothing left.
    ///
    /// # Errors
    /// Where what was spent before cannot be read.
    #[boxed]
    pub async fn waits_for_budget(
        &self,
        kind: OperationKind,
        serving: &Serving,
    ) -> Result<Option<Refusal>, StoreError> {
        self.over_budget(kind, serving).await
    }

    /// The same for the path of every operation, without a box.
    async fn over_budget(
        &self,
        kind: OperationKind,
        serving: &Serving,
    ) -> Result<Option<Refusal>, StoreError> {
        let (binding, costs) = (&serving.binding, may_cost(kind, serving));
        let spender = (&binding.key, Some(binding.known_as()));
        let Some(exceeded) = self.oplog.ledger.check(&binding.company_id, spender, costs).await?
        else {
            return Ok(None);
        };
        let wait = exceeded.resets_at.duration_since(self.clock.now());
        let mut refusal = Refusal::new(OperationErrorCode::BudgetExceeded, exceeded.to_string());
        refusal.error.retry_after_ms = u64::try_from(wait.as_millis()).ok();
        Ok(Some(refusal))
    }
}
