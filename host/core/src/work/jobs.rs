//! Extraction jobs: work that captures left to be done, and when it is due. `extract` runs them; this module keeps them.
//!
//! A job's record changes in one step with the operation that changed it. After a crash a job is therefore either still
//! due or ended.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{MutexGuard, OwnedMutexGuard};

use crate::work::due_queue::{All, Due, DueQueue, Round};
use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, DueKind, Found, Store, StoreError, Table, TableWrite, Transacted};
use memhost_types::{
    Binding, BindingId, CompanyId, ExtractionJob, Job, JobFilter, JobId, JobRunner, JobStatus, Operation,
};

/// Enough locks that two jobs seldom share one.
const STRIPES: usize = 64;

/// Why a call about jobs failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is no such job.
    #[error("the company has no job {id}; `memhost job list` shows those that it has")]
    NotFound {
        /// Which.
        id: String,
    },
    /// Its status does not allow it.
    #[error("the job {id} is {status}; {advice}")]
    Status {
        /// Which.
        id: String,
        /// Its status.
        status: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Due for Job {
    const KIND: DueKind = DueKind::Job;
    const TABLE: Table = Table::Jobs;
    const NAME: &'static str = "job";

    fn key(&self) -> Vec<u8> {
        key(&self.company_id, self.id)
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.due_at
    }

    fn binding_id(&self) -> BindingId {
        self.binding_id
    }
}

/// Every job of this host.
pub struct Jobs {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    queue: DueQueue<Job>,
    deciding: Vec<tokio::sync::Mutex<()>>,
    leaving: Vec<Arc<tokio::sync::Mutex<()>>>,
}

impl Jobs {
    /// The jobs of a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let deciding = (0..STRIPES).map(|_| tokio::sync::Mutex::default()).collect();
        let leaving = (0..STRIPES).map(|_| Arc::default()).collect();
        Self { queue: DueQueue::new(Arc::clone(&store), Arc::clone(&clock)), store, clock, deciding, leaving }
    }

    /// Records for the jobs that an operation left and that the host does not know yet; a job is known by its provider's
    /// name for it. A job that the provider calls `running` is run by the provider's own system; the host runs every
    /// other job that has not ended.
    ///
    /// # Errors
    /// Where the known jobs cannot be read.
    pub async fn undiscovered(
        &self,
        capture: &Operation,
        binding: &Binding,
        jobs: &[ExtractionJob],
    ) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        let job = |left: &ExtractionJob| Job {
            id: JobId(new_id(&*self.clock)),
            company_id: capture.company_id.clone(),
            binding_id: binding.id,
            binding_key: binding.key.clone(),
            provider_key: binding.provider_key.clone(),
            provider_job_id: left.provider_job_id.clone(),
            operation_id: capture.id,
            last_operation_id: None,
            hook_kind: capture.hook.as_ref().map(|hook| hook.hook_kind.clone()),
            source: capture.source.clone(),
            scope: capture.scope.clone(),
            runner: if left.status == JobStatus::Running { JobRunner::Provider } else { JobRunner::Host },
            status: left.status,
            attempts: 0,
            failures: 0,
            submitted_at: left.submitted_at.unwrap_or(now),
            started_at: left.started_at,
            heartbeat_at: None,
            lease_until: None,
            due_at: (!left.status.is_end()).then_some(now),
            finished_at: left.status.is_end().then(|| left.finished_at.unwrap_or(now)),
            record_count: left.record_count,
            records: Vec::new(),
            error: left.error.clone(),
        };
        let mut all: Vec<Job> = Vec::with_capacity(jobs.len());
        for left in jobs.iter().map(job) {
            let is_there = all.iter().any(|other| other.provider_job_id == left.provider_job_id);
            if !is_there && self.store.get(Table::JobIndex, &name_key(&left)).await?.is_none() {
                all.push(left);
            }
        }
        Ok(all)
    }

    /// The writes that make a job what it is in `after`.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn writes(before: Option<&Job>, after: &Job) -> Result<Vec<TableWrite>, StoreError> {
        let mut writes = DueQueue::writes(before, after)?;
        if before.is_none() {
            let new = Some(after.id.0.as_bytes().to_vec());
            writes.push(TableWrite { table: Table::JobIndex, key: name_key(after), new });
        }
        Ok(writes)
    }

    /// Writes a job outside of an operation; durable when this returns.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn write(&self, before: Option<&Job>, after: &Job) -> Result<(), StoreError> {
        let changes: Vec<_> = Self::writes(before, after)?.into_iter().map(store::Change::from).collect();
        match self.store.transact(&changes).await? {
            Transacted::Done(commit) => commit.await,
            Transacted::Conflict(_) => Ok(()),
        }
    }

    /// Hold this while you change a job, until the change is durable. It excludes other tasks of this process; with
    /// several hosts it must be a lock of the store, such as an advisory lock of PostgreSQL.
    pub async fn decide(&self, id: JobId) -> MutexGuard<'_, ()> {
        self.deciding[stripe(id.0)].lock().await
    }

    /// Hold this while you write new jobs of a binding, until they are durable, so that two operations whose provider
    /// answers name the same job make one record. As with [`Jobs::decide`], several hosts need a lock of the store.
    pub async fn leave(&self, binding: BindingId) -> OwnedMutexGuard<()> {
        Arc::clone(&self.leaving[stripe(binding.0)]).lock_owned().await
    }

    /// One job.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub async fn get(&self, company: &CompanyId, id: JobId) -> Result<Job, JobError> {
        let found = self.queue.get(&key(company, id)).await?;
        found.ok_or_else(|| JobError::NotFound { id: id.0.to_string() })
    }

    /// How many jobs this process works on.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// One page of a company's jobs, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(
        &self,
        company: &CompanyId,
        filter: &JobFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Job>, StoreError> {
        let prefix = store::company_key(company, b"");
        self.queue.list(&prefix, from, limit, |job| filter.matches(job)).await
    }

    /// All of a company's jobs, newest first.
    pub fn all(&self, company: &CompanyId) -> All<'_, Job> {
        self.queue.all(&store::company_key(company, b""))
    }

    /// Takes jobs that are due and that nobody works on, until this process works on `most` in all and, of each binding,
    /// on as many as `limit` says; and says when the next one is due.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn take_due(&self, most: usize, limit: impl Fn(&Job) -> usize) -> Result<Round<Job>, StoreError> {
        self.queue.take_due(most, limit).await
    }
}

/// Which of the locks an id uses.
fn stripe(id: uuid::Uuid) -> usize {
    usize::try_from(id.as_u64_pair().1).unwrap_or(0) % STRIPES
}

/// The key of a job's name at its provider.
fn name_key(job: &Job) -> Vec<u8> {
    store::company_key(&job.company_id, &[job.binding_id.0.as_bytes(), job.provider_job_id.as_bytes()].concat())
}

fn key(company: &CompanyId, id: JobId) -> Vec<u8> {
    store::newest_first(company, id.0)
}
