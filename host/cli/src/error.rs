//! The errors of commands, and their exit codes.

use std::path::Path;

use super::flags;
use super::texts::{clip, printable};
use memhost_core::OpenError;
use memhost_http::{Problem, ProblemCode};
use memhost_sandbox::AdmissionError;
use memhost_store::StoreError;

/// The code that a process ends with whose store can take no more calls. Start it again.
pub(super) const STORE_FAILED: u8 = 6;
/// The longest line of a message, in characters.
const MAX_LINE: usize = 1_000;

/// What a command does, or why it failed.
pub(super) type Result<T, E = CliError> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The host answered with a problem.
    #[error("{detail}{}", operation.as_ref().map(|id| format!(" (operation \
        {id})")).unwrap_or_default())]
    Problem {
        /// Its status.
        status: u16,
        /// What happened and what to do.
        detail: String,
        /// Where it is recorded.
        operation: Option<String>,
        /// What kind of problem the host says it is.
        code: Option<ProblemCode>,
    },
    /// No connection to the host.
    #[error(
        "cannot connect to the host at {url}: {message}; start it with `memhost serve` (if it is \
         starting, wait until it says `listening`), or choose another one with --url, --context or \
         --data-dir"
    )]
    Unreachable {
        /// Where it should be.
        url: String,
        /// What the system said.
        message: String,
    },
    /// An argument is invalid.
    #[error("{what}: {message}")]
    Input {
        /// Which.
        what: String,
        /// Why.
        message: String,
    },
    /// The hooks of a tool were not installed or delivered.
    #[error(transparent)]
    AgentHooks(#[from] memhost_agent_hooks::HooksError),
    /// The host does not open or serve.
    #[error("{0}")]
    Host(String),
    /// The database of a host cannot be used.
    #[error("{0}")]
    Store(String),
    /// A step of the demo, or a check, failed.
    #[error("{0}")]
    Failed(String),
    /// Standard output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] std::io::Error),
}

impl CliError {
    /// The code that the process ends with; `memhost --help` lists them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Problem { status, .. } => match status {
                400 | 409 | 412 | 413 | 415 | 422 => 2,
                404 | 410 => 3,
                401..=403 => 4,
                429 | 503 | 507 => 5,
                _ => 1,
            },
            Self::Input { .. }
            | Self::AgentHooks(memhost_agent_hooks::HooksError::Input { .. }) => 2,
            Self::Unreachable { .. } => 5,
            Self::Store(_) => STORE_FAILED,
            Self::AgentHooks(_) | Self::Host(_) | Self::Failed(_) | Self::Output(_) => 1,
        }
    }

    pub(super) fn input(what: impl Into<String>, message: impl std::fmt::Display) -> Self {
        // It may show a line of a file, and that may have a megabyte.
        let message = printable(&message.to_string());
        let lines = message
            .lines()
            .map(|line| if line.len() > MAX_LINE { clip(line, MAX_LINE) } else { line.to_owned() });
        Self::Input { what: what.into(), message: lines.collect::<Vec<_>>().join("\n") }
    }

    /// A file cannot be read or written.
    pub(super) fn file(file: &Path, error: &std::io::Error) -> Self {
        Self::input(file.display().to_string(), format!("{error}; give another file"))
    }

    /// A thing with this name exists already.
    pub(super) fn exists(what: &str, name: &str) -> Self {
        let detail = format!("the {what} `{name}` exists; change it with `memhost {what} update`");
        Self::Problem { status: 409, detail, operation: None, code: None }
    }

    pub(super) fn host(error: impl std::fmt::Display) -> Self {
        Self::Host(error.to_string())
    }

    /// A data directory does not open, and the command has no `--url` to reach a host that uses it.
    pub(super) fn data_dir(error: impl Into<OpenError>) -> Self {
        match error.into() {
            OpenError::Store(StoreError::InUse { path }) => {
                Self::Host(format!("{path} is in use by another process; stop that host first"))
            }
            OpenError::Sandbox(AdmissionError::Roots(message)) => {
                let flag = flags::named("outgoingRoots");
                // A command without the flag has it from the configuration file.
                Self::input(
                    if flag.starts_with("--") { flag.as_str() } else { "outgoing_roots" },
                    message,
                )
            }
            error => Self::host(error),
        }
    }

    pub(super) fn runtime(error: impl std::fmt::Display) -> Self {
        Self::Host(format!("the async runtime did not start: {error}"))
    }

    /// From a problem's body; a body that is none is shown as it is.
    pub(super) fn problem(status: u16, body: &[u8]) -> Self {
        let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
            let detail = printable(&String::from_utf8_lossy(body));
            return Self::Problem { status, detail, operation: None, code: None };
        };
        let detail = match problem.field() {
            Some(field) => {
                let detail = problem.detail();
                let last = field.rsplit('.').next().unwrap_or(field);
                let said = detail.strip_prefix(&format!("{field}: ")).unwrap_or(detail);
                let detail = said.strip_prefix(&format!("{last} ")).unwrap_or(said);
                format!("{}: {detail}", flags::named(field))
            }
            None => problem.detail().to_owned(),
        };
        // Standard error is a terminal, too.
        let detail = printable(&flags::in_message(&detail));
        let operation = problem.operation_id().map(|id| id.to_string());
        Self::Problem { status, detail, operation, code: Some(problem.code()) }
    }
}
