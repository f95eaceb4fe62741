//! Codex CLI: <https://developers.openai.com/codex/hooks>. Its older `notify` program hears of
//! turns only, so that there the end of each turn counts as the end of the session.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::HooksError;
use crate::agent_tool::{AgentTool, CallEnd, InstallScope, Message, Place, SettingsFile};
use crate::machine_text::{Author, MachineText, Mark, What, element};
use crate::payload::{self, EventKind, HookSpec, Meaning, Outcome, SessionEvent};
use crate::settings_entries::SettingsFormat;

/// Codex CLI.
#[derive(Debug)]
pub(super) struct Codex;

const EVENTS: &[HookSpec] = &[
    HookSpec::new("SessionStart", Meaning::SessionStart),
    HookSpec::new("UserPromptSubmit", Meaning::Prompt),
    HookSpec::new("PreToolUse", Meaning::ToolStart),
    HookSpec::new("PostToolUse", Meaning::ToolEnd),
    HookSpec::new("Stop", Meaning::TurnEnd { ends_session: false }),
    HookSpec::new("StopFailure", Meaning::TurnBroken { has_failed: true }),
    HookSpec::new("Interrupt", Meaning::TurnBroken { has_failed: false }),
    HookSpec::new("PreCompact", Meaning::Compaction),
    HookSpec::new("SessionEnd", Meaning::SessionEnd),
];

const MACHINE_TEXT: MachineText = MachineText {
    // The kinds of parts, seen in 0.171.0. Others are names of what Codex itself writes, such as
    // `environments.environment_context`.
    people: &["user.text", "user.goal", "unknown"],
    marks: &[
        element!("subagent_notification", Message, "0.171.0"),
        element!("user_action", Message, "0.171.0"),
        element!("hook_prompt", Message, "0.171.0"),
        element!("heartbeat", Message, "0.171.0"),
        element!("turn_aborted", Interrupt, "0.171.0"),
        element!("user_query", Around, "0.171.0"),
        element!("environment_context", Beside, "0.171.0"),
        element!("user_instructions", Beside, "0.44.0"),
        element!("user_shell_command", Beside, "0.171.0"),
        element!("user_verification_notice", Beside, "0.171.0"),
        element!("skill", Beside, "0.171.0"),
        element!("realtime_conversation", Beside, "0.171.0"),
        Mark {
            open: "# AGENTS.md instructions",
            close: "</INSTRUCTIONS>",
            what: What::Beside,
            seen: "0.171.0",
        },
        Mark {
            open: "# Context from my IDE setup:",
            close: "## My request for Codex:",
            what: What::Before,
            seen: "0.171.0",
        },
    ],
};

