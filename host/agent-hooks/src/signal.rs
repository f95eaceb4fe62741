//! Events of a session as requests to the host.
//!
//! Ids are made of what the tool says. An event that comes twice, because two settings files name the hook or because it
//! was sent again, has one id and is one event at the host.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

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
                let moment = if source == "startup" { String::new() } else { moment_of(self.event) };
                vec![self.host_event("session.started", &[source, &moment], &[])]
            }
            EventKind::ToolStarted { tool, id } => {
                state.note_tool_start(&self.tool_note(id));
                vec![self.host_event("tool_call.started", &[id], &[("toolId", clean(tool).into())])]
            }
            EventKind::ToolEnded { tool, id, duration_ms, error } => {
                let noted = state.take_tool_duration_ms(&self.tool_note(id));
                let (kind, status) = match error {
                    Some(_) => ("tool_call.failed", "failed"),
                    None => ("tool_call.succeeded", "succeeded"),
                };
                let mut fields = vec![
                    ("toolId", clean(tool).into()),
                    ("status", status.into()),
                    ("durationMs", duration_ms.or(noted).unwrap_or_default().into()),
                ];
                fields.extend(error.as_deref().map(|error| ("error", cut(error, MAX_ERROR).into())));
                vec![self.host_event(kind, &[id], &fields)]
            }
            EventKind::TurnEnded { turn, ends_session, .. } => {
                let mut entries: Vec<Entry> = self.capture().into_iter().collect();
                if *ends_session {
                    let moment = moment_of(self.event);
                    entries.push(self.host_event("session.stopped", &[turn.as_deref().unwrap_or(&moment)], &[]));
                }
                entries
            }
            EventKind::Compacting => self.capture().into_iter().collect(),
            EventKind::SessionEnded { reason } => {
                let stopped = self.host_event("session.stopped", &[reason, &moment_of(self.event)], &[]);
                self.capture().into_iter().chain([stopped]).collect()
            }
            EventKind::SessionStarted { is_new: false, .. } | EventKind::Prompted { .. } | EventKind::Other => {
                Vec::new()
            }
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
            EventKind::Prompted { prompt } if self.settings.recall == RecallAt::Prompts => prompt.clone(),
            _ => return None,
        };
        let deadline = self.settings.deadline.as_millis().saturating_mul(9) / 10;
        let id = self.id("recall", &[&self.event.hook, &query, &moment_of(self.event), &self.now.to_string()]);
        let mut hook = self.hook("pre_run_hydrate", &id);
        hook.insert("query".to_owned(), cut(&query, MAX_QUERY).into());
        hook.insert("tokenBudget".to_owned(), self.settings.token_budget.into());
        hook.insert("deadlineMs".to_owned(), u64::try_from(deadline).unwrap_or(1_000).max(1).into());
        Some(Value::Object(hook))
    }

    /// The path of requests that are hooks of the host.
    pub(super) fn hooks_path(&self) -> String {
        format!("/runtime/v1/companies/{}/hooks", self.company)
    }

    /// The `post_run_capture` hook with the last exchange. Its id is made of what was said, so that the end of a session
    /// does not capture again what the end of its last turn captured.
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
        let mut hook = self.hook("post_run_capture", &self.id("capture", &[prompt, answer]));
        let source = match &self.settings.run {
            Some(run) => json!({"kind": "run", "companyId": self.company, "runId": run,
                "externalRef": format!("{kind}:session:{}", self.event.session)}),
            None => json!({"kind": "external_document", "companyId": self.company,
                "externalRef": format!("{kind}:session:{}", self.event.session)}),
        };
        let about = json!({"agentKind": kind, "source": "inferred", "sessionId": self.event.session,
            "projectId": self.project_id(), "hookEvent": self.event.hook});
        hook.insert("source".to_owned(), source);
        hook.insert("payload".to_owned(), json!({"text": text, "mimeType": "text/markdown", "metadata": about}));
        hook.insert("metadata".to_owned(), about);
        Some(Entry { path: self.hooks_path(), body: Value::Object(hook) })
    }

    fn hook(&self, kind: &str, id: &str) -> Map<String, Value> {
        let mut scope = Map::new();
        scope.insert("companyId".to_owned(), self.company.into());
        scope.insert("projectId".to_owned(), self.project_id().into());
        scope.insert("sessionKey".to_owned(), clean(&self.event.session).into());
        let context =
            [("agentId", &self.settings.agent), ("runId", &self.settings.run), ("issueId", &self.settings.issue)];
        for (field, value) in context {
            if let Some(value) = value {
                scope.insert(field.to_owned(), value.as_str().into());
            }
        }
        let mut hook = Map::new();
        hook.insert("hookKind".to_owned(), kind.into());
        hook.insert("hookId".to_owned(), id.into());
        hook.insert("triggeredAt".to_owned(), self.now.to_string().into());
        if let Some(agent) = &self.settings.agent {
            hook.insert("actorAgentId".to_owned(), agent.as_str().into());
        }
        if let Some(run) = &self.settings.run {
            hook.insert("heartbeatRunId".to_owned(), run.as_str().into());
        }
        hook.insert("scope".to_owned(), Value::Object(scope));
        hook
    }

    fn host_event(&self, kind: &str, parts: &[&str], fields: &[(&str, Value)]) -> Entry {
        let mut event = Map::new();
        event.insert("eventId".to_owned(), self.id(kind, parts).into());
        event.insert("type".to_owned(), kind.into());
        event.insert("projectId".to_owned(), self.project_id().into());
        event.insert("sessionId".to_owned(), clean(&self.event.session).into());
        event.insert("agentKind".to_owned(), self.tool.name().into());
        if let Some(agent) = &self.settings.agent {
            event.insert("agentId".to_owned(), agent.as_str().into());
        }
        if let Some(run) = &self.settings.run {
            event.insert("runId".to_owned(), run.as_str().into());
        }
        event.insert("occurredAt".to_owned(), self.now.to_string().into());
        for (name, value) in fields {
            event.insert((*name).to_owned(), value.clone());
        }
        if !self.event.details.is_empty() {
            event.insert("details".to_owned(), Value::Object(self.event.details.clone()));
        }
        Entry { path: format!("/runtime/v1/companies/{}/events", self.company), body: json!({"events": [event]}) }
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
