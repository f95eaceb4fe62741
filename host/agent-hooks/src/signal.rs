//! Events of a session as requests to the host.
//!
//! Ids are made of what the tool says. An event that comes twice, because two settings files name
//! the hook or because it was sent again, has one id and is one event at the host.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::payload::{EventKind, SessionEvent};
use super::project::{Project, clean};
use super::settings::{RecallAt, Settings};
use super::spool::Entry;
use super::state::{State, short_hash};
use super::tools::Tool;
use super::transcript::{exchange_of, moment_of};

/// The longest part of a prompt or an answer that is captured, in bytes.
const MAX_EXCERPT: usize = 4 << 10;
/// The longest reason of a failure, in bytes. The host accepts 4 KiB.
const MAX_ERROR: usize = 2 << 10;
/// The longest query, in bytes.
const MAX_QUERY: usize = 2 << 10;

/// One event of a session, with all that its requests need.
pub(super) struct Signals<'a> {
    pub(super) tool: Tool,
    pub(super) settings: &'a Settings,
    pub(super) company: &'a str,
    pub(super) project: &'a Project,
    pub(super) event: &'a SessionEvent,
    pub(super) now: Timestamp,
}

impl Signals<'_> {
    /// The requests that report the event, in order. Nobody waits for the answers.
    pub(super) fn entries(&self, state: &State) -> Vec<Entry> {
        match &self.event.kind {
            EventKind::SessionStarted { is_new: true, source } => {
                // A session that goes on has a longer transcript than before.
                let moment =
                    if source == "startup" { String::new() } else { moment_of(self.event) };
                vec![self.host_event("session.started", &[source, &moment], Value::Null)]
            }
            EventKind::ToolStarted { tool, id } => {
                state.note_tool_start(&self.tool_note(id));
                vec![self.host_event("tool_call.started", &[id], json!({"toolId": clean(tool)}))]
            }
            EventKind::ToolEnded { tool, id, duration_ms, error } => {
                let noted = state.take_tool_duration_ms(&self.tool_note(id));
                let (kind, status) = match error {
                    Some(_) => ("tool_call.failed", "failed"),
                    None => ("tool_call.succeeded", "succeeded"),
                };
                let fields = json!({
                    "toolId": clean(tool), "status": status,
                    "durationMs": duration_ms.or(noted).unwrap_or_default(),
                    "error": error.as_deref().map(|error| cut(error, MAX_ERROR)),
                });
                vec![self.host_event(kind, &[id], fields)]
            }
            EventKind::TurnEnded { turn, ends_session, .. } => {
                let mut entries: Vec<Entry> = self.capture().into_iter().collect();
                if *ends_session {
                    let moment = moment_of(self.event);
                    entries.push(self.host_event(
                        "session.stopped",
                        &[turn.as_deref().unwrap_or(&moment)],
                        Value::Null,
                    ));
                }
                entries
            }
            EventKind::Compacting => self.capture().into_iter().collect(),
            EventKind::SessionEnded { reason } => {
                let stopped = self.host_event(
                    "session.stopped",
                    &[reason, &moment_of(self.event)],
                    Value::Null,
                );
                self.capture().into_iter().chain([stopped]).collect()
            }
            EventKind::SessionStarted { is_new: false, .. }
            | EventKind::Prompted { .. }
            | EventKind::Other => Vec::new(),
        }
    }

    /// The `pre_run_hydrate` hook that asks memory at this event, if memory is to be asked.
    pub(super) fn hydrate(&self) -> Option<Value> {
        let query = match &self.event.kind {
            _ if self.settings.recall == RecallAt::Off => return None,
            EventKind::SessionStarted { .. } => self.settings.query.clone().unwrap_or_else(|| {
                let name = self.project.id.rsplit(':').next().unwrap_or_default();
                let branch = self.project.branch.as_deref().unwrap_or_default();
                format!("{name} {branch}: decisions, preferences, conventions, open tasks")
            }),
            EventKind::Prompted { prompt } if self.settings.recall == RecallAt::Prompts => {
                prompt.clone()
            }
            _ => return None,
        };
        let deadline = self.settings.deadline.as_millis().saturating_mul(9) / 10;
        let id = self.id(
            "recall",
            &[&self.event.hook, &query, &moment_of(self.event), &self.now.to_string()],
        );
        let recall = json!({
            "query": cut(&query, MAX_QUERY), "tokenBudget": self.settings.token_budget,
            "deadlineMs": u64::try_from(deadline).unwrap_or(1_000).max(1),
            "metadata": {"agentKind": self.tool.name(), "sessionId": self.event.session},
        });
        Some(self.hook("pre_run_hydrate", &id, recall))
    }

    /// The path of requests that are hooks of the host.
    pub(super) fn hooks_path(&self) -> String {
        format!("/runtime/v1/companies/{}/hooks", self.company)
    }

    /// The `post_run_capture` hook with the last exchange. Its id is made of what was said, so that
    /// the end of a session does not capture again what the end of its last turn captured.
    fn capture(&self) -> Option<Entry> {
        if !self.settings.capture {
            return None;
        }
        let exchange = exchange_of(self.tool, self.event);
        let answer = exchange.answer.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
        let prompt = exchange.prompt.as_deref().map(str::trim).unwrap_or_default();
        let mut text = String::new();
        if !prompt.is_empty() {
            text.push_str(&format!("User: {}\n\n", cut(prompt, MAX_EXCERPT)));
        }
        text.push_str(&format!("Assistant: {}\n", cut(answer, MAX_EXCERPT)));
        let kind = self.tool.name();
        let source = without_nulls(json!({
            "kind": if self.settings.run.is_some() { "run" } else { "external_document" },
            "companyId": self.company, "runId": self.settings.run,
            "externalRef": format!("{kind}:session:{}", self.event.session),
        }));
        let about = json!({"agentKind": kind, "source": "inferred", "sessionId": self.event.session,
            "projectId": self.project_id(), "hookEvent": self.event.hook});
        let turn = |role: &str, text: &str| json!({"role": role, "text": cut(text, MAX_EXCERPT)});
        let mut turns = vec![turn("assistant", answer)];
        if !prompt.is_empty() {
            turns.insert(0, turn("user", prompt));
        }
        let payload =
            json!({"text": text, "turns": turns, "mimeType": "text/markdown", "metadata": about});
        let body = json!({"source": source, "payload": payload, "metadata": about});
        let id = self.id("capture", &[prompt, answer]);
        Some(Entry { path: self.hooks_path(), body: self.hook("post_run_capture", &id, body) })
    }

    fn hook(&self, kind: &str, id: &str, fields: Value) -> Value {
        let Settings { agent, run, issue, .. } = self.settings;
        let scope = without_nulls(json!({
            "companyId": self.company, "projectId": self.project_id(),
            "sessionKey": clean(&self.event.session),
            "agentId": agent, "runId": run, "issueId": issue,
        }));
        let hook = json!({
            "hookKind": kind, "hookId": id, "triggeredAt": self.now.to_string(),
            "actorAgentId": agent,
            "heartbeatRunId": run, "scope": scope,
        });
        with(hook, fields)
    }

    fn host_event(&self, kind: &str, parts: &[&str], fields: Value) -> Entry {
        let event = json!({
            "eventId": self.id(kind, parts), "type": kind, "projectId": self.project_id(),
            "sessionId": clean(&self.event.session), "agentKind": self.tool.name(),
            "agentId": self.settings.agent,
            "runId": self.settings.run, "occurredAt": self.now.to_string(),
            "details": self.event.details,
        });
        let body = json!({"events": [with(event, fields)]});
        Entry { path: format!("/runtime/v1/companies/{}/events", self.company), body }
    }

    fn project_id(&self) -> &str {
        self.settings.project.as_deref().unwrap_or(&self.project.id)
    }

    fn tool_note(&self, id: &str) -> String {
        short_hash(&[self.tool.name(), &self.event.session, id])
    }

    /// An id that is the same for the same parts of the same session.
    fn id(&self, kind: &str, parts: &[&str]) -> String {
        let mut all = vec![self.tool.name(), &self.event.session, kind];
        all.extend(parts);
        format!("{}-{kind}-{}", self.tool.name(), short_hash(&all))
    }
}

/// An object without its null members.
fn without_nulls(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}

/// An object with more members, and without those that are null.
fn with(mut object: Value, more: Value) -> Value {
    if let (Some(members), Value::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more);
    }
    without_nulls(object)
}

/// A text that is cut to at most `max` bytes.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max - '…'.len_utf8();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…", &text[..end])
}
