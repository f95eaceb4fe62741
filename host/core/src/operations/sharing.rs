//! The scope that a provider sees in a write: an agent is a partition of its own records only.

use memhost_types::{Binding, Scope, Sharing};

/// The scope of a write. The agent that writes is named as the one who acts. It is a partition only where the binding
/// keeps what each agent writes apart.
pub(crate) fn scope_of_write(binding: &Binding, scope: &Scope) -> Scope {
    let actor_agent_id = scope.agent_id.clone().or_else(|| scope.actor_agent_id.clone());
    let agent_id = match binding.policy.sharing {
        Sharing::Shared => None,
        Sharing::PerAgent => scope.agent_id.clone(),
    };
    Scope { agent_id, actor_agent_id, ..scope.clone() }
}
