//! Tokens: who may reach a company's memory, and the operators' own. A value is shown once, on the page that answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use serde::Deserialize;

use super::guard::see;
use super::kit::{
    Col, Facts, Field, Page, Row, Signed, Tone, View, badge, confirm, empty, exact, form, panel, short_id, table, time,
    words,
};
use super::pieces::{again, choose, tick};
use memhost_core::{Act, Caller, CreateToken, Service};
use memhost_http::{Authorized, HostAuthorized, Problem, ProblemCode, parse, permission};
use memhost_types::{CompanyId, NewToken, OperationKind, Role, Token, TokenId};

/// How long a token may be good for: what the form sends, what it is called, and hours.
const LASTS: [(&str, &str, Option<i64>); 6] = [
    ("day", "One day", Some(24)),
    ("week", "One week", Some(7 * 24)),
    ("month", "30 days", Some(30 * 24)),
    ("quarter", "90 days", Some(90 * 24)),
    ("year", "One year", Some(365 * 24)),
    ("ever", "Until it is revoked", None),
];

/// The list's own address: a company's, or the operators'.
fn home(view: &View) -> String {
    if view.company.is_some() { view.at(&["tokens"]) } else { "/tokens".to_owned() }
}

fn page<'a>(view: &'a View, title: &'a str, about: &'a str) -> Page<'a> {
    let up = if view.company.is_some() { "Tokens" } else { "Operator tokens" };
    Page::new(view, title, about).crumb(up, home(view))
}

fn may(view: &View) -> bool {
    view.allows(if view.company.is_some() { Act::Administer } else { Act::Host })
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
) -> Markup {
    listed(&view, &service.tokens(Some(&allowed.company)))
}

pub(super) async fn list_operators(State(service): State<Arc<Service>>, view: View, _: HostAuthorized) -> Markup {
    listed(&view, &service.tokens(None))
}

fn standing(token: &Token, now: Timestamp) -> Markup {
    if token.revoked_at.is_some() {
        return badge(Tone::Plain, "revoked");
    }
    match token.expires_at {
        Some(end) if end <= now => badge(Tone::Plain, "expired"),
        Some(end) if end.duration_since(now) < SignedDuration::from_hours(7 * 24) => badge(Tone::Warning, "ends soon"),
        _ => badge(Tone::Good, "good"),
    }
}

fn listed(view: &View, tokens: &[Token]) -> Markup {
    let columns = [
        Col::text("Name"),
        Col::text("Is"),
        Col::text("State"),
        Col::text("For").long(),
        Col::text("Ends").wide(),
        Col::text("Made").wide(),
        Col::text("By").wide(),
        Col::text("Change"),
    ];
    let columns = if may(view) { &columns[..] } else { &columns[..7] };
    let rows = tokens.iter().rev().map(|token| {
        Row::new()
            .key(token.id.0)
            .cell(html! { strong { (token.name) } " " span.soft { (short_id(token.id.0)) } })
            .cell(words(token.role.as_str()))
            .cell(standing(token, view.now))
            .cell(reach(token))
            .maybe(token.expires_at.map(|end| time(end, view.now)))
            .cell(time(token.created_at, view.now))
            .cell(token.created_by.as_str())
            .maybe((token.revoked_at.is_none()).then(|| changes(view, token)))
    });
    let (title, about) = match &view.company {
        Some(_) => ("Tokens", "Who may reach this company's memory. Values are shown once and kept by nobody."),
        None => ("Operator tokens", "Who may run this host, beside the token that it printed when it first started."),
    };
    let body = html! {
        @if tokens.is_empty() {
            (empty("No token yet", &html! { "An agent, an administrator or an auditor each need one of their own. " code { "memhost token create" } " makes one, too." }))
        } @else {
            (table(title, columns, rows))
        }
    };
    let new = html! { @if may(view) { a.button.primary href={ (home(view)) "/new" } { "New token" } } };
    Page::new(view, title, about).action(new).render(&body)
}

/// What it is good for, in words.
fn reach(token: &Token) -> String {
    let mut parts = Vec::new();
    parts.extend(token.agent_id.as_ref().map(|agent| format!("agent {agent}")));
    parts.extend(token.run_id.as_ref().map(|run| format!("run {run} only")));
    if let Some(operations) = &token.operations {
        let names: Vec<_> = operations.iter().map(|kind| kind.as_str()).collect();
        parts.push(format!("{} only", names.join(", ")));
    }
    match (parts.is_empty(), token.role) {
        (false, _) => parts.join(", "),
        (true, Role::Operator) => "the whole host".to_owned(),
        (true, Role::Auditor) => "looking at everything".to_owned(),
        (true, _) => "everything of its role".to_owned(),
    }
}

