//! The list of bindings, and which of them answers for an agent.

use maud::{Markup, html};
use serde::Deserialize;

use super::{health, used_by};
use crate::components::{
    CompanyView, FilterForm, Page, QueryParams, Row, Tone, badge, binding_choices, binding_link,
    empty, first_note, long, sentence, table, wide,
};
use memhost_core::Act;
use memhost_http::{Problem, permission};
use memhost_types::{AgentId, BindingKey};

pub(crate) async fn list(view: CompanyView<permission::View>) -> Result<Markup, Problem> {
    let bindings = view.service.control().bindings(&view.company).await?;
    let rows = bindings.iter().map(|shown| {
        let binding = &shown.binding;
        Row::to(view.at(&["bindings", binding.key.as_str()]))
            .key(&binding.key)
            .cell("Binding", binding.key.as_str())
            .cell("Status", health(shown))
            .cell("Provider", binding.provider_key.as_str())
            .maybe(
                wide("Active version"),
                shown.serving.as_ref().map(|build| build.version.to_string()),
            )
            .cell(wide("Version range"), binding.version.to_string())
            .cell(long("Used by"), used_by(shown))
    });
    let new = html! {
        a.button href=(view.at(&["resolve"])) { "Resolve binding" }
        @if view.allows(Act::Administer) {
            a.button.primary href=(view.at(&["new-binding"])) { "Create binding" }
        }
    };
    let body = html! {
        div #rows data-live {
            @if bindings.is_empty() {
                (empty("No bindings yet", &html! {
                    "The built-in provider answers; the first write creates a binding for it: "
                    (first_note(view.company.as_str()))
                }))
            } @else { (table("Bindings", rows)) }
        }
    };
    Ok(Page::new(&view, "Bindings", "Which provider serves which agents.")
        .action(new)
        .live("plugins,operations")
        .render(&body))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResolveQuery {
    agent_id: Option<AgentId>,
    binding_key: Option<BindingKey>,
}

/// Which binding serves an agent, and why.
pub(crate) async fn resolve(
    view: CompanyView<permission::View>,
    params: QueryParams<ResolveQuery>,
) -> Result<Markup, Problem> {
    let ResolveQuery { agent_id, binding_key } = &params.query;
    let named = std::iter::once((String::new(), "none".to_owned())).chain(binding_choices(&view));
    let found = view
        .service
        .control()
        .resolve_binding(&view.company, agent_id.as_ref(), binding_key.as_ref())
        .await;
    let form = FilterForm::new(&view, &params).text("agentId", "Agent");
    let form = form.required("bindingKey", "Binding in the request", named);
    let body = html! {
        (form)
        div #answer {
            @match &found {
                Ok(resolved) => {
                    @let key = resolved.binding.binding.key.as_str();
                    p.lead {
                        @match agent_id {
                            Some(agent) => { "Agent " strong { (agent) } " uses " },
                            None => "Requests without an agent use ",
                        }
                        (binding_link(&view, key)) ", served by " (
                            resolved.binding.binding.provider_key
                        ) ". "
                        (health(&resolved.binding))
                    }
                    ol.steps {
                        @for step in &resolved.steps {
                            li data-decides[step.decides] {
                                span { (sentence(&step.says)) }
                                @if step.decides { (badge(Tone::Good, "applies")) }
                            }
                        }
                    }
                }
                Err(error) => p.wrong { (sentence(&error.to_string())) },
            }
        }
    };
    Ok(Page::new(
        &view,
        "Resolve binding",
        "The rules are evaluated in this order. The first one that names a binding applies.",
    )
    .crumb("Bindings", view.at(&["bindings"]))
    .render(&body))
}
