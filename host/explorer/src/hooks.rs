//! Hooks: deliveries of events to bindings, dead letters, and subscriptions.

use axum::response::Response;
use maud::{Markup, html};

use super::components::{
    Choice, CompanyView, Control, CsrfForm, Details, ListParams, NoFields, PAGE_SIZE, Page, Row,
    Tone, View, badge, binding_link, bytes, count, filter_fields, form, hook_kinds, job_status,
    listing, long, number, operation_link, panel, record_link, scope_details, sentence, short_id,
    source_link, table, time, wide, words,
};
use super::guard::redirect;
use memhost_core::{Act, DeliveryAction};
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{
    CaptureMode, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, HookKind, SubscribedWhen,
};

filter_fields! {
    DeliveryFilter {
        "status", "Status", Control::Select(statuses), read_text(status);
        "hookKind", "Kind", Control::Select(hook_kinds), read_text(hook_kind);
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "hookId", "Hook ID", Control::Text, read_text(hook_id);
        "since", "From", Control::Day, read_since(since);
        "until", "Until", Control::Day, read_until(until);
        advanced:
        "agentId", "Agent", Control::Text, read_text(agent_id);
        "issueId", "Issue", Control::Text, read_text(issue_id);
        "runId", "Run", Control::Text, read_text(run_id);
    }
}

fn status(status: DeliveryStatus) -> Markup {
    let tone = match status {
        DeliveryStatus::Pending => Tone::Busy,
        DeliveryStatus::Held => Tone::Warning,
        DeliveryStatus::Delivered => Tone::Good,
        DeliveryStatus::Degraded => Tone::Warning,
        DeliveryStatus::Dead => Tone::Bad,
        DeliveryStatus::Discarded => Tone::Plain,
    };
    badge(tone, label(status))
}

fn label(status: DeliveryStatus) -> &'static str {
    if status == DeliveryStatus::Dead { "dead letter" } else { status.as_str() }
}

fn statuses() -> Vec<Choice> {
    DeliveryStatus::ALL
        .iter()
        .map(|status| (status.as_str().to_owned(), label(*status).to_owned()))
        .collect()
}

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<DeliveryFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .control()
        .deliveries(&view.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    // The last column is needed only for dead letters.
    let may = view.allows(Act::Administer)
        && page.items.iter().any(|delivery| delivery.status == DeliveryStatus::Dead);
    let rows = page.items.iter().map(|delivery| {
        let row = Row::to(view.at(&["hooks", &delivery.id.0.to_string()]))
            .key(delivery.id.0)
            .cell("Hook ID", html! { code { (delivery.hook.hook_id) } })
            .cell("Status", status(delivery.status))
            .cell("Kind", words(delivery.hook.hook_kind.as_str()))
            .cell(wide("Binding"), delivery.binding_key.as_str())
            .cell(number("Attempts").wide(), delivery.attempts)
            .cell("Received", time(delivery.received_at, view.now))
            .maybe(wide("Next attempt"), delivery.due_at.map(|due| time(due, view.now)))
            .maybe(
                long("Last error"),
                delivery.error.as_ref().map(|error| sentence(&error.message)),
            );
        if !may {
            return row;
        }
        let is_dead = delivery.status == DeliveryStatus::Dead;
        row.maybe("Actions", is_dead.then(|| replay_form(&view, delivery, false)))
    });
    let is_first = !params.is_filtered() && query.cursor.is_none();
    let none = html! {
        "Send events to " code {
            "POST /runtime/v1/companies/" (view.company) "/hooks"
        } ", or install "
        code { "memhost agent-hooks" } "."
    };
    let (names, none) = (("Deliveries", "deliveries"), ("No deliveries yet", &none));
    let body = html! {
        (listing(&view, &params, names, page.next_cursor.as_deref(), none, rows))
        @if is_first { (panel("subscriptions", "Subscriptions", subscriptions(&view).await?)) }
    };
    let dead =
        html! { a.button href=(params.with(&view, "status", Some("dead"))) { "Dead letters" } };
    Ok(Page::new(&view, "Hooks", "Deliveries of events to bindings, newest first.")
        .action(dead)
        .live("operations,jobs")
        .render(&body))
}

