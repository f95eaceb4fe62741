//! Hooks: events on their way to bindings, those that were given up, and who takes which kind.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::guard::see;
use super::kit::{
    Asked, Col, Facts, Filter, Page, Row, Signed, Tone, View, badge, bytes, count, empty, exact, form, pager, panel,
    short_id, table, time, words,
};
use super::pieces::{self, ROWS};
use memhost_core::{Act, Service};
use memhost_http::{Administering, Authorized, Problem, Viewing, parse};
use memhost_types::{
    BindingKey, CaptureMode, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookKind, SubscribedWhen,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeliveryQuery {
    status: Option<DeliveryStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    hook_id: Option<String>,
    cursor: Option<String>,
}

fn status(status: DeliveryStatus) -> Markup {
    let tone = match status {
        DeliveryStatus::Pending => Tone::Busy,
        DeliveryStatus::Held => Tone::Warning,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Dead => Tone::Bad,
        DeliveryStatus::Discarded => Tone::Plain,
    };
    badge(tone, status.as_str())
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<Viewing>,
    asked: Asked<DeliveryQuery>,
) -> Result<Markup, Problem> {
    let DeliveryQuery { status: wanted, binding_key, hook_kind, hook_id, cursor } = &asked.query;
    let (binding_key, hook_kind) = (binding_key.clone(), hook_kind.clone());
    let filter = DeliveryFilter { status: *wanted, binding_key, hook_kind, hook_id: hook_id.clone() };
    let page = service.deliveries(&allowed.company, &filter, cursor.as_deref(), ROWS)?;
    let columns = [
        Col::text("Event"),
        Col::text("Status"),
        Col::text("Kind"),
        Col::text("Binding").wide(),
        Col::number("Attempts").wide(),
        Col::text("Came"),
        Col::text("Next try").wide(),
        Col::text("Last error").long(),
        Col::text("Again"),
    ];
    // Without dead letters on the page nobody needs the last column.
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
            .maybe(delivery.error.as_ref().map(|error| pieces::prose(&error.message)));
        let is_dead = may && delivery.status == DeliveryStatus::Dead;
        row.maybe(is_dead.then(|| replay_form(&view, delivery, false)))
    });
    let kinds =
        ["pre_run_hydrate", "post_run_capture", "issue_comment_capture", "issue_document_capture", "manual_capture"];
    let is_first = !asked.is_filtered() && cursor.is_none();
    let body = html! {
        (Filter::new(&view, &asked)
            .choice("status", "Status", pieces::named(DeliveryStatus::ALL.iter().map(|status| status.as_str())))
            .choice("hookKind", "Kind", pieces::named(kinds))
            .choice("bindingKey", "Binding", pieces::binding_keys(&view))
            .text("hookId", "Event"))
        div #rows data-live {
            @if page.items.is_empty() && asked.is_filtered() {
                (empty("No delivery is like that", &html! { a href=(view.path) { "Show all deliveries" } }))
            } @else if page.items.is_empty() {
                (empty("No event yet", &html! {
                    "Send what happens to " code { "POST /runtime/v1/companies/" (allowed.company) "/hooks" } ", or let "
                    code { "memhost agent-hooks" } " do it."
                }))
            } @else {
                (table("Deliveries", columns, rows))
                (pager(&view, &asked, page.next_cursor.as_deref(), "deliveries"))
            }
        }
        @if is_first { (panel("subscriptions", "Who takes what", &subscriptions(&service, &view, &allowed.company)?)) }
    };
    let dead = html! { a.button href=(asked.with(&view, "status", Some("dead"))) { "Dead letters" } };
    Ok(Page::new(&view, "Hooks", "Events on their way to bindings, newest first.")
        .action(dead)
        .live("operations,jobs")
        .render(&body))
}

fn subscriptions(service: &Service, view: &View, company: &CompanyId) -> Result<Markup, Problem> {
    let bindings = service.bindings(company)?;
    let columns = [Col::text("Binding"), Col::text("Where it answers"), Col::text("For every event").long()];
    let rows = bindings.iter().map(|binding| {
        let binding = &binding.binding;
        let kinds = |when: SubscribedWhen| {
            let hooks = binding.policy.hooks.iter().filter(|hook| hook.when == when);
            let kinds: Vec<_> = hooks.map(|hook| words(hook.kind.as_str())).collect();
            (!kinds.is_empty()).then(|| html! { p.reason { (kinds.join(", ")) } })
        };
        Row::new()
            .cell(pieces::binding(view, binding.key.as_str()))
            .maybe(kinds(SubscribedWhen::Active))
            .maybe(kinds(SubscribedWhen::Always))
    });
    Ok(match bindings.is_empty() {
        true => html! { p.soft { "There is no binding yet; the first event makes one." } },
        false => table("Who takes what", &columns, rows),
    })
}

