//! The review queue: items that need approval, and deciding them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::components::{
    Choice, Column, Control, CsrfForm, Details, Field, FilterForm, ListParams, PAGE_SIZE, Page, Row, Tone, View, badge,
    binding_link, choices, empty, exact, filter_fields, form, operation_link, pager, panel, percent, record_link,
    sentence, short_id, source_text, table, time, unix_lines,
};
use super::guard::see;
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{
    Decision, ReviewDecision, ReviewFilter, ReviewId, ReviewItem, ReviewStatus, ReviewSubject, SourceRef,
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
const RISKS: [(&str, Tone, &str); 3] =
    [("2", Tone::Bad, "personal data"), ("1", Tone::Warning, "possible"), ("0", Tone::Plain, "none found")];

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
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    params: ListParams<ReviewFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = service.reviews(&allowed.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE).await?;
    let columns = [
        Column::text("Text").long(),
        Column::text("Status"),
        Column::text("Kind").wide(),
        Column::number("Confidence").wide(),
        Column::text("Personal data"),
        Column::text("Binding").wide(),
        Column::text("Created"),
    ];
    let rows = page.items.iter().map(|item| {
        Row::to(view.at(&["reviews", &item.id.0.to_string()]))
            .key(item.id.0)
            .cell(first_line(&item.text))
            .cell(status(item.status))
            .maybe(item.kind.as_deref())
            .maybe(item.confidence.map(percent))
            .cell(risk(item.pii_risk))
            .cell(item.binding_key.as_str())
            .cell(time(item.created_at, view.now))
    });
    let body = html! {
        (FilterForm::of(&view, &params))
        div #rows data-live {
            @if page.items.is_empty() && params.is_filtered() {
                (empty("No matching items", &html! { a href=(view.path) { "Show all items" } }))
            } @else if page.items.is_empty() {
                (empty("No items to review", &html! {
                    "A binding whose policy has " code { "review" } " holds back uncertain or personal records. Set it under "
                    a href=(view.at(&["bindings"])) { "Bindings" } "."
                }))
            } @else {
                (table("Review queue", &columns, rows))
                (pager(&view, &params, page.next_cursor.as_deref(), "items"))
            }
        }
    };
    Ok(Page::new(&view, "Review queue", "Records and captures that need approval, newest first.")
        .live("operations")
        .render(&body))
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(empty)");
    line.chars().take(160).collect()
}

fn id(text: &str) -> Result<ReviewId, Problem> {
    parse("reviewId", text).map(ReviewId)
}

/// The source: of the held delivery, or of the operation that brought the record.
async fn source(service: &Service, item: &ReviewItem) -> Option<SourceRef> {
    match &item.subject {
        ReviewSubject::Delivery(id) => service.delivery_of(&item.company_id, *id).await.ok()?.source,
        ReviewSubject::Record(_) => service.operation(&item.company_id, item.operation_id?).await.ok()?.source,
    }
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, item)): Path<(String, String)>,
    allowed: Authorized<permission::View>,
) -> Result<Markup, Problem> {
    let item = service.review(&allowed.company, id(&item)?).await?;
    let source = source(&service, &item).await;
    let about = match item.subject {
        ReviewSubject::Record(_) => "A record that a provider extracted. Agents get it only after approval.",
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
                (panel("why", "Reasons", &why(&item)))
                (panel("details", "Details", &html! { (details(&view, &item, source.as_ref())) }))
            }
        }
    };
    Ok(Page::new(&view, "Review item", about).crumb("Review queue", view.at(&["reviews"])).render(&body))
}

fn why(item: &ReviewItem) -> Markup {
    html! {
        @if item.reasons.is_empty() { p.soft { "It was written directly, not extracted." } }
        ul.list { @for reason in &item.reasons { li { (sentence(reason)) } } }
    }
}

fn details(view: &View, item: &ReviewItem, source: Option<&SourceRef>) -> Details {
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let binding = item.binding_key.as_str();
    let subject = match &item.subject {
        ReviewSubject::Record(handle) => record_link(view, binding, handle),
        ReviewSubject::Delivery(id) => {
            html! { a href=(view.at(&["hooks", &id.0.to_string()])) { "Delivery " (short_id(id.0)) } }
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
        form(view, &action, &html! { input type="hidden" name="decision" value=(decision); (button) })
    };
    panel(
        "decide",
        "Decision",
        &html! {
            div.actions {
                (with("approve", html! { button.primary { "Approve" } }))
                (with("reject", html! { button.danger { "Reject and forget" } }))
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
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, item)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    CsrfForm(decided): CsrfForm<Decided>,
) -> Result<Response, Problem> {
    let Decided { decision, text } = decided;
    let text = text.map(|text| unix_lines(&text));
    let item = service.decide(&allowed.caller, &allowed.company, id(&item)?, ReviewDecision { decision, text }).await?;
    view.say(match decision {
        Decision::Approve => "Approved. Agents get it from now on.",
        Decision::Reject => "Rejected. The provider was told to forget it.",
        Decision::Edit => "Approved with your changes.",
    });
    Ok(see(&view.at(&["reviews", &item.id.0.to_string()])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::check_fields;

    #[test]
    fn every_filter_reads_its_own_values() {
        check_fields::<ReviewFilter>();
    }
}
