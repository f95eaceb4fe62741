//! What an agent tool gives its hooks, read into one form. Tools add fields and events from time to
//! time: unknown ones are ignored, and missing ones have a default where that makes sense.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::json;

/// The longest text that is copied into `details`, in bytes.
const MAX_DETAIL: usize = 512;
/// The fields that are copied into `details`, and the names that they have there.
const DETAILS: [(&str, &str); 9] = [
    ("source", "source"),
    ("reason", "reason"),
    ("model", "model"),
    ("permission_mode", "permissionMode"),
    ("turn_id", "turnId"),
    ("prompt_id", "promptId"),
    ("tool_use_id", "toolUseId"),
    ("agent_id", "subagentId"),
    ("agent_type", "subagentType"),
];

/// One hook event of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HookSpec {
    /// The tool's name for it.
    pub(crate) name: &'static str,
    pub(crate) meaning: Meaning,
}

impl HookSpec {
    pub(crate) const fn new(name: &'static str, meaning: Meaning) -> Self {
        Self { name, meaning }
    }
}

/// The meaning of a hook event. It decides which fields of the payload are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A session begins or goes on: `source`.
    SessionStart,
    /// A person asks for something: `prompt`.
    Prompt,
    /// A tool call begins: `tool_name`, `tool_use_id`.
    ToolStart,
    /// A tool call has ended: also `duration_ms` and `tool_response`, which may tell how.
    ToolEnd,
    /// A tool call has succeeded, unless `tool_response` tells of a failure.
    ToolSuccess,
    /// A tool call has failed: also `error`.
    ToolFailure,
    /// The agent has answered: `last_assistant_message`.
    TurnEnd {
        /// Whether this is also the only sign of the end of a session that the tool gives.
        ends_session: bool,
    },
    /// The person or an error of the service ended the turn. `last_assistant_message` is the error.
    TurnBroken {
        /// Whether an error did.
        has_failed: bool,
    },
    /// The transcript is about to be shortened.
    Compaction,
    /// A session has ended: `reason`.
    SessionEnd,
}

/// Something that happened in a session of a tool.
#[derive(Debug, PartialEq)]
pub(crate) struct SessionEvent {
    /// The tool's name of the hook event.
    pub(crate) hook: String,
    /// The tool's id of the session.
    pub(crate) session: String,
    pub(crate) directory: Option<PathBuf>,
    /// The file in which the tool keeps the transcript.
    pub(crate) transcript: Option<PathBuf>,
    /// The tool's id of the turn: `turn_id` of Codex, `prompt_id` of Claude Code.
    pub(crate) turn: Option<String>,
    pub(crate) kind: EventKind,
    /// Other fields, for `details` of the host's event.
    pub(crate) details: Map<String, Value>,
}

/// The kind of event, with the fields that memory needs.
#[derive(Debug, PartialEq)]
pub(crate) enum EventKind {
    /// A session began or goes on. `is_new` is false when only its transcript was shortened.
    SessionStarted { source: String, is_new: bool },
    /// A person asked for something.
    Prompted { prompt: String },
    /// A tool call is about to begin.
    ToolStarted { tool: String, id: String },
    /// A tool call has ended.
    ToolEnded { tool: String, id: String, duration_ms: Option<u64>, outcome: Outcome },
    /// The agent has answered. `ends_session` is set where the tool has no other event for the end
    /// of a session. `prompt` is empty if nobody asked, and `None` if the event does not say it.
    TurnEnded { prompt: Option<String>, answer: Option<String>, ends_session: bool },
    /// The turn ended before the answer. `has_failed`: an error of the service ended it, and no
    /// person.
    TurnBroken { has_failed: bool },
    /// The transcript is about to be shortened.
    Compacting,
    /// A session ended.
    SessionEnded { reason: String },
    /// An event that means nothing to memory.
    Other,
}

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The tool says so.
    Succeeded,
    /// It failed, and why.
    Failed(String),
    /// Nothing says how.
    Unknown,
}

