//! Events of a session as requests to the host.
//!
//! Ids are made of what the tool says. An event that comes twice, because two settings files name
//! the hook or because it was sent again, has one id and is one event at the host.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::exchange::{self, Asked, Exchange};
use super::payload::{EventKind, Outcome, SessionEvent};
use super::project::{Project, clean};
use super::prompts::{MAX_PROMPT, Prompt, Prompts};
use super::recall;
use super::settings::{RecallAt, Settings};
use super::spool::Entry;
use super::state::{OpenCall, State, short_hash};
use super::tools::Tool;
use super::transcript::{call_end, moment_of};

/// The longest part of an answer that is captured, in bytes.
const MAX_EXCERPT: usize = MAX_PROMPT;
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
                let mut entries = self.captures(state);
                entries.push(self.host_event("session.started", &[source, &moment], Value::Null));
                entries
            }
            EventKind::ToolStarted { tool, id } => {
                state.note_tool_start(&self.tool_note(id), &self.open_call(tool, id));
                vec![self.host_event("tool_call.started", &[id], json!({"toolId": clean(tool)}))]
            }
            EventKind::ToolEnded { tool, id, duration_ms, outcome } => {
                vec![self.call_ended(state, tool, id, *duration_ms, outcome.clone())]
            }
            EventKind::Prompted { prompt } => {
                let interrupted = self.captures(state);
                self.note_prompt(state, prompt);
                interrupted
            }
            EventKind::TurnEnded { ends_session, .. } => {
                let mut entries = self.lost_ends(state);
                entries.extend(self.captures(state));
                if *ends_session {
                    let moment = moment_of(self.event);
                    entries.push(self.host_event(
                        "session.stopped",
                        &[self.event.turn.as_deref().unwrap_or(&moment)],
                        Value::Null,
                    ));
                }
                entries
            }
            EventKind::TurnBroken { .. } => {
                let mut entries = self.lost_ends(state);
                entries.extend(self.captures(state));
                entries
            }
            EventKind::Compacting => self.captures(state),
            EventKind::SessionEnded { reason } => {
                let mut entries = self.lost_ends(state);
                entries.extend(self.captures(state));
                entries.push(self.host_event(
                    "session.stopped",
                    &[reason, &moment_of(self.event)],
                    Value::Null,
                ));
                entries
            }
            EventKind::SessionStarted { is_new: false, .. } | EventKind::Other => Vec::new(),
        }
    }

    /// The end of a tool call. What the tool does not tell its hook may be in the transcript. Where
    /// nothing says how the call ended, the event does not either.
    fn call_ended(
        &self,
        state: &State,
        tool: &str,
        id: &str,
        duration_ms: Option<u64>,
        outcome: Outcome,
    ) -> Entry {
        let noted = state.take_tool_duration_ms(&self.tool_note(id));
        let end = match outcome {
            Outcome::Unknown => call_end(self.tool, self.event, id),
            Outcome::Succeeded | Outcome::Failed(_) => None,
        };
        let (outcome, written) = end.map_or((outcome, None), |end| (end.outcome, end.duration_ms));
        let (kind, status, error) = match &outcome {
            Outcome::Failed(error) => ("tool_call.failed", Some("failed"), Some(error)),
            Outcome::Succeeded => ("tool_call.succeeded", Some("succeeded"), None),
            Outcome::Unknown => ("tool_call.ended", None, None),
        };
        let fields = json!({
            "toolId": clean(tool), "status": status,
            "durationMs": duration_ms.or(written).or(noted).unwrap_or_default(),
            "error": error.map(|error| cut(error, MAX_ERROR)),
        });
        self.host_event(kind, &[id], fields)
    }

    /// The ends of tool calls of this session for which no hook ran: the transcript has them.
    fn lost_ends(&self, state: &State) -> Vec<Entry> {
        let open = state.open_tool_calls(self.tool.name(), &self.event.session);
        let ended = open.into_iter().filter_map(|call| {
            let end = call_end(self.tool, self.event, &call.id)?;
            Some(self.call_ended(state, &call.tool, &call.id, end.duration_ms, end.outcome))
        });
        ended.collect()
    }

    fn open_call(&self, tool: &str, id: &str) -> OpenCall {
        OpenCall {
            agent_tool: self.tool.name().to_owned(),
            session: self.event.session.clone(),
            tool: tool.to_owned(),
            id: id.to_owned(),
        }
    }

    /// Notes what a person asked, for the end of the turn.
    fn note_prompt(&self, state: &State, prompt: &str) {
        if !self.settings.capture {
            return;
        }
        let words = self.tool.machine_text().words(&recall::without(prompt));
        let words = words.map(|words| cut(&words, MAX_PROMPT));
        let prompt = Prompt { turn: self.event.turn.clone(), words };
        if let Err(error) = self.prompts(state).note(&prompt, &moment_of(self.event)) {
            state.log(&format!("a prompt cannot be noted for the end of its turn: {error}"));
        }
    }

    fn prompts<'a>(&self, state: &'a State) -> Prompts<'a> {
        Prompts::of(state, self.tool.name(), &self.event.session)
    }

    /// The `pre_run_hydrate` hook that asks memory at this event, if memory is to be asked.
    pub(super) fn hydrate(&self) -> Option<Value> {
        let query = match &self.event.kind {
            _ if self.settings.recall == RecallAt::Off => return None,
            EventKind::SessionStarted { .. } => self.settings.query.clone().unwrap_or_else(|| {
                let name = &self.project.name;
                let branch = self.project.branch.as_deref().unwrap_or_default();
                format!("{name} {branch}: decisions, preferences, conventions, open tasks")
            }),
            EventKind::Prompted { prompt } if self.settings.recall == RecallAt::Prompts => {
                self.tool.machine_text().words(prompt)?
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
            "metadata": {"agentKind": self.tool.agent_kind(), "sessionId": self.event.session},
        });
        Some(self.hook("pre_run_hydrate", &id, recall))
    }

    /// The path of requests that are hooks of the host.
    pub(super) fn hooks_path(&self) -> String {
        format!("/runtime/v1/companies/{}/hooks", self.company)
    }

    /// The `post_run_capture` hooks with the exchanges of the event.
    fn captures(&self, state: &State) -> Vec<Entry> {
        if !self.settings.capture {
            return Vec::new();
        }
        let prompts = self.prompts(state);
        let exchanges = exchange::of_event(self.tool, self.event, &prompts);
        exchanges.iter().filter_map(|exchange| self.capture(exchange, &prompts, state)).collect()
    }

    /// The hook of one exchange. Its id is made of the turn and of what was said, so that the end
    /// of a session does not capture again what the end of its last turn captured.
    fn capture(&self, exchange: &Exchange, prompts: &Prompts<'_>, state: &State) -> Option<Entry> {
        let answer = cut(recall::without(&exchange.answer).trim(), MAX_EXCERPT);
        if answer.is_empty() && !exchange.answer.is_empty() {
            return None;
        }
        let prompt = match &exchange.asked {
            Asked::Words(words) => Some(cut(words.trim(), MAX_PROMPT)),
            Asked::Nobody => None,
            Asked::Unknown => {
                state.log(&format!(
                    "{}: an answer is captured without its question, which neither the hook of \
                     the prompt nor the transcript tells; install the hooks again if there is \
                     none for `UserPromptSubmit`",
                    self.tool.name()
                ));
                None
            }
        };
        let ends_turn =
            matches!(self.event.kind, EventKind::TurnEnded { .. } | EventKind::TurnBroken { .. });
        // The answer to a prompt that failed may still come in its turn.
        if ends_turn && !answer.is_empty() {
            prompts.answered(exchange.turn.as_deref(), prompt.as_deref(), &exchange.answer);
        }
        let (prompt, turn) = (prompt.unwrap_or_default(), exchange.turn.as_deref());
        let id = self.id("capture", &[turn.unwrap_or_default(), &prompt, &answer]);
        let said = [("user", "User", prompt), ("assistant", "Assistant", answer)];
        let said: Vec<_> = said.into_iter().filter(|(_, _, words)| !words.is_empty()).collect();
        if said.is_empty() {
            return None;
        }
        let texts: Vec<String> =
            said.iter().map(|(_, name, words)| format!("{name}: {words}\n")).collect();
        let text = texts.join("\n");
        let turns: Vec<Value> =
            said.iter().map(|(role, _, words)| json!({"role": role, "text": words})).collect();
        let source = without_nulls(json!({
            "kind": if self.settings.run.is_some() { "run" } else { "external_document" },
            "companyId": self.company, "runId": self.settings.run,
            "externalRef": format!("{}:session:{}", self.tool.name(), self.event.session),
        }));
        let about = json!({
            "agentKind": self.tool.agent_kind(), "source": "inferred",
            "sessionId": self.event.session, "projectId": self.project_id(),
            "hookEvent": self.event.hook,
        });
        let payload =
            json!({"text": text, "turns": turns, "mimeType": "text/markdown", "metadata": about});
        let body = json!({"source": source, "payload": payload, "metadata": about});
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
            "sessionId": clean(&self.event.session), "agentKind": self.tool.agent_kind(),
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
