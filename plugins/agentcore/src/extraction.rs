//! Jobs: the events that captures made, while the memory's strategies extract records from them.
//! AgentCore tells of a job only that it failed: it is done when records appear where its scope is,
//! or when none came in time.

use memhost_sdk::http::Error;
use memhost_sdk::remote::{Elsewhere, Progress, Work};
use memhost_sdk::types::{RecordId, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{AgentCore, Budget, now};
use crate::place;

/// The most pages of failed jobs that are looked through.
const PAGES: usize = 5;

/// What is noted of an event.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) session: String,
    /// How often it was tried again.
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

impl AgentCore {
    /// The extraction of an event that failed, if there is one.
    fn failed(&self, id: &str, scope: &Scope, event: &Event) -> Result<Option<Failed>, Error> {
        let filter =
            json!({"actorId": place::actor(scope), "sessionId": event.session, "status": "FAILED"});
        let body = json!({"maxResults": 50, "filter": filter});
        let (all, _) = self.pages::<Failed>("extractionJobs", body, "jobs", &Budget::new(PAGES))?;
        Ok(all
            .into_iter()
            .find(|job| job.messages.messages_list.iter().any(|message| message.event_id == id)))
    }

    /// What was extracted where a scope is, since an event was there.
    fn extracted(&self, scope: &Scope, event: &Event) -> Result<Vec<RecordId>, Error> {
        let path = format!("/memhost/{}/", place::actor(scope));
        let new = self
            .records_below(&path, None)?
            .0
            .into_iter()
            .filter(|record| record.created_at >= event.since);
        Ok(new.filter(|record| !record.is_own()).map(|record| record.id).collect())
    }
}

impl Elsewhere for AgentCore {
    fn ask(&self, id: &str, work: &Work) -> Result<Progress, Error> {
        let event: Event = work.told()?;
        if let Some(failed) = self.failed(id, &work.scope, &event)? {
            return Ok(Progress::Failed(
                failed.failure_reason.unwrap_or_else(|| "AgentCore gives no reason".to_owned()),
            ));
        }
        let made = self.extracted(&work.scope, &event)?;
        let waits = made.is_empty() && now() - event.asked < self.config.settle_seconds as f64;
        Ok(if waits { Progress::Working } else { Progress::done(made) })
    }

    fn retry(&self, id: &str, work: &mut Work) -> Result<(), Error> {
        let event: Event = work.told()?;
        if let Some(failed) = self.failed(id, &work.scope, &event)? {
            // The same token again is the same start.
            let token = format!("{}-{:08}", place::escaped(id), event.tries);
            let body = json!({"extractionJob": {"jobId": failed.id}, "clientToken": token});
            self.post("extractionJobs/start", &body).answer::<Value>()?;
        }
        work.details = json!(Event { tries: event.tries + 1, asked: now(), ..event });
        Ok(())
    }
}
