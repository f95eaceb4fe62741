//! Jobs: computing vectors in the background. One job waits at a time, and computes all missing
//! vectors when it runs. Every capture returns it until it has run, so that it is not lost with an
//! answer. After writes that cannot return jobs the host asks for it.

use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, embeddings};

use super::LocalMarkdown;

/// Passages that one call embeds. An instance runs one call at a time, so a query waits until these
/// are done.
const AT_ONCE: usize = 8;
/// How many jobs stay stored after their end.
const REMEMBERED: usize = 64;

fn jobs() -> Jobs<()> {
    Jobs::new("jobs")
}

impl LocalMarkdown {
    /// The job that computes missing vectors, if the binding has a model and ranks by meaning.
    pub(super) fn leave_job(&mut self) -> Result<Vec<ExtractionJob>, Error> {
        // A model that fails now may work when the job runs.
        if !self.config.ranking.has_meaning() || matches!(embeddings::model(), Ok(None)) {
            return Ok(Vec::new());
        }
        Ok(vec![jobs().leave_one(self.library.now().into(), (), REMEMBERED)?.shown()])
    }
}

impl Extraction for LocalMarkdown {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        self.library.refresh()?;
        let mut job = jobs().get(&id)?;
        if !job.has_ended() {
            // If the grant was taken away, nothing is left to do.
            let has_more = self.library.embed(AT_ONCE)?;
            self.library.save()?;
            let now = self.library.now().into();
            if has_more {
                job.go_on(now);
            } else {
                job.succeed(now);
            }
            jobs().put(&job)?;
        }
        Ok(job.result())
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        Ok(jobs().find(&id)?.map(|job| job.result()))
    }

    fn list_jobs(
        &mut self,
        _: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        jobs().page(cursor.as_deref(), limit, |_| true, Job::shown)
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        Ok(jobs().cancel(&id, self.library.now().into())?.shown())
    }

    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        Ok(jobs().retry(&id)?.shown())
    }
}