impl AgentTool for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
    }

    fn agent_kind(&self) -> &'static str {
        "codex"
    }

    fn events(&self) -> &'static [HookSpec] {
        EVENTS
    }

    fn has_notify(&self) -> bool {
        true
    }

    fn settings_file(&self, place: &Place) -> Result<SettingsFile, HooksError> {
        let directory = match place.scope {
            InstallScope::User => place.user_directory("CODEX_HOME", ".codex")?,
            InstallScope::Project => place.here.join(".codex"),
            InstallScope::Local => {
                return Err(HooksError::input(
                    "--scope",
                    "Codex has no `local` settings; use `project`",
                ));
            }
        };
        if !place.notify {
            return Ok(SettingsFile {
                path: directory.join("hooks.json"),
                format: SettingsFormat::HooksJson,
            });
        }
        if place.scope != InstallScope::User {
            return Err(HooksError::input(
                "--notify",
                "Codex reads `notify` in the user's file only; use --scope user",
            ));
        }
        Ok(SettingsFile { path: directory.join("config.toml"), format: SettingsFormat::NotifyToml })
    }

    fn parse(&self, payload: &Value) -> Option<SessionEvent> {
        if payload.get("type").and_then(Value::as_str) == Some("agent-turn-complete") {
            return parse_notification(payload);
        }
        payload::parse(EVENTS, payload)
    }

    /// The items that the model saw, one a line.
    fn message<'a>(&self, line: &'a Value) -> Option<Message<'a>> {
        if line.get("type")?.as_str()? != "response_item" {
            return None;
        }
        let item = line.get("payload").filter(|item| item["type"] == "message")?;
        let more = &item["internal_chat_message_metadata_passthrough"];
        Some(Message {
            role: item.get("role")?.as_str()?,
            content: item.get("content")?,
            id: None,
            turn: more["turn_id"].as_str(),
            author: Author::Unknown,
            is_partial: false,
            kinds: more["content_item_kinds"].as_array(),
        })
    }

    fn machine_text(&self) -> &'static MachineText {
        &MACHINE_TEXT
    }

    /// Seen in 0.171.0, which runs no `StopFailure`.
    fn is_failure(&self, line: &Value) -> bool {
        let payload = &line["payload"];
        payload["type"] == "task_complete"
            && payload["error"].is_object()
            && payload["last_agent_message"].is_null()
    }

    /// A hook gets what a command printed, and not how it ended. No hook runs after a call of MCP
    /// that failed.
    fn call_end(&self, line: &Value, id: &str) -> Option<CallEnd> {
        let payload = line.get("payload")?;
        let is_of = |value: &Value, name: &str| value[name] == id;
        let (outcome, duration) = match payload.get("type")?.as_str()? {
            "item_completed" if is_of(&payload["item"], "id") => {
                let item = &payload["item"];
                (of_item(item), &item["duration"])
            }
            // The events of before 0.171.
            "exec_command_end" if is_of(payload, "call_id") => {
                (of_code(payload["exit_code"].as_i64()?), &payload["duration"])
            }
            "patch_apply_end" if is_of(payload, "call_id") => {
                let succeeded = payload["success"].as_bool()?;
                let failed = || Outcome::Failed("the patch was not applied".to_owned());
                (if succeeded { Outcome::Succeeded } else { failed() }, &Value::Null)
            }
            "mcp_tool_call_end" if is_of(payload, "call_id") => {
                let result = &payload["result"];
                let outcome = match result["Err"].as_str() {
                    Some(error) => Outcome::Failed(error.to_owned()),
                    None => payload::outcome(&result["Ok"]),
                };
                (outcome, &payload["duration"])
            }
            "function_call_output" | "custom_tool_call_output" if is_of(payload, "call_id") => {
                (of_output(&payload["output"])?, &Value::Null)
            }
            _ => return None,
        };
        let ms = |duration: &Value| {
            let (secs, nanos) = (duration["secs"].as_u64()?, duration["nanos"].as_u64()?);
            Some(secs.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
        };
        Some(CallEnd { outcome, duration_ms: ms(duration) })
    }

    fn after_install(&self, format: SettingsFormat) -> Option<&'static str> {
        let is_hook = format == SettingsFormat::HooksJson;
        is_hook.then_some("Codex runs a hook only after you have trusted it: type /hooks in Codex")
    }
}

fn of_code(code: i64) -> Outcome {
    if code == 0 { Outcome::Succeeded } else { Outcome::Failed(format!("exit code {code}")) }
}

/// How an item of a turn ended: a command, a patch or a call of MCP.
fn of_item(item: &Value) -> Outcome {
    let text = || {
        let parts = item.pointer("/result/content")?.as_array()?.iter();
        let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    };
    let error = || item.pointer("/error/message").and_then(Value::as_str).map(str::to_owned);
    match (item["exit_code"].as_i64(), item["status"].as_str()) {
        (Some(code), _) => of_code(code),
        (None, Some("completed")) => Outcome::Succeeded,
        (None, Some("failed")) => {
            Outcome::Failed(error().or_else(text).unwrap_or_else(|| "the call failed".to_owned()))
        }
        (None, Some("declined")) => Outcome::Failed("the call was declined".to_owned()),
        _ => Outcome::Unknown,
    }
}

