//! Extraction jobs: what a capture left to be done, how far it is, and doing it again or not at all.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;

use super::guard::see;
use super::kit::{
    Asked, Col, Facts, Filter, Page, Row, Signed, View, confirm, count, duration_us, empty, exact, form, pager, panel,
    short_id, table, time, words,
};
use super::pieces::{self, ROWS};
use memhost_core::{Act, Service};
use memhost_http::{Authorized, Problem, parse, permission};
use memhost_types::{BindingKey, HookKind, Job, JobFilter, JobId, JobRunner, JobStatus, SourceKind};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JobQuery {
    status: Option<JobStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    source_kind: Option<SourceKind>,
    since: Option<Date>,
    until: Option<Date>,
    cursor: Option<String>,
}

pub(super) async fn list(
    State(service): State<Arc<Service>>,
    view: View,
    allowed: Authorized<permission::View>,
    asked: Asked<JobQuery>,
) -> Result<Markup, Problem> {
    let query = &asked.query;
    let (since, until) = pieces::moments(query.since, query.until);
    let filter = JobFilter {
        status: query.status,
        binding_key: query.binding_key.clone(),
        hook_kind: query.hook_kind.clone(),
        source_kind: query.source_kind,
        since,
        until,
    };
    let page = service.jobs(&allowed.company, &filter, query.cursor.as_deref(), ROWS).await?;
    let columns = [
        Col::text("Job"),
        Col::text("Status"),
        Col::text("Binding"),
        Col::text("Came from").wide(),
        Col::number("Attempts").wide(),
        Col::number("Records"),
        Col::text("Left"),
        Col::text("Last error").long(),
    ];
    let rows = page.items.iter().map(|job| {
        Row::to(view.at(&["jobs", &job.id.0.to_string()]))
            .key(job.id.0)
            .cell(short_id(job.id.0))
            .cell(pieces::job_status(job.status))
            .cell(job.binding_key.as_str())
            .maybe(job.source.as_ref().map(pieces::source))
            .cell(job.attempts)
            .maybe(job.record_count)
            .cell(time(job.submitted_at, view.now))
            .maybe(job.error.as_deref().map(pieces::prose))
    });
    let statuses = ["queued", "running", "succeeded", "failed", "cancelled"];
    let hooks = ["post_run_capture", "issue_comment_capture", "issue_document_capture", "manual_capture"];
    let body = html! {
        (Filter::new(&view, &asked)
            .choice("status", "Status", pieces::named(statuses))
            .choice("bindingKey", "Binding", pieces::binding_keys(&view))
            .choice("sourceKind", "Source", pieces::named(SourceKind::ALL.map(SourceKind::as_str)))
            .day("since", "Left from")
            .day("until", "Left until")
            .more()
            .choice("hookKind", "Hook", pieces::named(hooks)))
        div #rows data-live {
            @if page.items.is_empty() && asked.is_filtered() {
                (empty("No job is like that", &html! { a href=(view.path) { "Show all jobs" } }))
            } @else if page.items.is_empty() {
                (empty("No job yet", &html! {
                    "A capture leaves a job where its provider extracts later. " code { "memhost capture --help" } " shows how to hand one a text."
                }))
            } @else {
                (table("Jobs", &columns, rows))
                (pager(&view, &asked, page.next_cursor.as_deref(), "jobs"))
            }
        }
    };
    Ok(Page::new(&view, "Jobs", "What captures left to be extracted, newest first.").live("jobs").render(&body))
}

fn id(text: &str) -> Result<JobId, Problem> {
    parse("jobId", text).map(JobId)
}

pub(super) async fn show(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, job)): Path<(String, String)>,
    allowed: Authorized<permission::View>,
) -> Result<Markup, Problem> {
    let job = service.job(&allowed.company, id(&job)?).await?;
    let body = html! {
        div.stack #job data-live {
            @if let Some(error) = &job.error {
                p.wrong { (pieces::prose(error)) }
            }
            div.two {
                div.stack {
                    (panel("state", "State", &html! { (state(&view, &job)) }))
                    (panel("records", "Records", &records(&view, &job)))
                }
                div.stack {
                    (panel("times", "Times", &html! { (times(&view, &job)) }))
                    (panel("origin", "Where it came from", &html! { (origin(&view, &job)) }))
                }
            }
        }
    };
    let about = format!("Extraction that a capture left to {}.", job.provider_key);
    Ok(Page::new(&view, "Job", &about)
        .crumb("Jobs", view.at(&["jobs"]))
        .action(actions(&view, &job))
        .live("jobs")
        .render(&body))
}

