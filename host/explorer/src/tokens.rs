//! Tokens: a company's, and those of the host's operators. The same pages serve both. A token's
//! value is shown once.

pub(super) mod form;
mod owner;

use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::components::{
    CsrfForm, Details, NoFields, Page, Row, Tone, badge, confirm, empty, exact, hour, long, panel,
    short_id, table, time, wide, words,
};
use super::guard::redirect;
use memhost_core::RotateToken;
use memhost_http::{PathParam, Problem, ProblemCode, permission};
use memhost_types::{NewToken, Role, Token, TokenId};
use owner::TokenOwner;

/// A token that expires within this time is marked.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) async fn list(owner: TokenOwner<permission::View>) -> Markup {
    let may_change = owner.may_change();
    let tokens = owner.service.tenancy().tokens(owner.company.as_ref());
    let rows = tokens.iter().rev().map(|token| {
        let row = Row::new()
            .key(token.id.0)
            .cell(
                "Name",
                html! { strong { (token.name) } " " span.soft { (short_id(token.id.0)) } },
            )
            .cell("Role", words(token.role.as_str()))
            .cell("Status", status(token, owner.now))
            .cell(long("Access"), access(token))
            .maybe(wide("Expires"), token.expires_at.map(|end| time(end, owner.now)))
            .maybe(wide("Last used"), token.last_used_at.map(hour))
            .cell(wide("Created"), time(token.created_at, owner.now))
            .cell(wide("Created by"), token.created_by.to_string());
        if may_change {
            row.maybe("Actions", token.revoked_at.is_none().then(|| actions(&owner, token)))
        } else {
            row
        }
    });
    let about = match owner.company {
        Some(_) => {
            "Access to this company's memory. A token's value is shown only when it is created or \
             rotated."
        }
        None => {
            "Access to the whole host, in addition to the token that the host printed when it \
             first started."
        }
    };
    let body = html! {
        @if tokens.is_empty() {
            (empty("No tokens", &html! {
                "Create one for each agent, administrator or auditor, here or with " code {
                    "memhost token create"
                } "."
            }))
        } @else { (table(owner.title(), rows)) }
    };
    let create =
        html! { @if may_change { a.button.primary href=(owner.path("new")) { "Create token" } } };
    Page::new(&owner, owner.title(), about).action(create).render(&body)
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

/// The access that a token gives, in words.
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
        (true, Role::Monitor) => "metrics and health of the host".to_owned(),
        (true, Role::Integration) => {
            "memory of the agent or person that each request names".to_owned()
        }
        (true, _) => "all operations of the role".to_owned(),
    }
}

fn actions<P>(owner: &TokenOwner<P>, token: &Token) -> Markup {
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
        .maybe("Last used", token.last_used_at.map(hour))
        .maybe("Previous value works until", token.previous_value_until.map(exact))
}

/// The only page that shows a token's value.
fn value_page<P>(owner: &TokenOwner<P>, made: &NewToken, title: &str) -> Markup {
    let body = html! {
        (panel("value", "Token value", &html! {
            pre.secret { (made.value) }
            p.help { "Copy the value now. The host stores only a digest, so it cannot show the \
                      value again." }
        }))
        (panel("about", "Details", details(&made.token)))
        div.actions { a.button.primary href=(owner.path("")) { "Done" } }
    };
    owner
        .page(
            title,
            "Send the value over a private channel to the program or person that needs it.",
        )
        .render(&body)
}

fn find<P>(owner: &TokenOwner<P>, id: TokenId) -> Result<Token, Problem> {
    let found = owner
        .service
        .tenancy()
        .tokens(owner.company.as_ref())
        .into_iter()
        .find(|token| token.id == id);
    let missing =
        || Problem::new(ProblemCode::NoToken, "there is no such token; reload the list of tokens");
    found.ok_or_else(missing)
}

/// Asks for confirmation before a token's value is replaced or revoked.
fn confirmation<P>(
    owner: &TokenOwner<P>,
    id: TokenId,
    title: &str,
    about: &str,
) -> Result<Markup, Problem> {
    let token = find(owner, id)?;
    let body = html! {
        (panel(
            "about", "Details",
            &html! { (details(&token).row("Created", time(token.created_at, owner.now))) },
        ))
        (confirm(owner, &owner.path, title.trim_end_matches('?'), &[], &owner.path("")))
    };
    Ok(owner.page(title, about).render(&body))
}

pub(super) async fn ask_rotate(
    owner: TokenOwner<permission::Administer>,
    PathParam(id): PathParam<TokenId>,
) -> Result<Markup, Problem> {
    let about = "The token gets a new value, which is shown once. The current value stops working \
                 immediately.";
    confirmation(&owner, id, "Rotate token?", about)
}

pub(super) async fn ask_revoke(
    owner: TokenOwner<permission::Administer>,
    PathParam(id): PathParam<TokenId>,
) -> Result<Markup, Problem> {
    let about = "Requests with this token are refused from now on, and each refusal is recorded. \
                 This cannot be undone.";
    confirmation(&owner, id, "Revoke token?", about)
}

pub(super) async fn rotate(
    owner: TokenOwner<permission::Administer>,
    PathParam(id): PathParam<TokenId>,
    _: CsrfForm<NoFields>,
) -> Result<Markup, Problem> {
    let made = owner
        .service
        .tenancy()
        .rotate_token(&owner.caller, owner.company.as_ref(), id, RotateToken::default())
        .await?;
    Ok(value_page(&owner, &made, "Token rotated"))
}

pub(super) async fn revoke(
    owner: TokenOwner<permission::Administer>,
    PathParam(id): PathParam<TokenId>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    let token =
        owner.service.tenancy().revoke_token(&owner.caller, owner.company.as_ref(), id).await?;
    owner.flash(format!("The token {} is revoked.", token.name));
    Ok(redirect(&owner.path("")))
}
