//! Hooks: deliveries of events to bindings, dead letters, and subscriptions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::components::{
    Choice, Column, Control, CsrfForm, Details, FilterForm, ListParams, PAGE_SIZE, Page, Row, Tone, View, badge,
    binding_link, bytes, count, empty, exact, filter_fields, form, hook_kinds, job_status, operation_link, pager,
    panel, record_link, scope_details, sentence, short_id, source_text, table, time, words,
};
use super::guard::see;
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{CaptureMode, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, SubscribedWhen};

filter_fields! {
    DeliveryFilter {
        "status", "Status", Control::Select(statuses), read_text(status);
        "hookKind", "Kind", Control::Select(hook_kinds), read_text(hook_kind);
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "hookId", "Event ID", Control::Text, read_text(hook_id);
    }
}

fn status(status: DeliveryStatus) -> Markup {
    let tone = match status {
        DeliveryStatus::Pending => Tone::Busy,
        DeliveryStatus::Held => Tone::Warning,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Dead => Tone::Bad,
        DeliveryStatus::Discarded => Tone::Plain,
    };
    badge(tone, label(status))
}

fn label(status: DeliveryStatus) -> &'static str {
    if status == DeliveryStatus::Dead { "dead letter" } else { status.as_str() }
}

fn statuses() -> Vec<Choice> {
    DeliveryStatus::ALL.iter().map(|status| (status.as_str().to_owned(), label(*status).to_owned())).collect()
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    params: ListParams<DeliveryFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = service.deliveries(&allowed.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE).await?;
    let columns = [
        Column::text("Event ID"),
        Column::text("Status"),
        Column::text("Kind"),
        Column::text("Binding").wide(),
        Column::number("Attempts").wide(),
        Column::text("Received"),
        Column::text("Next attempt").wide(),
        Column::text("Last error").long(),
        Column::text("Actions"),
    ];
    // The last column is needed only for dead letters.
    let may = view.allows(Act::Administer) && page.items.iter().any(|delivery| delivery.status == DeliveryStatus::Dead);
    let columns = if may { &columns[..] } else { &columns[..8] };
    let rows = page.items.iter().map(|delivery| {
        let row = Row::to(view.at(&["hooks", &delivery.id.0.to_string()]))
            .key(delivery.id.0)
            .cell(html! { code { (delivery.hook.hook_id) } })
            .cell(status(delivery.status))
            .cell(words(delivery.hook.hook_kind.as_str()))
            .cell(delivery.binding_key.as_str())
            .cell(delivery.attempts)
            .cell(time(delivery.received_at, view.now))
            .maybe(delivery.due_at.map(|due| time(due, view.now)))
            .maybe(delivery.error.as_ref().map(|error| sentence(&error.message)));
        let is_dead = may && delivery.status == DeliveryStatus::Dead;
        row.maybe(is_dead.then(|| replay_form(&view, delivery, false)))
    });
    let is_first = !params.is_filtered() && query.cursor.is_none();
    let body = html! {
        (FilterForm::of(&view, &params))
        div #rows data-live {
            @if page.items.is_empty() && params.is_filtered() {
                (empty("No matching deliveries", &html! { a href=(view.path) { "Show all deliveries" } }))
            } @else if page.items.is_empty() {
                (empty("No deliveries yet", &html! {
                    "Send events to " code { "POST /runtime/v1/companies/" (allowed.company) "/hooks" } ", or install "
                    code { "memhost agent-hooks" } "."
                }))
            } @else {
                (table("Deliveries", columns, rows))
                (pager(&view, &params, page.next_cursor.as_deref(), "deliveries"))
            }
        }
        @if is_first { (panel("subscriptions", "Subscriptions", &subscriptions(&service, &view, &allowed.company).await?)) }
    };
    let dead = html! { a.button href=(params.with(&view, "status", Some("dead"))) { "Dead letters" } };
    Ok(Page::new(&view, "Hooks", "Deliveries of events to bindings, newest first.")
        .action(dead)
        .live("operations,jobs")
        .render(&body))
}

async fn subscriptions(service: &Service, view: &View, company: &CompanyId) -> Result<Markup, Problem> {
    let bindings = service.bindings(company).await?;
    let columns = [Column::text("Binding"), Column::text("When it serves the scope"), Column::text("Always").long()];
    let rows = bindings.iter().map(|binding| {
        let binding = &binding.binding;
        let kinds = |when: SubscribedWhen| {
            let hooks = binding.policy.hooks.iter().filter(|hook| hook.when == when);
            let kinds: Vec<_> = hooks.map(|hook| words(hook.kind.as_str())).collect();
            (!kinds.is_empty()).then(|| html! { p.reason { (kinds.join(", ")) } })
        };
        Row::new()
            .cell(binding_link(view, binding.key.as_str()))
            .maybe(kinds(SubscribedWhen::Active))
            .maybe(kinds(SubscribedWhen::Always))
    });
    Ok(match bindings.is_empty() {
        true => html! { p.soft { "No bindings yet. The first event creates one." } },
        false => table("Subscriptions", &columns, rows),
    })
}

