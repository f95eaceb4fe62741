//! What the memory of a scope can do, for surfaces that offer nothing that would be refused anyway.

use crate::Control;
use async_recursion::async_recursion as boxed;
use memhost_access::{Act, Caller};
use memhost_registry::plugins::Plugin;
use memhost_registry::versions::choose;
use memhost_sandbox::OptionalInterface;
use memhost_tenancy::ServiceError;
use memhost_types::{
    Binding, BindingKey, McpPolicy, OperationKind, ProviderCapabilities, ProviderKey, Scope,
};

/// The abilities of the binding that answers for a scope; all are absent if no binding answers.
#[derive(Debug, Clone, Default)]
pub struct Abilities {
    /// The binding that answers; absent also where nobody has decided it and the built-in provider
    /// does.
    pub binding_key: Option<BindingKey>,
    /// The provider of its records.
    pub provider_key: Option<ProviderKey>,
    /// What the build that serves it, or would, can do beside the operations that every provider
    /// has.
    pub capabilities: ProviderCapabilities,
    /// Whether that build can also tell how a query came to its answer.
    pub explains: bool,
    /// How it is shown over MCP.
    pub mcp: McpPolicy,
}

impl Control {
    /// The abilities of the binding that answers for a scope. Missing scope fields default to those
    /// of the caller's token.
    ///
    /// # Errors
    /// Where the caller may not do this in the scope, or, for `control`, no memory operation at
    /// all; recorded as a refusal of the `kind` that it is asked for. Where the company was erased
    /// or is being imported.
    #[boxed]
    pub async fn abilities(
        &self,
        caller: &Caller,
        kind: OperationKind,
        scope: &mut Scope,
        named: Option<&BindingKey>,
    ) -> Result<Abilities, ServiceError> {
        let may = match kind {
            OperationKind::Control => caller.may_use_memory(&scope.company_id),
            kind => caller.may(Act::Operate(kind), Some(&scope.company_id)),
        };
        if let Err(denied) = may.and_then(|()| caller.confine(scope)) {
            let company = scope.company_id.clone();
            return Err(self.tenancy.deny(caller, kind, Some(&company), &denied).await);
        }
        self.tenancy.usable(caller, &scope.company_id).await?;
        match self.bindings.resolve(&scope.company_id, scope.agent_id.as_ref(), named) {
            Ok(resolution) => Ok(self.abilities_of(&resolution.binding).await),
            Err(_) => match self.operations.implied_default(&scope.company_id, named).await {
                Ok(Some(implied)) => {
                    Ok(Abilities { binding_key: None, ..self.abilities_of(&implied).await })
                }
                // An operation will say what is missing.
                Ok(None) | Err(_) => Ok(Abilities::default()),
            },
        }
    }

    async fn abilities_of(&self, binding: &Binding) -> Abilities {
        let of = match self.serving.current(binding) {
            Some(serving) => abilities(&binding.provider_key, Some(&serving.plugin)),
            None => {
                let builds = self.plugins.builds(&binding.provider_key);
                let state = self.serving.state(binding).await.ok().flatten();
                let choice = choose(binding, &builds, state.as_ref());
                abilities(&binding.provider_key, choice.build.as_ref())
            }
        };
        Abilities { binding_key: Some(binding.key.clone()), mcp: binding.policy.mcp, ..of }
    }
}

fn abilities(provider: &ProviderKey, build: Option<&Plugin>) -> Abilities {
    Abilities {
        provider_key: Some(provider.clone()),
        capabilities: build
            .map(|build| build.component.description().capabilities)
            .unwrap_or_default(),
        explains: build.is_some_and(|build| build.component.exports(OptionalInterface::Explain)),
        ..Abilities::default()
    }
}
