//! Jobs: embedding what was captured, while nobody waits.

use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::types::*;
use memhost_sdk::{Extraction, embeddings};
use serde::{Deserialize, Serialize};

use super::{CrossAgent, now};

/// Texts that one call embeds. An instance does one thing at a time, so that a query waits no longer than these take.
const AT_ONCE: usize = 32;
/// Jobs that are remembered.
const REMEMBERED: usize = 256;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    state: State,
    submitted_at: String,
    finished_at: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Queued,
    Succeeded,
    Cancelled,
}

fn jobs() -> Collection<Stored> {
    Collection::new("j")
}

fn shown(id: &str, stored: &Stored) -> ExtractionJob {
    let status = match stored.state {
        State::Queued => JobStatus::Queued,
        State::Succeeded => JobStatus::Succeeded,
        State::Cancelled => JobStatus::Cancelled,
    };
    ExtractionJob {
        provider_job_id: id.to_owned(),
        status,
        hook_kind: None,
        source: None,
        // It makes vectors of items that are there, and no items.
        record_count: (stored.state == State::Succeeded).then_some(0),
        error: None,
        submitted_at: Some(stored.submitted_at.clone()),
        started_at: None,
        finished_at: stored.finished_at.clone(),
    }
}

impl CrossAgent {
    /// A job that embeds what waits, if there is a model.
    pub(super) fn leave_job(&mut self, id: &str) -> Result<Vec<ExtractionJob>, Error> {
        // A model that cannot say its name now may do so when the job runs; a host without one has no work for it.
        if matches!(embeddings::model(), Ok(None)) {
            return Ok(Vec::new());
        }
        let stored = Stored { state: State::Queued, submitted_at: now().to_string(), finished_at: None };
        let mut batch = Batch::new();
        let known = jobs().iter("").collect::<Result<Vec<_>, _>>()?;
        let spare = (known.len() + 1).saturating_sub(REMEMBERED);
        // Ids of operations begin with their time: the first are the oldest.
        for (old, _) in known.iter().filter(|(_, job)| job.state != State::Queued).take(spare) {
            batch.delete(&jobs(), old);
        }
        batch.put(&jobs(), id, &stored)?;
        batch.apply()?;
        Ok(vec![shown(id, &stored)])
    }

    fn job(id: &str) -> Result<Stored, Error> {
        let missing = || Error::NotFound(format!("there is no job `{id}`; it ended long ago"));
        jobs().get(id)?.ok_or_else(missing)
    }
}

impl Extraction for CrossAgent {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        self.store.refresh()?;
        let mut stored = Self::job(&id)?;
        if stored.state == State::Queued {
            let is_done = match embeddings::model()? {
                // The grant was taken back: there is nothing to do.
                None => true,
                Some(model) => {
                    self.meaning.refresh(&self.store, &model)?;
                    let waiting = self.meaning.waiting(&self.store);
                    self.meaning.embed(&self.store, &waiting, AT_ONCE)?;
                    waiting.len() <= AT_ONCE
                }
            };
            if is_done {
                stored = Stored { state: State::Succeeded, finished_at: Some(now().to_string()), ..stored };
                jobs().put(&id, &stored)?;
            }
        }
        Ok(JobResult { job: shown(&id, &stored), records: Vec::new(), usage: Vec::new() })
    }

    fn get_job(&mut self, id: String) -> Result<Option<ExtractionJob>, Error> {
        Ok(jobs().get(&id)?.map(|stored| shown(&id, &stored)))
    }

    fn list_jobs(&mut self, _: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        let mut all = Vec::new();
        for entry in jobs().iter("") {
            let (id, stored) = entry?;
            let id = String::from_utf8_lossy(&id).into_owned();
            if cursor.as_ref().is_none_or(|last| id < *last) {
                all.push(shown(&id, &stored));
            }
        }
        all.reverse();
        let has_more = all.len() > limit as usize;
        all.truncate(limit as usize);
        let next_cursor = all.last().filter(|_| has_more).map(|job| job.provider_job_id.clone());
        Ok(JobPage { jobs: all, next_cursor })
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let mut stored = Self::job(&id)?;
        if stored.state == State::Queued {
            stored = Stored { state: State::Cancelled, finished_at: Some(now().to_string()), ..stored };
            jobs().put(&id, &stored)?;
        }
        Ok(shown(&id, &stored))
    }
}
