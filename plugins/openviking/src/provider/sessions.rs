//! Captures that OpenViking extracts from: a session each, which is committed, and the task that works on it.

use std::time::SystemTime;

use memhost_sdk::http::Error;
use memhost_sdk::jobs::Job;
use memhost_sdk::remote::{Elsewhere, Work, plain, without_recall};
use memhost_sdk::types::{self, CaptureRequest, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Answer, Api, odd};
use crate::name::id_of;
use crate::provider::OpenViking;

/// The most messages of one request.
const MESSAGES: usize = 100;

#[derive(Deserialize)]
struct Session {
    message_count: usize,
}

#[derive(Deserialize)]
pub(crate) struct Task {
    task_id: String,
    resource_id: String,
    status: String,
    error: Option<String>,
    result: Option<Extracted>,
}

#[derive(Deserialize)]
struct Extracted {
    memory_diff_uri: Option<String>,
    #[serde(default)]
    token_usage: Value,
}

/// The session of a capture, which is also its job here.
pub(crate) fn session(operation_id: &str) -> String {
    format!("memhost-{}", plain(operation_id))
}

/// What was said, or the text as one message, without what was recalled.
pub(crate) fn messages(request: &CaptureRequest, text: &str, peer: &str) -> Vec<Value> {
    let message = |role: &str, text: &str, at: Option<&String>| -> Value {
        json!({"role": role, "content": text, "peer_id": peer, "created_at": at})
    };
    if request.payload.turns.is_empty() {
        return vec![message("user", text, None)];
    }
    let turns = request.payload.turns.iter().map(|turn| (turn, without_recall(&turn.text)));
    let said = turns.filter(|(_, text)| !text.trim().is_empty());
    said.map(|(turn, text)| {
        message(if turn.role == "assistant" { "assistant" } else { "user" }, &text, turn.at.as_ref())
    })
    .collect()
}

impl Api {
    /// The task of a session that was committed.
    pub(crate) fn task(&self, session: &str) -> Result<Option<Task>, Error> {
        let request = self.http.get("/api/v1/tasks").query("task_type", "session_commit").query("resource_id", session);
        let found: Answer<Vec<Task>> = request.answer()?;
        Ok(found.result.into_iter().find(|task| task.resource_id == session))
    }

    /// Makes a session of messages and commits it. What an earlier try left there stays, and the rest follows.
    pub(crate) fn converse(&self, session: &str, messages: &[Value]) -> Result<(), Error> {
        let policy = json!({"self": {"enabled": false}, "peer": {"enabled": true}});
        let body = json!({"session_id": session, "memory_policy": policy, "auto_commit_policy": null});
        match self.http.post("/api/v1/sessions").json(&body).send() {
            Ok(_) | Err(Error::Status { status: 409, .. }) => {}
            Err(error) => return Err(error),
        }
        let path = format!("/api/v1/sessions/{session}");
        let there = self.http.get(&path).answer::<Answer<Session>>()?.result.message_count;
        for some in messages.get(there..).unwrap_or_default().chunks(MESSAGES) {
            let request = self.http.post(&format!("{path}/messages/batch")).json(&json!({"messages": some}));
            request.answer::<Answer<Session>>()?;
        }
        self.http.post(&format!("{path}/commit")).json(&json!({})).answer::<Answer<Value>>()?;
        // The answer names a task, too. This one can be looked for again.
        self.task(session)?.map(drop).ok_or_else(|| odd(&format!("POST {path}/commit"), "there is no task of it"))
    }

    /// The memories that a task wrote.
    fn memories_of(&self, extracted: &Extracted) -> Result<Vec<String>, Error> {
        let Some(uri) = &extracted.memory_diff_uri else { return Ok(Vec::new()) };
        let text = self.read(uri)?.unwrap_or_default();
        let diff: Value =
            serde_json::from_str(&text).map_err(|error| odd("reading memory_diff.json", &error.to_string()))?;
        let changed = ["adds", "updates"].iter().filter_map(|kind| diff["operations"][kind].as_array()).flatten();
        Ok(changed.filter_map(|change| id_of(change["uri"].as_str()?).map(str::to_owned)).collect())
    }
}

impl Elsewhere for OpenViking {
    fn ask(&self, job: &mut Job<Work>) -> Result<(), types::Error> {
        let (api, now) = (&self.records.service, SystemTime::now());
        let Some(task) = api.task(&job.id)? else {
            job.fail("OpenViking does not know the task any more", now);
            return Ok(());
        };
        match (task.status.as_str(), task.result) {
            ("completed", Some(extracted)) => {
                job.records = api.memories_of(&extracted)?;
                let tokens = |kind: &str, name: &str| extracted.token_usage[kind][name].as_u64();
                job.work.usage.push(Usage {
                    input_tokens: tokens("llm", "prompt_tokens"),
                    cached_input_tokens: tokens("llm", "cached_tokens"),
                    output_tokens: tokens("llm", "completion_tokens"),
                    embedding_tokens: tokens("embedding", "total_tokens"),
                    ..Usage::of("openviking")
                });
                job.succeed(now);
            }
            ("failed", _) => job.fail(task.error.unwrap_or_else(|| "OpenViking gives no reason".to_owned()), now),
            ("cancelled", _) => job.cancel(now),
            _ => job.go_on(now),
        }
        Ok(())
    }

    fn stop(&self, job: &Job<Work>) -> Result<(), types::Error> {
        let api = &self.records.service;
        let Some(task) = api.task(&job.id)? else { return Ok(()) };
        match api.http.post(&format!("/api/v1/tasks/{}/cancel", task.task_id)).send() {
            // It has ended meanwhile.
            Ok(_) | Err(Error::Status { status: 404 | 412, .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The session holds what was said. It is of no more use, and would outlive the memories that are made of it.
    fn ended(&self, job: &Job<Work>) -> Result<(), types::Error> {
        let request = self.records.service.http.delete(&format!("/api/v1/sessions/{}", job.id));
        Ok(request.answer_if_found::<Value>().map(drop)?)
    }
}
