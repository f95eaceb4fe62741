//! Creating and editing a binding. A refused form is shown again, with each error beside its field.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::components::{
    CompanyView, CsrfForm, Field, Page, QueryParams, View, checkbox, form, select_field,
    submit_or_cancel, unix_lines, unprocessable,
};
use crate::guard::redirect;
use memhost_core::{Act, CreateBinding, ServiceError, UpdateBinding};
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{BindingKey, BindingLimits, BindingPolicy, JsonObject, VersionChoice};

/// The fields as they were sent, or as they are shown at first.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct BindingFields {
    key: String,
    provider_key: String,
    version: String,
    config: String,
    policy: String,
    limits: String,
    default: Option<String>,
    revision: Option<u64>,
}

/// Errors: a field, or a place in it, and a message each.
#[derive(Default)]
struct FormErrors(Vec<(String, String)>);

impl FormErrors {
    fn at(&mut self, field: &str, message: &impl ToString) {
        self.0.push((field.to_owned(), message.to_string()));
    }

    /// The errors of a field; a JSON pointer is of the configuration.
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
        let mut errors = Self::default();
        match error {
            ServiceError::Config { errors: found } => {
                let field = |at: String| if at.is_empty() { "config".to_owned() } else { at };
                errors.0 = found.into_iter().map(|(at, message)| (field(at), message)).collect();
            }
            ServiceError::Field(error) => errors.at(&error.field, &error.message),
            ServiceError::NoVersion { .. } => errors.at("version", &error),
            ServiceError::NoProvider { .. } => errors.at("providerKey", &error),
            ServiceError::Binding(memhost_core::BindingError::Exists { .. }) => {
                errors.at("key", &error);
            }
            error => return Err(error.into()),
        }
        Ok(errors)
    }
}

/// Which of the form's fields a path or pointer is in.
fn place(at: &str) -> &str {
    if at.starts_with('/') {
        return "config";
    }
    let first = at.split('.').next().unwrap_or_default();
    if ["key", "providerKey", "version", "config", "policy", "limits"].contains(&first) {
        first
    } else {
        ""
    }
}

fn json<T: DeserializeOwned>(errors: &mut FormErrors, field: &str, text: &str) -> Option<T> {
    if text.trim().is_empty() {
        return None;
    }
    serde_json::from_str(text)
        .map_err(|error| errors.at(field, &format!("is not valid here: {error}")))
        .ok()
}

