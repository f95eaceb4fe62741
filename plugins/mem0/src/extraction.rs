//! Jobs: the events of the hosted API, in which its model extracts.

use std::time::SystemTime;

use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::{Extraction, types::*};

use crate::provider::Mem0;

/// The events that captures began, with their scope.
pub(crate) fn jobs() -> Jobs<Scope> {
    Jobs::new("events")
}

/// A job as the contract has it: mem0 works on it until it has ended, and does not take it up again.
pub(crate) fn shown(job: &Job<Scope>) -> ExtractionJob {
    let shown = job.shown();
    let status = if job.has_ended() { shown.status } else { JobStatus::Running };
    ExtractionJob { status, is_retryable: false, ..shown }
}

impl Extraction for Mem0 {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let missing = || Error::NotFound(format!("no capture of this binding began the event {id}"));
        self.get_job(id.clone())?.ok_or_else(missing)
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = jobs().find(&id)? else { return Ok(None) };
        if !job.has_ended() {
            let now = SystemTime::now();
            match self.records.service.event(&id)? {
                None => job.fail("mem0 does not know the event", now),
                Some(event) => match event.status.as_str() {
                    "SUCCEEDED" => {
                        job.records = event.ids();
                        job.succeed(now);
                    }
                    "FAILED" => job.fail(event.error.unwrap_or_else(|| "mem0 gives no reason".to_owned()), now),
                    _ => job.go_on(now),
                },
            }
            jobs().put(&job)?;
        }
        Ok(Some(JobResult { job: shown(&job), ..job.result() }))
    }

    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        jobs().page(cursor.as_deref(), limit, |job| job.work.company_id == scope.company_id, shown)
    }

    fn cancel_job(&mut self, _: String) -> Result<ExtractionJob, Error> {
        Err(Error::unsupported("mem0 does not cancel what it extracts"))
    }

    fn retry_job(&mut self, _: String) -> Result<ExtractionJob, Error> {
        Err(Error::unsupported("mem0 does not take up an event again; capture it once more"))
    }
}
