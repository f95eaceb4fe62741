//! The agent tools whose hooks this crate runs, and what each of them must say about itself.
//!
//! # How to add an agent tool
//!
//! A tool is declared in three places:
//!
//! 1. `src/tools/NAME.rs`: a unit struct that implements [`AgentTool`]. It holds all that is the
//!    tool's own: its name, its settings files and their format, its hook events and what each of
//!    them means, the lines of its transcripts, and (where they differ from the others') its
//!    payloads and its output.
//! 2. This file: one line in [`TOOLS`], and the `mod` line above it. The subcommand, its help, and
//!    the check whether a command line is a hook's follow from the list.
//! 3. `tests/agent-hooks/NAME/`: one recorded payload for each hook event (`EVENT.json`),
//!    `transcript.jsonl`, and `expected.json`, which says for each payload what the host must learn
//!    from it. The integration test `agent_hooks` finds the directory by the name.
//!    `tests/agent-hooks/README.md` explains the columns.
//!
//! Then say in `host/docs/agents.md` what a user does with it, and accept the new help text (`cargo
//! insta review`).
//!
//! A tool whose settings have a form that no other tool has needs a variant of [`SettingsFormat`],
//! too: see `settings_entries.rs`.

mod claude;
mod codex;

use std::fmt::Debug;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::HooksError;
use super::payload::{self, HookSpec, SessionEvent};
use super::settings::env_path;
use super::settings_entries::SettingsFormat;

/// Every tool. The order is that of the help.
pub(crate) const TOOLS: &[Tool] = &[&claude::Claude, &codex::Codex];

/// One of [`TOOLS`].
pub(crate) type Tool = &'static dyn AgentTool;

/// The tool of this name on the command line.
pub(crate) fn find(name: &str) -> Option<Tool> {
    TOOLS.iter().copied().find(|tool| tool.name() == name)
}

/// The facts that this crate needs about a tool.
pub(crate) trait AgentTool: Debug + Sync {
    /// Its name on the command line, and the `agentKind` of its events.
    fn name(&self) -> &'static str;

    /// Its name for people.
    fn title(&self) -> &'static str;

    /// Its hook events: what they mean, and which of them `install` asks for, in the order in which
    /// they are written.
    fn events(&self) -> &'static [HookSpec];

    /// The settings file that `install` and `uninstall` change.
    ///
    /// # Errors
    /// When the tool has no such file, or the home directory is not known.
    fn settings_file(&self, place: &Place) -> Result<SettingsFile, HooksError>;

    /// Reads what the tool gives a hook; nothing where it is not an event of a session.
    fn parse(&self, payload: &Value) -> Option<SessionEvent> {
        payload::parse(self.events(), payload)
    }

    /// The role (`user` or `assistant`) and the content of a message in a line of the transcript;
    /// nothing for lines that hold no message of the person or of the agent.
    fn message<'a>(&self, line: &'a Value) -> Option<(&'a str, &'a Value)>;

    /// How a text begins that the tool puts into the transcript as a message of the user.
    fn injected_prefixes(&self) -> &'static [&'static str] {
        &[]
    }

    /// The output of a hook that makes the tool add `context` to the session.
    fn context_output(&self, hook: &str, context: &str) -> Value {
        json!({"hookSpecificOutput": {"hookEventName": hook, "additionalContext": context}})
    }

    /// Whether the tool can run a `notify` program instead of hooks.
    fn has_notify(&self) -> bool {
        false
    }

    /// The steps left for the person after `install` wrote this kind of entry.
    fn after_install(&self, _format: SettingsFormat) -> Option<&'static str> {
        None
    }
}

/// The sessions that the hooks are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InstallScope {
    /// All sessions of this user
    User,
    /// Sessions in this directory, of everybody who has the file and `memhost` on the PATH
    Project,
    /// Sessions in this directory, of this user; not every tool has such settings
    Local,
}

/// A file with entries of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    /// Where it is, whether or not it exists.
    pub(crate) path: PathBuf,
    /// The form of our entries in it.
    pub(crate) format: SettingsFormat,
}

/// The place that a person chose when installing.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) scope: InstallScope,
    /// Whether the tool's `notify` program is meant instead of its hooks.
    pub(crate) notify: bool,
    pub(crate) here: PathBuf,
}

impl Place {
    /// The tool's directory of this user: that of an environment variable, or `name` in the home
    /// directory.
    ///
    /// # Errors
    /// When neither is set.
    pub(crate) fn user_directory(&self, variable: &str, name: &str) -> Result<PathBuf, HooksError> {
        let home = || env_path("HOME").map(|home| home.join(name));
        env_path(variable).or_else(home).ok_or_else(|| {
            HooksError::input(
                "HOME",
                format!("is not set; set HOME or {variable} to find the tool's settings"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_tool_has_recorded_payloads() {
        let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/agent-hooks");
        for tool in TOOLS {
            for name in ["expected.json", "transcript.jsonl"] {
                let file = recorded.join(tool.name()).join(name);
                assert!(
                    file.exists(),
                    "{} is missing: see the recipe at the head of tools.rs",
                    file.display()
                );
            }
        }
    }

    #[test]
    fn no_two_tools_have_one_name_and_none_has_that_of_another_command() {
        for (index, tool) in TOOLS.iter().enumerate() {
            assert!(
                TOOLS[..index].iter().all(|other| other.name() != tool.name()),
                "{}",
                tool.name()
            );
            assert!(!["spool", "help"].contains(&tool.name()));
            assert_eq!(find(tool.name()).unwrap().title(), tool.title());
        }
        assert!(find("claudette").is_none());
    }
}
