//! What Claude Code and Codex tell their hooks, read into one form. Both tools add fields and events from time to time:
//! what is not known is left alone, and what is missing is done without.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::transcript;
type JsonObject = Map<String, Value>;

/// Whose hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
}

impl Tool {
    /// The `agentKind` of its events, and its name on the command line.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
        }
    }
}

/// Something that happened in a session.
#[derive(Debug, PartialEq)]
pub(super) struct Happened {
    /// The tool's own name of the event.
    pub(super) event: String,
    /// The session, as the tool names it.
    pub(super) session: String,
    /// Where it works.
    pub(super) directory: Option<PathBuf>,
    /// Where the tool writes down what is said.
    pub(super) transcript: Option<PathBuf>,
    /// What happened.
    pub(super) what: What,
    /// What else is known, for `details` of an event.
    pub(super) details: JsonObject,
}

/// What happened, as far as memory cares.
#[derive(Debug, PartialEq)]
pub(super) enum What {
    /// A session began or goes on; `is_new` is false where only its context was made smaller.
    SessionStarted { source: String, is_new: bool },
    /// A person asked for something.
    Prompted { prompt: String },
    /// A tool is about to run.
    ToolStarted { tool: String, id: String },
    /// A tool has run; `error` says why it failed.
    ToolEnded { tool: String, id: String, took_ms: Option<u64>, error: Option<String> },
    /// The agent has answered. `ends_session` where the tool has no other sign for that.
    TurnEnded { turn: Option<String>, prompt: Option<String>, message: Option<String>, ends_session: bool },
    /// The transcript is about to be shortened.
    Compacting,
    /// A session ended.
    SessionEnded { reason: String },
    /// Nothing that memory has a word for.
    Other,
}

/// Reads a hook's JSON; none where it is no event of a session.
pub(super) fn read(tool: Tool, value: &Value) -> Option<Happened> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    if value.get("type").and_then(Value::as_str) == Some("agent-turn-complete") {
        return notified(value);
    }
    let event = text("hook_event_name")?;
    let use_id = || text("tool_use_id").unwrap_or_else(|| format!("at-{}", jiff::Timestamp::now().as_nanosecond()));
    let named = || text("tool_name").unwrap_or_else(|| "unknown".to_owned());
    let what = match event.as_str() {
        "SessionStart" => {
            let source = text("source").unwrap_or_else(|| "startup".to_owned());
            What::SessionStarted { is_new: source != "compact", source }
        }
        "UserPromptSubmit" => What::Prompted { prompt: text("prompt")? },
        "PreToolUse" => What::ToolStarted { tool: named(), id: use_id() },
        "PostToolUse" => {
            let error = value.get("tool_response").and_then(failure);
            What::ToolEnded { tool: named(), id: use_id(), took_ms: took(value), error }
        }
        "PostToolUseFailure" => {
            let error = text("error").or_else(|| value.get("error").map(Value::to_string));
            let error = error.unwrap_or_else(|| "it failed without a reason".to_owned());
            What::ToolEnded { tool: named(), id: use_id(), took_ms: took(value), error: Some(error) }
        }
        "Stop" => What::TurnEnded {
            turn: text("turn_id"),
            prompt: None,
            message: text("last_assistant_message"),
            ends_session: tool == Tool::Codex,
        },
        "PreCompact" => What::Compacting,
        "SessionEnd" => What::SessionEnded { reason: text("reason").unwrap_or_else(|| "other".to_owned()) },
        _ => What::Other,
    };
    let mut details = Map::new();
    details.insert("hookEvent".to_owned(), Value::String(event.clone()));
    for (name, ours) in [
        ("source", "source"),
        ("reason", "reason"),
        ("model", "model"),
        ("permission_mode", "permissionMode"),
        ("turn_id", "turnId"),
        ("tool_use_id", "toolUseId"),
        ("agent_id", "subagentId"),
        ("agent_type", "subagentType"),
    ] {
        if let Some(value) = text(name).filter(|value| value.len() <= 512) {
            details.insert(ours.to_owned(), Value::String(value));
        }
    }
    if let Some(is_interrupt) = value.get("is_interrupt").and_then(Value::as_bool) {
        details.insert("isInterrupt".to_owned(), Value::Bool(is_interrupt));
    }
    Some(Happened {
        event,
        session: text("session_id")?,
        directory: text("cwd").map(PathBuf::from),
        transcript: text("transcript_path").map(PathBuf::from),
        what,
        details,
    })
}

