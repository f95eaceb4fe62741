//! Extraction jobs.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::describe;
use crate::failure::JobCodes;
use crate::{Authorized, Failure, PathParam, Problem, Query, permission};
use memhost_core::{Page, Service};
use memhost_types::schema::{cursor, page_size};
use memhost_types::{BindingKey, HookKind, Job, JobFilter, JobId, JobStatus, SourceKind};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    ApiRouter::new()
        .api_route("/jobs", get_with(list, describe("listJobs", "List extraction jobs that match", "Newest first.")))
        .api_route("/jobs/{id}", get_with(show, describe("getJob", "Show one job", "")))
        .api_route("/jobs/{id}/cancel", post_with(cancel, describe("cancelJob", "Give a job up", "")))
        .api_route("/jobs/{id}/retry", post_with(retry, describe("retryJob", "Queue a job again that has ended", "")))
        .with_path_items(|item| item.tag("jobs"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobQuery {
    status: Option<JobStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    source_kind: Option<SourceKind>,
    /// Submitted at this moment or later.
    since: Option<Timestamp>,
    /// Submitted before this moment.
    until: Option<Timestamp>,
    /// Where the page begins: `nextCursor` of the page before.
    #[schemars(transform = cursor)]
    cursor: Option<String>,
    /// How many at most.
    #[schemars(transform = page_size)]
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    Query(query): Query<JobQuery>,
) -> Result<Json<Page<Job>>, Problem> {
    let JobQuery { status, binding_key, hook_kind, source_kind, since, until, cursor, limit } = query;
    let filter = JobFilter { status, binding_key, hook_kind, source_kind, since, until };
    Ok(Json(service.jobs(&allowed.company, &filter, cursor.as_deref(), limit).await?))
}

async fn show(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::View>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(service.job(&allowed.company, job).await?))
}

async fn cancel(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<Job>, Failure<JobCodes>> {
    Ok(Json(service.cancel_job(&allowed.caller, &allowed.company, job).await?))
}

async fn retry(
    State(service): State<Arc<Service>>,
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<Job>, Failure<JobCodes>> {
    Ok(Json(service.retry_job(&allowed.caller, &allowed.company, job).await?))
}