/// A text field that is there and not empty.
pub(crate) fn text(payload: &Value, name: &str) -> Option<String> {
    payload.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Reads a payload with the fields that Claude Code and Codex both use; nothing where it is not an
/// event of a session.
pub(crate) fn parse(specs: &[HookSpec], payload: &Value) -> Option<SessionEvent> {
    let hook = text(payload, "hook_event_name")?;
    let meaning = specs.iter().find(|spec| spec.name == hook).map(|spec| spec.meaning);
    let kind = match meaning {
        Some(meaning) => kind_of(meaning, payload)?,
        None => EventKind::Other,
    };
    let mut details = Map::new();
    details.insert("hookEvent".to_owned(), hook.as_str().into());
    for (field, name) in DETAILS {
        if let Some(value) = text(payload, field).filter(|value| value.len() <= MAX_DETAIL) {
            details.insert(name.to_owned(), value.into());
        }
    }
    if let Some(is_interrupt) = payload.get("is_interrupt").and_then(Value::as_bool) {
        details.insert("isInterrupt".to_owned(), is_interrupt.into());
    }
    Some(SessionEvent {
        hook,
        session: text(payload, "session_id")?,
        directory: text(payload, "cwd").map(PathBuf::from),
        transcript: text(payload, "transcript_path").map(PathBuf::from),
        turn: text(payload, "turn_id").or_else(|| text(payload, "prompt_id")),
        kind,
        details,
    })
}

fn kind_of(meaning: Meaning, payload: &Value) -> Option<EventKind> {
    let text = |name: &str| text(payload, name);
    let id = || {
        text("tool_use_id")
            .unwrap_or_else(|| format!("at-{}", jiff::Timestamp::now().as_nanosecond()))
    };
    let tool = || text("tool_name").unwrap_or_else(|| "unknown".to_owned());
    let duration_ms = payload.get("duration_ms").and_then(Value::as_u64);
    Some(match meaning {
        Meaning::SessionStart => {
            let source = text("source").unwrap_or_else(|| "startup".to_owned());
            EventKind::SessionStarted { is_new: source != "compact", source }
        }
        // A prompt can have no text: only an image.
        Meaning::Prompt => EventKind::Prompted { prompt: payload.get("prompt")?.as_str()?.into() },
        Meaning::ToolStart => EventKind::ToolStarted { tool: tool(), id: id() },
        Meaning::ToolEnd => {
            let outcome = payload.get("tool_response").map_or(Outcome::Unknown, outcome);
            EventKind::ToolEnded { tool: tool(), id: id(), duration_ms, outcome }
        }
        Meaning::ToolSuccess => {
            let outcome = match payload.get("tool_response").map(outcome) {
                Some(Outcome::Failed(why)) => Outcome::Failed(why),
                _ => Outcome::Succeeded,
            };
            EventKind::ToolEnded { tool: tool(), id: id(), duration_ms, outcome }
        }
        Meaning::ToolFailure => {
            let error = text("error").or_else(|| payload.get("error").map(Value::to_string));
            let error = error.unwrap_or_else(|| "the tool gave no reason".to_owned());
            let outcome = Outcome::Failed(error);
            EventKind::ToolEnded { tool: tool(), id: id(), duration_ms, outcome }
        }
        Meaning::TurnEnd { ends_session } => EventKind::TurnEnded {
            prompt: None,
            answer: text("last_assistant_message"),
            ends_session,
        },
        Meaning::TurnBroken { has_failed } => EventKind::TurnBroken { has_failed },
        Meaning::Compaction => EventKind::Compacting,
        Meaning::SessionEnd => {
            EventKind::SessionEnded { reason: text("reason").unwrap_or_else(|| "other".to_owned()) }
        }
    })
}

/// How a tool call ended, by its response. What a program printed is no sign: it can say anything.
pub(crate) fn outcome(response: &Value) -> Outcome {
    // Older versions of Codex gave the response of a shell as JSON in a string, in this form.
    let inner: Option<Value> = response
        .as_str()
        .filter(|text| text.starts_with('{'))
        .and_then(|text| json::parse(text.as_bytes()).ok())
        .filter(|inner: &Value| inner["output"].is_string() && inner["metadata"].is_object());
    let Some(object) = inner.as_ref().unwrap_or(response).as_object() else {
        return Outcome::Unknown;
    };
    let code = object
        .get("exit_code")
        .or_else(|| object.get("metadata")?.get("exit_code"))
        .and_then(Value::as_i64);
    let flag = |name: &str| object.get(name).and_then(Value::as_bool);
    let reason = || {
        let said = object.get("error").and_then(Value::as_str);
        said.unwrap_or("the response reports a failure").to_owned()
    };
    let says = [flag("is_error"), flag("isError"), flag("success").map(|success| !success)];
    // A result of MCP that does not say that it is an error is none.
    let is_result = object.get("content").is_some_and(Value::is_array);
    match code {
        Some(code) if code != 0 => Outcome::Failed(format!("exit code {code}")),
        _ if says.contains(&Some(true)) => Outcome::Failed(reason()),
        None if !is_result && !says.contains(&Some(false)) => Outcome::Unknown,
        _ => Outcome::Succeeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;
    use serde_json::json;

    #[test]
    fn the_end_of_a_tool_call_is_what_its_response_says() {
        for (response, wanted) in [
            (json!("plain text"), None),
            (json!("{\"exit_code\": 0, \"success\": true}"), None),
            (json!("{\"success\": false}"), None),
            (json!({"stdout": "ok", "interrupted": false}), None),
            (json!(null), None),
            (json!({"exit_code": 0}), Some(true)),
            (json!({"exit_code": 2}), Some(false)),
            (json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"), Some(false)),
            (json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":0}}"), Some(true)),
            (json!({"isError": true, "content": []}), Some(false)),
            (json!({"content": [{"type": "text", "text": "ok"}]}), Some(true)),
            (json!({"success": false, "error": "no file"}), Some(false)),
            (json!({"filePath": "/a", "success": true}), Some(true)),
        ] {
            let found = match outcome(&response) {
                Outcome::Succeeded => Some(true),
                Outcome::Failed(_) => Some(false),
                Outcome::Unknown => None,
            };
            assert_eq!(found, wanted, "{response}");
        }
    }

    #[test]
    fn a_payload_that_is_not_of_a_session_is_ignored() {
        for tool in TOOLS {
            for value in [
                json!(null),
                json!([]),
                json!({"hook_event_name": "Stop"}),
                json!({"session_id": "s"}),
            ] {
                assert_eq!(tool.parse(&value), None, "{tool:?}: {value}");
            }
            let later = json!({"hook_event_name": "SomethingNew", "session_id": "s", "cwd": 7});
            assert_eq!(tool.parse(&later).unwrap().kind, EventKind::Other);
        }
    }
}
