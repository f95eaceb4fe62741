//! The review queue: what waits for a person before it counts, and deciding about it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::guard::see;
use super::kit::{
    Asked, Col, Facts, Field, Filter, Page, Row, Signed, Tone, View, badge, empty, exact, form, pager, panel, percent,
    short_id, table, time,
};
use super::pieces::{self, ROWS};
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{
    BindingKey, Decision, ReviewDecision, ReviewFilter, ReviewId, ReviewItem, ReviewStatus, ReviewSubject, SourceRef,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReviewQuery {
    status: Option<ReviewStatus>,
    binding_key: Option<BindingKey>,
    kind: Option<String>,
    pii_risk: Option<u8>,
    cursor: Option<String>,
}

fn risk(level: u8) -> Markup {
    match level {
        0 => badge(Tone::Plain, "none found"),
        1 => badge(Tone::Warning, "possible"),
        _ => badge(Tone::Bad, "personal data"),
    }
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
    asked: Asked<ReviewQuery>,
) -> Result<Markup, Problem> {
    let ReviewQuery { status: wanted, binding_key, kind, pii_risk, cursor } = &asked.query;
    let (binding_key, kind) = (binding_key.clone(), kind.clone());
    let filter = ReviewFilter { status: *wanted, binding_key, kind, pii_risk: *pii_risk };
    let page = service.reviews(&allowed.company, &filter, cursor.as_deref(), ROWS).await?;
    let columns = [
        Col::text("Text").long(),
        Col::text("Status"),
        Col::text("Kind").wide(),
        Col::number("Confidence").wide(),
        Col::text("Personal data"),
        Col::text("Binding").wide(),
        Col::text("Came"),
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
    let risks = [("2", "personal data"), ("1", "possible"), ("0", "none found")];
    let body = html! {
        (Filter::new(&view, &asked)
            .choice("status", "Status", pieces::named(ReviewStatus::ALL.iter().map(|status| status.as_str())))
            .choice("bindingKey", "Binding", pieces::binding_keys(&view))
            .text("kind", "Kind")
            .choice("piiRisk", "Personal data", risks))
        div #rows data-live {
            @if page.items.is_empty() && asked.is_filtered() {
                (empty("Nothing is like that", &html! { a href=(view.path) { "Show everything" } }))
            } @else if page.items.is_empty() {
                (empty("Nothing waits for you", &html! {
                    "A binding whose policy has " code { "review" } " holds back what is uncertain or personal. Set it under "
                    a href=(view.at(&["bindings"])) { "Bindings" } "."
                }))
            } @else {
                (table("Review queue", &columns, rows))
                (pager(&view, &asked, page.next_cursor.as_deref(), "items"))
            }
        }
    };
    Ok(Page::new(&view, "Review queue", "What a person must see before it counts, newest first.")
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

/// Where the material came from: of the delivery that is held, or of the operation that brought the record.
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
        ReviewSubject::Record(_) => "A record that a provider extracted. Until it is approved, nobody is given it.",
        ReviewSubject::Delivery(_) => "A capture that has not left for its provider.",
    };
    let body = html! {
        div.two {
            div.stack {
                (panel("text", "Text", &html! { p.text { (item.text) } }))
                @if item.status == ReviewStatus::Pending && view.allows(Act::Administer) { (decide_panel(&view, &item)) }
            }
            div.stack {
                (panel("why", "Why it waits", &why(&item)))
                (panel("facts", "About it", &html! { (facts(&view, &item, source.as_ref())) }))
            }
        }
    };
    Ok(Page::new(&view, "Review item", about).crumb("Review queue", view.at(&["reviews"])).render(&body))
}

fn why(item: &ReviewItem) -> Markup {
    html! {
        @if item.reasons.is_empty() { p.soft { "Somebody wrote it as it is." } }
        ul.list { @for reason in &item.reasons { li { (pieces::prose(reason)) } } }
    }
}

fn facts(view: &View, item: &ReviewItem, source: Option<&SourceRef>) -> Facts {
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let binding = item.binding_key.as_str();
    let subject = match &item.subject {
        ReviewSubject::Record(handle) => pieces::record(view, binding, handle),
        ReviewSubject::Delivery(id) => {
            html! { a href=(view.at(&["hooks", &id.0.to_string()])) { "Delivery " (short_id(id.0)) } }
        }
    };
    Facts::default()
        .row("Status", status(item.status))
        .maybe("Decided by", item.decided_by.as_deref())
        .maybe("Decided", item.decided_at.map(moment))
        .row("Came", moment(item.created_at))
        .maybe("Kind", item.kind.as_deref())
        .maybe("Confidence", item.confidence.map(percent))
        .row("Personal data", risk(item.pii_risk))
        .row("Binding", pieces::binding(view, binding))
        .row("What", subject)
        .maybe("Source", source.map(pieces::source))
        .maybe("Operation", item.operation_id.map(|id| pieces::operation(view, id)))
}

fn decide_panel(view: &View, item: &ReviewItem) -> Markup {
    let action = view.at(&["reviews", &item.id.0.to_string()]);
    let with = |decision: &str, button: Markup| {
        form(view, &action, &html! { input type="hidden" name="decision" value=(decision); (button) })
    };
    panel(
        "decide",
        "Decide",
        &html! {
            div.actions {
                (with("approve", html! { button.primary { "Approve" } }))
                (with("reject", html! { button.danger { "Reject and forget" } }))
            }
            details.more {
                summary { "Change the text and approve" }
                (form(view, &action, &html! {
                    input type="hidden" name="decision" value="edit";
                    (Field::new("text", "Text as it should be", &item.text).lines(5).required())
                    button { "Approve in this form" }
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
    Signed(decided): Signed<Decided>,
) -> Result<Response, Problem> {
    let Decided { decision, text } = decided;
    let text = text.map(|text| pieces::lines(&text));
    let item = service.decide(&allowed.caller, &allowed.company, id(&item)?, ReviewDecision { decision, text }).await?;
    view.say(match decision {
        Decision::Approve => "Approved. It counts from now on.",
        Decision::Reject => "Rejected. The provider was told to forget it.",
        Decision::Edit => "Approved in your words.",
    });
    Ok(see(&view.at(&["reviews", &item.id.0.to_string()])))
}