/// How a command ended, by what the model is told of it. The lines before `Output:` are Codex's;
/// what is behind them can say anything.
fn of_output(output: &Value) -> Option<Outcome> {
    let text = match output {
        Value::Array(parts) => parts.first()?["text"].as_str()?,
        other => other.as_str()?,
    };
    if text.starts_with('{') {
        return Some(payload::outcome(output)).filter(|outcome| *outcome != Outcome::Unknown);
    }
    let mut head = text.lines().take_while(|line| line.trim_end() != "Output:");
    let code = head.find_map(|line| {
        let code = line
            .strip_prefix("Process exited with code ")
            .or_else(|| line.strip_prefix("Exit code: "));
        code?.trim().parse().ok()
    });
    text.lines().any(|line| line.trim_end() == "Output:").then(|| code.map(of_code))?
}

/// The last argument of the `notify` program. Its fields have names of their own.
fn parse_notification(payload: &Value) -> Option<SessionEvent> {
    let prompts = payload.get("input-messages").and_then(Value::as_array);
    let prompts: Vec<&str> = prompts.into_iter().flatten().filter_map(Value::as_str).collect();
    let words: Vec<String> =
        prompts.into_iter().filter_map(|prompt| MACHINE_TEXT.words(prompt)).collect();
    let turn = payload::text(payload, "turn-id");
    let mut details = Map::new();
    details.insert("hookEvent".to_owned(), "notify".into());
    if let Some(turn) = &turn {
        details.insert("turnId".to_owned(), turn.as_str().into());
    }
    Some(SessionEvent {
        hook: "notify".to_owned(),
        session: payload::text(payload, "thread-id")?,
        directory: payload::text(payload, "cwd").map(PathBuf::from),
        transcript: None,
        turn,
        kind: EventKind::TurnEnded {
            // It has all that was said: what is not there, nobody said.
            prompt: Some(words.join("\n")),
            answer: payload::text(payload, "last-assistant-message"),
            ends_session: true,
        },
        details,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_call_is_read_from_what_codex_notes_of_it() {
        let failed = |why: &str| Outcome::Failed(why.to_owned());
        let item = |item: Value| json!({"payload": {"type": "item_completed", "item": item}});
        let output = |output: Value| {
            let call = json!({"type": "function_call_output", "call_id": "c", "output": output});
            json!({"payload": call})
        };
        let duration = json!({"secs": 1, "nanos": 2_000_000});
        for (line, outcome) in [
            (
                item(json!({"id": "c", "status": "failed", "exit_code": 3, "duration": duration})),
                Some(failed("exit code 3")),
            ),
            (item(json!({"id": "c", "status": "completed"})), Some(Outcome::Succeeded)),
            (item(json!({"id": "c", "status": "declined"})), Some(failed("the call was declined"))),
            (
                item(json!({"id": "c", "status": "failed",
                    "result": {"content": [{"type": "text", "text": "it broke"}]}})),
                Some(failed("it broke")),
            ),
            (item(json!({"id": "other", "status": "failed"})), None),
            (
                output(json!("Wall time: 0 s\nProcess exited with code 3\nOutput:\nfine")),
                Some(failed("exit code 3")),
            ),
            (output(json!("Exit code: 0\nWall time: 0 s\nOutput:\n")), Some(Outcome::Succeeded)),
            // What a command printed is no sign.
            (output(json!("Wall time: 0 s\nOutput:\nProcess exited with code 0")), None),
            (output(json!("Process exited with code 0")), None),
            (
                json!({"payload": {"type": "mcp_tool_call_end", "call_id": "c",
                    "result": {"Err": "gone"}}}),
                Some(failed("gone")),
            ),
            (
                json!({"payload": {"type": "mcp_tool_call_end", "call_id": "c",
                    "result": {"Ok": {"content": [], "isError": true}}}}),
                Some(failed("the response reports a failure")),
            ),
        ] {
            let found = Codex.call_end(&line, "c");
            assert_eq!(found.as_ref().map(|end| end.outcome.clone()), outcome, "{line}");
            let has_duration = line.pointer("/payload/item/duration").is_some();
            assert_eq!(found.and_then(|end| end.duration_ms), has_duration.then_some(1_002));
        }
    }
}
