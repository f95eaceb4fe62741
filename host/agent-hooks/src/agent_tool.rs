//! The facts that this crate needs about an agent tool, which `tools.rs` lists.

use std::fmt::Debug;
use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::HooksError;
use super::machine_text::{Author, MachineText};
use super::payload::{self, HookSpec, Outcome, SessionEvent};
use super::settings::env_path;
use super::settings_entries::SettingsFormat;

/// The facts that this crate needs about a tool.
pub(crate) trait AgentTool: Debug + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Its name for people.
    fn title(&self) -> &'static str;

    /// Its name in events and records: the one that it gives itself as a client of MCP, so that an
    /// agent has one name however it reaches memory.
    fn agent_kind(&self) -> &'static str;

    /// Its hook events and what they mean, in the order in which `install` writes them.
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

    /// The message in a line of the transcript; nothing for lines that hold no message of the
    /// person or of the agent.
    fn message<'a>(&self, line: &'a Value) -> Option<Message<'a>>;

    /// What the person said during the turn, if a line of the transcript says that the tool added
    /// it to the turn. No hook runs for it.
    fn added<'a>(&self, _line: &'a Value) -> Option<&'a Value> {
        None
    }

    /// What the tool writes into messages of the user.
    fn machine_text(&self) -> &'static MachineText;

    /// How a tool call ended, if a line of the transcript says it. Some tools do not tell their
    /// hooks.
    fn call_end(&self, _line: &Value, _id: &str) -> Option<CallEnd> {
        None
    }

    /// The output of a hook that makes the tool add `context` to the session.
    fn context_output(&self, hook: &str, context: &str) -> Value {
        json!({"hookSpecificOutput": {"hookEventName": hook, "additionalContext": context}})
    }

    /// The ids of the calls in which the agent asks the person something, in a line of the
    /// transcript.
    fn dialogs(&self, _line: &Value) -> Vec<String> {
        Vec::new()
    }

    /// What a person said in a dialog: the id of the call, and the words.
    fn dialog_words(&self, _line: &Value) -> Option<(String, String)> {
        None
    }

    /// Whether a line of the transcript says that an error of the service ended the turn, where no
    /// hook says it.
    fn is_failure(&self, _line: &Value) -> bool {
        false
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

/// A message in a line of a transcript.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// `user` or `assistant`.
    pub(crate) role: &'a str,
    /// A text, or parts.
    pub(crate) content: &'a Value,
    /// The id of the message, where several lines can be parts of one.
    pub(crate) id: Option<&'a str>,
    /// The turn that it belongs to, where the tool says so.
    pub(crate) turn: Option<&'a str>,
    /// Who wrote a message of the role `user`, as far as the tool says so.
    pub(crate) author: Author,
    /// Whether the text is what the agent had said before it was interrupted.
    pub(crate) is_partial: bool,
    /// For each part, who it is from, where the tool says so: `user.text` is a person's.
    pub(crate) kinds: Option<&'a Vec<Value>>,
}

/// The end of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallEnd {
    pub(crate) outcome: Outcome,
    pub(crate) duration_ms: Option<u64>,
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
