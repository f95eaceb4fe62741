//! The operator's view of deliveries and extraction jobs: lists, replay, cancelling, running again.

use async_recursion::async_recursion as boxed;
use std::sync::Arc;

use crate::Service;
use crate::access::Caller;
use crate::bindings::NewActivity;
use crate::error::ServiceError;
use crate::paging::Page;
use crate::work::WorkError;
use memhost_types::{
    ActivityAction, CompanyId, Delivery, DeliveryFilter, DeliveryId, DeliveryStatus, Job, JobFilter, JobId, JobStatus,
};

impl Service {
    /// One page of a company's deliveries, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
    #[boxed]
    pub async fn deliveries(
        &self,
        company: &CompanyId,
        filter: &DeliveryFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Delivery>, ServiceError> {
        let page = self.page_of("deliveries", company, filter, cursor, limit)?;
        let found = self.deliveries.list(company, filter, page.from(), page.limit).await?;
        Ok(self.sealed(&page, found))
    }

    /// One delivery.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn delivery_of(&self, company: &CompanyId, id: DeliveryId) -> Result<Delivery, ServiceError> {
        Ok(self.deliveries.get(company, id.0).await?)
    }

    /// Tries a dead delivery again.
    ///
    /// # Errors
    /// Where there is none of this id, or it is not dead.
    #[boxed]
    pub async fn replay_delivery(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: DeliveryId,
    ) -> Result<Delivery, ServiceError> {
        let before = self.deliveries.get(company, id.0).await?;
        if before.status != DeliveryStatus::Dead {
            return Err(WorkError::DeliveryStatus { id: id.0, status: before.status }.into());
        }
        let after = Delivery {
            status: DeliveryStatus::Pending,
            attempts: 0,
            due_at: Some(self.clock.now()),
            finished_at: None,
            ..before.clone()
        };
        let entry = NewActivity::new(caller.principal(), ActivityAction::DeliveryReplayed, id.0.to_string());
        self.bindings.record_with(company, entry, self.deliveries.changes(&before, &after).await?).await?;
        self.deliveries.moved();
        self.wake.notify_one();
        Ok(after)
    }

    /// One page of a company's jobs, newest first.
    ///
    /// # Errors
    /// Where the cursor or the limit is not valid.
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
        Ok(self.jobs.get(company, id.0).await?)
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
            let _lock = self.jobs.lock(id).await?;
            let before = self.jobs.get(company, id.0).await?;
            if before.status == JobStatus::Cancelled {
                return Ok(before);
            }
            if before.status.is_end() {
                return Err(wrong_status(&before, "only one that has not ended can be cancelled"));
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
        let _lock = self.jobs.lock(id).await?;
        let before = self.jobs.get(company, id.0).await?;
        if !matches!(before.status, JobStatus::Failed | JobStatus::Cancelled) {
            return Err(wrong_status(&before, "only one that failed or was cancelled can be queued again"));
        }
        let after = Job {
            status: JobStatus::Queued,
            failures: 0,
            due_at: Some(self.clock.now()),
            started_at: None,
            finished_at: None,
            // A run that was in progress at the cancellation may have succeeded: the provider is asked first.
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
        let changes = self.jobs.changes(before, after).await?;
        self.bindings.record_with(&before.company_id, entry, changes).await?;
        self.recorder.feed.job(after.clone());
        Ok(())
    }
}

fn wrong_status(job: &Job, advice: &'static str) -> ServiceError {
    WorkError::JobStatus { id: job.id.0, status: job.status, advice }.into()
}
