//! Actions on one binding: enable, disable, reset, assign, delete.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::components::{CompanyView, CsrfForm, NoFields, Page, View, confirm};
use crate::guard::redirect;
use memhost_core::{ServiceError, SetTarget, UpdateBinding};
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{AgentId, BindingKey, FieldError};

fn back(view: &View, key: &BindingKey) -> Response {
    redirect(&view.at(&["bindings", key.as_str()]))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Switched {
    enabled: bool,
    revision: u64,
}

pub(crate) async fn switch(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(Switched { enabled, revision }): CsrfForm<Switched>,
) -> Result<Response, Problem> {
    let request = UpdateBinding {
        enabled: Some(enabled),
        revision: Some(revision),
        ..UpdateBinding::default()
    };
    view.service.control().update_binding(&view.caller, &view.company, &key, request).await?;
    view.flash(match enabled {
        true => "The binding is enabled.",
        false => "The binding is disabled. Its operations are refused until it is enabled.",
    });
    Ok(back(&view, &key))
}

pub(crate) async fn reset(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    view.service.control().reset_binding(&view.caller, &view.company, &key).await?;
    view.flash("The circuit is closed, and rejected versions may be tried again.");
    Ok(back(&view, &key))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Assigned {
    agent_id: Option<AgentId>,
    on: bool,
}

pub(crate) async fn set_default(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(assigned): CsrfForm<Assigned>,
) -> Result<Response, Problem> {
    assign(&view, None, &key, assigned.on).await?;
    view.flash(match assigned.on {
        true => format!("{key} is now the company's default binding."),
        false => "The company has no default binding.".to_owned(),
    });
    Ok(back(&view, &key))
}

pub(crate) async fn set_agent(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(assigned): CsrfForm<Assigned>,
) -> Result<Response, Problem> {
    // Without an agent this would change the company's default.
    let missing = || ServiceError::from(FieldError::new("agentId", "is missing; say which agent"));
    let agent = assigned.agent_id.ok_or_else(missing)?;
    assign(&view, Some(agent.clone()), &key, assigned.on).await?;
    view.flash(match assigned.on {
        true => format!("Agent {agent} now uses {key}."),
        false => format!("Agent {agent} uses the company's default binding again."),
    });
    Ok(back(&view, &key))
}

async fn assign(
    view: &CompanyView<permission::Administer>,
    agent_id: Option<AgentId>,
    key: &BindingKey,
    is_on: bool,
) -> Result<(), Problem> {
    let binding_key = is_on.then(|| key.clone());
    Ok(view
        .service
        .control()
        .set_target(&view.caller, &view.company, SetTarget { agent_id, binding_key })
        .await?)
}

pub(crate) async fn ask_delete(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Markup, Problem> {
    let shown = view.service.control().binding(&view.company, &key).await?;
    let here = view.at(&["bindings", key.as_str()]);
    let revision = shown.binding.revision.to_string();
    let body = html! {
        p.about {
            "This deletes everything that its provider stored on this host. It cannot be undone. \
             Data in the provider's own system stays there: forget those records first. The \
             operations stay in the log."
        }
        (confirm(&view, &view.path, "Delete binding", &[("revision", &revision)], &here))
    };
    let title = format!("Delete {key}?");
    Ok(Page::new(&view, &title, "")
        .crumb("Bindings", view.at(&["bindings"]))
        .crumb(key.as_str(), here)
        .render(&body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deleted {
    revision: u64,
}

pub(crate) async fn delete(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(Deleted { revision }): CsrfForm<Deleted>,
) -> Result<Response, Problem> {
    view.service
        .control()
        .delete_binding(&view.caller, &view.company, &key, Some(revision))
        .await?;
    view.flash(format!("The binding {key} and its stored data are deleted."));
    Ok(redirect(&view.at(&["bindings"])))
}
