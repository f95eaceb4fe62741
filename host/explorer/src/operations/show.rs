//! One operation: what happened in a sentence, then everything that the record has.

use std::sync::Arc;

use axum::extract::{Path, State};
use jiff::Timestamp;
use maud::{Markup, html};

use super::cost;
use crate::kit::{
    Bar, Col, Facts, Page, Row, View, bytes, count, duration_us, exact, issue_link, money, outcome, panel, run_link,
    source_link, table, time, waterfall, words,
};
use crate::pieces;
use memhost_core::Service;
use memhost_http::{Authorized, Problem, Viewing, parse};
use memhost_types::{
    AttributionMode, BillingType, CostEvent, Job, JobFilter, LogLine, Operation, OperationError, OperationErrorCode,
    OperationId, OperationKind, Outcome, Usage,
};

pub(crate) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, id)): Path<(String, String)>,
    allowed: Authorized<Viewing>,
) -> Result<Markup, Problem> {
    let id: OperationId = parse("operationId", &id)?;
    let found = service.operation(&allowed.company, id)?;
    let jobs = jobs(&service, &found)?;
    let body = html! {
        div.stack #operation data-live data-outcome=(found.outcome.as_str()) {
            p.lead { (sentence(&found)) " " (outcome(found.outcome)) }
            @if let Some(error) = &found.error { (wrong(&view, &found, error)) }
            div.two {
                div.stack {
                    (panel("provenance", "Provenance", &html! { (provenance(&view, &found)) }))
                    @if !found.jobs.is_empty() { (panel("jobs", "Jobs it left", &jobs_of(&view, &found, &jobs))) }
                }
                div.stack {
                    (panel("timing", "Timing", &timing(&view, &found)))
                    (panel("records", "Records", &records(&view, &found)))
                }
            }
            (panel("usage", "Usage and cost", &usage(&view, &found)))
            @if !found.log.is_empty() { (panel("log", "What the provider logged", &log(&found.log))) }
            @if let Some(payload) = &found.payload {
                (panel("request", "What was asked", &html! {
                    pre tabindex="0" { (pretty(&payload.text)) }
                    @if payload.bytes > payload.text.len() as u64 {
                        p.help { "The first " (bytes(payload.text.len() as u64)) " of " (bytes(payload.bytes)) "; the binding's policy keeps no more." }
                    }
                }))
            }
            details.more #raw {
                summary { "The record as JSON" }
                pre tabindex="0" { (serde_json::to_string_pretty(&found).unwrap_or_default()) }
            }
        }
    };
    let mut title = words(found.kind.as_str());
    title[..1].make_ascii_uppercase();
    let page = Page::new(&view, &title, "").crumb("Operations", view.at(&["operations"]));
    // What has ended stays as it is.
    Ok(if found.outcome == Outcome::InProgress { page.live("operations") } else { page }.render(&body))
}

fn sentence(operation: &Operation) -> String {
    let who = match &operation.scope.agent_id {
        Some(agent) => format!("Agent {agent}"),
        None => format!("“{}”", operation.principal),
    };
    let through = operation.binding_key.as_ref().map(|key| format!(" through {key}")).unwrap_or_default();
    let (did, wanted) = (operation.kind.did(), operation.kind.wanted());
    let records = match operation.record_count {
        1 => "1 record".to_owned(),
        other => format!("{} records", count(u64::from(other))),
    };
    let took = operation.latency_us.map(|us| format!(" in {}", duration_us(us))).unwrap_or_default();
    let tried = format!("{who} wanted to {wanted}{through}");
    match operation.outcome {
        Outcome::Succeeded if operation.kind == OperationKind::Forget => {
            format!("{who} {did}{through}: {records} can no longer be reached{took}.")
        }
        Outcome::Succeeded if operation.kind.is_read() => format!("{who} {did}{through}: {records} came back{took}."),
        Outcome::Succeeded if operation.kind.is_write() => format!("{who} {did}{through}: {records} came of it{took}."),
        Outcome::Succeeded => format!("{who} {did}{through}."),
        Outcome::InProgress => format!("{tried}; the provider is at work on it."),
        Outcome::Failed => format!("{tried}, and the provider failed{took}."),
        Outcome::Refused => format!("{tried}, and the host refused it before the provider was called."),
        Outcome::Held => format!("{tried}; the host keeps it and delivers it later."),
        Outcome::TimedOut => format!("{tried}, and the provider did not answer in time."),
        Outcome::Trapped => format!("{tried}, and the provider crashed or ran into a limit{took}."),
        Outcome::Interrupted => {
            format!("{tried}, and the host ended meanwhile: whether it happened is not known.")
        }
    }
}

