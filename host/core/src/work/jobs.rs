//! Extraction jobs: what captures left to be done, when it is due, and who is at it. Running them is the pipeline's
//! business; this room keeps them.
//!
//! A job's record changes in one step with the operation that changed it. A crash therefore leaves a job that is still
//! due, or one that has ended, and nothing between.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{MutexGuard, OwnedMutexGuard};

use memhost_ports::{Clock, new_id};
use memhost_store::{self as store, DueKind, Expected, Found, Store, StoreError, Table, TableWrite, Transacted};
use memhost_types::{
    Binding, BindingId, CompanyId, ExtractionJob, Job, JobFilter, JobId, JobRunner, JobStatus, Operation,
};

/// So many locks that two jobs seldom share one.
const STRIPES: usize = 64;
/// At most so many due jobs are looked at for one round: those of a binding that is at its limit do not hide the others.
const LOOKS: usize = 10_000;
/// How long until the next round goes on where one had to stop.
const PAUSE: SignedDuration = SignedDuration::from_millis(50);

/// What this room fails with.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// There is no such job.
    #[error("the company has no job {id}; `memhost job list` shows those that it has")]
    NotFound {
        /// Which.
        id: String,
    },
    /// It has ended, or has not.
    #[error("the job {id} is {status}; {advice}")]
    Status {
        /// Which.
        id: String,
        /// How it is.
        status: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Every job of this host.
pub struct Jobs {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    in_flight: Arc<Mutex<HashMap<JobId, BindingId>>>,
    resume: Mutex<Option<Vec<u8>>>,
    deciding: Vec<tokio::sync::Mutex<()>>,
    leaving: Vec<Arc<tokio::sync::Mutex<()>>>,
}

/// A job that somebody is at. Nobody else gets it before this is dropped.
pub struct Taken {
    /// As it was when it was taken.
    pub job: Job,
    in_flight: Arc<Mutex<HashMap<JobId, BindingId>>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.job.id);
    }
}