async fn subscriptions<P>(view: &CompanyView<P>) -> Result<Markup, Problem> {
    let bindings = view.service.control().bindings(&view.company).await?;
    let rows = bindings.iter().map(|binding| {
        let binding = &binding.binding;
        let kinds = |when: SubscribedWhen| {
            let hooks = binding.policy.hooks.iter().filter(|hook| hook.when == when);
            let kinds: Vec<_> = hooks.map(|hook| words(hook.kind.as_str())).collect();
            (!kinds.is_empty()).then(|| html! { p.reason { (kinds.join(", ")) } })
        };
        Row::new()
            .cell("Binding", binding_link(view, binding.key.as_str()))
            .maybe("When it serves the scope", kinds(SubscribedWhen::Active))
            .maybe(long("Always"), kinds(SubscribedWhen::Always))
    });
    Ok(match bindings.is_empty() {
        true => html! { p.soft { "No bindings yet. The first event creates one." } },
        false => table("Subscriptions", rows),
    })
}

pub(super) async fn show(
    view: CompanyView<permission::View>,
    PathParam(id): PathParam<DeliveryId>,
) -> Result<Markup, Problem> {
    let delivery = view.service.control().delivery_of(&view.company, id).await?;
    let action = html! {
        @if view.allows(Act::Administer) {
            @match delivery.status {
                DeliveryStatus::Dead => (replay_form(&view, &delivery, true)),
                DeliveryStatus::Held => a.button
                    href=(view.at(&["reviews", &delivery.id.0.to_string()])) { "Review" },
                _ => {}
            }
        }
    };
    let body = html! {
        div.stack #delivery data-live {
            @if let Some(error) = &delivery.error { p.wrong { (sentence(&error.message)) } }
            div.two {
                div.stack {
                    (panel("state", "Status", state(&view, &delivery)))
                    (panel("came", "Result", came(&view, &delivery)))
                }
                div.stack {
                    (panel("times", "Timeline", times(&view, &delivery)))
                    (panel("about", "Details", about(&view, &delivery)))
                }
            }
        }
        @if let Some(text) = delivery.payload.as_ref().and_then(|payload| payload.text_or_turns()) {
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
        .row("Hook ID", html! { code { (delivery.hook.hook_id) } })
        .row("ID", html! { code { (delivery.id.0) } })
}

fn times(view: &View, delivery: &Delivery) -> Details {
    let moment = |at| view.moment(at);
    Details::default()
        .row("Triggered", moment(delivery.hook.triggered_at))
        .row("Received", moment(delivery.received_at))
        .maybe("Next attempt", delivery.due_at.map(moment))
        .maybe("Finished", delivery.finished_at.map(moment))
}

fn about(view: &View, delivery: &Delivery) -> Details {
    let mode = match delivery.mode {
        CaptureMode::CaptureResidue => "Extracted by the provider",
        CaptureMode::CaptureRecord => "Stored as it is",
    };
    let size = delivery.payload.as_ref().map(|payload| {
        let object = payload.object.as_ref().and_then(|object| serde_json::to_vec(object).ok());
        let size = payload.text_bytes() + object.map_or(0, |object| object.len());
        bytes(size as u64)
    });
    let details = Details::default()
        .row("Kind", words(delivery.hook.hook_kind.as_str()))
        .row("Sent by", delivery.principal.to_string())
        .maybe("Acting agent", delivery.hook.actor_agent_id.as_ref().map(ToString::to_string))
        .maybe("Hook asserted by", delivery.hook.asserted_by.as_deref())
        .maybe("Source", delivery.source.as_ref().map(|source| source_link(view, source)))
        .maybe(
            "Source asserted by",
            delivery.source.as_ref().and_then(|source| source.asserted_by.as_deref()),
        );
    let details = match delivery.hook.hook_kind {
        // Recall captures nothing.
        HookKind::PreRunHydrate => details,
        _ => details.row("Capture mode", mode).row(
            "Content",
            size.unwrap_or_else(|| "Delivered, and no longer stored here".to_owned()),
        ),
    };
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
                li.between {
                    span { "Job " code { (job.provider_job_id) } } (job_status(job.status))
                }
            }
            @if let Some(recall) = recall {
                li {
                    "Recalled " (count(u64::from(recall.record_count))) " records"
                    @if !recall.omitted.is_empty() {
                        ", of which the token budget left out " (count(recall.omitted.len() as u64))
                    }
                    "."
                }
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

pub(super) async fn replay(
    view: CompanyView<permission::Administer>,
    PathParam(id): PathParam<DeliveryId>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    let delivery = view
        .service
        .control()
        .change_delivery(&view.caller, &view.company, id, DeliveryAction::Replay)
        .await?;
    view.flash("The delivery is queued again.");
    Ok(redirect(&view.at(&["hooks", &delivery.id.0.to_string()])))
}
