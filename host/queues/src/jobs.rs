//! Extraction jobs as records: work that captures and other writes left to be done. The crate
//! `background` runs them.
//!
//! A job's record changes in one step with the operation that changed it. After a crash a job is
//! therefore either still due or ended.

use jiff::Timestamp;
use uuid::Uuid;

use crate::BackgroundError;
use crate::due_queue::{Due, DueQueue};
use memhost_ports::new_id;
use memhost_store::{self as store, Change, DueKind, Lease, LockKind, Old, StoreError, Table};
use memhost_types::{
    Binding, BindingId, CompanyId, ExtractionJob, Job, JobFilter, JobId, JobRunner, JobStatus,
    Operation, Replacement,
};

/// Every job of this host.
pub type Jobs = DueQueue<Job>;

impl Due for Job {
    type Filter = JobFilter;
    const KIND: DueKind = DueKind::Job;
    const TABLE: Table = Table::Jobs;
    const PREFIX: &'static [u8] = b"";
    const NAME: &'static str = "job";

    fn company_id(&self) -> &CompanyId {
        &self.company_id
    }

    fn id(&self) -> Uuid {
        self.id.0
    }

    fn binding_id(&self) -> BindingId {
        self.binding_id
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    /// The provider's name for it.
    fn mark(&self) -> (Table, Vec<u8>) {
        let name = [self.binding_id.0.as_bytes(), self.provider_job_id.as_bytes()].concat();
        (Table::JobIndex, store::company_key(&self.company_id, &name))
    }

    fn matches(&self, filter: &JobFilter) -> bool {
        filter.matches(self)
    }

    fn not_found(id: Uuid) -> BackgroundError {
        BackgroundError::NoJob { id }
    }
}

impl Jobs {
    /// Records for the jobs that an operation left and that the host does not know yet. A job that
    /// the provider calls `running` is run by the provider's own system; the host runs every other
    /// job that has not ended.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn undiscovered(
        &self,
        operation: &Operation,
        binding: &Binding,
        jobs: &[ExtractionJob],
        replaces: Option<&Replacement>,
    ) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        let job = |found: &ExtractionJob| Job {
            id: JobId(new_id(&*self.clock)),
            company_id: operation.company_id.clone(),
            binding_id: binding.id,
            binding_key: binding.key.clone(),
            provider_key: binding.provider_key.clone(),
            provider_job_id: found.provider_job_id.clone(),
            operation_id: operation.id,
            last_operation_id: None,
            hook_kind: operation.hook.as_ref().map(|hook| hook.hook_kind.clone()),
            hook: operation.hook.clone(),
            source: operation.source.clone(),
            scope: operation.scope.clone(),
            visibility: operation.visibility,
            replaces: replaces.cloned(),
            runner: if found.status == JobStatus::Running {
                JobRunner::Provider
            } else {
                JobRunner::Host
            },
            status: found.status,
            attempts: 0,
            failures: 0,
            submitted_at: found.submitted_at.unwrap_or(now),
            started_at: found.started_at,
            heartbeat_at: None,
            lease_until: None,
            due_at: (!found.status.is_end()).then_some(now),
            finished_at: found.status.is_end().then(|| found.finished_at.unwrap_or(now)),
            record_count: found.record_count,
            records: Vec::new(),
            error: found.error.clone(),
            error_code: None,
            is_retryable: found.status.is_end().then_some(found.is_retryable),
            is_retry: false,
        };
        let mut all: Vec<Job> = Vec::with_capacity(jobs.len());
        for found in jobs.iter().map(job) {
            let is_there = all.iter().any(|other| other.provider_job_id == found.provider_job_id);
            if !is_there && self.known(&found).await?.is_none() {
                all.push(found);
            }
        }
        Ok(all)
    }

    /// Hold this while you change a job, until the change is durable.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock(&self, id: JobId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Job, id.0.as_bytes()).await
    }

    /// Hold this from before a job is cancelled until its provider has heard of it, and wait for it
    /// before the provider is asked to try the job again: a cancellation that comes after that
    /// would end the new try. Take it before [`Jobs::lock`].
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock_cancellation(&self, id: JobId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::Cancellation, id.0.as_bytes()).await
    }

    /// Hold this while you write new jobs of a binding, until they are durable, so that two
    /// operations whose provider answers name the same job make one record.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn lock_new(&self, binding: BindingId) -> Result<Lease, StoreError> {
        self.store.lock(LockKind::NewJobs, binding.0.as_bytes()).await
    }

    /// Removes a company's jobs that ended and were submitted before `cutoff`, with their marks.
    /// Answers how many went.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn sweep(&self, company: &CompanyId, cutoff: Timestamp) -> Result<u64, StoreError> {
        let old = |value: &[u8]| {
            let job: Job = store::decode("job", value)?;
            Ok(match job.status.is_end() {
                false => Old::Stays,
                true => {
                    let (table, key) = job.mark();
                    Old::Removed(vec![Change::always(table, key, None)])
                }
            })
        };
        store::sweep(&*self.store, (Table::Jobs, Job::PREFIX), company, cutoff, old).await
    }
}
