//! Tokens: a company's, and those of the host's operators. The same pages serve both. A token's value is shown once.

mod form;
mod owner;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use serde::Deserialize;

use super::components::{
    Column, CsrfForm, Details, Page, Row, Tone, View, badge, confirm, empty, exact, panel, short_id, table, time, words,
};
use super::guard::see;
pub(super) use form::{create, new};
use memhost_core::Service;
use memhost_http::{PathParam, Problem, ProblemCode, permission};
use memhost_types::{NewToken, Role, Token, TokenId};
use owner::TokenOwner;

/// A token that expires within this time is marked.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    owner: TokenOwner<permission::View>,
) -> Markup {
    let may_change = owner.may_change(&view);
    let columns = [
        Column::text("Name"),
        Column::text("Role"),
        Column::text("Status"),
        Column::text("Access").long(),
        Column::text("Expires").wide(),
        Column::text("Created").wide(),
        Column::text("Created by").wide(),
        Column::text("Actions"),
    ];
    let columns = if may_change { &columns[..] } else { &columns[..7] };
    let tokens = service.tokens(owner.company());
    let rows = tokens.iter().rev().map(|token| {
        Row::new()
            .key(token.id.0)
            .cell(html! { strong { (token.name) } " " span.soft { (short_id(token.id.0)) } })
            .cell(words(token.role.as_str()))
            .cell(status(token, view.now))
            .cell(access(token))
            .maybe(token.expires_at.map(|end| time(end, view.now)))
            .cell(time(token.created_at, view.now))
            .cell(token.created_by.as_str())
            .maybe((token.revoked_at.is_none()).then(|| actions(&owner, token)))
    });
    let about = match owner.company() {
        Some(_) => "Access to this company's memory. A token's value is shown only when it is created or rotated.",
        None => "Access to the whole host, in addition to the token that the host printed when it first started.",
    };
    let body = html! {
        @if tokens.is_empty() {
            (empty("No tokens", &html! {
                "Create one for each agent, administrator or auditor, here or with " code { "memhost token create" } "."
            }))
        } @else {
            (table(owner.title(), columns, rows))
        }
    };
    let create = html! { @if may_change { a.button.primary href=(owner.path("new")) { "Create token" } } };
    Page::new(&view, owner.title(), about).action(create).render(&body)
}

fn status(token: &Token, now: Timestamp) -> Markup {
    if token.revoked_at.is_some() {
        return badge(Tone::Plain, "revoked");
    }
    match token.expires_at {
        Some(end) if end <= now => badge(Tone::Plain, "expired"),
        Some(end) if end.duration_since(now) < EXPIRES_SOON => badge(Tone::Warning, "expires soon"),
        _ => badge(Tone::Good, "active"),
    }
}

/// What a token gives access to, in words.
fn access(token: &Token) -> String {
    let mut parts = Vec::new();
    parts.extend(token.agent_id.as_ref().map(|agent| format!("agent {agent}")));
    parts.extend(token.run_id.as_ref().map(|run| format!("only run {run}")));
    if let Some(operations) = &token.operations {
        let names: Vec<_> = operations.iter().map(|kind| kind.as_str()).collect();
        parts.push(format!("only {}", names.join(", ")));
    }
    match (parts.is_empty(), token.role) {
        (false, _) => parts.join(", "),
        (true, Role::Operator) => "the whole host".to_owned(),
        (true, Role::Auditor) => "read only".to_owned(),
        (true, _) => "all operations of the role".to_owned(),
    }
}

fn actions<D>(owner: &TokenOwner<D>, token: &Token) -> Markup {
    let at = |action: &str| owner.path(&format!("{}/{action}", token.id.0));
    let name = html! { span.vh { " " (token.name) } };
    html! {
        a href=(at("rotate")) { "Rotate" (name) } " "
        a.bad href=(at("revoke")) { "Revoke" (name) }
    }
}

fn details(token: &Token) -> Details {
    Details::default()
        .row("Name", token.name.as_str())
        .row("Role", words(token.role.as_str()))
        .row("Access", access(token))
        .maybe("Expires", token.expires_at.map(exact))
}

/// The only page that shows a token's value.
fn value_page<D>(view: &View, owner: &TokenOwner<D>, made: &NewToken, title: &str) -> Markup {
    let body = html! {
        (panel("value", "Token value", &html! {
            pre.secret { (made.value) }
            p.help { "Copy the value now. The host stores only a digest, so it cannot show the value again." }
        }))
        (panel("about", "Details", &html! { (details(&made.token)) }))
        div.actions { a.button.primary href=(owner.path("")) { "Done" } }
    };
    owner
        .page(view, title, "Send the value over a private channel to the program or person that needs it.")
        .render(&body)
}

fn find<D>(service: &Service, owner: &TokenOwner<D>, id: TokenId) -> Result<Token, Problem> {
    let found = service.tokens(owner.company()).into_iter().find(|token| token.id == id);
    let missing = || Problem::new(ProblemCode::NoToken, "there is no such token; reload the list of tokens");
    found.ok_or_else(missing)
}

/// Asks for confirmation before a token's value is replaced or revoked.
fn confirmation<D>(
    view: &View,
    owner: &TokenOwner<D>,
    token: &Token,
    (title, about, submit): (&str, &str, &str),
) -> Markup {
    let body = html! {
        (panel("about", "Details", &html! { (details(token).row("Created", time(token.created_at, view.now))) }))
        (confirm(view, &view.path, submit, &[], &owner.path("")))
    };
    owner.page(view, title, about).render(&body)
}

pub(super) async fn ask_rotate(
    State(service): State<Arc<Service>>,
    view: View,
    PathParam(id): PathParam<TokenId>,
    owner: TokenOwner<permission::Administer>,
) -> Result<Markup, Problem> {
    let about = "The token gets a new value, which is shown once. The current value stops working immediately.";
    let texts = ("Rotate token?", about, "Rotate token");
    Ok(confirmation(&view, &owner, &find(&service, &owner, id)?, texts))
}

pub(super) async fn ask_revoke(
    State(service): State<Arc<Service>>,
    view: View,
    PathParam(id): PathParam<TokenId>,
    owner: TokenOwner<permission::Administer>,
) -> Result<Markup, Problem> {
    let about =
        "Requests with this token are refused from now on, and each refusal is recorded. This cannot be undone.";
    let texts = ("Revoke token?", about, "Revoke token");
    Ok(confirmation(&view, &owner, &find(&service, &owner, id)?, texts))
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn rotate(
    State(service): State<Arc<Service>>,
    view: View,
    PathParam(id): PathParam<TokenId>,
    owner: TokenOwner<permission::Administer>,
    _: CsrfForm<Nothing>,
) -> Result<Markup, Problem> {
    let made = service.rotate_token(owner.caller(), owner.company(), id).await?;
    Ok(value_page(&view, &owner, &made, "Token rotated"))
}

pub(super) async fn revoke(
    State(service): State<Arc<Service>>,
    view: View,
    PathParam(id): PathParam<TokenId>,
    owner: TokenOwner<permission::Administer>,
    _: CsrfForm<Nothing>,
) -> Result<Response, Problem> {
    let token = service.revoke_token(owner.caller(), owner.company(), id).await?;
    view.say(format!("The token {} is revoked.", token.name));
    Ok(see(&owner.path("")))
}
