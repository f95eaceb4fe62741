//! Creating and editing a binding. A refused form is shown again, with each error beside its field.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::components::{
    CsrfForm, Field, Page, QueryParams, View, checkbox, form, select_field, unix_lines, unprocessable,
};
use crate::guard::see;
use memhost_core::{Act, CreateBinding, Service, ServiceError, UpdateBinding};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{BindingKey, BindingLimits, BindingPolicy, JsonObject, VersionChoice};

/// The fields as they were sent, or as they are shown at first.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Given {
    key: String,
    provider_key: String,
    version: String,
    config: String,
    policy: String,
    limits: String,
    default: Option<String>,
    revision: Option<u64>,
}

/// What is wrong: a field, or a place in it, and a message each.
#[derive(Default)]
struct Wrong(Vec<(String, String)>);

impl Wrong {
    fn at(&mut self, field: &str, message: &impl ToString) {
        self.0.push((field.to_owned(), message.to_string()));
    }

    /// What is wrong with a field; a JSON pointer is of the configuration.
    fn of<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a (String, String)> {
        self.0.iter().filter(move |(at, _)| place(at) == field)
    }

    fn under(&self, field: &str) -> Markup {
        html! {
            @for (at, message) in self.of(field) {
                p.error role="alert" { @if at != field { code { (at) } " " } (message) }
            }
        }
    }

    /// The errors of the service that belong to a field. Any other error is returned as it is.
    fn from(error: ServiceError) -> Result<Self, Problem> {
        let mut wrong = Self::default();
        match error {
            ServiceError::Config { errors } => {
                wrong.0 = errors
                    .into_iter()
                    .map(|(at, message)| (if at.is_empty() { "config".to_owned() } else { at }, message))
                    .collect();
            }
            ServiceError::Field(error) => wrong.at(&error.field, &error.message),
            ServiceError::NoVersion { .. } => wrong.at("version", &error),
            ServiceError::NoProvider { .. } => wrong.at("providerKey", &error),
            ServiceError::Binding(memhost_core::BindingError::Exists { .. }) => wrong.at("key", &error),
            error => return Err(error.into()),
        }
        Ok(wrong)
    }
}

/// Which of the form's fields a path or pointer is in.
fn place(at: &str) -> &str {
    if at.starts_with('/') {
        return "config";
    }
    let first = at.split('.').next().unwrap_or_default();
    if ["key", "providerKey", "version", "config", "policy", "limits"].contains(&first) { first } else { "" }
}

fn json<T: DeserializeOwned>(wrong: &mut Wrong, field: &str, text: &str) -> Option<T> {
    if text.trim().is_empty() {
        return None;
    }
    serde_json::from_str(text).map_err(|error| wrong.at(field, &format!("is not valid here: {error}"))).ok()
}

