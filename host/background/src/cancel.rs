//! Cancelling an extraction job: at once here, and then at its provider.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use crate::Background;
use memhost_access::Caller;
use memhost_control::wrong_status;
use memhost_tenancy::ServiceError;
use memhost_types::{CompanyId, Job, JobId, JobStatus};

impl Background {
    /// Cancels a job, and tells the provider. A call that runs may end, and does not change the job
    /// any more.
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
        let before = self.jobs.get(company, id.0).await?;
        if before.status == JobStatus::Cancelled {
            return Ok(before);
        }
        let untold = self.jobs.lock_cancellation(id).await?;
        let cancelled = {
            let _lock = self.jobs.lock(id).await?;
            let before = self.jobs.get(company, id.0).await?;
            if before.status == JobStatus::Cancelled {
                return Ok(self.control.with_known_binding(before));
            }
            if before.status.is_end() {
                return Err(wrong_status(&before, "only one that has not ended can be cancelled"));
            }
            let (finished_at, due_at) = (Some(self.clock.now()), None);
            let after = Job { status: JobStatus::Cancelled, due_at, finished_at, ..before.clone() };
            self.control.change_job(caller, &before, &after).await?;
            after
        };
        let job = cancelled.clone();
        // The job is cancelled whether or not the provider can be told.
        let background = Arc::clone(&self);
        memhost_executor::spawn(async move {
            if let Err(error) = background.send_cancellation(&job).await {
                tracing::warn!(%error, job = %job.id.0, "the provider could not be told that a job \
                    was cancelled");
            }
            drop(untold);
        });
        Ok(self.control.with_known_binding(cancelled))
    }
}