/// Codex's older `notify` program is told of turns only.
fn notified(value: &Value) -> Option<Happened> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let prompts = value.get("input-messages").and_then(Value::as_array);
    let prompts: Vec<&str> = prompts.into_iter().flatten().filter_map(Value::as_str).collect();
    let turn = text("turn-id");
    let mut details = Map::new();
    details.insert("hookEvent".to_owned(), Value::String("notify".to_owned()));
    if let Some(turn) = &turn {
        details.insert("turnId".to_owned(), Value::String(turn.clone()));
    }
    Some(Happened {
        event: "notify".to_owned(),
        session: text("thread-id")?,
        directory: text("cwd").map(PathBuf::from),
        transcript: None,
        what: What::TurnEnded {
            turn,
            prompt: (!prompts.is_empty()).then(|| prompts.join("\n")),
            message: text("last-assistant-message"),
            ends_session: true,
        },
        details,
    })
}

fn took(value: &Value) -> Option<u64> {
    value.get("duration_ms").and_then(Value::as_u64)
}

/// Codex has one event for a tool that ran, however it ended: what its answer says of a failure.
fn failure(response: &Value) -> Option<String> {
    // Codex gives a shell's answer as JSON in a string.
    let inner: Option<Value> =
        response.as_str().filter(|text| text.starts_with('{')).and_then(|text| serde_json::from_str(text).ok());
    let object = inner.as_ref().unwrap_or(response).as_object()?;
    let code = object.get("exit_code").or_else(|| object.get("metadata")?.get("exit_code")).and_then(Value::as_i64);
    if let Some(code) = code.filter(|code| *code != 0) {
        return Some(format!("it ended with exit code {code}"));
    }
    let says = |name: &str| object.get(name).and_then(Value::as_bool);
    let failed = says("is_error") == Some(true) || says("isError") == Some(true) || says("success") == Some(false);
    let reason = || object.get("error").and_then(Value::as_str).unwrap_or("its answer says that it failed").to_owned();
    failed.then(reason)
}

impl Happened {
    /// The prompt and the answer of the turn that ended, from what the tool says and, where that says nothing, from the
    /// transcript.
    pub(super) fn exchange(&self) -> transcript::Exchange {
        let read = || self.transcript.as_deref().map(transcript::last_exchange).unwrap_or_default();
        match &self.what {
            What::TurnEnded { prompt: Some(prompt), message, .. } => {
                transcript::Exchange { prompt: Some(prompt.clone()), message: message.clone() }
            }
            What::TurnEnded { prompt: None, message: Some(message), .. } => {
                transcript::Exchange { message: Some(message.clone()), ..read() }
            }
            _ => read(),
        }
    }

    /// How long the transcript is: two prompts of one text are told apart by it.
    pub(super) fn moment(&self) -> String {
        self.transcript.as_deref().map_or(0, transcript::length).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn how_a_tool_ended_is_read_from_what_it_answered() {
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
    fn what_is_no_event_of_a_session_is_nothing() {
        for value in [json!(null), json!([]), json!({"hook_event_name": "Stop"}), json!({"session_id": "s"})] {
            assert_eq!(read(Tool::Claude, &value), None, "{value}");
        }
        let later = json!({"hook_event_name": "SomethingNew", "session_id": "s", "cwd": 7});
        assert_eq!(read(Tool::Claude, &later).unwrap().what, What::Other);
    }
}
