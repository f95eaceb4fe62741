//! Extraction jobs: their status, retrying and cancelling them.

use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};

use super::components::{
    Choice, CompanyView, Control, CsrfForm, Details, ListParams, NoFields, PAGE_SIZE, Page, Row,
    View, binding_link, capture_hook_kinds, choices, confirm, count, duration_us, filter_fields,
    form, job_status, listing, long, number, operation_link, panel, record_list, scope_details,
    sentence, short_id, source_link, source_text, time, wide, words,
};
use super::guard::redirect;
use memhost_core::Act;
use memhost_http::{PathParam, Problem, permission};
use memhost_types::{Job, JobFilter, JobId, JobRunner, JobStatus, SourceKind};

filter_fields! {
    JobFilter {
        "status", "Status", Control::Select(statuses), read_text(status);
        "bindingKey", "Binding", Control::Binding, read_text(binding_key);
        "sourceKind", "Source", Control::Select(|| choices(SourceKind::ALL)),
        read_text(source_kind);
        "since", "From", Control::Day, read_since(since);
        "until", "Until", Control::Day, read_until(until);
        advanced:
        "hookKind", "Hook", Control::Select(capture_hook_kinds), read_text(hook_kind);
        "agentId", "Agent", Control::Text, read_text(agent_id);
        "issueId", "Issue", Control::Text, read_text(issue_id);
        "runId", "Run", Control::Text, read_text(run_id);
    }
}

fn statuses() -> Vec<Choice> {
    choices(["queued", "running", "succeeded", "failed", "cancelled"])
}

pub(super) async fn list(
    view: CompanyView<permission::View>,
    params: ListParams<JobFilter>,
) -> Result<Markup, Problem> {
    let query = &params.query;
    let page = view
        .service
        .control()
        .jobs(&view.company, &query.filter, query.cursor.as_deref(), PAGE_SIZE)
        .await?;
    let rows = page.items.iter().map(|job| {
        Row::to(view.at(&["jobs", &job.id.0.to_string()]))
            .key(job.id.0)
            .cell("Job", short_id(job.id.0))
            .cell("Status", job_status(job.status))
            .cell("Binding", job.binding_key.as_str())
            .maybe(wide("Source"), job.source.as_ref().map(source_text))
            .cell(number("Attempts").wide(), job.attempts)
            .maybe(number("Records"), job.record_count)
            .cell("Created", time(job.submitted_at, view.now))
            .maybe(long("Last error"), job.error.as_deref().map(sentence))
    });
    let none = html! {
        "A capture creates a job if its provider extracts later. See " code {
            "memhost capture --help"
        } "."
    };
    let (names, none) = (("Jobs", "jobs"), ("No jobs yet", &none));
    let body = listing(&view, &params, names, page.next_cursor.as_deref(), none, rows);
    Ok(Page::new(&view, "Jobs", "Extraction jobs that captures created, newest first.")
        .live("jobs")
        .render(&body))
}

pub(super) async fn show(
    view: CompanyView<permission::View>,
    PathParam(id): PathParam<JobId>,
) -> Result<Markup, Problem> {
    let job = view.service.control().job(&view.company, id).await?;
    let body = html! {
        div.stack #job data-live {
            @if let Some(error) = &job.error { p.wrong { (sentence(error)) } }
            div.two {
                div.stack {
                    (panel("state", "Status", state(&view, &job)))
                    (panel("records", "Records", records(&view, &job)))
                }
                div.stack {
                    (panel("times", "Timeline", times(&view, &job)))
                    (panel("origin", "Origin", origin(&view, &job)))
                }
            }
        }
    };
    let about = format!("Extraction by {}.", job.provider_key);
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
                (form(
                    view, &view.at(&["jobs", &id, "retry"]),
                    &html! { button.primary { "Retry" } },
                ))
            }
            @if !job.status.is_end() {
                a.button href=(view.at(&["jobs", &id, "cancel"])) { "Cancel job" }
            }
        }
    }
}

fn state(view: &View, job: &Job) -> Details {
    let runner = match job.runner {
        JobRunner::Host => "This host",
        JobRunner::Provider => "The provider's own system",
    };
    Details::default()
        .row("Status", job_status(job.status))
        .row("Attempts", count(u64::from(job.attempts)))
        .row("Consecutive failures", count(u64::from(job.failures)))
        .row("Runner", runner)
        .row("Binding", binding_link(view, job.binding_key.as_str()))
        .row("Provider", job.provider_key.as_str())
        .row("Provider job ID", html! { code { (job.provider_job_id) } })
        .row("ID", html! { code { (job.id.0) } })
}

fn times(view: &View, job: &Job) -> Details {
    let moment = |at| view.moment(at);
    let took =
        job.started_at.zip(job.finished_at).map(|(from, to)| to.duration_since(from).as_micros());
    let took = took.and_then(|took| u64::try_from(took).ok()).map(duration_us);
    Details::default()
        .row("Created", moment(job.submitted_at))
        .maybe("Started", job.started_at.map(moment))
        .maybe("Last heartbeat", job.heartbeat_at.map(moment))
        .maybe("Lease until", job.lease_until.filter(|_| !job.status.is_end()).map(moment))
        .maybe("Next attempt", job.due_at.map(moment))
        .maybe("Finished", job.finished_at.map(moment))
        .maybe("Duration", took)
}

fn origin(view: &View, job: &Job) -> Details {
    let details = Details::default()
        .row("Capture", operation_link(view, job.operation_id))
        .maybe("Last operation", job.last_operation_id.map(|id| operation_link(view, id)))
        .maybe("Hook", job.hook_kind.as_ref().map(|kind| words(kind.as_str())))
        .maybe("Source", job.source.as_ref().map(|source| source_link(view, source)));
    scope_details(details, &job.scope)
}

fn records(view: &View, job: &Job) -> Markup {
    if job.records.is_empty() {
        let none = if job.status.is_end() { "No records." } else { "No records yet." };
        return html! { p.soft { (none) } };
    }
    record_list(view, job.binding_key.as_str(), &job.records, job.record_count.unwrap_or(0))
}

/// Asks first: a provider may delete what it had when a job is cancelled.
pub(super) async fn ask_cancel(
    view: CompanyView<permission::Administer>,
    PathParam(id): PathParam<JobId>,
) -> Result<Markup, Problem> {
    let job = view.service.control().job(&view.company, id).await?;
    let here = view.at(&["jobs", &job.id.0.to_string()]);
    let body = html! {
        p.about {
            "Work in progress may finish, but its result is discarded. The provider is told to \
             stop. You can retry the job later."
        }
        (confirm(&view, &view.path, "Cancel job", &[], &here))
    };
    Ok(Page::new(&view, "Cancel job?", "")
        .crumb("Jobs", view.at(&["jobs"]))
        .crumb("Job", here)
        .render(&body))
}

pub(super) async fn cancel(
    view: CompanyView<permission::Administer>,
    PathParam(id): PathParam<JobId>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    let job =
        Arc::clone(view.service.background()).cancel_job(&view.caller, &view.company, id).await?;
    view.flash("The job is cancelled.");
    Ok(redirect(&view.at(&["jobs", &job.id.0.to_string()])))
}

pub(super) async fn retry(
    view: CompanyView<permission::Administer>,
    PathParam(id): PathParam<JobId>,
    _: CsrfForm<NoFields>,
) -> Result<Response, Problem> {
    let job = view.service.control().retry_job(&view.caller, &view.company, id).await?;
    view.flash("The job is queued again.");
    Ok(redirect(&view.at(&["jobs", &job.id.0.to_string()])))
}
