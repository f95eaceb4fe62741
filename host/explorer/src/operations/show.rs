//! One operation: a summary sentence, then its whole record.

use jiff::Timestamp;
use maud::{Markup, html};

use super::cost;
use crate::components::{
    Bar, CompanyView, Details, Page, Row, View, binding_link, bytes, count, duration_us,
    issue_link, job_status, money, number, outcome, panel, query, record_link, record_list,
    run_link, sentence, source_link, table, waterfall, wide, words,
};
use crate::costs::events::billing_type;
use memhost_executor::off_executor;
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{
    AgentId, AttributionMode, CostEvent, ExplainedOperation, Job, JobFilter, LogLine, Operation,
    OperationError, OperationErrorCode, OperationId, OperationKind, Outcome, ReturnedRecord, Usage,
};

pub(crate) async fn show(
    view: CompanyView<permission::View>,
    PathParam(id): PathParam<OperationId>,
) -> Result<Markup, Problem> {
    let found = view.service.control().operation(&view.company, id).await?;
    let jobs = jobs(&view, &found).await?;
    let records = records(&view, &found).await?;
    let body = html! {
        div.stack #operation data-live data-outcome=(found.outcome.as_str()) {
            p.lead { (summary(&found)) " " (outcome(found.outcome)) }
            @if let Some(error) = &found.error { (wrong(&view, &found, error)) }
            div.two {
                div.stack {
                    (panel("provenance", "Provenance", provenance(&view, &found)))
                    @if !found.jobs.is_empty() {
                        (panel("jobs", "Jobs", jobs_of(&view, &found, &jobs)))
                    }
                }
                div.stack {
                    (panel("timing", "Timing", timing(&view, &found)))
                    (panel("records", "Records", records))
                }
            }
            (panel("usage", "Usage and cost", usage(&view, &found)))
            @if !found.log.is_empty() { (panel("log", "Provider log", log(&found.log))) }
            @if let Some(payload) = &found.payload {
                (panel("request", "Request", &html! {
                    pre tabindex="0" { (pretty(&payload.text)) }
                    @if payload.text.is_empty() && payload.bytes > 0 {
                        p.help { "The text was forgotten with a record of this operation." }
                    } @else if payload.bytes > payload.text.len() as u64 {
                        p.help {
                            "The binding's policy stores only the first "
                                (bytes(payload.text.len() as u64)) " of "
                            (bytes(payload.bytes)) "."
                        }
                    }
                }))
            }
            details.more #raw {
                summary { "JSON" }
                pre tabindex="0" {
                    (off_executor(
                        usize::MAX, || serde_json::to_string_pretty(&found).unwrap_or_default(),
                    ))
                }
            }
        }
    };
    let mut title = words(found.kind.as_str());
    title[..1].make_ascii_uppercase();
    let page = Page::new(&view, &title, "").crumb("Operations", view.at(&["operations"]));
    // An operation that has ended does not change.
    Ok(if found.outcome == Outcome::InProgress { page.live("operations") } else { page }
        .render(&body))
}

fn summary(operation: &Operation) -> String {
    let who = match &operation.scope.agent_id {
        Some(agent) => format!("Agent {agent}"),
        None => format!("“{}”", operation.principal),
    };
    let through =
        operation.binding_key.as_ref().map(|key| format!(" with {key}")).unwrap_or_default();
    let (did, wanted) = (operation.kind.did(), operation.kind.wanted());
    let records = match operation.record_count {
        1 => "1 record".to_owned(),
        other => format!("{} records", count(u64::from(other))),
    };
    let took =
        operation.latency_us.map(|us| format!(" in {}", duration_us(us))).unwrap_or_default();
    let tried = format!("{who} tried to {wanted}{through}");
    match operation.outcome {
        Outcome::Succeeded if operation.kind == OperationKind::Forget => {
            format!("{who} {did}{through}: {records} no longer returned{took}.")
        }
        Outcome::Succeeded if operation.kind.is_read() => {
            format!("{who} {did}{through}: {records} returned{took}.")
        }
        Outcome::Succeeded if operation.kind.is_write() => {
            format!("{who} {did}{through}: {records} written{took}.")
        }
        Outcome::Succeeded => format!("{who} {did}{through}."),
        Outcome::InProgress => format!("{tried}; the provider is still working on it."),
        Outcome::Failed => format!("{tried}, and the provider failed{took}."),
        Outcome::Refused if operation.count > 1 => {
            let times = count(operation.count);
            format!(
                "{tried} {times} times within a minute, and the host refused it before the \
                 provider was called."
            )
        }
        Outcome::Refused => {
            format!("{tried}, and the host refused it before the provider was called.")
        }
        Outcome::Held => format!("{tried}; the host holds it and delivers it later."),
        Outcome::TimedOut => format!("{tried}, and the provider did not answer in time."),
        Outcome::Trapped => format!("{tried}, and the provider crashed or ran into a limit{took}."),
        Outcome::Interrupted => {
            format!("{tried}, and the host stopped before it finished, so the result is unknown.")
        }
    }
}