fn changes(view: &View, token: &Token) -> Markup {
    let at = |what: &str| format!("{}/{}/{what}", home(view), token.id.0);
    let of = html! { span.vh { " " (token.name) } };
    html! {
        a href=(at("rotate")) { "Rotate" (of) } " "
        a.bad href=(at("revoke")) { "Revoke" (of) }
    }
}

pub(super) async fn new(view: View, _: Authorized<permission::Administer>) -> Markup {
    fresh(&view, &BTreeMap::new(), None)
}

pub(super) async fn new_operator(view: View, _: HostAuthorized) -> Markup {
    fresh(&view, &BTreeMap::new(), None)
}

fn fresh(view: &View, given: &BTreeMap<String, String>, wrong: Option<&str>) -> Markup {
    let value = |name: &str| given.get(name).map_or("", String::as_str);
    let is_company = view.company.is_some();
    let roles = [
        ("agent", "Agent: works in its own scope"),
        ("company_administrator", "Administrator of this company"),
        ("auditor", "Auditor: looks and changes nothing"),
    ];
    let kinds = OperationKind::ALL.iter().filter(|kind| **kind != OperationKind::Control);
    let body = html! {
        @if let Some(wrong) = wrong { p.wrong role="alert" { (wrong) } }
        (form(view, &home(view), &html! {
            (Field::new("name", "Name", value("name")).required().help("What will use it, such as paperclip or ada's laptop."))
            @if is_company {
                (choose("role", "Its bearer is", value("role"), roles))
                (Field::new("agentId", "Agent", value("agentId")).help("Which agent; for an agent only, and needed there."))
                (Field::new("runId", "Run", value("runId")).help("The only run that the agent may act in. Empty: any."))
            }
            (choose("lasts", "Good for", if value("lasts").is_empty() { "quarter" } else { value("lasts") }, LASTS.map(|(value, called, _)| (value, called))))
            @if is_company {
                fieldset.field {
                    legend { "Only these operations; none chosen: all of its role" }
                    div.ticks { @for kind in kinds { @let name = format!("op.{}", kind.as_str()); (tick(&name, &words(kind.as_str()), given.contains_key(&name))) } }
                }
            }
            div.actions { button.primary { "Make the token" } a.quiet href=(home(view)) { "Cancel" } }
        }))
    };
    page(view, "New token", "Its value is shown once, on the next page.").render(&body)
}

pub(super) async fn create(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::Administer>,
    Signed(given): Signed<BTreeMap<String, String>>,
) -> Result<Response, Problem> {
    make(&service, &view, &allowed.caller, Some(&allowed.company), &given).await
}

pub(super) async fn create_operator(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: HostAuthorized,
    Signed(given): Signed<BTreeMap<String, String>>,
) -> Result<Response, Problem> {
    make(&service, &view, &allowed.caller, None, &given).await
}

async fn make(
    service: &Service,
    view: &View,
    caller: &Caller,
    company: Option<&CompanyId>,
    given: &BTreeMap<String, String>,
) -> Result<Response, Problem> {
    let request = match request(given, company.is_none(), view.now) {
        Ok(request) => request,
        Err(wrong) => return Ok(again(&fresh(view, given, Some(&wrong)))),
    };
    match service.create_token(caller, company, request).await {
        Ok(made) => Ok(shown(view, &made, "Token made").into_response()),
        Err(memhost_core::ServiceError::Access(error)) => Ok(again(&fresh(view, given, Some(&error.to_string())))),
        Err(error) => Err(error.into()),
    }
}

fn request(given: &BTreeMap<String, String>, is_host: bool, now: Timestamp) -> Result<CreateToken, String> {
    let value = |name: &str| given.get(name).cloned();
    let agent_id = value("agentId").map(|id| id.trim().parse()).transpose();
    let lasts = LASTS.iter().find(|(name, _, _)| given.get("lasts").is_some_and(|wanted| wanted == name));
    let hours = lasts.ok_or("choose how long it is good for")?.2;
    let operations: Vec<OperationKind> = OperationKind::ALL
        .iter()
        .copied()
        .filter(|kind| given.contains_key(&format!("op.{}", kind.as_str())))
        .collect();
    Ok(CreateToken {
        name: value("name").unwrap_or_default(),
        role: if is_host {
            Role::Operator
        } else {
            value("role").unwrap_or_default().parse().map_err(|error| said(&error))?
        },
        agent_id: agent_id.map_err(|error| said(&error))?,
        run_id: value("runId"),
        operations: (!operations.is_empty()).then_some(operations),
        expires_at: hours.and_then(|hours| now.checked_add(SignedDuration::from_hours(hours)).ok()),
    })
}

