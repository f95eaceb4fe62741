//! The operator's view of deliveries and extraction jobs: lists, and trying or running them again.

use async_recursion::async_recursion as boxed;

use crate::Control;
use memhost_access::{Act, Caller};
use memhost_operations::DeliveryAction;
use memhost_queues::BackgroundError;
use memhost_registry::NewActivity;
use memhost_tenancy::Page;
use memhost_tenancy::ServiceError;
use memhost_tenancy::reader_of;
use memhost_types::{
    ActivityAction, CompanyId, Delivery, DeliveryFilter, DeliveryId, Job, JobFilter, JobId,
    JobStatus, OperationKind, Scope,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

impl Control {
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
        filter.check()?;
        let page = self.tenancy.page_of("deliveries", company, filter, cursor, limit)?;
        let found = self.deliveries.list(company, filter, page.from(), page.limit).await?;
        Ok(self.tenancy.sealed(&page, found))
    }

    /// One delivery.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn delivery_of(
        &self,
        company: &CompanyId,
        id: DeliveryId,
    ) -> Result<Delivery, ServiceError> {
        Ok(self.deliveries.get(company, id.0).await?)
    }

    /// Tries a dead delivery again, or discards one that is dead or pending. A discarded delivery
    /// loses its payload.
    ///
    /// # Errors
    /// Where there is none of this id, or its status does not allow it.
    #[boxed]
    pub async fn change_delivery(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: DeliveryId,
        action: DeliveryAction,
    ) -> Result<Delivery, ServiceError> {
        let before = self.deliveries.get(company, id.0).await?;
        self.operations.change_one(caller, &before, action).await
    }

    /// Tries all dead deliveries again that match, or gives up those that are dead or pending: at
    /// most 1,000 at a time.
    ///
    /// # Errors
    /// Where the store fails; some of them are changed then.
    #[boxed]
    pub async fn change_deliveries(
        &self,
        caller: &Caller,
        company: &CompanyId,
        filter: &DeliveryFilter,
        action: DeliveryAction,
    ) -> Result<ChangedCount, ServiceError> {
        filter.check()?;
        let (mut changed, mut all) = (0, self.deliveries.all(company));
        while let Some(delivery) = all.next().await? {
            if !filter.matches(&delivery) || !action.takes(delivery.status) {
                continue;
            }
            if changed == MOST_CHANGED {
                return Ok(ChangedCount { changed, more: true });
            }
            let is_changed = self.operations.change_if_possible(caller, delivery, action).await?;
            changed += u32::from(is_changed);
        }
        Ok(ChangedCount { changed, more: false })
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
        filter.check()?;
        let page = self.tenancy.page_of("jobs", company, filter, cursor, limit)?;
        let mut found = self.jobs.list(company, filter, page.from(), page.limit).await?;
        found.0 = found.0.into_iter().map(|job| self.with_known_binding(job)).collect();
        Ok(self.tenancy.sealed(&page, found))
    }

    /// One job.
    ///
    /// # Errors
    /// Where the company has none of this id.
    #[boxed]
    pub async fn job(&self, company: &CompanyId, id: JobId) -> Result<Job, ServiceError> {
        Ok(self.with_known_binding(self.jobs.get(company, id.0).await?))
    }

    /// A job with the id that everybody outside knows its binding by.
    pub fn with_known_binding(&self, job: Job) -> Job {
        Job { binding_id: self.bindings.known_as(&job.company_id, job.binding_id), ..job }
    }

    /// Runs a job again that failed or was cancelled.
    ///
    /// # Errors
    /// Where there is none of this id, or it has not ended, or succeeded.
    #[boxed]
    pub async fn retry_job(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: JobId,
    ) -> Result<Job, ServiceError> {
        let _lock = self.jobs.lock(id).await?;
        let before = self.jobs.get(company, id.0).await?;
        if !before.can_retry() {
            let advice = match before.status {
                JobStatus::Failed | JobStatus::Cancelled => {
                    "its provider cannot try it again; capture its material anew"
                }
                _ => "only one that failed or was cancelled can be queued again",
            };
            return Err(wrong_status(&before, advice));
        }
        let after = Job {
            status: JobStatus::Queued,
            failures: 0,
            due_at: Some(self.clock.now()),
            started_at: None,
            finished_at: None,
            // The provider answers a job that succeeded meanwhile as it is.
            lease_until: None,
            is_retry: true,
            error: None,
            error_code: None,
            ..before.clone()
        };
        self.change_job(caller, &before, &after).await?;
        self.wake.notify_one();
        Ok(self.with_known_binding(after))
    }

    /// Queues all jobs again that match and failed or were cancelled: at most 1,000 at a time.
    ///
    /// # Errors
    /// Where the store fails; some of them are queued then.
    #[boxed]
    pub async fn retry_jobs(
        &self,
        caller: &Caller,
        company: &CompanyId,
        filter: &JobFilter,
    ) -> Result<ChangedCount, ServiceError> {
        filter.check()?;
        let (mut changed, mut all) = (0, self.jobs.all(company));
        while let Some(job) = all.next().await? {
            if !filter.matches(&job) || !job.can_retry() {
                continue;
            }
            if changed == MOST_CHANGED {
                return Ok(ChangedCount { changed, more: true });
            }
            match self.retry_job(caller, company, job.id).await {
                Ok(_) => changed += 1,
                // It was retried or removed meanwhile.
                Err(ServiceError::Work(
                    BackgroundError::JobStatus { .. } | BackgroundError::NoJob { .. },
                )) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ChangedCount { changed, more: false })
    }

    /// One page of the jobs that the caller may know of, newest first. An agent knows of its own
    /// and of those of no agent; nobody knows of jobs whose records are private to others.
    ///
    /// # Errors
    /// Where the caller may not list records, or the cursor or the limit is not valid.
    #[boxed]
    pub async fn jobs_for(
        &self,
        caller: &Caller,
        company: &CompanyId,
        filter: &JobFilter,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<Job>, ServiceError> {
        self.may_see_jobs(caller, company).await?;
        filter.check()?;
        let page = self.tenancy.page_of(
            "jobs",
            company,
            &(filter, caller.agent(), caller.person()),
            cursor,
            limit,
        )?;
        let is_wanted = |job: &Job| filter.matches(job) && is_known_to(caller, job);
        let mut found = self.jobs.list_where(company, is_wanted, page.from(), page.limit).await?;
        found.0 = found.0.into_iter().map(|job| self.with_known_binding(job)).collect();
        Ok(self.tenancy.sealed(&page, found))
    }

    /// One job, as [`Control::jobs_for`] has it.
    ///
    /// # Errors
    /// Where the caller may not list records, or there is none of this id that it may know of.
    #[boxed]
    pub async fn job_for(
        &self,
        caller: &Caller,
        company: &CompanyId,
        id: JobId,
    ) -> Result<Job, ServiceError> {
        self.may_see_jobs(caller, company).await?;
        let job = self.jobs.get(company, id.0).await?;
        match is_known_to(caller, &job) {
            true => Ok(self.with_known_binding(job)),
            false => Err(BackgroundError::NoJob { id: id.0 }.into()),
        }
    }

    async fn may_see_jobs(&self, caller: &Caller, company: &CompanyId) -> Result<(), ServiceError> {
        match caller.may(Act::Operate(OperationKind::List), Some(company)) {
            Ok(()) => self.tenancy.usable(caller, company).await,
            Err(denied) => {
                Err(self.tenancy.deny(caller, OperationKind::List, Some(company), &denied).await)
            }
        }
    }

    /// Writes a job that a caller changed, with its entry in the activity log.
    ///
    /// # Errors
    /// Where the job was changed meanwhile, or the store fails.
    #[boxed]
    pub async fn change_job(
        &self,
        caller: &Caller,
        before: &Job,
        after: &Job,
    ) -> Result<(), ServiceError> {
        let entry = NewActivity::new(
            caller.principal(),
            ActivityAction::JobChanged,
            before.id.0.to_string(),
        );
        let entry = entry.with(Some(&before.status), Some(&after.status));
        let changes = self.jobs.changes(before, after).await?;
        self.activity.record_with(&before.company_id, entry, changes).await?;
        self.oplog.feed.job(self.with_known_binding(after.clone()));
        Ok(())
    }
}

/// Records that one call changes at most.
const MOST_CHANGED: u32 = 1_000;

/// How many records a call has changed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedCount {
    /// So many; at most 1,000.
    pub changed: u32,
    /// Whether further ones match: send the request again.
    pub more: bool,
}

/// An agent knows its own jobs and those of no agent. A job whose records are private is known only
/// to those who may read them.
fn is_known_to(caller: &Caller, job: &Job) -> bool {
    let mut scope = Scope::company(job.company_id.clone());
    if caller.confine(&mut scope).is_err() {
        return false;
    }
    reader_of(caller, &scope).may_read_of(job.visibility, &job.scope)
        && caller
            .agent()
            .is_none_or(|agent| job.scope.agent_id.as_ref().is_none_or(|of| of == agent))
}

/// The refusal of a change that a job's status does not allow.
pub fn wrong_status(job: &Job, advice: &'static str) -> ServiceError {
    BackgroundError::JobStatus { id: job.id.0, status: job.status, advice }.into()
}
