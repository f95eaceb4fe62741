//! Reads and writes the SQLite databases of claude-mem, and reads those of Memori. `memhost bridge`
//! starts this program and talks to the host, so `memhost` itself is built without SQLite.
//!
//! The program speaks JSON lines. It writes `{"protocol": 1}` first, after it has opened the
//! database. A failure is one line `{"error": {"file": …, "message": …}}` and exit code 1.
//!
//! ```text
//! memhost-bridge claude-mem read FILE
//!     writes  {"table": "sdk_sessions", "row": {…}}, all sessions,
//!             then `observations` and `session_summaries`,
//!             {"end": true}
//! memhost-bridge memori read FILE
//!     writes  {"table": "memori_entity_fact", "row": {…}},
//!             and so on for `memori_process_attribute`,
//!             `memori_knowledge_graph` and `memori_conversation`, then {"end": true}
//! memhost-bridge claude-mem write FILE [--copy-of FILE]
//!     reads   {"table": "observations", "session": {…}, "row": {…}}
//!             {"end": true}, without which nothing is written
//!     writes  {"written": 3, "unchanged": 1}
//! ```

mod database;
mod lines;
mod memori;
mod read;
mod write;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

pub use crate::lines::PROTOCOL;
use crate::lines::put;
use crate::read::{CLAUDE_MEM, MEMORI, System};

const USAGE: &str = "usage: memhost-bridge claude-mem read FILE\n       \
                     memhost-bridge claude-mem write FILE [--copy-of FILE]\n       \
                     memhost-bridge memori read FILE\n\n\
                     `memhost bridge` starts this program. See `memhost bridge --help`.";

enum Task {
    Read { system: System, file: PathBuf },
    Write { file: PathBuf, copy_of: Option<PathBuf> },
}

fn parse(arguments: &[OsString]) -> Option<Task> {
    let words: Vec<Option<&str>> = arguments.iter().map(|argument| argument.to_str()).collect();
    let file = |at: usize| PathBuf::from(&arguments[at]);
    match words.as_slice() {
        [Some("claude-mem"), Some("read"), _] => {
            Some(Task::Read { system: CLAUDE_MEM, file: file(2) })
        }
        [Some("memori"), Some("read"), _] => Some(Task::Read { system: MEMORI, file: file(2) }),
        [Some("claude-mem"), Some("write"), _] => {
            Some(Task::Write { file: file(2), copy_of: None })
        }
        [Some("claude-mem"), Some("write"), _, Some("--copy-of"), _] => {
            Some(Task::Write { file: file(2), copy_of: Some(file(4)) })
        }
        _ => None,
    }
}

/// Runs the program with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let Some(task) = parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // There are many short lines, and standard output has only a small buffer.
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let done = match task {
        Task::Read { system, file } => read::run(system, &file, &mut out),
        Task::Write { file, copy_of } => {
            write::run(&file, copy_of.as_deref(), std::io::stdin().lock(), &mut out)
        }
    };
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let error =
                json!({"file": failure.file.display().to_string(), "message": failure.message});
            // If the parent process has ended, nobody reads the error.
            let _ = put(&mut out, &failure.file, &json!({ "error": error }));
            ExitCode::FAILURE
        }
    };
    match out.flush() {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}