fn said(error: &memhost_types::IdError) -> String {
    error.to_string()
}

/// The one page that has the value.
fn shown(view: &View, made: &NewToken, title: &str) -> Markup {
    let token = &made.token;
    let facts = Facts::default()
        .row("Name", token.name.as_str())
        .row("Its bearer is", words(token.role.as_str()))
        .row("For", reach(token))
        .maybe("Ends", token.expires_at.map(exact));
    let body = html! {
        (panel("value", "Its value, this once", &html! {
            pre.secret { (made.value) }
            p.help { "Copy it now. This host keeps only a digest: when you leave this page, nobody can show it again." }
        }))
        (panel("about", "What it is", &html! { (facts) }))
        div.actions { a.button.primary href=(home(view)) { "I have it" } }
    };
    page(view, title, "Give it to whoever is to use it, over a way that nobody else reads.").render(&body)
}

fn id(text: &str) -> Result<TokenId, Problem> {
    parse("tokenId", text).map(TokenId)
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

fn known(service: &Service, company: Option<&CompanyId>, text: &str) -> Result<Token, Problem> {
    let id = id(text)?;
    let found = service.tokens(company).into_iter().find(|token| token.id == id);
    let missing = || Problem::new(ProblemCode::NoToken, "there is no such token; look at the list again");
    found.ok_or_else(missing)
}

/// What is asked before a token's value is made anew, or taken back.
fn ask(view: &View, token: &Token, is_rotation: bool) -> Markup {
    let (title, about, does) = match is_rotation {
        true => (
            "Rotate this token?",
            "It gets another value, which you are shown once. The value before is good for nothing at once.",
            "Rotate",
        ),
        false => (
            "Revoke this token?",
            "Whoever still sends it is refused, and the refusal is recorded. It cannot be given back.",
            "Revoke",
        ),
    };
    let facts = Facts::default()
        .row("Name", token.name.as_str())
        .row("Its bearer is", words(token.role.as_str()))
        .row("For", reach(token))
        .row("Made", time(token.created_at, view.now));
    let body = html! {
        (panel("about", "Which", &html! { (facts) }))
        (confirm(view, &view.path, does, &[], &home(view)))
    };
    page(view, title, about).render(&body)
}

macro_rules! asks {
    ($($company:ident, $host:ident = $is_rotation:expr;)+) => {$(
        pub(super) async fn $company(
            State(service): State<Arc<Service>>,
            view: View,
            Path((_, token)): Path<(String, String)>,
            allowed: Authorized<permission::Administer>,
        ) -> Result<Markup, Problem> {
            Ok(ask(&view, &known(&service, Some(&allowed.company), &token)?, $is_rotation))
        }

        pub(super) async fn $host(
            State(service): State<Arc<Service>>,
            view: View,
            Path(token): Path<String>,
            _: HostAuthorized,
        ) -> Result<Markup, Problem> {
            Ok(ask(&view, &known(&service, None, &token)?, $is_rotation))
        }
    )+};
}

asks! {
    ask_rotate, ask_rotate_operator = true;
    ask_revoke, ask_revoke_operator = false;
}

pub(super) async fn rotate(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, token)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: Signed<Nothing>,
) -> Result<Markup, Problem> {
    let made = service.rotate_token(&allowed.caller, Some(&allowed.company), id(&token)?).await?;
    Ok(shown(&view, &made, "Token rotated"))
}

pub(super) async fn rotate_operator(
    State(service): State<Arc<Service>>,
    view: View,
    Path(token): Path<String>,
    allowed: HostAuthorized,
    _: Signed<Nothing>,
) -> Result<Markup, Problem> {
    let made = service.rotate_token(&allowed.caller, None, id(&token)?).await?;
    Ok(shown(&view, &made, "Token rotated"))
}

pub(super) async fn revoke(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, token)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let token = service.revoke_token(&allowed.caller, Some(&allowed.company), id(&token)?).await?;
    view.say(format!("The token {} is revoked.", token.name));
    Ok(see(&home(&view)))
}

pub(super) async fn revoke_operator(
    State(service): State<Arc<Service>>,
    view: View,
    Path(token): Path<String>,
    allowed: HostAuthorized,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let token = service.revoke_token(&allowed.caller, None, id(&token)?).await?;
    view.say(format!("The token {} is revoked.", token.name));
    Ok(see(&home(&view)))
}