/// What went wrong, and the page on which one may do something about it.
fn wrong(view: &View, operation: &Operation, error: &OperationError) -> Markup {
    use OperationErrorCode as Code;
    let binding = || operation.binding_key.as_ref().map(|key| (view.at(&["bindings", key.as_str()]), "The binding"));
    let next = match error.code {
        Code::NoBinding => Some((view.at(&["bindings"]), "The bindings")),
        Code::BudgetExceeded => Some((view.at(&["budgets"]), "The budgets")),
        Code::ReviewRequired => Some((view.at(&["reviews"]), "The review queue")),
        Code::Forbidden => Some((view.at(&["tokens"]), "The tokens")),
        Code::InvalidRequest | Code::NotFound | Code::CompanyErased | Code::Host => None,
        _ => binding(),
    };
    html! {
        div.wrong #error data-code=(error.code.as_str()) {
            p { (pieces::prose(&error.message)) }
            p.soft {
                code { (error.code.as_str()) }
                @if let Some(field) = &error.field { " at " code { (field) } }
                @if let Some(ms) = error.retry_after_ms { " · another try makes sense after " (duration_us(ms.saturating_mul(1_000))) }
                @if let Some((href, name)) = next { " · " a href=(href) { (name) } }
            }
        }
    }
}

fn provenance(view: &View, operation: &Operation) -> Facts {
    let scope = &operation.scope;
    let moment = |moment: Timestamp| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let version = operation.provider_version.as_deref().unwrap_or_default();
    let facts = Facts::default()
        .row("Began", moment(operation.started_at))
        .row("Asked by", operation.principal.as_str())
        .maybe("Binding", operation.binding_key.as_ref().map(|key| pieces::binding(view, key.as_str())))
        .maybe("Provider", operation.provider_key.as_ref().map(|key| html! { (key) " " span.soft { (version) } }))
        .maybe("Source", operation.source.as_ref().map(|source| source_link(view, source)))
        .maybe("Agent", scope.agent_id.as_ref().map(|id| here(view, "agentId", id.as_str(), &html! { (id) })))
        .maybe("Project", scope.project_id.as_deref().map(|id| here(view, "projectId", id, &html! { (id) })))
        .maybe("Issue", scope.issue_id.as_deref().map(|id| here(view, "issueId", id, &issue_link(view, id))))
        .maybe("Run", scope.run_id.as_deref().map(|id| here(view, "runId", id, &run_link(view, id))))
        .maybe("Session", scope.session_key.as_deref().map(|id| here(view, "sessionKey", id, &html! { (id) })))
        .maybe("Subject", scope.subject_id.as_deref())
        .maybe("Namespace", scope.namespace.as_deref());
    let facts = match &operation.hook {
        Some(hook) => facts
            .row("Hook", html! {
                a href={ (view.at(&["hooks"])) "?hookId=" (crate::kit::escape(&hook.hook_id)) } { (words(hook.hook_kind.as_str())) }
            })
            .row("Triggered", moment(hook.triggered_at))
            .maybe("By the agent", hook.actor_agent_id.as_ref().map(ToString::to_string))
            .maybe("In the run", hook.heartbeat_run_id.as_deref().map(|id| run_link(view, id))),
        None => facts,
    };
    facts.row("Id", html! { code { (operation.id) } })
}

/// Something that an operation is about, and the operations that are about the same.
fn here(view: &View, field: &str, id: &str, shown: &Markup) -> Markup {
    let all = format!("{}?{field}={}", view.at(&["operations"]), crate::kit::escape(id));
    html! { (shown) " · " a.quiet href=(all) { "all of it" } }
}

fn timing(view: &View, operation: &Operation) -> Markup {
    let micros = |until: Timestamp| u64::try_from(until.duration_since(operation.started_at).as_micros()).unwrap_or(0);
    let Some(latency) = operation.latency_us else {
        return html! { p.soft { "Nothing is known of it yet." } };
    };
    let whole = operation.finished_at.map_or(latency, micros).max(latency);
    let provider = operation.provider_us.unwrap_or(0).min(latency);
    let host = latency - provider;
    let mut bars = vec![Bar { name: "The answer", start: 0, took: latency, class: "s1" }];
    if operation.provider_us.is_some() {
        bars.push(Bar { name: "The host's share", start: 0, took: host, class: "s3" });
        bars.push(Bar { name: "In the provider", start: host, took: provider, class: "s2" });
    }
    if whole > latency {
        bars.push(Bar { name: "Until recorded", start: latency, took: whole - latency, class: "s3" });
    }
    html! {
        (waterfall(&bars, whole))
        @if operation.provider_us.is_none() { p.soft { "The provider was not called." } }
        (Facts::default().maybe("Ended", operation.finished_at.map(|at| html! { (time(at, view.now)) " " span.soft { (exact(at)) } })))
    }
}

