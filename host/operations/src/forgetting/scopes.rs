//! Forgetting a scope: all that was written for an agent, a subject, a namespace, a run and so on.

use async_recursion::async_recursion as boxed;

use super::wanted::{Wanted, What};
use crate::prelude::*;
use memhost_access::{Act, Guard};
use memhost_store::{self as store, LockKind};
use memhost_tenancy::forgetter_of;
use memhost_types::{Binding, Delivery, ForgetScopeRequest, ForgottenScope};

impl Operations {
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
        let reader = forgetter_of(caller.is_for_everybody(), caller, &scope);
        let wanted = Wanted {
            what: What::Scope,
            scope,
            reader,
            received: self.clock.now(),
            by: None,
            guard: Guard::default(),
        };
        let asked: Vec<Arc<Binding>> = match &binding_key {
            Some(key) => self.bindings.get(&company, key).into_iter().collect(),
            None => self.bindings.list(&company),
        };
        let (bindings, is_complete) =
            self.forget_wanted(caller, &wanted, &asked, binding_key.clone()).await?;
        let is_meant = |delivery: &Delivery| {
            let is_asked = binding_key.is_none()
                || asked.iter().any(|binding| binding.known_as() == delivery.binding_id);
            is_asked && wanted.has_delivery(delivery)
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
            return Err(self
                .tenancy
                .deny(caller, kind, Some(&request.scope.company_id), &denied)
                .await);
        }
        self.tenancy.usable(caller, &request.scope.company_id).await?;
        let ForgetScopeRequest { scope, binding_key } = &*request;
        let is_asked =
            |binding: &&Arc<Binding>| binding_key.as_ref().is_none_or(|key| *key == binding.key);
        for binding in self.bindings.list(&scope.company_id).iter().filter(is_asked) {
            let guard = self.policies.guard(caller.principal(), binding);
            if let Err(denied) = guard.may_clear(scope) {
                return Err(self
                    .tenancy
                    .deny(caller, kind, Some(&scope.company_id), &denied)
                    .await);
            }
        }
        Ok(checked?)
    }
}