fn id(text: &str) -> Result<DeliveryId, Problem> {
    parse("deliveryId", text).map(DeliveryId)
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, delivery)): Path<(String, String)>,
    allowed: Authorized<permission::View>,
) -> Result<Markup, Problem> {
    let delivery = service.delivery_of(&allowed.company, id(&delivery)?).await?;
    let action = html! {
        @if view.allows(Act::Administer) {
            @match delivery.status {
                DeliveryStatus::Dead => (replay_form(&view, &delivery, true)),
                DeliveryStatus::Held => a.button href=(view.at(&["reviews", &delivery.id.0.to_string()])) { "Review" },
                _ => {}
            }
        }
    };
    let body = html! {
        div.stack #delivery data-live {
            @if let Some(error) = &delivery.error {
                p.wrong { (sentence(&error.message)) }
            }
            div.two {
                div.stack {
                    (panel("state", "Status", &html! { (state(&view, &delivery)) }))
                    (panel("came", "Result", &came(&view, &delivery)))
                }
                div.stack {
                    (panel("times", "Timeline", &html! { (times(&view, &delivery)) }))
                    (panel("about", "Details", &html! { (about(&delivery)) }))
                }
            }
        }
        @if let Some(text) = delivery.payload.as_ref().and_then(|payload| payload.text.as_ref()) {
            (panel("payload", "Content", &html! { p.text { (text) } }))
        }
    };
    let kind = words(delivery.hook.hook_kind.as_str());
    let about = format!("A {kind} event for {}.", delivery.binding_key);
    Ok(Page::new(&view, "Delivery", &about)
        .crumb("Hooks", view.at(&["hooks"]))
        .action(action)
        .live("operations,jobs")
        .render(&body))
}

fn state(view: &View, delivery: &Delivery) -> Details {
    Details::default()
        .row("Status", status(delivery.status))
        .row("Attempts", count(u64::from(delivery.attempts)))
        .row("Binding", binding_link(view, delivery.binding_key.as_str()))
        .maybe("First attempt", delivery.operation_id.map(|id| operation_link(view, id)))
        .maybe(
            "Last attempt",
            delivery
                .last_operation_id
                .filter(|id| Some(*id) != delivery.operation_id)
                .map(|id| operation_link(view, id)),
        )
        .row("Event ID", html! { code { (delivery.hook.hook_id) } })
        .row("ID", html! { code { (delivery.id.0) } })
}

fn times(view: &View, delivery: &Delivery) -> Details {
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    Details::default()
        .row("Triggered", moment(delivery.hook.triggered_at))
        .row("Received", moment(delivery.received_at))
        .maybe("Next attempt", delivery.due_at.map(moment))
        .maybe("Finished", delivery.finished_at.map(moment))
}

fn about(delivery: &Delivery) -> Details {
    let mode = match delivery.mode {
        CaptureMode::CaptureResidue => "Extracted by the provider",
        CaptureMode::CaptureRecord => "Stored as it is",
    };
    let size = delivery.payload.as_ref().map(|payload| {
        let object = payload.object.as_ref().and_then(|object| serde_json::to_vec(object).ok());
        let size = payload.text.as_ref().map_or(0, String::len) + object.map_or(0, |object| object.len());
        bytes(size as u64)
    });
    let details = Details::default()
        .row("Kind", words(delivery.hook.hook_kind.as_str()))
        .row("Sent by", delivery.principal.as_str())
        .maybe("Acting agent", delivery.hook.actor_agent_id.as_ref().map(ToString::to_string))
        .maybe("Source", delivery.source.as_ref().map(source_text))
        .row("Capture mode", mode)
        .row("Content", size.unwrap_or_else(|| "Delivered, and no longer stored here".to_owned()));
    scope_details(details, &delivery.scope)
}

fn came(view: &View, delivery: &Delivery) -> Markup {
    let recall = delivery.recall.as_ref();
    let is_nothing = delivery.records.is_empty() && delivery.jobs.is_empty() && recall.is_none();
    html! {
        @if is_nothing { p.soft { "No result yet." } }
        ul.list {
            @for handle in &delivery.records {
                li { "Record " (record_link(view, delivery.binding_key.as_str(), handle)) }
            }
            @for job in &delivery.jobs {
                li.between { span { "Job " code { (job.provider_job_id) } } (job_status(job.status)) }
            }
            @if let Some(recall) = recall {
                li { "Recalled " (count(recall.snippets.len() as u64)) " records." }
                @if let Some(degraded) = &recall.degraded { li { (sentence(degraded)) } }
            }
        }
    }
}

fn replay_form(view: &View, delivery: &Delivery, is_main: bool) -> Markup {
    let action = view.at(&["hooks", &delivery.id.0.to_string(), "replay"]);
    let label = html! { "Replay" span.vh { " " (short_id(delivery.id.0)) } };
    form(view, &action, &html! { button.primary[is_main] { (label) } })
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn replay(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, delivery)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: CsrfForm<Nothing>,
) -> Result<Response, Problem> {
    let delivery = service.replay_delivery(&allowed.caller, &allowed.company, id(&delivery)?).await?;
    view.say("The delivery is queued again.");
    Ok(see(&view.at(&["hooks", &delivery.id.0.to_string()])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::check_fields;

    #[test]
    fn every_filter_reads_its_own_values() {
        check_fields::<DeliveryFilter>();
    }
}
