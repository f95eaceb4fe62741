//! Extraction jobs: the runtime plane shows them, the control plane changes them, too.

use std::sync::Arc;

use aide::axum::ApiRouter;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::ListQuery;
use super::route_table::routes;
use crate::failure::JobCodes;
use crate::{Authorized, AuthorizedByCore, Body, Failure, Json, PathParam, Problem, permission};
use memhost_core::{ChangedCount, Page, Service};
use memhost_types::{AgentId, BindingKey, HookKind, Job, JobFilter, JobId, JobStatus, SourceKind};

/// A job, and what can be done about it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Whether it can be queued again: it failed or was cancelled.
    pub can_retry: bool,
}

impl From<Job> for JobView {
    fn from(job: Job) -> Self {
        Self { can_retry: job.can_retry(), job }
    }
}

/// Which jobs to queue again. Every field that is set must match.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RetryJobs {
    /// All of the company: needed where there is no filter.
    every: bool,
    status: Option<JobStatus>,
    binding_key: Option<BindingKey>,
    #[schemars(with = "Option<memhost_types::schema::OutsideId>")]
    hook_kind: Option<HookKind>,
    source_kind: Option<SourceKind>,
    /// The agent of the scope, or else whose action triggered the capture.
    agent_id: Option<AgentId>,
    #[schemars(with = "Option<memhost_types::schema::OutsideId>")]
    issue_id: Option<String>,
    #[schemars(with = "Option<memhost_types::schema::OutsideId>")]
    run_id: Option<String>,
    /// Submitted at this moment or later.
    since: Option<Timestamp>,
    /// Submitted before this moment.
    until: Option<Timestamp>,
}

impl From<RetryJobs> for JobFilter {
    fn from(wanted: RetryJobs) -> Self {
        let RetryJobs {
            every: _,
            status,
            binding_key,
            hook_kind,
            source_kind,
            agent_id,
            issue_id,
            run_id,
            since,
            until,
        } = wanted;
        Self {
            status,
            binding_key,
            hook_kind,
            source_kind,
            agent_id,
            issue_id,
            run_id,
            since,
            until,
        }
    }
}

fn views(page: Page<Job>) -> Json<Page<JobView>> {
    let Page { items, next_cursor } = page;
    Json(Page { items: items.into_iter().map(JobView::from).collect(), next_cursor })
}

/// The routes below `/runtime/v1/companies/{company}`.
pub(super) fn runtime_routes() -> ApiRouter<Arc<Service>> {
    const KNOWN: &str = "An agent knows of its own jobs and of those of no agent. Nobody knows of \
                         jobs whose records are \
                         private to others.";
    routes! { RUNTIME, "jobs":
        "/jobs" {
            get list_own =>
                "listOwnJobs", "List the extraction jobs that the caller may know of", KNOWN;
        }
        "/jobs/{id}" {
            get show_own => "getOwnJob", "Show a job that the caller may know of", KNOWN;
        }
    }
}

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { COMPANY, "jobs":
        "/jobs" { get list => "listJobs", "List the extraction jobs that match", "Newest first."; }
        "/jobs/{id}" { get show => "getJob", "Show a job"; }
        "/jobs/{id}/cancel" { post cancel => "cancelJob", "Cancel a job"; }
        "/jobs/{id}/retry" {
            post retry => "retryJob", "Queue a job again that failed or was cancelled";
        }
        "/jobs/retry" {
            post retry_all =>
                "retryJobs", "Queue the jobs again that match and failed or were cancelled",
                "At most 1,000 at a time; `more` says that others match. Without a filter it needs \
                 `every`.";
        }
    }
}

async fn list_own(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::List>,
    ListQuery { filter, page }: ListQuery<JobFilter>,
) -> Result<Json<Page<JobView>>, Problem> {
    Ok(views(
        service
            .control()
            .jobs_for(&caller, &company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn show_own(
    AuthorizedByCore { service, caller, company, .. }: AuthorizedByCore<permission::List>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(service.control().job_for(&caller, &company, job).await?.into()))
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<JobFilter>,
) -> Result<Json<Page<JobView>>, Problem> {
    Ok(views(
        allowed
            .service
            .control()
            .jobs(&allowed.company, &filter, page.cursor.as_deref(), page.limit)
            .await?,
    ))
}

async fn show(
    allowed: Authorized<permission::View>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<JobView>, Problem> {
    Ok(Json(allowed.service.control().job(&allowed.company, job).await?.into()))
}

async fn cancel(
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<JobView>, Failure<JobCodes>> {
    Ok(Json(
        Arc::clone(allowed.service.background())
            .cancel_job(&allowed.caller, &allowed.company, job)
            .await?
            .into(),
    ))
}

async fn retry(
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<JobView>, Failure<JobCodes>> {
    Ok(Json(
        allowed.service.control().retry_job(&allowed.caller, &allowed.company, job).await?.into(),
    ))
}

async fn retry_all(
    allowed: Authorized<permission::Administer>,
    Body(wanted): Body<RetryJobs>,
) -> Result<Json<ChangedCount>, Problem> {
    let is_every = wanted.every;
    let filter = JobFilter::from(wanted);
    if filter == JobFilter::default() && !is_every {
        let detail = "every: is not true, and there is no filter; give a filter, or `\"every\": \
                      true` for all jobs";
        return Err(Problem::invalid(detail).at("every"));
    }
    Ok(Json(
        allowed.service.control().retry_jobs(&allowed.caller, &allowed.company, &filter).await?,
    ))
}
