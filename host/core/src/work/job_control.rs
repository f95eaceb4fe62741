//! The operator's view of extraction jobs: lists, cancelling, queueing again.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::paging::Page;
use crate::work::jobs::JobError;
use crate::work::jobs::Jobs;
use memhost_types::{ActivityAction, CompanyId, Job, JobFilter, JobId, JobStatus};

impl Service {
    /// One page of a company's jobs, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit will not do.
    #[boxed]
    pub async fn jobs(
        &self,
        company: &CompanyId,
        filter: &JobFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Job>, ServiceError> {
        let page = self.page_of("jobs", company, filter, cursor, limit)?;
        let found = self.jobs.list(company, filter, page.from(), page.limit).await?;
        Ok(self.sealed(&page, found))
    }

    /// One job.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn job(&self, company: &CompanyId, id: JobId) -> Result<Job, ServiceError> {
        Ok(self.jobs.get(company, id).await?)
    }

    /// Cancels a job, and tells the provider. A call that runs may end, and does not change the job any more.
    ///
    /// # Errors
    /// Where there is none of this id, or it has ended otherwise.
    #[boxed]
    pub async fn cancel_job(
        self: Arc<Self>,
        caller: &Caller,
        company: &CompanyId,
        id: JobId,
    ) -> Result<Job, ServiceError> {
        let cancelled = {
            let _decided = self.jobs.decide(id).await;
            let before = self.jobs.get(company, id).await?;
            if before.status == JobStatus::Cancelled {
                return Ok(before);
            }
            if before.status.is_end() {
                return Err(status(&before, "only one that has not ended can be cancelled").into());
            }
            let (finished_at, due_at) = (Some(self.clock.now()), None);
            let after = Job { status: JobStatus::Cancelled, due_at, finished_at, ..before.clone() };
            self.change_job(caller, &before, &after).await?;
            after
        };
        let job = cancelled.clone();
        // The job is cancelled whether or not the provider can be told.
        tokio::spawn(async move {
            if let Err(error) = self.send_cancellation(&job).await {
                tracing::warn!(%error, job = %job.id.0, "the provider could not be told that a job was cancelled");
            }
        });
        Ok(cancelled)
    }

    /// Runs a job again that failed or was cancelled.
    ///
    /// # Errors
    /// Where there is none of this id, or it has not ended, or succeeded.
    #[boxed]
    pub async fn retry_job(&self, caller: &Caller, company: &CompanyId, id: JobId) -> Result<Job, ServiceError> {
        let _decided = self.jobs.decide(id).await;
        let before = self.jobs.get(company, id).await?;
        if !matches!(before.status, JobStatus::Failed | JobStatus::Cancelled) {
            return Err(status(&before, "only one that failed or was cancelled can be queued again").into());
        }
        let after = Job {
            status: JobStatus::Queued,
            failures: 0,
            due_at: Some(self.clock.now()),
            started_at: None,
            finished_at: None,
            // A run that was going on at the cancellation may have succeeded: the provider is asked first.
            lease_until: before.lease_until,
            error: None,
            ..before.clone()
        };
        self.change_job(caller, &before, &after).await?;
        self.wake.notify_one();
        Ok(after)
    }

    async fn change_job(&self, caller: &Caller, before: &Job, after: &Job) -> Result<(), ServiceError> {
        let entry = NewActivity::new(caller.principal(), ActivityAction::JobChanged, before.id.0.to_string());
        let entry = entry.with(Some(&before.status), Some(&after.status));
        let changes = Jobs::writes(Some(before), after)?.into_iter().map(Into::into).collect();
        self.bindings.record_with(&before.company_id, entry, changes).await?;
        self.recorder.feed.job(after.clone());
        Ok(())
    }
}

fn status(job: &Job, advice: &'static str) -> JobError {
    let status = match job.status {
        JobStatus::Queued => "queued",
        JobStatus::Running => "running",
        JobStatus::Succeeded => "succeeded",
        JobStatus::Failed => "failed",
        JobStatus::Cancelled => "cancelled",
    };
    JobError::Status { id: job.id.0.to_string(), status, advice }
}
