//! Bindings: which provider serves which agents, its permissions, limits and health.

pub(super) mod change;
pub(super) mod form;
pub(super) mod grants;
pub(super) mod limits;
pub(super) mod list;
pub(super) mod show;

use maud::Markup;

use super::components::{Tone, badge};
use memhost_core::{BindingView, BreakerState};
use memhost_types::AgentId;

/// The health of a binding.
pub(super) fn health(view: &BindingView) -> Markup {
    match (view.binding.enabled, view.breaker) {
        (false, _) => badge(Tone::Plain, "disabled"),
        (true, BreakerState::Open { .. }) => badge(Tone::Bad, "circuit open"),
        (true, BreakerState::HalfOpen) => badge(Tone::Warning, "circuit half open"),
        (true, BreakerState::Closed) if !view.warnings.is_empty() || !view.waiting.is_empty() => {
            badge(Tone::Warning, "warning")
        }
        (true, BreakerState::Closed) => badge(Tone::Good, "healthy"),
    }
}

/// The users of a binding, in words.
fn used_by(view: &BindingView) -> String {
    let agents: Vec<_> = view.agents.iter().map(AgentId::as_str).collect();
    match (view.is_default, agents.is_empty()) {
        (true, true) => "all agents".to_owned(),
        (true, false) => format!("all agents, assigned to {}", agents.join(", ")),
        (false, false) => agents.join(", "),
        (false, true) => "requests that name it".to_owned(),
    }
}
