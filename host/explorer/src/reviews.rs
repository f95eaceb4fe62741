//! The review queue: items that need approval, and deciding them.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::components::{
    Choice, CompanyView, Control, CsrfForm, Details, Field, ListParams, PAGE_SIZE, Page, Row, Tone,
    View, badge, binding_link, choices, filter_fields, form, listing, long, number, operation_link,
    panel, percent, record_link, sentence, short_id, source_text, time, unix_lines, wide,
};
use super::guard::redirect;
use memhost_core::Act;
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{
    Decision, ReviewDecision, ReviewFilter, ReviewId, ReviewItem, ReviewStatus, ReviewSubject,
    SourceRef,
};

filter_fields! {
    ReviewFilter {
        "status", "Status", Control::Select(|| choices(ReviewStatus::ALL)), read_text(status);
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "kind", "Kind", Control::Text, read_text(kind);
        "piiRisk", "Personal data", Control::Select(risk_levels), read_number(pii_risk);
    }
}

/// The levels of risk that a text has personal data.
const RISKS: [(&str, Tone, &str); 3] = [
    ("2", Tone::Bad, "personal data"),
    ("1", Tone::Warning, "possible"),
    ("0", Tone::Plain, "none found"),
];

fn risk_levels() -> Vec<Choice> {
    RISKS.map(|(level, _, label)| (level.to_owned(), label.to_owned())).to_vec()
}

fn risk(level: u8) -> Markup {
    let (_, tone, label) = RISKS[2 - usize::from(level.min(2))];
    badge(tone, label)
}

fn status(status: ReviewStatus) -> Markup {
    match status {
        ReviewStatus::Pending => badge(Tone::Warning, "pending"),
        ReviewStatus::Approved => badge(Tone::Good, "approved"),
        ReviewStatus::Rejected => badge(Tone::Plain, "rejected"),
    }
}

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<ReviewFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .operations()
        .reviews(&view.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    let rows = page.items.iter().map(|item| {
        Row::to(view.at(&["reviews", &item.id.0.to_string()]))
            .key(item.id.0)
            .cell(long("Text"), first_line(&item.text))
            .cell("Status", status(item.status))
            .maybe(wide("Kind"), item.kind.as_deref())
            .maybe(number("Confidence").wide(), item.confidence.map(percent))
            .cell("Personal data", risk(item.pii_risk))
            .cell(wide("Binding"), item.binding_key.as_str())
            .cell("Created", time(item.created_at, view.now))
    });
    let none = html! {
        "A binding whose policy has " code { "review" }
            " holds back uncertain or personal records. Set it under "
        a href=(view.at(&["bindings"])) { "Bindings" } "."
    };
    let (names, none) = (("Review queue", "items"), ("No items to review", &none));
    let body = listing(&view, &params, names, page.next_cursor.as_deref(), none, rows);
    Ok(Page::new(&view, "Review queue", "Records and captures that need approval, newest first.")
        .live("operations")
        .render(&body))
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)");
    line.chars().take(160).collect()
}

/// The source: of the held delivery, or of the operation that brought the record.
async fn source(view: &View, item: &ReviewItem) -> Option<SourceRef> {
    let service = &view.service;
    match &item.subject {
        ReviewSubject::Delivery(id) => {
            service.control().delivery_of(&item.company_id, *id).await.ok()?.source
        }
        ReviewSubject::Record(_) => {
            service.control().operation(&item.company_id, item.operation_id?).await.ok()?.source
        }
    }
}

