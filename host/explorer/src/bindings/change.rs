//! Actions on one binding: enable, disable, reset, assign, delete.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{CsrfForm, Page, View, confirm};
use crate::guard::see;
use memhost_core::{Service, ServiceError, SetTarget, UpdateBinding};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{AgentId, BindingKey, FieldError};

fn key(text: &str) -> Result<BindingKey, Problem> {
    parse("bindingKey", text)
}

fn back(view: &View, key: &BindingKey) -> Response {
    see(&view.at(&["bindings", key.as_str()]))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switched {
    enabled: bool,
    revision: u64,
}

pub(crate) async fn switch(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(Switched { enabled, revision }): CsrfForm<Switched>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    let request = UpdateBinding { enabled: Some(enabled), revision: Some(revision), ..UpdateBinding::default() };
    service.update_binding(&allowed.caller, &allowed.company, &key, request).await?;
    view.say(match enabled {
        true => "The binding is enabled.",
        false => "The binding is disabled. Its operations are refused until it is enabled.",
    });
    Ok(back(&view, &key))
}

#[derive(Deserialize)]
pub(crate) struct Nothing {}

pub(crate) async fn reset(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: CsrfForm<Nothing>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    service.reset_binding(&allowed.caller, &allowed.company, &key).await?;
    view.say("The circuit is closed, and rejected versions may be tried again.");
    Ok(back(&view, &key))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Assigned {
    agent_id: Option<AgentId>,
    on: bool,
}

pub(crate) async fn set_default(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(assigned): CsrfForm<Assigned>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    assign(&service, &allowed, None, &key, assigned.on).await?;
    view.say(match assigned.on {
        true => format!("{key} is now the company's default binding."),
        false => "The company has no default binding.".to_owned(),
    });
    Ok(back(&view, &key))
}

pub(crate) async fn set_agent(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(assigned): CsrfForm<Assigned>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    // Without an agent this would change the company's default.
    let missing = || ServiceError::from(FieldError::new("agentId", "is missing; say which agent"));
    let agent = assigned.agent_id.ok_or_else(missing)?;
    assign(&service, &allowed, Some(agent.clone()), &key, assigned.on).await?;
    view.say(match assigned.on {
        true => format!("Agent {agent} now uses {key}."),
        false => format!("Agent {agent} uses the company's default binding again."),
    });
    Ok(back(&view, &key))
}

async fn assign(
    service: &Service,
    allowed: &Authorized<permission::Administer>,
    agent_id: Option<AgentId>,
    key: &BindingKey,
    is_on: bool,
) -> Result<(), Problem> {
    let binding_key = is_on.then(|| key.clone());
    Ok(service.set_target(&allowed.caller, &allowed.company, SetTarget { agent_id, binding_key }).await?)
}

pub(crate) async fn ask_delete(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
) -> Result<Markup, Problem> {
    let key = key(&name)?;
    let shown = service.binding(&allowed.company, &key).await?;
    let here = view.at(&["bindings", key.as_str()]);
    let revision = shown.binding.revision.to_string();
    let body = html! {
        p.about {
            "This deletes everything that its provider stored on this host. It cannot be undone. Data in the provider's own system "
            "stays there: forget those records first. The operations stay in the log."
        }
        (confirm(&view, &view.path, "Delete binding", &[("revision", &revision)], &here))
    };
    let title = format!("Delete {key}?");
    Ok(Page::new(&view, &title, "").crumb("Bindings", view.at(&["bindings"])).crumb(key.as_str(), here).render(&body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deleted {
    revision: u64,
}

pub(crate) async fn delete(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(Deleted { revision }): CsrfForm<Deleted>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    service.delete_binding(&allowed.caller, &allowed.company, &key, Some(revision)).await?;
    view.say(format!("The binding {key} and its stored data are deleted."));
    Ok(see(&view.at(&["bindings"])))
}
