//! Jobs in which a service extracts.

use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Service, Tag};
use crate::jobs::{Job, Jobs};
use crate::types::{Error, ExtractionJob, JobPage, JobResult, JobStatus, RecordId, Scope, Usage};
use crate::{Extraction, http};

/// The notes of a job that a service works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The scope of the capture that began it.
    pub scope: Scope,
    /// [`Learnt::details`](super::Learnt) of the capture.
    #[serde(default)]
    pub details: Value,
    /// Its usage, once it has ended and the service tells.
    pub usage: Vec<Usage>,
}

impl Work {
    /// The details as this type.
    ///
    /// # Errors
    /// If they are of another type.
    pub fn told<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let wrong = |error| Error::internal(format!("the notes of a job cannot be read: {error}"));
        serde_json::from_value(self.details.clone()).map_err(wrong)
    }
}

/// How a job at a service stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// The service works on it, or will.
    Working,
    /// It is done.
    Done {
        /// The records that were made.
        records: Vec<RecordId>,
        /// Its usage, if the service tells.
        usage: Vec<Usage>,
    },
    /// It failed, with the reason for people.
    Failed(String),
    /// Somebody cancelled it.
    Cancelled,
}

impl Progress {
    /// It is done, with these records.
    pub fn done(records: Vec<RecordId>) -> Self {
        Self::Done { records, usage: Vec::new() }
    }

    /// It failed, with the reason for people.
    pub fn failed(reason: &str) -> Self {
        Self::Failed(reason.to_owned())
    }
}

fn jobs() -> Jobs<Work> {
    Jobs::new("elsewhere")
}

/// A service that works on captures for a while: it is [`Extraction`]. [`Service::learn`] names the
/// job.
pub trait Elsewhere: Service {
    /// Asks the service how a job stands that has not ended.
    ///
    /// # Errors
    /// The error of the service.
    fn ask(&self, id: &str, work: &Work) -> Result<Progress, http::Error>;

    /// Asks the service to stop a job that has not ended.
    ///
    /// # Errors
    /// The error of the service, or `unsupported`, as without this method.
    fn stop(&self, _id: &str) -> Result<(), http::Error> {
        Err(Error::unsupported("the service does not stop what it extracts").into())
    }

    /// Called once a job's end is noted, to remove what the service needs no more. An error is
    /// logged.
    ///
    /// # Errors
    /// The error of the service.
    fn ended(&self, _id: &str) -> Result<(), http::Error> {
        Ok(())
    }

    /// Asks the service to take up again a job that failed, where it can:
    /// [`Service::RETRIES_JOBS`]. What it changes of the details is kept.
    ///
    /// # Errors
    /// The error of the service, or `unsupported`, as without this method.
    fn retry(&self, _id: &str, _work: &mut Work) -> Result<(), http::Error> {
        Err(not_again().into())
    }
}

fn not_again() -> Error {
    Error::unsupported("the service does not take up a job again; capture it once more")
}

/// Notes the job of a capture, and answers it as the contract has it.
pub(super) fn begun<S: Service>(
    id: String,
    scope: &Scope,
    details: Value,
) -> Result<ExtractionJob, Error> {
    let work = || Work { scope: scope.clone(), details, usage: Vec::new() };
    let job = jobs().find(&id)?.unwrap_or_else(|| Job::new(id, SystemTime::now(), work()));
    jobs().put(&job)?;
    Ok(shown::<S>(&job))
}

/// What is noted of a job, if there is such a job: what the service makes later is of its scope.
///
/// # Errors
/// If storage fails.
pub fn work_of(id: &str) -> Result<Option<Work>, Error> {
    Ok(jobs().find(id)?.map(|job| job.work))
}

/// A job as the contract has it: the service works on it until it has ended.
fn shown<S: Service>(job: &Job<Work>) -> ExtractionJob {
    let shown = job.shown();
    let status = if job.has_ended() { shown.status } else { JobStatus::Running };
    ExtractionJob { status, is_retryable: S::RETRIES_JOBS && shown.is_retryable, ..shown }
}

impl<E: Elsewhere> Extraction for E {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let missing = || Error::NotFound(format!("no capture of this binding began the job {id}"));
        self.get_job(id.clone())?.ok_or_else(missing)
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = jobs().find(&id)? else { return Ok(None) };
        if !job.has_ended() {
            self.serve(&job.work.scope.company_id);
            let (progress, now) = (self.ask(&id, &job.work)?, SystemTime::now());
            match progress {
                Progress::Working => job.go_on(now),
                Progress::Failed(reason) => job.fail(reason, now),
                Progress::Cancelled => job.cancel(now),
                Progress::Done { records, usage } => {
                    (job.records, job.work.usage) = (records, usage);
                    job.succeed(now);
                }
            }
            jobs().put(&job)?;
            if job.has_ended()
                && let Err(error) = self.ended(&id)
            {
                log::warn!("records of the job {id} stay at the service: {error}");
            }
        }
        Ok(Some(JobResult { job: shown::<E>(&job), usage: job.work.usage.clone(), ..job.result() }))
    }

    fn list_jobs(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        let fits = |job: &Job<Work>| Tag::of(&job.work.scope).is_visible_in(&scope);
        jobs().page(cursor.as_deref(), limit, fits, shown::<E>)
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let job = jobs().get(&id)?;
        if job.has_ended() {
            return Ok(shown::<E>(&job));
        }
        self.serve(&job.work.scope.company_id);
        self.stop(&id)?;
        Ok(self.run_job(id)?.job)
    }

    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        if !E::RETRIES_JOBS {
            return Err(not_again());
        }
        let mut job = jobs().get(&id)?;
        if job.is_retryable() {
            self.serve(&job.work.scope.company_id);
            self.retry(&id, &mut job.work)?;
            job.retry();
            jobs().put(&job)?;
        }
        Ok(shown::<E>(&job))
    }
}
