//! The interface `extraction`: jobs that a provider has left to do.

use crate::answer::Answer;
use crate::contract::{extraction as wire, types as wit};
use crate::convert;
use crate::error::Failure;
use crate::instances::{Instances, call};
use crate::normalize::{self, Checked, Normalize, bad, count, text_size, usages};
use memhost_types::{ExtractionJob, RecordHandle, Scope, Usage, limits};

/// The answer of `run-job`, `get-job`, `cancel-job` or `retry-job`.
#[derive(Debug)]
pub struct JobAnswer {
    /// The job in its present state. `None` if the provider does not know it.
    pub job: Option<ExtractionJob>,
    /// The records that the job made.
    pub records: Vec<RecordHandle>,
    /// Its usage.
    pub usage: Vec<Usage>,
}

impl Instances {
    /// Works on a job, as far as one call gets.
    ///
    /// # Errors
    /// As [`CallError`](crate::CallError) says; the same for the calls below.
    pub async fn run_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let check = |checks: &Normalize, answer| ran_job(checks, answer, provider_job_id);
        call!(self, wire.call_run_job(provider_job_id), check).await
    }

    /// Asks how far a job is, without working on it.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn get_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        let check = |checks: &Normalize, answer: Option<wire::JobResult>| match answer {
            Some(answer) => job_as_it_stands(checks, answer, provider_job_id),
            None => job(None, provider_job_id),
        };
        call!(self, wire.call_get_job(provider_job_id), check).await
    }

    /// Jobs of a scope, newest first, at most `limit`, 1 to 1,000, and the cursor of the next ones.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn list_jobs(
        &self,
        scope: &Scope,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<Answer<(Vec<ExtractionJob>, Option<String>)>, Failure> {
        let scope = convert::scope(scope);
        call!(
            self, wire.call_list_jobs(&scope, cursor, limit), |checks, answer| jobs(
                checks, answer, limit,
            ),
        ).await
    }

    /// Tells the provider that a job is no longer wanted.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn cancel_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        call!(
            self, wire.call_cancel_job(provider_job_id), |_, answer| job(
                Some(answer), provider_job_id,
            ),
        ).await
    }

    /// Lets a job that failed or was cancelled be run again.
    ///
    /// # Errors
    /// As [`Instances::run_job`].
    pub async fn retry_job(&self, provider_job_id: &str) -> Result<Answer<JobAnswer>, Failure> {
        call!(
            self, wire.call_retry_job(provider_job_id), |_, answer| job(
                Some(answer), provider_job_id,
            ),
        ).await
    }
}

fn ran_job(normalize: &Normalize, answer: wire::JobResult, asked: &str) -> Checked<JobAnswer> {
    count("records", answer.records.len(), limits::MAX_ITEMS)?;
    let JobAnswer { job, .. } = job(Some(answer.job), asked)?;
    Ok(JobAnswer {
        job, records: normalize.handles(&answer.records)?, usage: usages(answer.usage)?
    })
}

/// A job that goes on tells its records and usage at its end.
fn job_as_it_stands(
    normalize: &Normalize, answer: wire::JobResult, asked: &str,
) -> Checked<JobAnswer> {
    let told = ran_job(normalize, answer, asked)?;
    match told.job.as_ref().is_some_and(|job| job.status.is_end()) {
        true => Ok(told),
        false => Ok(JobAnswer { records: Vec::new(), usage: Vec::new(), ..told }),
    }
}

fn job(answer: Option<wit::ExtractionJob>, asked: &str) -> Checked<JobAnswer> {
    if answer.as_ref().is_some_and(|found| found.provider_job_id != asked) {
        return bad("it answers another job than the one asked for");
    }
    let job = answer.map(normalize::job).transpose()?;
    Ok(JobAnswer { job, records: Vec::new(), usage: Vec::new() })
}

fn jobs(
    normalize: &Normalize, answer: wire::JobPage, limit: u32,
) -> Checked<(Vec<ExtractionJob>, Option<String>)> {
    count("jobs", answer.jobs.len(), limit as usize)?;
    if let Some(cursor) = &answer.next_cursor {
        text_size("nextCursor", cursor, limits::MAX_PROVIDER_CURSOR_BYTES)?;
    }
    let name = |job: &wit::ExtractionJob| format!("job {:?}", job.provider_job_id);
    Ok((normalize.sound(name, answer.jobs, normalize::job), answer.next_cursor))
}
