//! The facts that this crate needs about an agent tool, which `tools.rs` lists.

use std::fmt::Debug;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::HooksError;
use super::payload::{self, HookSpec, SessionEvent};
use super::settings::env_path;
use super::settings_entries::SettingsFormat;

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
