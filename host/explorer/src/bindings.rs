//! Bindings: which provider answers for whom, what it may reach and use, and how it does.

mod change;
mod form;
mod grants;
mod limits;
mod show;

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

pub(super) use change::{ask_delete, delete, reset, set_agent, set_default, switch};
pub(super) use form::{create, edit, new, update};
pub(super) use grants::{said, set as set_grants};
pub(super) use limits::budget;
pub(super) use show::show;

use super::kit::{Asked, Col, Filter, Page, Row, Tone, View, badge, empty, table};
use super::pieces;
use memhost_core::{Act, BindingView, BreakerState, Service};
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{AgentId, BindingKey};

/// How a binding does, as one word.
pub(super) fn health(view: &BindingView) -> Markup {
    match (view.binding.enabled, view.breaker) {
        (false, _) => badge(Tone::Plain, "disabled"),
        (true, BreakerState::Open { .. }) => badge(Tone::Bad, "left alone"),
        (true, BreakerState::HalfOpen) => badge(Tone::Warning, "on trial"),
        (true, BreakerState::Closed) if !view.warnings.is_empty() || !view.waiting.is_empty() => {
            badge(Tone::Warning, "look at it")
        }
        (true, BreakerState::Closed) => badge(Tone::Good, "serving"),
    }
}

/// Whom it answers for, in words.
fn answers_for(view: &BindingView) -> String {
    let agents: Vec<_> = view.agents.iter().map(AgentId::as_str).collect();
    match (view.is_default, agents.is_empty()) {
        (true, true) => "everybody".to_owned(),
        (true, false) => format!("everybody, and {} by name", agents.join(", ")),
        (false, false) => agents.join(", "),
        (false, true) => "whoever names it".to_owned(),
    }
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
) -> Result<Markup, Problem> {
    let bindings = service.bindings(&allowed.company).await?;
    let columns = [
        Col::text("Binding"),
        Col::text("State"),
        Col::text("Provider"),
        Col::text("Serving").wide(),
        Col::text("Versions").wide(),
        Col::text("Answers for").long(),
    ];
    let rows = bindings.iter().map(|shown| {
        let binding = &shown.binding;
        Row::to(view.at(&["bindings", binding.key.as_str()]))
            .key(&binding.key)
            .cell(binding.key.as_str())
            .cell(health(shown))
            .cell(binding.provider_key.as_str())
            .maybe(shown.serving.as_ref().map(|build| build.version.to_string()))
            .cell(binding.version.to_string())
            .cell(answers_for(shown))
    });
    let new = html! {
        a.button href=(view.at(&["resolve"])) { "Who answers?" }
        @if view.allows(Act::Administer) { a.button.primary href=(view.at(&["new-binding"])) { "New binding" } }
    };
    let body = html! {
        div #rows data-live {
            @if bindings.is_empty() {
                (empty("No binding yet", &html! {
                    "The first operation of this company makes one for the built-in provider: "
                    code { "memhost note --company " (allowed.company) " 'Deploys are frozen on Fridays'" }
                }))
            } @else {
                (table("Bindings", &columns, rows))
            }
        }
    };
    Ok(Page::new(&view, "Bindings", "Which provider answers for whom.")
        .action(new)
        .live("plugins,operations")
        .render(&body))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ResolveQuery {
    agent_id: Option<AgentId>,
    binding_key: Option<BindingKey>,
}

/// Which binding answers for an agent, and why.
pub(super) async fn resolve(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    asked: Asked<ResolveQuery>,
) -> Result<Markup, Problem> {
    let ResolveQuery { agent_id, binding_key } = &asked.query;
    let named = std::iter::once((String::new(), "no binding".to_owned())).chain(pieces::binding_keys(&view));
    let found = service.resolve_binding(&allowed.company, agent_id.as_ref(), binding_key.as_ref()).await;
    let body = html! {
        (Filter::new(&view, &asked).text("agentId", "Agent").pick("bindingKey", "The request names", "", named))
        div #answer {
            @match &found {
                Ok(resolved) => {
                    @let key = resolved.binding.binding.key.as_str();
                    p.lead {
                        @match agent_id { Some(agent) => { "For the agent " strong { (agent) } " it is " }, None => "It is " }
                        (pieces::binding(&view, key)) ", served by " (resolved.binding.binding.provider_key) ". " (health(&resolved.binding))
                    }
                    ol.steps {
                        @for step in &resolved.steps {
                            li data-decides[step.decides] {
                                span { (pieces::prose(&step.says)) }
                                @if step.decides { (badge(Tone::Good, "decides")) }
                            }
                        }
                    }
                }
                Err(error) => p.wrong { (pieces::prose(&error.to_string())) },
            }
        }
    };
    Ok(Page::new(
        &view,
        "Who answers?",
        "The rules in the order in which they are asked; the first that names a binding decides.",
    )
    .crumb("Bindings", view.at(&["bindings"]))
    .render(&body))
}