fn id(text: &str) -> Result<DeliveryId, Problem> {
    parse("deliveryId", text).map(DeliveryId)
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, delivery)): Path<(String, String)>,
    allowed: Authorized<Viewing>,
) -> Result<Markup, Problem> {
    let delivery = service.delivery_of(&allowed.company, id(&delivery)?)?;
    let action = html! {
        @if view.allows(Act::Administer) {
            @match delivery.status {
                DeliveryStatus::Dead => (replay_form(&view, &delivery, true)),
                DeliveryStatus::Held => a.button href=(view.at(&["reviews", &delivery.id.0.to_string()])) { "Review it" },
                _ => {}
            }
        }
    };
    let body = html! {
        div.stack #delivery data-live {
            @if let Some(error) = &delivery.error {
                p.wrong { (pieces::prose(&error.message)) }
            }
            div.two {
                div.stack {
                    (panel("state", "State", &html! { (state(&view, &delivery)) }))
                    (panel("came", "What came of it", &came(&view, &delivery)))
                }
                div.stack {
                    (panel("times", "Times", &html! { (times(&view, &delivery)) }))
                    (panel("about", "What it is about", &html! { (about(&delivery)) }))
                }
            }
        }
        @if let Some(text) = delivery.payload.as_ref().and_then(|payload| payload.text.as_ref()) {
            (panel("payload", "Material", &html! { p.text { (text) } }))
        }
    };
    let kind = words(delivery.hook.hook_kind.as_str());
    let about = format!("One event of the kind {kind}, on its way to {}.", delivery.binding_key);
    Ok(Page::new(&view, "Delivery", &about)
        .crumb("Hooks", view.at(&["hooks"]))
        .action(action)
        .live("operations,jobs")
        .render(&body))
}

fn state(view: &View, delivery: &Delivery) -> Facts {
    Facts::default()
        .row("Status", status(delivery.status))
        .row("Attempts", count(u64::from(delivery.attempts)))
        .row("Binding", pieces::binding(view, delivery.binding_key.as_str()))
        .maybe("First attempt", delivery.operation_id.map(|id| pieces::operation(view, id)))
        .maybe(
            "Last attempt",
            delivery
                .last_operation_id
                .filter(|id| Some(*id) != delivery.operation_id)
                .map(|id| pieces::operation(view, id)),
        )
        .row("Event", html! { code { (delivery.hook.hook_id) } })
        .row("Id", html! { code { (delivery.id.0) } })
}

fn times(view: &View, delivery: &Delivery) -> Facts {
    let moment = |moment| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    Facts::default()
        .row("HostEvent", moment(delivery.hook.triggered_at))
        .row("Came", moment(delivery.received_at))
        .maybe("Next try", delivery.due_at.map(moment))
        .maybe("Ended", delivery.finished_at.map(moment))
}

fn about(delivery: &Delivery) -> Facts {
    let mode = match delivery.mode {
        CaptureMode::CaptureResidue => "What the provider makes of it",
        CaptureMode::CaptureRecord => "The material as it is",
    };
    let size = delivery.payload.as_ref().map(|payload| {
        let object = payload.object.as_ref().and_then(|object| serde_json::to_vec(object).ok());
        let size = payload.text.as_ref().map_or(0, String::len) + object.map_or(0, |object| object.len());
        bytes(size as u64)
    });
    let facts = Facts::default()
        .row("Kind", words(delivery.hook.hook_kind.as_str()))
        .row("Sent by", delivery.principal.as_str())
        .maybe("Acting agent", delivery.hook.actor_agent_id.as_ref().map(ToString::to_string))
        .maybe("Source", delivery.source.as_ref().map(pieces::source))
        .row("To be kept", mode)
        .row("Material", size.unwrap_or_else(|| "Handed over, and no longer kept here".to_owned()));
    pieces::scope(facts, &delivery.scope)
}

fn came(view: &View, delivery: &Delivery) -> Markup {
    let recall = delivery.recall.as_ref();
    let is_nothing = delivery.records.is_empty() && delivery.jobs.is_empty() && recall.is_none();
    html! {
        @if is_nothing { p.soft { "Nothing so far." } }
        ul.list {
            @for handle in &delivery.records { li { "Record " (pieces::record(view, delivery.binding_key.as_str(), handle)) } }
            @for job in &delivery.jobs {
                li.between { span { "Job " code { (job.provider_job_id) } } (pieces::job_status(job.status)) }
            }
            @if let Some(recall) = recall {
                li { "Recalled " (count(recall.snippets.len() as u64)) " records." }
                @if let Some(degraded) = &recall.degraded { li { (pieces::prose(degraded)) } }
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
    allowed: Authorized<Administering>,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let delivery = service.replay_delivery(&allowed.caller, &allowed.company, id(&delivery)?).await?;
    view.say("The delivery is on its way again.");
    Ok(see(&view.at(&["hooks", &delivery.id.0.to_string()])))
}
