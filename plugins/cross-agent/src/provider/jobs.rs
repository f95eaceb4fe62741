//! Jobs: embedding items in the background.

use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, embeddings};

use super::{CrossAgent, now};

/// Texts that one call embeds. An instance runs one call at a time, so a query waits until these
/// are done.
const AT_ONCE: usize = 32;
/// How many jobs stay stored after their end.
const REMEMBERED: usize = 64;

fn jobs() -> Jobs<()> {
    Jobs::new("jobs")
}

impl CrossAgent {
    /// The job that embeds items without a vector, if there is a model.
    pub(super) fn leave_job(&mut self) -> Result<Vec<ExtractionJob>, Error> {
        // A model that fails now may work when the job runs. Without a model there is no job.
        if matches!(embeddings::model(), Ok(None)) {
            return Ok(Vec::new());
        }
        Ok(vec![jobs().leave_one(now().into(), (), REMEMBERED)?.shown()])
    }
}

impl Extraction for CrossAgent {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        self.store.refresh()?;
        let mut job = jobs().get(&id)?;
        if !job.has_ended() {
            let has_more = match embeddings::model()? {
                // The grant was taken away, so there is nothing to do.
                None => false,
                Some(model) => {
                    self.meaning.refresh(&self.store, &model)?;
                    let waiting = self.meaning.waiting(&self.store);
                    self.meaning.embed(&self.store, &waiting, AT_ONCE)?;
                    waiting.len() > AT_ONCE
                }
            };
            if has_more {
                job.go_on(now().into());
            } else {
                job.succeed(now().into());
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
        Ok(jobs().cancel(&id, now().into())?.shown())
    }

    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        Ok(jobs().retry(&id)?.shown())
    }
}
