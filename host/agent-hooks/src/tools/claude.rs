//! Claude Code: <https://code.claude.com/docs/en/hooks>.

use serde_json::Value;

use crate::HooksError;
use crate::agent_tool::{AgentTool, InstallScope, Place, SettingsFile};
use crate::payload::{HookSpec, Meaning};
use crate::settings_entries::SettingsFormat;

/// Claude Code.
#[derive(Debug)]
pub(super) struct Claude;

const EVENTS: &[HookSpec] = &[
    HookSpec::always("SessionStart", Meaning::SessionStart),
    HookSpec::for_prompts("UserPromptSubmit", Meaning::Prompt),
    HookSpec::always("PreToolUse", Meaning::ToolStart),
    HookSpec::always("PostToolUse", Meaning::ToolEnd),
    HookSpec::always("PostToolUseFailure", Meaning::ToolFailure),
    HookSpec::always("Stop", Meaning::TurnEnd { ends_session: false }),
    HookSpec::always("PreCompact", Meaning::Compaction),
    HookSpec::always("SessionEnd", Meaning::SessionEnd),
];

impl AgentTool for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn events(&self) -> &'static [HookSpec] {
        EVENTS
    }

    fn settings_file(&self, place: &Place) -> Result<SettingsFile, HooksError> {
        if place.notify {
            return Err(HooksError::input(
                "--notify",
                "Claude Code has no `notify` program; leave the flag out",
            ));
        }
        let path = match place.scope {
            InstallScope::User => {
                place.user_directory("CLAUDE_CONFIG_DIR", ".claude")?.join("settings.json")
            }
            InstallScope::Project => place.here.join(".claude/settings.json"),
            InstallScope::Local => place.here.join(".claude/settings.local.json"),
        };
        Ok(SettingsFile { path, format: SettingsFormat::HooksJson })
    }

    /// One message a line. What a subagent says, and what Claude Code says about the session, is
    /// marked.
    fn message<'a>(&self, line: &'a Value) -> Option<(&'a str, &'a Value)> {
        let role = line.get("type")?.as_str()?;
        let is_set = |name: &str| line.get(name).and_then(Value::as_bool).unwrap_or(false);
        if ["isMeta", "isSidechain", "isCompactSummary"].into_iter().any(is_set) {
            return None;
        }
        Some((role, line.get("message")?.get("content")?))
    }

    fn injected_prefixes(&self) -> &'static [&'static str] {
        &["<command-", "<local-command-", "<system-reminder>"]
    }
}
