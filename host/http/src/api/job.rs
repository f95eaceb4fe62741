//! Extraction jobs.

use std::sync::Arc;

use aide::axum::ApiRouter;

use super::list::ListQuery;
use super::routes;
use crate::failure::JobCodes;
use crate::{Authorized, Failure, Json, PathParam, Problem, permission};
use memhost_core::{Page, Service};
use memhost_types::{Job, JobFilter, JobId};

/// The routes below `/control/v1/companies/{company}`.
pub(super) fn routes() -> ApiRouter<Arc<Service>> {
    routes! { "jobs":
        "/jobs" { get list => "listJobs", "List the extraction jobs that match", "Newest first."; }
        "/jobs/{id}" { get show => "getJob", "Show a job"; }
        "/jobs/{id}/cancel" { post cancel => "cancelJob", "Cancel a job"; }
        "/jobs/{id}/retry" { post retry => "retryJob", "Queue a job again that failed or was cancelled"; }
    }
}

async fn list(
    allowed: Authorized<permission::View>,
    ListQuery { filter, page }: ListQuery<JobFilter>,
) -> Result<Json<Page<Job>>, Problem> {
    Ok(Json(allowed.service.jobs(&allowed.company, &filter, page.cursor.as_deref(), page.limit).await?))
}

async fn show(allowed: Authorized<permission::View>, PathParam(job): PathParam<JobId>) -> Result<Json<Job>, Problem> {
    Ok(Json(allowed.service.job(&allowed.company, job).await?))
}

async fn cancel(
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<Job>, Failure<JobCodes>> {
    Ok(Json(allowed.service.cancel_job(&allowed.caller, &allowed.company, job).await?))
}

async fn retry(
    allowed: Authorized<permission::Administer>,
    PathParam(job): PathParam<JobId>,
) -> Result<Json<Job>, Failure<JobCodes>> {
    Ok(Json(allowed.service.retry_job(&allowed.caller, &allowed.company, job).await?))
}