fn version(wrong: &mut Wrong, text: &str) -> Option<VersionChoice> {
    let text = text.trim();
    let choice = match text.starts_with("sha256:") {
        _ if text.is_empty() => return None,
        true => text.parse().map(VersionChoice::Pin).map_err(|error: memhost_types::DigestError| error.to_string()),
        false => text.parse().map(VersionChoice::Follow).map_err(|error: semver::Error| error.to_string()),
    };
    choice.map_err(|message| wrong.at("version", &message)).ok()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewQuery {
    provider: Option<String>,
}

pub(crate) async fn new(
    State(service): State<Arc<Service>>,
    view: View,
    _: Authorized<permission::Administer>,
    params: QueryParams<NewQuery>,
) -> Markup {
    let given = Given { provider_key: params.query.provider.unwrap_or_default(), ..Given::default() };
    fresh(&service, &view, &given, &Wrong::default())
}

fn fresh(service: &Service, view: &View, given: &Given, wrong: &Wrong) -> Markup {
    let plugins = service.plugins().admitted;
    let mut providers: Vec<(String, String)> = Vec::new();
    for plugin in &plugins {
        let description = &plugin.inspection.description;
        if !providers.iter().any(|(key, _)| key == description.provider_key.as_str()) {
            providers.push((
                description.provider_key.to_string(),
                match description.name == description.provider_key.as_str() {
                    true => description.name.clone(),
                    false => format!("{} ({})", description.name, description.provider_key),
                },
            ));
        }
    }
    let body = html! {
        (general(wrong))
        (form(view, &view.at(&["bindings"]), &html! {
            (Field::new("key", "Key", &given.key).required().help("Lowercase letters, digits, dots and dashes. It cannot be changed later."))
            (wrong.under("key"))
            (select_field("providerKey", "Provider", &given.provider_key, providers))
            (wrong.under("providerKey"))
            (common(view, given, wrong))
            (checkbox("default", "Make it the company's default binding", given.default.is_some()))
            div.actions { button.primary { "Create binding" } a.quiet href=(view.at(&["bindings"])) { "Cancel" } }
        }))
    };
    Page::new(
        view,
        "Create binding",
        "A provider with a configuration. It has no permissions until an operator grants them.",
    )
    .crumb("Bindings", view.at(&["bindings"]))
    .render(&body)
}

fn general(wrong: &Wrong) -> Markup {
    html! {
        @if !wrong.0.is_empty() {
            p.wrong role="alert" {
                "Not saved. " @for (at, message) in wrong.of("") { code { (at) } " " (message) " " }
            }
        }
    }
}

fn common(view: &View, given: &Given, wrong: &Wrong) -> Markup {
    html! {
        (Field::new("version", "Version", &given.version).help("A range such as ^1.2, or the digest of one build. Empty: the newest version."))
        (wrong.under("version"))
        div.json {
            (Field::new("config", "Configuration (JSON)", &given.config).lines(6).help("Empty: the provider's defaults."))
        }
        (wrong.under("config"))
        details.more open[wrong.of("policy").next().is_some() || wrong.of("limits").next().is_some()] {
            summary { "Policy and limits" }
            div.stack {
                div.json {
                    (Field::new("policy", "Policy (JSON)", &given.policy).lines(8).help("Hooks, review, personal data, budgets, retention. Missing fields have their defaults."))
                }
                (wrong.under("policy"))
                @if view.allows(Act::Grant) {
                    div.json {
                        (Field::new("limits", "Limits (JSON)", &given.limits).lines(8).help("Missing fields have their defaults."))
                    }
                    (wrong.under("limits"))
                }
            }
        }
    }
}

pub(crate) async fn create(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::Administer>,
    CsrfForm(given): CsrfForm<Given>,
) -> Result<Response, Problem> {
    let mut wrong = Wrong::default();
    let key = given.key.trim().parse().map_err(|error| wrong.at("key", &error)).ok();
    let provider = given.provider_key.parse().map_err(|error| wrong.at("providerKey", &error)).ok();
    let choice = version(&mut wrong, &given.version).unwrap_or_default();
    let config: JsonObject = json(&mut wrong, "config", &given.config).unwrap_or_default();
    let policy: BindingPolicy = json(&mut wrong, "policy", &given.policy).unwrap_or_default();
    let limits: BindingLimits = json(&mut wrong, "limits", &given.limits).unwrap_or_default();
    let (Some(key), Some(provider_key), true) = (key, provider, wrong.0.is_empty()) else {
        return Ok(unprocessable(&fresh(&service, &view, &given, &wrong)));
    };
    let request = CreateBinding {
        key,
        provider_key,
        version: choice,
        config,
        grants: None,
        limits,
        policy,
        default: given.default.is_some(),
    };
    match service.create_binding(&allowed.caller, &allowed.company, request).await {
        Ok(made) => {
            view.say("The binding is created. Its requested permissions are below.");
            Ok(see(&view.at(&["bindings", made.binding.key.as_str()])))
        }
        Err(error) => Ok(unprocessable(&fresh(&service, &view, &given, &Wrong::from(error)?))),
    }
}

pub(crate) async fn edit(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, key)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
) -> Result<Markup, Problem> {
    let key: BindingKey = parse("bindingKey", &key)?;
    let binding = service.binding(&allowed.company, &key).await?.binding;
    let given = Given {
        version: match &binding.version {
            VersionChoice::Follow(range) => range.to_string(),
            VersionChoice::Pin(digest) => digest.to_string(),
        },
        config: pretty(&binding.config),
        policy: pretty(&binding.policy),
        limits: pretty(&binding.limits),
        revision: Some(binding.revision),
        ..Given::default()
    };
    Ok(changed(&view, &key, &given, &Wrong::default()))
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn changed(view: &View, key: &BindingKey, given: &Given, wrong: &Wrong) -> Markup {
    let here = view.at(&["bindings", key.as_str()]);
    let body = html! {
        (general(wrong))
        (form(view, &format!("{here}/edit"), &html! {
            @if let Some(revision) = given.revision { input type="hidden" name="revision" value=(revision); }
            (common(view, given, wrong))
            div.actions { button.primary { "Save" } a.quiet href=(here) { "Cancel" } }
        }))
    };
    let title = format!("Edit {key}");
    Page::new(view, &title, "Changes apply to the next call, if the provider accepts them.")
        .crumb("Bindings", view.at(&["bindings"]))
        .crumb(key.as_str(), here)
        .render(&body)
}

pub(crate) async fn update(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, key)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(given): CsrfForm<Given>,
) -> Result<Response, Problem> {
    let key: BindingKey = parse("bindingKey", &key)?;
    let given = Given {
        config: unix_lines(&given.config),
        policy: unix_lines(&given.policy),
        limits: unix_lines(&given.limits),
        ..given
    };
    let mut wrong = Wrong::default();
    let request = UpdateBinding {
        revision: given.revision,
        version: Some(version(&mut wrong, &given.version).unwrap_or_default()),
        config: Some(json(&mut wrong, "config", &given.config).unwrap_or_default()),
        policy: Some(json(&mut wrong, "policy", &given.policy).unwrap_or_default()),
        // Without permission to set limits the form has no such field, and the limits stay as they are.
        limits: json(&mut wrong, "limits", &given.limits),
        enabled: None,
    };
    if !wrong.0.is_empty() {
        return Ok(unprocessable(&changed(&view, &key, &given, &wrong)));
    }
    match service.update_binding(&allowed.caller, &allowed.company, &key, request).await {
        Ok(_) => {
            view.say("Saved.");
            Ok(see(&view.at(&["bindings", key.as_str()])))
        }
        Err(error) => Ok(unprocessable(&changed(&view, &key, &given, &Wrong::from(error)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_beside_its_field() {
        let errors = vec![("/ranking/b".to_owned(), "is too large".to_owned()), (String::new(), "is odd".to_owned())];
        let wrong = Wrong::from(ServiceError::Config { errors }).ok().unwrap();
        assert_eq!(wrong.of("config").count(), 2);
        assert!(wrong.under("config").into_string().contains("<code>/ranking/b</code> is too large"));
        assert_eq!(place("policy.review.threshold"), "policy");
        assert_eq!(place("grants.http.0"), "");
        let mut wrong = Wrong::default();
        assert!(version(&mut wrong, "sha256:00").is_none() && version(&mut wrong, "soon").is_none());
        assert_eq!(wrong.of("version").count(), 2);
    }
}
