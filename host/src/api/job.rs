//! Extraction jobs.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Deserialize;

use crate::contract::{BindingKey, HookKind, Job, JobFilter, JobId, JobStatus, SourceKind};
use crate::edge::Problem;
use crate::edge::{Administering, In, Viewing};
use crate::edge::{Query, parse};
use crate::service::{Page, Service};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> Router<Arc<Service>> {
    Router::new()
        .route("/jobs", get(list))
        .route("/jobs/{id}", get(show))
        .route("/jobs/{id}/cancel", post(cancel))
        .route("/jobs/{id}/retry", post(retry))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JobQuery {
    status: Option<JobStatus>,
    binding_key: Option<BindingKey>,
    hook_kind: Option<HookKind>,
    source_kind: Option<SourceKind>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    cursor: Option<String>,
    limit: Option<u32>,
}

async fn list(
    State(service): State<Arc<Service>>,
    allowed: In<Viewing>,
    Query(query): Query<JobQuery>,
) -> Result<Json<Page<Job>>, Problem> {
    let JobQuery { status, binding_key, hook_kind, source_kind, since, until, cursor, limit } = query;
    let filter = JobFilter { status, binding_key, hook_kind, source_kind, since, until };
    Ok(Json(service.jobs(&allowed.company, &filter, cursor.as_deref(), limit)?))
}

fn id(text: &str) -> Result<JobId, Problem> {
    parse("jobId", text).map(JobId)
}

async fn show(
    State(service): State<Arc<Service>>,
    Path((_, job)): Path<(String, String)>,
    allowed: In<Viewing>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(service.job(&allowed.company, id(&job)?)?))
}

async fn cancel(
    State(service): State<Arc<Service>>,
    Path((_, job)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(service.cancel_job(&allowed.caller, &allowed.company, id(&job)?).await?))
}

async fn retry(
    State(service): State<Arc<Service>>,
    Path((_, job)): Path<(String, String)>,
    allowed: In<Administering>,
) -> Result<Json<Job>, Problem> {
    Ok(Json(service.retry_job(&allowed.caller, &allowed.company, id(&job)?).await?))
}