pub(super) async fn show(
    view: CompanyView<permission::View>,
    PathParam(id): PathParam<ReviewId>,
) -> Result<Markup, Problem> {
    let item = view.service.operations().review(&view.company, id).await?;
    let source = source(&view, &item).await;
    let about = match item.subject {
        ReviewSubject::Record(_) if item.change.is_some() => {
            "A change of a record. The record stays as it is unless the change is approved."
        }
        ReviewSubject::Record(_) => {
            "A record that a provider extracted. Agents get it only after approval."
        }
        ReviewSubject::Delivery(_) => "A capture that has not been sent to its provider.",
    };
    let body = html! {
        div.two {
            div.stack {
                (panel("text", "Text", &html! { p.text { (item.text) } }))
                @if item.status == ReviewStatus::Pending && view.allows(Act::Administer) {
                    (decide_panel(&view, &item))
                }
            }
            div.stack {
                (panel("why", "Reasons", why(&item)))
                (panel("details", "Details", details(&view, &item, source.as_ref())))
            }
        }
    };
    Ok(Page::new(&view, "Review item", about)
        .crumb("Review queue", view.at(&["reviews"]))
        .render(&body))
}

fn why(item: &ReviewItem) -> Markup {
    html! {
        @if item.reasons.is_empty() { p.soft { "It was written directly, not extracted." } }
        ul.list { @for reason in &item.reasons { li { (sentence(reason)) } } }
    }
}

fn details(view: &View, item: &ReviewItem, source: Option<&SourceRef>) -> Details {
    let moment = |at| view.moment(at);
    let binding = item.binding_key.as_str();
    let subject = match &item.subject {
        ReviewSubject::Record(handle) => record_link(view, binding, handle),
        ReviewSubject::Delivery(id) => {
            html! {
                a href=(view.at(&["hooks", &id.0.to_string()])) { "Delivery " (short_id(id.0)) }
            }
        }
    };
    Details::default()
        .row("Status", status(item.status))
        .maybe("Decided by", item.decided_by.as_deref())
        .maybe("Decided", item.decided_at.map(moment))
        .row("Created", moment(item.created_at))
        .maybe("Kind", item.kind.as_deref())
        .maybe("Confidence", item.confidence.map(percent))
        .row("Personal data", risk(item.pii_risk))
        .row("Binding", binding_link(view, binding))
        .row("Subject", subject)
        .maybe("Source", source.map(source_text))
        .maybe("Operation", item.operation_id.map(|id| operation_link(view, id)))
}

fn decide_panel(view: &View, item: &ReviewItem) -> Markup {
    let action = view.at(&["reviews", &item.id.0.to_string()]);
    let with = |decision: &str, button: Markup| {
        form(
            view,
            &action,
            &html! { input type="hidden" name="decision" value=(decision); (button) },
        )
    };
    let reject = if item.change.is_some() { "Reject" } else { "Reject and forget" };
    panel(
        "decide",
        "Decision",
        &html! {
            div.actions {
                (with("approve", html! { button.primary { "Approve" } }))
                (with("reject", html! { button.danger { (reject) } }))
            }
            details.more {
                summary { "Edit and approve" }
                (form(view, &action, &html! {
                    input type="hidden" name="decision" value="edit";
                    (Field::new("text", "Corrected text", &item.text).lines(5).required())
                    button { "Approve with changes" }
                }))
            }
        },
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decided {
    decision: Decision,
    text: Option<String>,
}

pub(super) async fn decide(
    view: CompanyView<permission::Administer>,
    PathParam(id): PathParam<ReviewId>,
    CsrfForm(decided): CsrfForm<Decided>,
) -> Result<Response, Problem> {
    let Decided { decision, text } = decided;
    let text = text.map(|text| unix_lines(&text));
    let item = view
        .service
        .operations()
        .decide(&view.caller, &view.company, id, ReviewDecision { decision, text })
        .await?;
    view.flash(match decision {
        Decision::Approve => "Approved. Agents get it from now on.",
        Decision::Reject if item.change.is_some() => "Rejected. The record stays as it is.",
        Decision::Reject => "Rejected. The provider was told to forget it.",
        Decision::Edit => "Approved with your changes.",
    });
    Ok(redirect(&view.at(&["reviews", &item.id.0.to_string()])))
}
