//! The activity log: every change to a company's memory, with the values before and after.

mod diff;

use maud::{Markup, html};

use super::components::{
    CompanyView, ListParams, Page, View, binding_link, empty, first_note, pager, short_id, time,
};
use memhost_executor::off_executor;
use memhost_http::{Problem, permission};
use memhost_types::{Activity, ActivityAction};

/// A change of more fields than this is folded away.
const OPEN: usize = 8;
/// The same for a new thing, which has no values before.
const FEW: usize = 3;

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<()>,
) -> Result<Markup, Problem> {
    let page =
        view.service.control().activity(&view.company, params.query.cursor.as_deref()).await?;
    let body = html! {
        @if page.items.is_empty() {
            (empty("No activity yet", &html! {
                "The first write of a company creates its binding: "
                (first_note(view.company.as_str()))
            }))
        } @else {
            ol.log {
                (off_executor(
                    usize::MAX, || html! { @for entry in &page.items { (change(&view, entry)) } },
                ))
            }
            (pager(&view, &params, page.next_cursor.as_deref(), "changes"))
        }
    };
    Ok(Page::new(
        &view,
        "Activity",
        "Changes to this company's memory: who made each one, and the values before and after.",
    )
    .render(&body))
}

/// The action, as the words before and after the name of its subject.
fn action_text(action: ActivityAction) -> (&'static str, &'static str) {
    match action {
        ActivityAction::BindingCreated => ("created the binding", ""),
        ActivityAction::BindingChanged => ("changed the binding", ""),
        ActivityAction::GrantsChanged => ("changed the permissions of", ""),
        ActivityAction::TargetChanged => ("changed the binding of", ""),
        ActivityAction::VersionSwitched => ("switched the version of", ""),
        ActivityAction::VersionRejected => ("rejected a version for", ""),
        ActivityAction::BindingReset => ("reset the binding", ""),
        ActivityAction::SecretSet => ("set the secret", ""),
        ActivityAction::SecretRemoved => ("removed the secret", ""),
        ActivityAction::BindingDeleted => ("deleted the binding", "and its stored data"),
        ActivityAction::TokenCreated => ("created the token", ""),
        ActivityAction::TokenRotated => ("rotated the token", ""),
        ActivityAction::TokenRevoked => ("revoked the token", ""),
        ActivityAction::BudgetChanged => ("changed the budget of the", ""),
        ActivityAction::RetentionChanged => ("changed the retention of the", ""),
        ActivityAction::ReviewDecided => ("decided the review item", ""),
        ActivityAction::JobChanged => ("changed the job", ""),
        ActivityAction::DeliveryReplayed => ("replayed the delivery", ""),
        ActivityAction::DeliveryDiscarded => ("discarded the delivery", ""),
        ActivityAction::FinanceEventAdded => ("added the flat charge", ""),
        ActivityAction::CompanyImported => ("imported", ""),
        ActivityAction::CompanyRestored => ("restored the records of", ""),
    }
}

/// The subject, with a link if it has a page.
fn subject(view: &View, entry: &Activity) -> Markup {
    let subject = entry.subject.as_str();
    let to = |page: &str| html! { a href=(view.at(&[page, subject])) { (short_id(subject)) } };
    match entry.action {
        ActivityAction::BindingCreated
        | ActivityAction::BindingChanged
        | ActivityAction::GrantsChanged
        | ActivityAction::VersionSwitched
        | ActivityAction::VersionRejected
        | ActivityAction::BindingReset => binding_link(view, subject),
        ActivityAction::ReviewDecided => to("reviews"),
        ActivityAction::JobChanged => to("jobs"),
        ActivityAction::DeliveryReplayed | ActivityAction::DeliveryDiscarded => to("hooks"),
        ActivityAction::FinanceEventAdded => {
            html! { a href=(view.at(&["charges"])) { (short_id(subject)) } }
        }
        _ => html! { strong { (subject) } },
    }
}

fn change(view: &View, entry: &Activity) -> Markup {
    let (first, last) = action_text(entry.action);
    let changes = diff::changes(entry.before.as_ref(), entry.after.as_ref());
    html! {
        li data-key=(entry.id) {
            div.between {
                p { strong { (entry.principal) } " " (first) " " (subject(view, entry)) " " (last) }
                (time(entry.at, view.now))
            }
            @if changes.len() <= if entry.before.is_some() { OPEN } else { FEW } {
                (diff::table(&changes))
            } @else if !changes.is_empty() {
                details.more {
                    summary {
                        @if entry.before.is_none() { "Show fields" } @else { "Show changes" }
                    }
                    (diff::table(&changes))
                }
            }
        }
    }
}