/// The error, and a link to the page where it can be solved.
fn wrong(view: &View, operation: &Operation, error: &OperationError) -> Markup {
    use OperationErrorCode as Code;
    let binding = || {
        operation.binding_key.as_ref().map(|key| (view.at(&["bindings", key.as_str()]), "Binding"))
    };
    let next = match error.code {
        Code::NoBinding => Some((view.at(&["bindings"]), "Bindings")),
        Code::BudgetExceeded => Some((view.at(&["budgets"]), "Budgets")),
        Code::ReviewRequired => Some((view.at(&["reviews"]), "Review queue")),
        Code::Forbidden => Some((view.at(&["tokens"]), "Tokens")),
        Code::InvalidRequest
        | Code::NotFound
        | Code::CompanyErased
        | Code::Outdated
        | Code::StoreUnavailable
        | Code::Host => None,
        _ => binding(),
    };
    html! {
        div.wrong #error data-code=(error.code.as_str()) {
            p { (sentence(&error.message)) }
            p.soft {
                code { (error.code.as_str()) }
                @if let Some(field) = &error.field { " at " code { (field) } }
                @if let Some(ms) = error.retry_after_ms {
                    " · retry after " (duration_us(ms.saturating_mul(1_000)))
                }
                @if let Some((href, name)) = next { " · " a href=(href) { (name) } }
            }
        }
    }
}

fn provenance(view: &View, operation: &Operation) -> Details {
    let scope = &operation.scope;
    let moment = |at| view.moment(at);
    let version = operation.provider_version.as_deref().unwrap_or_default();
    let agent = scope.agent_id.as_ref().map(AgentId::as_str);
    // A field of the scope, with a link to the operations that have the same value.
    let linked = |field: &str, id: Option<&str>, shown: &dyn Fn(&str) -> Markup| {
        id.map(|id| {
            let all = format!("{}{}", view.at(&["operations"]), query([(field, Some(id))]));
            html! { (shown(id)) " · " a.quiet href=(all) { "Show operations" } }
        })
    };
    let plain = |id: &str| html! { (id) };
    let details = Details::default()
        .row("Started", moment(operation.started_at))
        .row("Requested by", operation.principal.to_string())
        .maybe(
            "Binding",
            operation.binding_key.as_ref().map(|key| binding_link(view, key.as_str())),
        )
        .maybe(
            "Provider",
            operation.provider_key.as_ref().map(|key| html! { (key) " " span.soft { (version) } }),
        )
        .maybe("Source", operation.source.as_ref().map(|source| source_link(view, source)))
        .maybe("Agent", linked("agentId", agent, &plain))
        .maybe("Project", linked("projectId", scope.project_id.as_deref(), &plain))
        .maybe("Issue", linked("issueId", scope.issue_id.as_deref(), &|id| issue_link(view, id)))
        .maybe("Run", linked("runId", scope.run_id.as_deref(), &|id| run_link(view, id, agent)))
        .maybe("Session", linked("sessionKey", scope.session_key.as_deref(), &plain))
        .maybe("Subject", scope.subject_id.as_deref())
        .maybe("Namespace", scope.namespace.as_deref());
    let details = match &operation.hook {
        Some(hook) => details
            .row(
                "Hook",
                html! {
                    a href={ (view.at(&["hooks"])) (query([("hookId", Some(&*hook.hook_id))])) } {
                        (words(hook.hook_kind.as_str()))
                    }
                },
            )
            .row("Triggered", moment(hook.triggered_at))
            .maybe("Acting agent", hook.actor_agent_id.as_ref().map(ToString::to_string))
            .maybe(
                "Hook run",
                hook.heartbeat_run_id.as_deref().map(|id| {
                    run_link(view, id, hook.actor_agent_id.as_ref().map(AgentId::as_str))
                }),
            )
            .maybe("Hook asserted by", hook.asserted_by.as_deref()),
        None => details,
    };
    let asserted_by = operation.source.as_ref().and_then(|source| source.asserted_by.as_deref());
    let details = details.maybe("Source asserted by", asserted_by);
    details.row("ID", html! { code { (operation.id) } })
}

fn timing(view: &View, operation: &Operation) -> Markup {
    let micros = |until: Timestamp| {
        u64::try_from(until.duration_since(operation.started_at).as_micros()).unwrap_or(0)
    };
    let Some(latency) = operation.latency_us else {
        return html! { p.soft { "No timing yet." } };
    };
    let whole = operation.finished_at.map_or(latency, micros).max(latency);
    let provider = operation.provider_us.unwrap_or(0).min(latency);
    let host = latency - provider;
    let mut bars = vec![Bar { name: "Total", start: 0, took: latency, class: "s1" }];
    if operation.provider_us.is_some() {
        bars.push(Bar { name: "Host", start: 0, took: host, class: "s3" });
        bars.push(Bar { name: "Provider", start: host, took: provider, class: "s2" });
    }
    if whole > latency {
        bars.push(Bar { name: "Recording", start: latency, took: whole - latency, class: "s3" });
    }
    html! {
        (waterfall(&bars, whole))
        @if operation.provider_us.is_none() { p.soft { "The provider was not called." } }
        (Details::default().maybe("Finished", operation.finished_at.map(|at| view.moment(at))))
    }
}

