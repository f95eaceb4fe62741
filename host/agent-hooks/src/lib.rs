//! `memhost agent-hooks`: the program that the hooks of Claude Code and Codex run.
//!
//! A hook tells the host of sessions, tool calls and what was said, and prints what memory knows in
//! the form that the tool adds to the session. It never fails for the tool: problems go to a log
//! file. A process of its own delivers the events, so that the tool does not wait for the host.
//!
//! The crate speaks HTTP to the host and knows nothing of the store or the sandbox. `tools.rs` says
//! how to add a tool.

mod agent_tool;
mod command;
mod error;
mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hook;
mod http;
mod install;
mod json;
mod machine_text;
mod output;
mod payload;
mod private_project;
mod project;
mod prompts;
mod recall;
mod settings;
mod settings_entries;
mod signal;
mod spool;
mod spool_command;
mod state;
mod tools;
mod transcript;
mod transcript_file;
mod trust;
mod unix_socket;
mod whose_token;

pub use command::{AgentHooksCommand, is_hook, run};
pub use error::HooksError;
pub use trust::trusting;
pub use unix_socket::UnixConnector;
