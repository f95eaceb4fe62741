//! Changing one binding with a button: switching it on and off, resetting it, pointing somebody at it, deleting it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::guard::see;
use crate::kit::{Page, Signed, View, confirm};
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
    Signed(Switched { enabled, revision }): Signed<Switched>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    let request = UpdateBinding { enabled: Some(enabled), revision: Some(revision), ..UpdateBinding::default() };
    service.update_binding(&allowed.caller, &allowed.company, &key, request).await?;
    view.say(match enabled {
        true => "The binding takes operations again.",
        false => "The binding is disabled: every operation is refused until it is enabled.",
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
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    service.reset_binding(&allowed.caller, &allowed.company, &key).await?;
    view.say("The breaker is closed, and versions that were kept out may be tried again.");
    Ok(back(&view, &key))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Pointed {
    agent_id: Option<AgentId>,
    on: bool,
}

pub(crate) async fn set_default(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    Signed(pointed): Signed<Pointed>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    point(&service, &allowed, None, &key, pointed.on).await?;
    view.say(match pointed.on {
        true => format!("{key} is the company's default."),
        false => "The company has no default binding any more.".to_owned(),
    });
    Ok(back(&view, &key))
}

pub(crate) async fn set_agent(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, name)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    Signed(pointed): Signed<Pointed>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    // Without an agent it would be the company's default that changes.
    let missing = || ServiceError::from(FieldError::new("agentId", "is missing; say which agent"));
    let agent = pointed.agent_id.ok_or_else(missing)?;
    point(&service, &allowed, Some(agent.clone()), &key, pointed.on).await?;
    view.say(match pointed.on {
        true => format!("{key} answers for the agent {agent}."),
        false => format!("The agent {agent} has the company's default again."),
    });
    Ok(back(&view, &key))
}

async fn point(
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
            "Everything that its provider has stored through this host goes with it, for good. What the provider keeps in a system of "
            "its own stays there: forget it first. The operations stay in the log."
        }
        (confirm(&view, &view.path, "Delete this binding", &[("revision", &revision)], &here))
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
    Signed(Deleted { revision }): Signed<Deleted>,
) -> Result<Response, Problem> {
    let key = key(&name)?;
    service.delete_binding(&allowed.caller, &allowed.company, &key, Some(revision)).await?;
    view.say(format!("The binding {key} is gone, with what it had stored."));
    Ok(see(&view.at(&["bindings"])))
}