fn actions(view: &View, job: &Job) -> Markup {
    let id = job.id.0.to_string();
    html! {
        @if view.allows(Act::Administer) {
            @if matches!(job.status, JobStatus::Failed | JobStatus::Cancelled) {
                (form(view, &view.at(&["jobs", &id, "retry"]), &html! { button.primary { "Run it again" } }))
            }
            @if !job.status.is_end() { a.button href=(view.at(&["jobs", &id, "cancel"])) { "Cancel" } }
        }
    }
}

fn state(view: &View, job: &Job) -> Facts {
    let runner = match job.runner {
        JobRunner::Host => "This host, call by call",
        JobRunner::Provider => "The provider's own system",
    };
    Facts::default()
        .row("Status", pieces::job_status(job.status))
        .row("Attempts", count(u64::from(job.attempts)))
        .row("Failures in a row", count(u64::from(job.failures)))
        .row("Who works", runner)
        .row("Binding", pieces::binding(view, job.binding_key.as_str()))
        .row("Provider", job.provider_key.as_str())
        .row("Its name there", html! { code { (job.provider_job_id) } })
        .row("Id", html! { code { (job.id.0) } })
}

fn times(view: &View, job: &Job) -> Facts {
    let moment = |moment: jiff::Timestamp| html! { (time(moment, view.now)) " " span.soft { (exact(moment)) } };
    let took = job.started_at.zip(job.finished_at).map(|(from, to)| to.duration_since(from).as_micros());
    let took = took.and_then(|took| u64::try_from(took).ok()).map(duration_us);
    Facts::default()
        .row("Left", moment(job.submitted_at))
        .maybe("Started", job.started_at.map(moment))
        .maybe("Last came back", job.heartbeat_at.map(moment))
        .maybe("Held until", job.lease_until.filter(|_| !job.status.is_end()).map(moment))
        .maybe("Next look", job.due_at.map(moment))
        .maybe("Ended", job.finished_at.map(moment))
        .maybe("Took", took)
}

fn origin(view: &View, job: &Job) -> Facts {
    let facts = Facts::default()
        .row("Capture", pieces::operation(view, job.operation_id))
        .maybe("Last call", job.last_operation_id.map(|id| pieces::operation(view, id)))
        .maybe("Hook", job.hook_kind.as_ref().map(|kind| words(kind.as_str())))
        .maybe("Source", job.source.as_ref().map(pieces::source));
    pieces::scope(facts, &job.scope)
}

fn records(view: &View, job: &Job) -> Markup {
    let made = job.record_count.unwrap_or(0);
    let shown = u32::try_from(job.records.len()).unwrap_or(u32::MAX);
    html! {
        @if job.records.is_empty() {
            p.soft { @if job.status.is_end() { "None came of it." } @else { "None so far." } }
        } @else {
            ul.list { @for handle in &job.records { li { (pieces::record(view, job.binding_key.as_str(), handle)) } } }
            @if made > shown { p.help { "And " (count(u64::from(made - shown))) " more." } }
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

/// Cancelling cannot be taken back where the provider has already thrown away what it had.
pub(super) async fn ask_cancel(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, job)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
) -> Result<Markup, Problem> {
    let job = service.job(&allowed.company, id(&job)?).await?;
    let here = view.at(&["jobs", &job.id.0.to_string()]);
    let body = html! {
        p.about { "What is at it may come to its end, but nothing of it counts any more. The provider is told. You can run it again later." }
        (confirm(&view, &view.path, "Cancel this job", &[], &here))
    };
    Ok(Page::new(&view, "Cancel this job?", "").crumb("Jobs", view.at(&["jobs"])).crumb("Job", here).render(&body))
}

pub(super) async fn cancel(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, job)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let job = service.cancel_job(&allowed.caller, &allowed.company, id(&job)?).await?;
    view.say("The job is cancelled.");
    Ok(see(&view.at(&["jobs", &job.id.0.to_string()])))
}

pub(super) async fn retry(
    State(service): State<Arc<Service>>,
    view: View,
    Path((_, job)): Path<(String, String)>,
    allowed: Authorized<permission::Administer>,
    _: Signed<Nothing>,
) -> Result<Response, Problem> {
    let job = service.retry_job(&allowed.caller, &allowed.company, id(&job)?).await?;
    view.say("The job is queued again.");
    Ok(see(&view.at(&["jobs", &job.id.0.to_string()])))
}
