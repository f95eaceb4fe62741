//! The activity log: every change to a company's memory, with how it was and how it is.

mod diff;

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

use super::kit::{Asked, Page, View, empty, pager, short_id, time};
use super::pieces;
use memhost_core::Service;
use memhost_http::{Authorized, Problem, permission};
use memhost_types::{Activity, ActivityAction};

/// More changed fields than this are folded away.
const OPEN: usize = 8;
/// The same where there is nothing to compare with.
const FEW: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityQuery {
    cursor: Option<String>,
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    asked: Asked<ActivityQuery>,
) -> Result<Markup, Problem> {
    let page = service.activity(&allowed.company, asked.query.cursor.as_deref()).await?;
    let body = html! {
        @if page.items.is_empty() {
            (empty("Nothing was changed yet", &html! {
                "The first operation of a company makes its binding: " code { "memhost note --company " (allowed.company) " 'Deploys are frozen on Fridays'" }
            }))
        } @else {
            ol.log { @for entry in &page.items { (change(&view, entry)) } }
            (pager(&view, &asked, page.next_cursor.as_deref(), "changes"))
        }
    };
    Ok(Page::new(&view, "Activity", "Every change to this company's memory, who made it, and what it was before.")
        .render(&body))
}

/// What was done, before and after the thing's name.
fn said(action: ActivityAction) -> (&'static str, &'static str) {
    match action {
        ActivityAction::BindingCreated => ("made the binding", ""),
        ActivityAction::BindingChanged => ("changed the binding", ""),
        ActivityAction::GrantsChanged => ("changed what", "may reach"),
        ActivityAction::TargetChanged => ("pointed", "at another binding"),
        ActivityAction::VersionSwitched => ("had another version serve", ""),
        ActivityAction::VersionRejected => ("kept a version from", ""),
        ActivityAction::BindingReset => ("reset the binding", ""),
        ActivityAction::SecretSet => ("set the secret", ""),
        ActivityAction::SecretRemoved => ("removed the secret", ""),
        ActivityAction::BindingDeleted => ("deleted the binding", "with what it had stored"),
        ActivityAction::TokenCreated => ("made the token", ""),
        ActivityAction::TokenRotated => ("gave the token", "another value"),
        ActivityAction::TokenRevoked => ("revoked the token", ""),
        ActivityAction::BudgetChanged => ("changed the budget of", ""),
        ActivityAction::RetentionChanged => ("changed what is kept of operations:", ""),
        ActivityAction::ReviewDecided => ("decided about the review item", ""),
        ActivityAction::JobChanged => ("changed the job", ""),
        ActivityAction::DeliveryReplayed => ("replayed the delivery", ""),
        ActivityAction::FinanceEventAdded => ("entered the charge", ""),
        ActivityAction::CompanyImported => ("took in", ""),
    }
}

/// The thing, with a link where it has a page.
fn subject(view: &View, entry: &Activity) -> Markup {
    let subject = entry.subject.as_str();
    let to = |page: &str| html! { a href=(view.at(&[page, subject])) { (short_id(subject)) } };
    match entry.action {
        ActivityAction::BindingCreated
        | ActivityAction::BindingChanged
        | ActivityAction::GrantsChanged
        | ActivityAction::VersionSwitched
        | ActivityAction::VersionRejected
        | ActivityAction::BindingReset => pieces::binding(view, subject),
        ActivityAction::ReviewDecided => to("reviews"),
        ActivityAction::JobChanged => to("jobs"),
        ActivityAction::DeliveryReplayed => to("hooks"),
        ActivityAction::FinanceEventAdded => html! { a href=(view.at(&["charges"])) { (short_id(subject)) } },
        _ => html! { strong { (subject) } },
    }
}

fn change(view: &View, entry: &Activity) -> Markup {
    let (first, last) = said(entry.action);
    let changes = diff::of(entry.before.as_ref(), entry.after.as_ref());
    html! {
        li data-key=(entry.id) {
            div.between {
                p { strong { (entry.principal) } " " (first) " " (subject(view, entry)) " " (last) }
                (time(entry.at, view.now))
            }
            @if changes.len() <= if entry.before.is_some() { OPEN } else { FEW } {
                (diff::table(&changes))
            } @else if !changes.is_empty() {
                details.more { summary { @if entry.before.is_none() { "As it is now" } @else { "What changed" } } (diff::table(&changes)) }
            }
        }
    }
}