fn version(errors: &mut FormErrors, text: &str) -> Option<VersionChoice> {
    let text = text.trim();
    let choice = match text.starts_with("sha256:") {
        _ if text.is_empty() => return None,
        true => text
            .parse()
            .map(VersionChoice::Pin)
            .map_err(|error: memhost_types::DigestError| error.to_string()),
        false => text
            .parse()
            .map(VersionChoice::Follow)
            .map_err(|error: semver::Error| error.to_string()),
    };
    choice.map_err(|message| errors.at("version", &message)).ok()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewQuery {
    provider: Option<String>,
}

pub(crate) async fn new(
    view: CompanyView<permission::Administer>,
    params: QueryParams<NewQuery>,
) -> Markup {
    let given = BindingFields {
        provider_key: params.query.provider.unwrap_or_default(),
        ..BindingFields::default()
    };
    create_page(&view, &given, &FormErrors::default())
}

fn create_page(view: &View, given: &BindingFields, errors: &FormErrors) -> Markup {
    let plugins = view.service.control().plugins().admitted;
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
        (general_errors(errors))
        (form(view, &view.at(&["bindings"]), &html! {
            (Field::new("key", "Key", &given.key).required()
                .help("Lowercase letters, digits, dots and dashes. It cannot be changed later."))
            (errors.under("key"))
            (select_field("providerKey", "Provider", &given.provider_key, providers))
            (errors.under("providerKey"))
            (common_fields(view, given, errors))
            (checkbox("default", "Make it the company's default binding", given.default.is_some()))
            (submit_or_cancel("Create binding", &view.at(&["bindings"])))
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

fn general_errors(errors: &FormErrors) -> Markup {
    html! {
        @if !errors.0.is_empty() {
            p.wrong role="alert" {
                "Not saved. " @for (at, message) in errors.of("") {
                    code { (at) } " " (message) " "
                }
            }
        }
    }
}

fn common_fields(view: &View, given: &BindingFields, errors: &FormErrors) -> Markup {
    html! {
        (Field::new("version", "Version", &given.version)
            .help("A range such as ^1.2, or the digest of one build. Empty: the newest version."))
        (errors.under("version"))
        div.json {
            (Field::new("config", "Configuration (JSON)", &given.config).lines(6)
                .help("Empty: the provider's defaults."))
        }
        (errors.under("config"))
        details.more
            open[errors.of("policy").next().is_some() || errors.of("limits").next().is_some()] {
            summary { "Policy and limits" }
            div.stack {
                div.json {
                    (Field::new("policy", "Policy (JSON)", &given.policy).lines(8)
                        .help("Hooks, review, personal data, budgets, retention. Missing fields \
                               have their defaults."))
                }
                (errors.under("policy"))
                @if view.allows(Act::Grant) {
                    div.json {
                        (Field::new("limits", "Limits (JSON)", &given.limits).lines(8)
                            .help("Missing fields have their defaults."))
                    }
                    (errors.under("limits"))
                }
            }
        }
    }
}

pub(crate) async fn create(
    view: CompanyView<permission::Administer>,
    CsrfForm(given): CsrfForm<BindingFields>,
) -> Result<Response, Problem> {
    let mut errors = FormErrors::default();
    let key = given.key.trim().parse().map_err(|error| errors.at("key", &error)).ok();
    let provider =
        given.provider_key.parse().map_err(|error| errors.at("providerKey", &error)).ok();
    let choice = version(&mut errors, &given.version).unwrap_or_default();
    let config: JsonObject = json(&mut errors, "config", &given.config).unwrap_or_default();
    let policy: BindingPolicy = json(&mut errors, "policy", &given.policy).unwrap_or_default();
    let limits: BindingLimits = json(&mut errors, "limits", &given.limits).unwrap_or_default();
    let (Some(key), Some(provider_key), true) = (key, provider, errors.0.is_empty()) else {
        return Ok(unprocessable(&create_page(&view, &given, &errors)));
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
    match view.service.control().create_binding(&view.caller, &view.company, request).await {
        Ok(made) => {
            view.flash("The binding is created. Its requested permissions are below.");
            Ok(redirect(&view.at(&["bindings", made.binding.key.as_str()])))
        }
        Err(error) => Ok(unprocessable(&create_page(&view, &given, &FormErrors::from(error)?))),
    }
}

pub(crate) async fn edit(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
) -> Result<Markup, Problem> {
    let binding = view.service.control().binding(&view.company, &key).await?.binding;
    let given = BindingFields {
        version: match &binding.version {
            VersionChoice::Follow(range) => range.to_string(),
            VersionChoice::Pin(digest) => digest.to_string(),
        },
        config: pretty(&binding.config),
        policy: pretty(&binding.policy),
        limits: pretty(&binding.limits),
        revision: Some(binding.revision),
        ..BindingFields::default()
    };
    Ok(edit_page(&view, &key, &given, &FormErrors::default()))
}

fn pretty(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn edit_page(view: &View, key: &BindingKey, given: &BindingFields, errors: &FormErrors) -> Markup {
    let here = view.at(&["bindings", key.as_str()]);
    let body = html! {
        (general_errors(errors))
        (form(view, &format!("{here}/edit"), &html! {
            @if let Some(revision) = given.revision {
                input type="hidden" name="revision" value=(revision);
            }
            (common_fields(view, given, errors))
            (submit_or_cancel("Save", &here))
        }))
    };
    let title = format!("Edit {key}");
    Page::new(view, &title, "Changes apply to the next call, if the provider accepts them.")
        .crumb("Bindings", view.at(&["bindings"]))
        .crumb(key.as_str(), here)
        .render(&body)
}

pub(crate) async fn update(
    view: CompanyView<permission::Administer>,
    PathParam(key): PathParam<BindingKey>,
    CsrfForm(given): CsrfForm<BindingFields>,
) -> Result<Response, Problem> {
    let given = BindingFields {
        config: unix_lines(&given.config),
        policy: unix_lines(&given.policy),
        limits: unix_lines(&given.limits),
        ..given
    };
    let mut errors = FormErrors::default();
    let request = UpdateBinding {
        revision: given.revision,
        version: Some(version(&mut errors, &given.version).unwrap_or_default()),
        config: Some(json(&mut errors, "config", &given.config).unwrap_or_default()),
        policy: Some(json(&mut errors, "policy", &given.policy).unwrap_or_default()),
        // Without permission to set limits the form has no such field, and the limits stay as they
        // are.
        limits: json(&mut errors, "limits", &given.limits),
        enabled: None,
    };
    if !errors.0.is_empty() {
        return Ok(unprocessable(&edit_page(&view, &key, &given, &errors)));
    }
    match view.service.control().update_binding(&view.caller, &view.company, &key, request).await {
        Ok(_) => {
            view.flash("Saved.");
            Ok(redirect(&view.at(&["bindings", key.as_str()])))
        }
        Err(error) => Ok(unprocessable(&edit_page(&view, &key, &given, &FormErrors::from(error)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_beside_its_field() {
        let errors = vec![
            ("/ranking/b".to_owned(), "is too large".to_owned()),
            (String::new(), "is odd".to_owned()),
        ];
        let errors = FormErrors::from(ServiceError::Config { errors }).ok().unwrap();
        assert_eq!(errors.of("config").count(), 2);
        assert!(
            errors.under("config").into_string().contains("<code>/ranking/b</code> is too large")
        );
        assert_eq!(place("policy.review.threshold"), "policy");
        assert_eq!(place("grants.http.0"), "");
        let mut errors = FormErrors::default();
        assert!(
            version(&mut errors, "sha256:00").is_none() && version(&mut errors, "soon").is_none()
        );
        assert_eq!(errors.of("version").count(), 2);
    }
}
