//! Captures that OpenViking extracts from: a session each, which is committed, and the task that
//! works on it.

use memhost_sdk::http::Error;
use memhost_sdk::remote::{Capture, Elsewhere, Progress, Work, plain};
use memhost_sdk::types::{Turn, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::OpenViking;
use crate::name::id_of;

/// The most messages of one request.
const MESSAGES: usize = 100;

#[derive(Deserialize)]
pub(crate) struct Task {
    task_id: String,
    resource_id: String,
    status: String,
    error: Option<String>,
    result: Option<Extracted>,
}

#[derive(Deserialize)]
pub(crate) struct Extracted {
    memory_diff_uri: Option<String>,
    #[serde(default)]
    token_usage: Value,
}

/// The session of a capture, which is also its job here.
pub(crate) fn session(operation_id: &str) -> String {
    format!("memhost-{}", plain(operation_id))
}

/// The turns, by the peer of their partition.
pub(crate) fn messages(capture: &Capture<'_>, peer: &str) -> Vec<Value> {
    let role = |turn: &Turn| if turn.role == "assistant" { "assistant" } else { "user" };
    let message = |turn: &Turn| {
        json!({
            "role": role(turn), "content": turn.text, "peer_id": peer, "created_at": turn.at,
        })
    };
    capture.turns.iter().map(message).collect()
}

impl OpenViking {
    /// The task of a session that was committed.
    pub(crate) fn task(&self, session: &str) -> Result<Option<Task>, Error> {
        let request = self
            .http
            .get("/api/v1/tasks")
            .query("task_type", "session_commit")
            .query("resource_id", session);
        let found: Vec<Task> = request.at("/result").answer()?;
        Ok(found.into_iter().find(|task| task.resource_id == session))
    }

    /// Makes a session of messages and commits it. What an earlier try left there stays, and the
    /// rest follows.
    pub(crate) fn converse(&self, session: &str, messages: &[Value]) -> Result<(), Error> {
        let policy = json!({"self": {"enabled": false}, "peer": {"enabled": true}});
        let body =
            json!({"session_id": session, "memory_policy": policy, "auto_commit_policy": null});
        match self.http.post("/api/v1/sessions").json(&body).send() {
            Ok(_) | Err(Error::Status { status: 409, .. }) => {}
            Err(error) => return Err(error),
        }
        let path = format!("/api/v1/sessions/{session}");
        let there: usize = self.http.get(&path).at("/result/message_count").answer()?;
        for some in messages.get(there..).unwrap_or_default().chunks(MESSAGES) {
            let request =
                self.http.post(&format!("{path}/messages/batch")).json(&json!({"messages": some}));
            request.at("/result/message_count").answer::<usize>()?;
        }
        self.http
            .post(&format!("{path}/commit"))
            .json(&json!({}))
            .at("/result")
            .answer::<Value>()?;
        // The answer names a task, too. This one can be looked for again. The session is empty once
        // it is committed: if the next call did not know that, it would send every message again.
        self.task(session).map_err(Error::after_write)?.map(drop).ok_or_else(|| {
            Error::unexpected(&format!("POST {path}/commit"), "there is no task of it")
        })
    }

    /// The memories that a task wrote.
    pub(crate) fn memories_of(&self, extracted: &Extracted) -> Result<Vec<String>, Error> {
        let Some(uri) = &extracted.memory_diff_uri else { return Ok(Vec::new()) };
        let text = self.read(uri)?.unwrap_or_default();
        let wrong = |error: serde_json::Error| {
            Error::unexpected("reading memory_diff.json", &error.to_string())
        };
        let diff: Value = serde_json::from_str(&text).map_err(wrong)?;
        let changed = ["adds", "updates"]
            .iter()
            .filter_map(|kind| diff["operations"][kind].as_array())
            .flatten();
        Ok(changed.filter_map(|change| id_of(change["uri"].as_str()?).map(str::to_owned)).collect())
    }
}

impl Elsewhere for OpenViking {
    fn ask(&self, id: &str, _: &Work) -> Result<Progress, Error> {
        let Some(task) = self.task(id)? else {
            return Ok(Progress::failed("OpenViking does not know the task any more"));
        };
        Ok(match (task.status.as_str(), task.result) {
            ("completed", Some(extracted)) => {
                let tokens = |kind: &str, name: &str| extracted.token_usage[kind][name].as_u64();
                let usage = Usage {
                    input_tokens: tokens("llm", "prompt_tokens"),
                    cached_input_tokens: tokens("llm", "cached_tokens"),
                    output_tokens: tokens("llm", "completion_tokens"),
                    embedding_tokens: tokens("embedding", "total_tokens"),
                    ..Usage::of("openviking")
                };
                Progress::Done { records: self.memories_of(&extracted)?, usage: vec![usage] }
            }
            ("failed", _) => Progress::Failed(
                task.error.unwrap_or_else(|| "OpenViking gives no reason".to_owned()),
            ),
            ("cancelled", _) => Progress::Cancelled,
            _ => Progress::Working,
        })
    }

    fn stop(&self, id: &str) -> Result<(), Error> {
        let Some(task) = self.task(id)? else { return Ok(()) };
        match self.http.post(&format!("/api/v1/tasks/{}/cancel", task.task_id)).send() {
            // It has ended meanwhile.
            Ok(_) | Err(Error::Status { status: 404 | 412, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The session holds what was said. It is of no more use, and would outlive the memories that
    /// are made of it.
    fn ended(&self, id: &str) -> Result<(), Error> {
        self.http.delete(&format!("/api/v1/sessions/{id}")).answer_if_found::<Value>().map(drop)
    }
}
