//! Jobs: the events that captures made, while the memory's strategies extract records from them. AgentCore tells of a job
//! only that it failed: it is done when records appear where its scope is, or when none came in time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memhost_sdk::http;
use memhost_sdk::jobs::{Job, Jobs};
use memhost_sdk::remote::Tag;
use memhost_sdk::{Extraction, types::*};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{Api, now};
use crate::place;
use crate::provider::AgentCore;

/// The most pages of failed jobs that are looked through.
const PAGES: usize = 5;

/// What a capture gave to AgentCore.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) scope: Scope,
    pub(crate) session: String,
    /// How often it was tried again.
    #[serde(default)]
    pub(crate) tries: u32,
    /// Since when records of it can be there, by AgentCore's clock in seconds since 1970.
    pub(crate) since: f64,
    /// When extraction was last asked for.
    pub(crate) asked: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Failed {
    #[serde(rename = "jobID")]
    id: String,
    messages: Messages,
    failure_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Messages {
    #[serde(default)]
    messages_list: Vec<Message>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    event_id: String,
}

/// The events that captures made.
pub(crate) fn jobs() -> Jobs<Event> {
    Jobs::new("events")
}

/// A job as the contract has it: AgentCore works on it until it has ended.
pub(crate) fn shown(job: &Job<Event>) -> ExtractionJob {
    let shown = job.shown();
    let status = if job.has_ended() { shown.status } else { JobStatus::Running };
    ExtractionJob { status, ..shown }
}

/// The extraction of an event that failed, if there is one.
fn failed(api: &Api, id: &str, event: &Event) -> Result<Option<Failed>, http::Error> {
    let filter = json!({"actorId": place::actor(&event.scope), "sessionId": event.session, "status": "FAILED"});
    let left = std::cell::Cell::new(PAGES);
    let spend = || left.replace(left.get().saturating_sub(1)) > 0;
    let (all, _) = api.pages::<Failed>("extractionJobs", json!({"maxResults": 50, "filter": filter}), "jobs", spend)?;
    Ok(all.into_iter().find(|job| job.messages.messages_list.iter().any(|message| message.event_id == id)))
}

/// What was extracted where the scope of an event is, since it was there.
fn extracted(api: &Api, event: &Event) -> Result<Vec<RecordId>, http::Error> {
    let path = format!("/memhost/{}/", place::actor(&event.scope));
    let new = api.records_below(&path, None)?.into_iter().filter(|record| record.created_at >= event.since);
    Ok(new.filter(|record| !record.is_own()).map(|record| record.id).collect())
}

impl Extraction for AgentCore {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let missing = || Error::NotFound(format!("no capture of this binding made the event {id}"));
        self.get_job(id.clone())?.ok_or_else(missing)
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = jobs().find(&id)? else { return Ok(None) };
        if !job.has_ended() {
            let (at, api) = (SystemTime::now(), self.api_of(&job.work.scope));
            let waited = at.duration_since(UNIX_EPOCH + Duration::from_secs_f64(job.work.asked)).unwrap_or_default();
            if let Some(failed) = failed(api, &id, &job.work)? {
                job.fail(failed.failure_reason.unwrap_or_else(|| "AgentCore gives no reason".to_owned()), at);
            } else {
                job.records = extracted(api, &job.work)?;
                match job.records.is_empty() && waited.as_secs() < api.config.settle_seconds {
                    true => job.go_on(at),
                    false => job.succeed(at),
                }
            }
            jobs().put(&job)?;
        }
        Ok(Some(JobResult { job: shown(&job), ..job.result() }))
    }

    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        jobs().page(cursor.as_deref(), limit, |job| Tag::of(&job.work.scope).is_visible_in(&scope), shown)
    }

    fn cancel_job(&mut self, _: String) -> Result<ExtractionJob, Error> {
        Err(Error::unsupported("AgentCore does not cancel what its strategies extract"))
    }

    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let mut job = jobs().get(&id)?;
        if !job.is_retryable() {
            return Ok(shown(&job));
        }
        let api = self.api_of(&job.work.scope);
        if let Some(failed) = failed(api, &id, &job.work)? {
            // The same token again is the same start.
            let token = format!("{}-{:08}", place::escaped(&id), job.work.tries);
            let body = json!({"extractionJob": {"jobId": failed.id}, "clientToken": token});
            api.post("extractionJobs/start", &body).answer::<serde_json::Value>()?;
        }
        (job.work.tries, job.work.asked) = (job.work.tries + 1, now());
        job.retry();
        jobs().put(&job)?;
        Ok(shown(&job))
    }
}
