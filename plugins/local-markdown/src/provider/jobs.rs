//! Jobs: making vectors of what was written, while nobody waits. One job waits at a time, and makes all that are missing
//! when it runs. Every capture answers with it until it has run, so that it is not lost with an answer, and the host asks
//! for it after the writes that cannot answer with one.

use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, embeddings};

use super::LocalMarkdown;

/// Passages that one call embeds. An instance does one thing at a time: a query waits no longer than these take.
const AT_ONCE: usize = 8;
/// Jobs that are remembered after their end.
const REMEMBERED: usize = 64;

fn jobs() -> Jobs<()> {
    Jobs::new("jobs")
}

impl LocalMarkdown {
    /// The job that makes the vectors of what was written, where the binding has a model and ranks by meaning.
    pub(super) fn leave_job(&mut self) -> Result<Vec<ExtractionJob>, Error> {
        // A model that cannot say its name now may do so when the job runs.
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
            // Where the grant was taken back nothing is left to do.
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

    fn get_job(&mut self, id: String) -> Result<Option<ExtractionJob>, Error> {
        Ok(jobs().find(&id)?.map(|job| job.shown()))
    }

    fn list_jobs(&mut self, _: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        jobs().page(cursor.as_deref(), limit, |_| true, Job::shown)
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        Ok(jobs().cancel(&id, self.library.now().into())?.shown())
    }
}
