//! What an agent tool gives its hooks, read into one form. Tools add fields and events from time to
//! time: unknown ones are ignored, and missing ones have a default where that makes sense.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// The longest text that is copied into `details`, in bytes.
const MAX_DETAIL: usize = 512;
/// The fields that are copied into `details`, and the names that they have there.
const DETAILS: [(&str, &str); 8] = [
    ("source", "source"),
    ("reason", "reason"),
    ("model", "model"),
    ("permission_mode", "permissionMode"),
    ("turn_id", "turnId"),
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
    /// Whether it is needed only when memory is asked at each prompt.
    pub(crate) only_for_prompts: bool,
}

impl HookSpec {
    /// An event that is always installed.
    pub(crate) const fn always(name: &'static str, meaning: Meaning) -> Self {
        Self { name, meaning, only_for_prompts: false }
    }

    /// An event that is installed with `--recall prompts`.
    pub(crate) const fn for_prompts(name: &'static str, meaning: Meaning) -> Self {
        Self { name, meaning, only_for_prompts: true }
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
    /// A tool call has ended: also `duration_ms` and `tool_response`, which may tell of a failure.
    ToolEnd,
    /// A tool call has failed: also `error`.
    ToolFailure,
    /// The agent has answered: `turn_id`, `last_assistant_message`.
    TurnEnd {
        /// Whether this is also the only sign of the end of a session that the tool gives.
        ends_session: bool,
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
    /// A tool call has ended; `error` says why it failed.
    ToolEnded { tool: String, id: String, duration_ms: Option<u64>, error: Option<String> },
    /// The agent has answered. `ends_session` is set where the tool has no other event for the end
    /// of a session.
    TurnEnded {
        turn: Option<String>,
        prompt: Option<String>,
        answer: Option<String>,
        ends_session: bool,
    },
    /// The transcript is about to be shortened.
    Compacting,
    /// A session ended.
    SessionEnded { reason: String },
    /// An event that means nothing to memory.
    Other,
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
        Meaning::Prompt => EventKind::Prompted { prompt: text("prompt")? },
        Meaning::ToolStart => EventKind::ToolStarted { tool: tool(), id: id() },
        Meaning::ToolEnd => {
            let error = payload.get("tool_response").and_then(failure);
            EventKind::ToolEnded { tool: tool(), id: id(), duration_ms, error }
        }
        Meaning::ToolFailure => {
            let error = text("error").or_else(|| payload.get("error").map(Value::to_string));
            let error = error.unwrap_or_else(|| "the tool gave no reason".to_owned());
            EventKind::ToolEnded { tool: tool(), id: id(), duration_ms, error: Some(error) }
        }
        Meaning::TurnEnd { ends_session } => EventKind::TurnEnded {
            turn: text("turn_id"),
            prompt: None,
            answer: text("last_assistant_message"),
            ends_session,
        },
        Meaning::Compaction => EventKind::Compacting,
        Meaning::SessionEnd => {
            EventKind::SessionEnded { reason: text("reason").unwrap_or_else(|| "other".to_owned()) }
        }
    })
}

/// Why a tool call failed, by its response. Codex has one event for all ends of a tool call.
fn failure(response: &Value) -> Option<String> {
    // Codex gives the response of a shell as JSON in a string.
    let inner: Option<Value> = response
        .as_str()
        .filter(|text| text.starts_with('{'))
        .and_then(|text| serde_json::from_str(text).ok());
    let object = inner.as_ref().unwrap_or(response).as_object()?;
    let code = object
        .get("exit_code")
        .or_else(|| object.get("metadata")?.get("exit_code"))
        .and_then(Value::as_i64);
    if let Some(code) = code.filter(|code| *code != 0) {
        return Some(format!("exit code {code}"));
    }
    let flag = |name: &str| object.get(name).and_then(Value::as_bool);
    let failed = flag("is_error") == Some(true)
        || flag("isError") == Some(true)
        || flag("success") == Some(false);
    let reason = || {
        object
            .get("error")
            .and_then(Value::as_str)
            .unwrap_or("the response reports a failure")
            .to_owned()
    };
    failed.then(reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;
    use serde_json::json;

    #[test]
    fn a_failed_tool_call_is_recognized_by_its_response() {
        for (response, failed) in [
            (json!("plain text"), false),
            (json!({"stdout": "ok", "interrupted": false}), false),
            (json!({"exit_code": 0}), false),
            (json!({"exit_code": 2}), true),
            (json!("{\"output\":\"x\",\"metadata\":{\"exit_code\":1}}"), true),
            (json!({"isError": true, "content": []}), true),
            (json!({"success": false, "error": "no file"}), true),
            (json!(null), false),
        ] {
            assert_eq!(failure(&response).is_some(), failed, "{response}");
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
