//! What happened in a session, as our events and hooks. Ids are made from what the tool says, so that an event that comes
//! twice, because two settings name the hook or because it was sent again, is one event at the host.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::payload::{Happened, Tool, What};
use super::project::{Project, clean};
use super::settings::{RecallAt, Settings};
use super::spool::Entry;
use super::state::{State, short_hash};

/// The longest part of a prompt or an answer that is captured, in bytes.
const MAX_EXCERPT: usize = 4 << 10;
/// The longest reason of a failure, in bytes; the host takes 4 KiB.
const MAX_ERROR: usize = 2 << 10;
/// The longest question, in bytes.
const MAX_QUERY: usize = 2 << 10;

/// One session's events on their way to a company.
pub(super) struct Signals<'a> {
    pub(super) tool: Tool,
    pub(super) settings: &'a Settings,
    pub(super) company: &'a str,
    pub(super) project: &'a Project,
    pub(super) happened: &'a Happened,
    pub(super) now: Timestamp,
}

impl Signals<'_> {
    /// What is to be told, in order. Nobody waits for the answers.
    pub(super) fn entries(&self, state: &State) -> Vec<Entry> {
        match &self.happened.what {
            What::SessionStarted { is_new: true, source } => {
                // A session that goes on has a longer transcript each time.
                let moment = if source == "startup" { String::new() } else { self.happened.moment() };
                vec![self.event("session.started", &[source, &moment], &[])]
            }
            What::ToolStarted { tool, id } => {
                state.tool_began(&self.tool_note(id));
                vec![self.event("tool_call.started", &[id], &[("toolId", clean(tool).into())])]
            }
            What::ToolEnded { tool, id, took_ms, error } => {
                let noted = state.tool_took(&self.tool_note(id));
                let (kind, status) = match error {
                    Some(_) => ("tool_call.failed", "failed"),
                    None => ("tool_call.succeeded", "succeeded"),
                };
                let mut fields = vec![
                    ("toolId", clean(tool).into()),
                    ("status", status.into()),
                    ("durationMs", took_ms.or(noted).unwrap_or_default().into()),
                ];
                fields.extend(error.as_deref().map(|error| ("error", cut(error, MAX_ERROR).into())));
                vec![self.event(kind, &[id], &fields)]
            }
            What::TurnEnded { turn, ends_session, .. } => {
                let mut entries: Vec<Entry> = self.capture().into_iter().collect();
                if *ends_session {
                    let moment = self.happened.moment();
                    entries.push(self.event("session.stopped", &[turn.as_deref().unwrap_or(&moment)], &[]));
                }
                entries
            }
            What::Compacting => self.capture().into_iter().collect(),
            What::SessionEnded { reason } => {
                let stopped = self.event("session.stopped", &[reason, &self.happened.moment()], &[]);
                self.capture().into_iter().chain([stopped]).collect()
            }
            What::SessionStarted { is_new: false, .. } | What::Prompted { .. } | What::Other => Vec::new(),
        }
    }

    /// The question to memory at this moment, if it is to be asked one: a `pre_run_hydrate`.
    pub(super) fn hydrate(&self) -> Option<Value> {
        let query = match &self.happened.what {
            _ if self.settings.recall == RecallAt::Off => return None,
            What::SessionStarted { .. } => self.settings.query.clone().unwrap_or_else(|| {
                let name = self.project.id.rsplit(':').next().unwrap_or_default();
                let branch = self.project.branch.as_deref().unwrap_or_default();
                format!("{name} {branch}: decisions, preferences, conventions, open tasks")
            }),
            What::Prompted { prompt } if self.settings.recall == RecallAt::Prompts => prompt.clone(),
            _ => return None,
        };
        let deadline = self.settings.deadline.as_millis().saturating_mul(9) / 10;
        let id = self.id("recall", &[&self.happened.event, &query, &self.happened.moment(), &self.now.to_string()]);
        let mut hook = self.hook("pre_run_hydrate", &id);
        hook.insert("query".to_owned(), cut(&query, MAX_QUERY).into());
        hook.insert("tokenBudget".to_owned(), self.settings.token_budget.into());
        hook.insert("deadlineMs".to_owned(), u64::try_from(deadline).unwrap_or(1_000).max(1).into());
        Some(Value::Object(hook))
    }

    /// Where hooks go.
    pub(super) fn hooks_path(&self) -> String {
        format!("/runtime/v1/companies/{}/hooks", self.company)
    }

    /// The last exchange, as something that happened. The id is made of what was said: at the end of a session it is the
    /// same that was captured at the end of its last turn.
    fn capture(&self) -> Option<Entry> {
        if !self.settings.capture {
            return None;
        }
        let exchange = self.happened.exchange();
        let message = exchange.message.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
        let prompt = exchange.prompt.as_deref().map(str::trim).unwrap_or_default();
        let mut text = String::new();
        if !prompt.is_empty() {
            text.push_str(&format!("User: {}\n\n", cut(prompt, MAX_EXCERPT)));
        }
        text.push_str(&format!("Assistant: {}\n", cut(message, MAX_EXCERPT)));
        let kind = self.tool.kind();
        let mut hook = self.hook("post_run_capture", &self.id("capture", &[prompt, message]));
        let source = match &self.settings.run {
            Some(run) => json!({"kind": "run", "companyId": self.company, "runId": run,
                "externalRef": format!("{kind}:session:{}", self.happened.session)}),
            None => json!({"kind": "external_document", "companyId": self.company,
                "externalRef": format!("{kind}:session:{}", self.happened.session)}),
        };
        let about = json!({"agentKind": kind, "source": "inferred", "sessionId": self.happened.session,
            "projectId": self.project_id(), "hookEvent": self.happened.event});
        hook.insert("source".to_owned(), source);
        hook.insert("payload".to_owned(), json!({"text": text, "mimeType": "text/markdown", "metadata": about}));
        hook.insert("metadata".to_owned(), about);
        Some(Entry { path: self.hooks_path(), body: Value::Object(hook) })
    }

    fn hook(&self, kind: &str, id: &str) -> Map<String, Value> {
        let mut scope = Map::new();
        scope.insert("companyId".to_owned(), self.company.into());
        scope.insert("projectId".to_owned(), self.project_id().into());
        scope.insert("sessionKey".to_owned(), clean(&self.happened.session).into());
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

    fn event(&self, kind: &str, apart: &[&str], fields: &[(&str, Value)]) -> Entry {
        let mut event = Map::new();
        event.insert("eventId".to_owned(), self.id(kind, apart).into());
        event.insert("type".to_owned(), kind.into());
        event.insert("projectId".to_owned(), self.project_id().into());
        event.insert("sessionId".to_owned(), clean(&self.happened.session).into());
        event.insert("agentKind".to_owned(), self.tool.kind().into());
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
        if !self.happened.details.is_empty() {
            event.insert("details".to_owned(), Value::Object(self.happened.details.clone()));
        }
        Entry { path: format!("/runtime/v1/companies/{}/events", self.company), body: json!({"events": [event]}) }
    }

    fn project_id(&self) -> &str {
        self.settings.project.as_deref().unwrap_or(&self.project.id)
    }

    fn tool_note(&self, id: &str) -> String {
        short_hash(&[self.tool.kind(), &self.happened.session, id])
    }

    fn id(&self, kind: &str, apart: &[&str]) -> String {
        let mut parts = vec![self.tool.kind(), &self.happened.session, kind];
        parts.extend(apart);
        format!("{}-{kind}-{}", self.tool.kind(), short_hash(&parts))
    }
}

/// The beginning of a text, not longer than so many bytes.
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
