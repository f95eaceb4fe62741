//! Jobs: the documents that captures made, while supermemory extracts memories from them.

use std::time::SystemTime;

use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::{Extraction, types::*};

use crate::provider::Supermemory;

/// The documents that captures made, with their scope.
pub(crate) fn jobs() -> Jobs<Scope> {
    Jobs::new("documents")
}

/// A job as the contract has it: supermemory works on it until it has ended, and does not take it up again.
pub(crate) fn shown(job: &Job<Scope>) -> ExtractionJob {
    let shown = job.shown();
    let status = if job.has_ended() { shown.status } else { JobStatus::Running };
    ExtractionJob { status, is_retryable: false, ..shown }
}

impl Extraction for Supermemory {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let missing = || Error::NotFound(format!("no capture of this binding made the document {id}"));
        self.get_job(id.clone())?.ok_or_else(missing)
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = jobs().find(&id)? else { return Ok(None) };
        if !job.has_ended() {
            let (now, api) = (SystemTime::now(), &self.of(&job.work).service);
            match api.document(&id)? {
                // It deletes what it cannot process, two minutes later.
                None => job.fail("supermemory does not have the document, or has it no more", now),
                Some(document) => match document.status.as_str() {
                    "done" => {
                        job.records = api.made_of(&id)?;
                        job.succeed(now);
                    }
                    "failed" => job.fail("supermemory could not process the document", now),
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
        Err(Error::unsupported("supermemory does not cancel what it processes"))
    }

    fn retry_job(&mut self, _: String) -> Result<ExtractionJob, Error> {
        Err(Error::unsupported("supermemory does not process a document again; capture it once more"))
    }
}
