//! Codex CLI: <https://developers.openai.com/codex/hooks>. It has no event for the end of a
//! session: the end of each turn counts as one. Its older `notify` program hears of turns only.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::HooksError;
use crate::agent_tool::{AgentTool, InstallScope, Place, SettingsFile};
use crate::payload::{self, EventKind, HookSpec, Meaning, SessionEvent};
use crate::settings_entries::SettingsFormat;

/// Codex CLI.
#[derive(Debug)]
pub(super) struct Codex;

const EVENTS: &[HookSpec] = &[
    HookSpec::always("SessionStart", Meaning::SessionStart),
    HookSpec::for_prompts("UserPromptSubmit", Meaning::Prompt),
    HookSpec::always("PreToolUse", Meaning::ToolStart),
    HookSpec::always("PostToolUse", Meaning::ToolEnd),
    HookSpec::always("Stop", Meaning::TurnEnd { ends_session: true }),
    HookSpec::always("PreCompact", Meaning::Compaction),
];

impl AgentTool for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex"
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
    fn message<'a>(&self, line: &'a Value) -> Option<(&'a str, &'a Value)> {
        if line.get("type")?.as_str()? != "response_item" {
            return None;
        }
        let item = line.get("payload")?;
        let is_message = item.get("type")?.as_str()? == "message";
        if is_message { Some((item.get("role")?.as_str()?, item.get("content")?)) } else { None }
    }

    fn injected_prefixes(&self) -> &'static [&'static str] {
        &["<environment_context>", "<user_instructions>"]
    }

    fn after_install(&self, format: SettingsFormat) -> Option<&'static str> {
        let is_hook = format == SettingsFormat::HooksJson;
        is_hook.then_some("Codex runs a hook only after you have trusted it: type /hooks in Codex")
    }
}

/// The last argument of the `notify` program. Its fields have names of their own.
fn parse_notification(payload: &Value) -> Option<SessionEvent> {
    let prompts = payload.get("input-messages").and_then(Value::as_array);
    let prompts: Vec<&str> = prompts.into_iter().flatten().filter_map(Value::as_str).collect();
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
        kind: EventKind::TurnEnded {
            turn,
            prompt: (!prompts.is_empty()).then(|| prompts.join("\n")),
            answer: payload::text(payload, "last-assistant-message"),
            ends_session: true,
        },
        details,
    })
}
