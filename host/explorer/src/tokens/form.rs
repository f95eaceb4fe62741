//! Creating a token.

use std::collections::BTreeMap;

use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::owner::TokenOwner;
use super::value_page;
use crate::components::{
    CsrfForm, Field, checkbox, form, select_field, submit_or_cancel, unprocessable, words,
};
use memhost_core::{CreateToken, ServiceError};
use memhost_http::{Problem, permission};
use memhost_types::{Act, IdError, Role};

/// When a token may expire: the value in the form, its label, and hours.
const LIFETIMES: [(&str, &str, Option<i64>); 6] = [
    ("day", "In 1 day", Some(24)),
    ("week", "In 7 days", Some(7 * 24)),
    ("month", "In 30 days", Some(30 * 24)),
    ("quarter", "In 90 days", Some(90 * 24)),
    ("year", "In 1 year", Some(365 * 24)),
    ("never", "Never", None),
];
const DEFAULT_LIFETIME: &str = "quarter";

/// The roles that a token of a company may have.
const ROLES: [(&str, &str); 4] = [
    ("agent", "Agent: reads and writes its own scope"),
    ("company_administrator", "Administrator of this company"),
    ("auditor", "Auditor: read only"),
    ("integration", "Integration: acts for the agent or person that each request names"),
];

/// The roles that a token of no company may have.
const HOST_ROLES: [(&str, &str); 2] = [
    ("operator", "Operator: everything"),
    ("monitor", "Monitor: metrics and health, nothing of a company"),
];

/// The fields as the browser sent them.
type FormFields = BTreeMap<String, String>;

pub(crate) async fn new(owner: TokenOwner<permission::Administer>) -> Markup {
    page(&owner, &FormFields::new(), None)
}

fn page(
    owner: &TokenOwner<permission::Administer>,
    given: &FormFields,
    error: Option<&str>,
) -> Markup {
    let value = |name: &str| given.get(name).map_or("", String::as_str);
    let is_company = owner.company.is_some();
    let expires = if value("expires").is_empty() { DEFAULT_LIFETIME } else { value("expires") };
    let roles: &[(&str, &str)] = if is_company { &ROLES } else { &HOST_ROLES };
    // Those that some role of the form can have.
    let is_offered = |act: &&Act| {
        let mut of_roles = roles.iter().filter_map(|(role, _)| role.parse::<Role>().ok());
        of_roles.any(|role| memhost_core::roles(**act).any(|may| may == role))
    };
    let body = html! {
        @if let Some(error) = error { p.wrong role="alert" { (error) } }
        (form(owner, &owner.path(""), &html! {
            (Field::new("name", "Name", value("name")).required()
                .help("The program or person that uses the token, such as paperclip or ada's \
                       laptop."))
            (select_field("role", "Role", value("role"), roles.iter().copied()))
            @if is_company {
                (Field::new("agentId", "Agent", value("agentId"))
                    .help("Required for the role Agent, and only allowed there."))
                (Field::new("runId", "Run", value("runId"))
                    .help("Limits an agent's token to one run. Leave empty for any run."))
            }
            (select_field(
                "expires", "Expires", expires, LIFETIMES.map(|(value, label, _)| (value, label)),
            ))
            fieldset.field {
                legend { "Allowed operations (none selected: all operations of the role)" }
                div.ticks {
                    @for act in Act::ALL.iter().filter(is_offered) {
                        @let name = format!("op.{act}");
                        (checkbox(&name, &words(act.as_str()), given.contains_key(&name)))
                    }
                }
            }
            (submit_or_cancel("Create token", &owner.path("")))
        }))
    };
    owner.page("Create token", "The next page shows the token's value, once.").render(&body)
}

pub(crate) async fn create(
    owner: TokenOwner<permission::Administer>,
    CsrfForm(given): CsrfForm<FormFields>,
) -> Result<Response, Problem> {
    let refuse = |error: &str| Ok(unprocessable(&page(&owner, &given, Some(error))));
    let request = match request(&given, owner.company.is_none(), owner.now) {
        Ok(request) => request,
        Err(error) => return refuse(&error),
    };
    match owner.service.tenancy().create_token(&owner.caller, owner.company.as_ref(), request).await
    {
        Ok(made) => Ok(value_page(&owner, &made, "Token created").into_response()),
        Err(ServiceError::Access(error)) => refuse(&error.to_string()),
        Err(error) => Err(error.into()),
    }
}

fn request(given: &FormFields, is_host: bool, now: Timestamp) -> Result<CreateToken, String> {
    let value = |name: &str| given.get(name).cloned();
    let message = |error: IdError| error.to_string();
    let expires = LIFETIMES
        .iter()
        .find(|(name, _, _)| given.get("expires").is_some_and(|wanted| wanted == name));
    let hours = expires.ok_or("choose when the token expires")?.2;
    let operations: Vec<_> =
        Act::ALL.iter().copied().filter(|act| given.contains_key(&format!("op.{act}"))).collect();
    let role = value("role").unwrap_or_else(|| if is_host { "operator" } else { "" }.to_owned());
    Ok(CreateToken {
        name: value("name").unwrap_or_default(),
        role: role.parse().map_err(message)?,
        agent_id: value("agentId").map(|id| id.trim().parse()).transpose().map_err(message)?,
        run_id: value("runId"),
        operations: (!operations.is_empty()).then_some(operations),
        expires_at: hours.and_then(|hours| now.checked_add(SignedDuration::from_hours(hours)).ok()),
    })
}
