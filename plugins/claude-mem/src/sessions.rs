//! Captures that claude-mem extracts from: a session each, in which one tool was used.

use std::time::{SystemTime, UNIX_EPOCH};

use memhost_sdk::http::Error;
use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Elsewhere, Record, Tag, Work, partition_name, plain, to_unix_millis};
use memhost_sdk::types::{self, Scope};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, odd};
use crate::provider::ClaudeMem;

/// What these sessions and their tool are called there.
const NAME: &str = "memhost";
/// Newest observations among which those of a session are.
const NEWEST: usize = 200;

#[derive(Deserialize)]
struct Uses {
    #[serde(rename = "toolUses")]
    uses: Vec<Use>,
}

/// The use of a tool, and the observation that was made of it.
#[derive(Deserialize)]
pub(crate) struct Use {
    tool_use_id: String,
    memory_session_id: Option<String>,
    observation_id: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Processing {
    is_processing: bool,
    queue_depth: u64,
    parked_sessions: u64,
}

impl Api {
    /// The session of a capture, which is its job here and its tool use there, too.
    pub(crate) fn session(operation_id: &str) -> String {
        format!("{NAME}-{}", plain(operation_id))
    }

    pub(crate) fn use_of(&self, session: &str) -> Result<Option<Use>, Error> {
        let found: Uses = self.http.get("/api/tool-uses").query("session", session).answer()?;
        Ok(found.uses.into_iter().find(|one| one.tool_use_id == session))
    }

    /// Imports a session of the project and gives it what is to be observed. claude-mem does both once.
    pub(crate) fn observe(&self, session: &str, scope: &Scope, text: &str, tag: &Tag) -> Result<(), Error> {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let at = tag
            .created_at
            .as_deref()
            .and_then(to_unix_millis)
            .map_or_else(now, |millis| u128::from(millis.unsigned_abs()));
        let started = json!({"content_session_id": session, "memory_session_id": null, "project": self.project(),
            "platform_source": NAME, "user_prompt": null, "started_at": tag.created_at.clone().unwrap_or_default(),
            "started_at_epoch": u64::try_from(at).unwrap_or_default(), "completed_at": null, "completed_at_epoch": null,
            "status": "active"});
        let imported: Value = self.http.post("/api/import").json(&json!({"sessions": [started]})).answer()?;
        if imported["success"] != true {
            return Err(odd("POST /api/import", "it does not say that it succeeded"));
        }
        let body = json!({"contentSessionId": session, "platformSource": NAME, "tool_name": NAME, "tool_input": {},
            "tool_response": text, "tool_use_id": session, "agentId": partition_name(scope), "agentType": NAME});
        let path = "/api/sessions/observations";
        let queued: Value = self.http.post(path).json(&body).answer()?;
        match (&queued["status"], self.use_of(session)?) {
            (status, Some(_)) if status == "queued" => Ok(()),
            _ => Err(odd(path, &format!("{queued}"))),
        }
    }
}

impl Elsewhere for ClaudeMem {
    /// claude-mem has no jobs. A use has an observation once the model has made one, and no more will come once the worker has
    /// nothing to do.
    fn ask(&self, job: &mut Job<Work>) -> Result<(), types::Error> {
        let (api, now) = (&memhost_sdk::remote::Adapter::records(self, &job.work.scope).service, SystemTime::now());
        let status: Processing = api.http.get("/api/processing-status").answer()?;
        let Some(used) = api.use_of(&job.id)? else {
            job.fail("claude-mem does not know the session any more", now);
            return Ok(());
        };
        if used.observation_id.is_some() {
            let newest = api.observations("", 0, NEWEST)?;
            let of_session = |id: &String| Some(id) == used.memory_session_id.as_ref();
            let made = newest.into_iter().filter(|seen| of_session(&seen.memory_session_id)).map(Record::from);
            job.records = made.map(|record| record.id).collect();
            job.succeed(now);
        } else if status.is_processing || status.queue_depth > 0 {
            job.go_on(now);
        } else if status.parked_sessions > 0 {
            job.fail("claude-mem's model cannot be used; its log says why", now);
        } else {
            job.succeed(now);
        }
        Ok(())
    }
}