fn records(view: &View, operation: &Operation) -> Markup {
    let left_out = operation.record_count.saturating_sub(u32::try_from(operation.records.len()).unwrap_or(u32::MAX));
    let binding = operation.binding_key.as_ref().map_or("", |key| key.as_str());
    let list = |handles: &[memhost_types::RecordHandle]| {
        html! {
            ul.list { @for handle in handles { li { (pieces::record(view, binding, handle)) } } }
        }
    };
    html! {
        @if operation.record_count == 0 { p.soft { "None." } }
        @if !operation.records.is_empty() { (list(&operation.records)) }
        @if left_out > 0 { p.help { "And " (count(u64::from(left_out))) " more." } }
        @if !operation.cited.is_empty() {
            h3 { "It builds on" }
            (list(&operation.cited))
        }
    }
}

/// The jobs that it left: where it left any.
fn jobs(service: &Service, operation: &Operation) -> Result<Vec<Job>, Problem> {
    if operation.jobs.is_empty() {
        return Ok(Vec::new());
    }
    let end = operation.finished_at.unwrap_or(operation.started_at);
    let filter = JobFilter {
        binding_key: operation.binding_key.clone(),
        since: Some(operation.started_at),
        until: end.checked_add(jiff::SignedDuration::from_secs(60)).ok(),
        ..JobFilter::default()
    };
    let page = service.jobs(&operation.company_id, &filter, None, Some(100))?;
    Ok(page.items.into_iter().filter(|job| job.operation_id == operation.id).collect())
}

fn jobs_of(view: &View, operation: &Operation, known: &[Job]) -> Markup {
    html! {
        ul.list {
            @for left in &operation.jobs {
                @let job = known.iter().find(|job| job.provider_job_id == left.provider_job_id);
                li.between {
                    @match job {
                        Some(job) => {
                            a href=(view.at(&["jobs", &job.id.0.to_string()])) { (left.provider_job_id) }
                            (pieces::job_status(job.status))
                        },
                        None => { span { (left.provider_job_id) } (pieces::job_status(left.status)) },
                    }
                }
            }
        }
    }
}

fn usage(view: &View, operation: &Operation) -> Markup {
    let columns = [
        Col::text("Provider"),
        Col::text("Model"),
        Col::text("Billing").wide(),
        Col::text("Counted").wide(),
        Col::number("Tokens in"),
        Col::number("Cached").wide(),
        Col::number("Tokens out"),
        Col::number("Embedded").wide(),
        Col::number("Cost"),
    ];
    let row = |usage: &Usage| {
        Row::new()
            .cell(usage.provider.as_str())
            .maybe(usage.model.as_deref())
            .maybe(usage.billing_type.map(billing))
            .cell(attribution(usage.attribution()))
            .maybe(usage.input_tokens.map(count))
            .maybe(usage.cached_input_tokens.map(count))
            .maybe(usage.output_tokens.map(count))
            .maybe(usage.embedding_tokens.map(count))
            .maybe(usage.cost.map(money))
    };
    html! {
        @if operation.usage.is_empty() {
            p.soft { "The provider reported none." }
        } @else {
            (table("Usage", &columns, operation.usage.iter().map(row)))
            (Facts::default()
                .maybe("Cost in all", cost(operation).map(money))
                .maybe("Cost events", (!operation.cost_event_ids.is_empty()).then(|| cost_events(view, operation))))
        }
    }
}

/// The events that stand in the ledger for it.
fn cost_events(view: &View, operation: &Operation) -> Markup {
    let events = CostEvent::of(operation);
    html! {
        ul.list {
            @for event in events.iter().filter(|event| operation.cost_event_ids.contains(&event.id)) {
                li.between data-cost-event=(event.id) { a href=(view.at(&["cost-events"])) { code { (event.id) } } (money(event.cost)) }
            }
        }
    }
}

fn billing(kind: BillingType) -> &'static str {
    match kind {
        BillingType::MeteredApi => "metered",
        BillingType::SubscriptionIncluded => "in the subscription",
        BillingType::SubscriptionOverage => "beyond the subscription",
        BillingType::Unknown => "not known",
    }
}

fn attribution(mode: AttributionMode) -> &'static str {
    match mode {
        AttributionMode::BilledDirectly => "as a cost event",
        AttributionMode::IncludedInRun => "with the run",
        AttributionMode::ExternalInvoice => "by an invoice",
        AttributionMode::Untracked => "nowhere",
    }
}

fn log(lines: &[LogLine]) -> Markup {
    html! {
        pre tabindex="0" { @for line in lines { (line.level) " " (line.text) "\n" } }
    }
}

/// JSON with its lines, where it is whole.
fn pretty(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text).ok();
    value.and_then(|value| serde_json::to_string_pretty(&value).ok()).unwrap_or_else(|| text.to_owned())
}