impl Jobs {
    /// All jobs are in the store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let deciding = (0..STRIPES).map(|_| tokio::sync::Mutex::default()).collect();
        let leaving = (0..STRIPES).map(|_| Arc::default()).collect();
        Self { store, clock, in_flight: Arc::default(), resume: Mutex::default(), deciding, leaving }
    }

    /// The jobs that a capture left. What the provider calls `running` goes on in its own system; anything else that has
    /// not ended is for the host to run.
    /// A job that the host has already, under its provider's name, is no other one.
    ///
    /// # Errors
    /// Where it cannot be read which ones there are.
    pub fn undiscovered(
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
            if !is_there && self.store.get(Table::JobIndex, &name_key(&left))?.is_none() {
                all.push(left);
            }
        }
        Ok(all)
    }

    /// What must be written for a job to be as it is now.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn writes(before: Option<&Job>, after: &Job) -> Result<Vec<TableWrite>, StoreError> {
        let key = key(&after.company_id, after.id);
        let due = |job: &Job| job.due_at.map(|at| store::due_key(DueKind::Job, at, &key));
        let (old, new) = (before.and_then(due), due(after));
        let mut writes = Vec::with_capacity(3);
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            writes.push(TableWrite { table: Table::Due, key: old, new: None });
        }
        if let Some(new) = new {
            writes.push(TableWrite { table: Table::Due, key: new, new: Some(Vec::new()) });
        }
        if before.is_none() {
            let new = Some(after.id.0.as_bytes().to_vec());
            writes.push(TableWrite { table: Table::JobIndex, key: name_key(after), new });
        }
        let value = Some(store::encode("job", after)?);
        writes.push(TableWrite { table: Table::Jobs, key, new: value });
        Ok(writes)
    }

    /// Writes a job that no operation is about; it is durable when this returns.
    ///
    /// # Errors
    /// Where the disk fails.
    pub async fn write(&self, before: Option<&Job>, after: &Job) -> Result<(), StoreError> {
        let changes: Vec<_> = Self::writes(before, after)?.into_iter().map(store::Change::from).collect();
        match self.store.transact(&changes)? {
            Transacted::Done(commit) => commit.await,
            Transacted::Conflict(_) => Ok(()),
        }
    }

    /// Whoever decides about a job holds this until the decision is durable.
    pub async fn decide(&self, id: JobId) -> MutexGuard<'_, ()> {
        self.deciding[stripe(id.0)].lock().await
    }

    /// Whoever writes new jobs of a binding down holds this until they are durable: two operations that were answered with
    /// the same job make one of it.
    pub async fn leave(&self, binding: BindingId) -> OwnedMutexGuard<()> {
        Arc::clone(&self.leaving[stripe(binding.0)]).lock_owned().await
    }

    /// One job.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub fn get(&self, company: &CompanyId, id: JobId) -> Result<Job, JobError> {
        let stored = self.store.get(Table::Jobs, &key(company, id))?;
        let stored = stored.ok_or_else(|| JobError::NotFound { id: id.0.to_string() })?;
        Ok(store::decode("job", &stored)?)
    }

    /// How many jobs somebody is at.
    pub fn in_flight(&self) -> usize {
        self.in_flight.lock().len()
    }

    /// One page of a company's jobs, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn list(
        &self,
        company: &CompanyId,
        filter: &JobFilter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<Job>, StoreError> {
        let prefix = store::company_key(company, b"");
        store::matching(&*self.store, (Table::Jobs, "job"), &prefix, from, limit, |job| filter.matches(job))
    }

    /// Jobs that are due and that nobody is at, until `most` are at work in all and of a binding as many as `limit` says,
    /// and when the next one is.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn take_due(
        &self,
        most: usize,
        limit: impl Fn(&Job) -> u32,
    ) -> Result<(Vec<Taken>, Option<Timestamp>), StoreError> {
        // Where the last round had to stop: what is behind a long row of those that cannot begin gets its turn, too.
        let (mut taken, mut from, mut looks) = (Vec::new(), self.resume.lock().take(), 0);
        let now = self.clock.now();
        loop {
            let page = self.store.scan(Table::Due, &store::due_prefix(DueKind::Job), from.as_deref(), 256)?;
            for (due, _) in &page.entries {
                let Some((at, key)) = store::due_at(due) else { continue };
                looks += 1;
                if at > now {
                    return Ok((taken, Some(at)));
                }
                // Whoever ends makes room and looks again.
                if self.in_flight() >= most {
                    return Ok((taken, None));
                }
                if looks > LOOKS {
                    *self.resume.lock() = Some(due.clone());
                    return Ok((taken, Some(now.checked_add(PAUSE).unwrap_or(now))));
                }
                let Some(job) = self.due_job(due, key)? else { continue };
                let most_of_binding = limit(&job);
                let mut in_flight = self.in_flight.lock();
                let of_binding = in_flight.values().filter(|binding| **binding == job.binding_id).count();
                if in_flight.contains_key(&job.id) || of_binding >= most_of_binding as usize {
                    continue;
                }
                in_flight.insert(job.id, job.binding_id);
                drop(in_flight);
                let mut mine = Taken { job, in_flight: Arc::clone(&self.in_flight) };
                // Whoever was at it may have ended it between the look and the taking.
                if let Some(job) = self.due_job(due, key)? {
                    mine.job = job;
                    taken.push(mine);
                }
            }
            match page.next {
                Some(next) => from = Some(next),
                None => return Ok((taken, None)),
            }
        }
    }

    /// The job behind a due entry. An entry without a job that is due then is left over, and goes.
    fn due_job(&self, due: &[u8], key: &[u8]) -> Result<Option<Job>, StoreError> {
        let job: Option<Job> =
            self.store.get(Table::Jobs, key)?.map(|value| store::decode("job", &value)).transpose()?;
        let is_due = |job: &Job| job.due_at.is_some_and(|at| store::due_key(DueKind::Job, at, key) == due);
        match job {
            Some(job) if is_due(&job) => Ok(Some(job)),
            _ => {
                let change =
                    store::Change { table: Table::Due, key: due.to_vec(), expected: Expected::Anything, new: None };
                drop(self.store.transact(&[change])?);
                Ok(None)
            }
        }
    }
}

/// Which of the locks of a kind this one takes.
fn stripe(id: uuid::Uuid) -> usize {
    usize::try_from(id.as_u64_pair().1).unwrap_or(0) % STRIPES
}

/// The provider's own name of a job, at its binding.
fn name_key(job: &Job) -> Vec<u8> {
    store::company_key(&job.company_id, &[job.binding_id.0.as_bytes(), job.provider_job_id.as_bytes()].concat())
}

fn key(company: &CompanyId, id: JobId) -> Vec<u8> {
    store::newest_first(company, id.0)
}