async fn records(
    view: &CompanyView<permission::View>,
    operation: &Operation,
) -> Result<Markup, Problem> {
    let binding = operation.binding_key.as_ref().map_or("", |key| key.as_str());
    let is_answer = matches!(operation.kind, OperationKind::Query | OperationKind::List)
        && operation.outcome == Outcome::Succeeded;
    let returned = match is_answer && !operation.records.is_empty() {
        true => Some(view.service.control().explained(operation).await?),
        false => None,
    };
    Ok(html! {
        @if operation.record_count == 0 { p.soft { "No records." } }
        @match &returned {
            Some(returned) => (returned_records(view, binding, returned, operation.record_count)),
            None => {
                (record_list(view, binding, &operation.records, operation.record_count))
            }
        }
        @if !operation.cited.is_empty() {
            h3 { "Cited records" }
            (record_list(view, binding, &operation.cited, 0))
        }
    })
}

/// What an answer had, in its order, and what became of it.
fn returned_records(
    view: &View,
    binding: &str,
    returned: &ExplainedOperation,
    total: u32,
) -> Markup {
    let more = u64::from(total).saturating_sub(returned.records.len() as u64);
    let row = |one: &ReturnedRecord| {
        let by = one.changed_by.map(|id| {
            html! { a href=(view.at(&["operations", &id.to_string()])) { "by this operation" } }
        });
        Row::new()
            .cell(number("Rank"), html! { (one.rank) })
            .cell(
                "Record",
                html! {
                    (record_link(view, binding, &one.handle))
                    @if one.is_omitted { " left out of the block by its token budget" }
                },
            )
            .cell(
                "Since then",
                html! { (words(one.state.as_str())) @if let Some(by) = by { " " (by) } },
            )
    };
    html! {
        (table("Returned records", returned.records.iter().map(row)))
        @if more > 0 { p.help { (count(more)) " more." } }
    }
}

/// The jobs that the operation left.
async fn jobs(view: &View, operation: &Operation) -> Result<Vec<Job>, Problem> {
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
    let page = view.service.control().jobs(&operation.company_id, &filter, None, Some(100)).await?;
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
                            a href=(
                                view.at(&["jobs", &job.id.0.to_string()])
                            ) { (left.provider_job_id) }
                            (job_status(job.status))
                        },
                        None => { span { (left.provider_job_id) } (job_status(left.status)) },
                    }
                }
            }
        }
    }
}

fn usage(view: &View, operation: &Operation) -> Markup {
    let row = |usage: &Usage| {
        Row::new()
            .cell("Provider", usage.provider.as_str())
            .maybe("Model", usage.model.as_deref())
            .maybe(wide("Billing"), usage.billing_type.map(billing_type))
            .cell(wide("Accounting"), attribution(usage.attribution()))
            .maybe(number("Tokens in"), usage.input_tokens.map(count))
            .maybe(number("Cached").wide(), usage.cached_input_tokens.map(count))
            .maybe(number("Tokens out"), usage.output_tokens.map(count))
            .maybe(number("Embedded").wide(), usage.embedding_tokens.map(count))
            .maybe(number("Cost"), usage.cost.map(money))
    };
    html! {
        @if operation.usage.is_empty() {
            p.soft { "The provider reported no usage." }
        } @else {
            (table("Usage", operation.usage.iter().map(row)))
            (Details::default()
                .maybe("Total cost", cost(operation).map(money))
                .maybe(
                    "Cost events",
                    (!operation.cost_event_ids.is_empty()).then(|| cost_events(view, operation)),
                ))
        }
    }
}

/// Its cost events.
fn cost_events(view: &View, operation: &Operation) -> Markup {
    let events = CostEvent::of(operation);
    html! {
        ul.list {
            @for event in events.iter().filter(
                |event| operation.cost_event_ids.contains(&event.id)
            ) {
                li.between data-cost-event=(event.id) {
                    a href=(view.at(&["cost-events"])) { code { (event.id) } } (money(event.cost))
                }
            }
        }
    }
}

fn attribution(mode: AttributionMode) -> &'static str {
    match mode {
        AttributionMode::BilledDirectly => "cost event",
        AttributionMode::IncludedInRun => "run",
        AttributionMode::ExternalInvoice => "invoice",
        AttributionMode::Untracked => "untracked",
    }
}

fn log(lines: &[LogLine]) -> Markup {
    html! {
        pre tabindex="0" { @for line in lines { (line.level) " " (line.text) "\n" } }
    }
}

/// JSON with line breaks. A text that was cut off stays as it is.
fn pretty(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text).ok();
    value
        .and_then(|value| serde_json::to_string_pretty(&value).ok())
        .unwrap_or_else(|| text.to_owned())
}
