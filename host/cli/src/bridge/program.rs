//! Finds and starts `memhost-bridge`, the program with SQLite, and exchanges JSON lines with it.
//! Its crate documents the lines.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, BufWriter, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{CliError, Result};
use memhost_types::JsonObject;

/// The program's file name.
const NAME: &str = "memhost-bridge";
/// The version of the lines that this file speaks.
const PROTOCOL: u64 = 1;

/// The running program. It ends when this is dropped; without [`Program::finish`] it writes
/// nothing.
pub(super) struct Program {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: Option<Lines<BufReader<ChildStdout>>>,
}

impl Program {
    /// Starts the program, and waits until it has opened its database.
    ///
    /// # Errors
    /// Where the program is missing or of another version, or the database cannot be opened.
    pub(super) fn start(arguments: &[&OsStr]) -> Result<Self> {
        let beside = std::env::current_exe().ok();
        let beside = beside.as_deref().and_then(Path::parent);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = find(beside, &path).ok_or_else(|| {
            let place =
                beside.map(|place| format!("in {} or ", place.display())).unwrap_or_default();
            let message = format!(
                "not found {place}on the PATH; install it with `cargo install --path host/bridge` \
                 in the source tree of memhost"
            );
            CliError::input(NAME, message)
        })?;
        let failed =
            |error| CliError::Failed(format!("{} does not start: {error}", program.display()));
        let mut command = Command::new(&program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(CliError::Failed(format!("{} has no pipes", program.display())));
        };
        let (input, output) = (BufWriter::new(input), BufReader::new(output).lines());
        let mut started = Self { child, input: Some(input), output: Some(output) };
        let greeting: Greeting = started.receive()?;
        if greeting.protocol != PROTOCOL {
            let message =
                "is of another version than memhost; install both from the same source tree";
            return Err(CliError::input(program.display().to_string(), message));
        }
        Ok(started)
    }

    /// The next line.
    ///
    /// # Errors
    /// The program's own error, named by its file, or that it ended.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self
            .output
            .as_mut()
            .and_then(Iterator::next)
            .ok_or_else(ended)?
            .map_err(|_| ended())?;
        if let Ok(Failed { error }) = serde_json::from_str(&line) {
            return Err(CliError::input(error.file.as_deref().unwrap_or(NAME), error.message));
        }
        serde_json::from_str(&line).map_err(|_| ended())
    }

    /// Sends a line.
    ///
    /// # Errors
    /// Why the program does not read any more.
    pub(super) fn send(&mut self, line: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(line).map_err(CliError::host)?;
        let sent = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        if sent.is_some_and(|sent| sent.is_ok()) { Ok(()) } else { Err(self.reason()) }
    }

    /// Sends the end mark, upon which the program commits, and answers its report.
    ///
    /// # Errors
    /// Why the program did not commit.
    pub(super) fn finish<T: DeserializeOwned>(&mut self) -> Result<T> {
        self.send(&json!({"end": true}))?;
        if let Some(mut input) = self.input.take()
            && input.flush().is_err()
        {
            return Err(self.reason());
        }
        self.receive()
    }

    /// Why the program stopped reading: its error, if it wrote one.
    fn reason(&mut self) -> CliError {
        self.receive::<IgnoredAny>().err().unwrap_or_else(ended)
    }
}

/// The first line.
#[derive(Deserialize)]
struct Greeting {
    protocol: u64,
}

/// A row of the database that is read, or the end.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) table: String,
    pub(super) row: JsonObject,
    pub(super) end: bool,
}

/// Why the program cannot go on.
#[derive(Deserialize)]
struct Failed {
    error: Problem,
}

#[derive(Deserialize)]
struct Problem {
    message: String,
    file: Option<String>,
}

impl Drop for Program {
    fn drop(&mut self) {
        // The program ends when both pipes are closed, and removes a file that it did not finish.
        drop(self.output.take());
        if let Some(input) = self.input.take() {
            // The lines in the buffer are dropped: nothing is committed without the end mark.
            drop(input.into_parts());
        }
        let _ = self.child.wait();
    }
}

fn ended() -> CliError {
    CliError::Failed(format!("{NAME} ended without an answer; see its own message above"))
}

/// The program beside this one, or the first one on the PATH.
fn find(beside: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let places = beside.map(Path::to_owned).into_iter().chain(std::env::split_paths(path));
    places.map(|place| place.join(NAME)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_beside_memhost_goes_before_one_on_the_path() {
        let places = tempfile::tempdir().unwrap();
        let [own, first, second] = ["own", "first", "second"].map(|name| places.path().join(name));
        for place in [&own, &first, &second] {
            std::fs::create_dir(place).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(find(Some(&own), &path), None);
        std::fs::write(second.join(NAME), "").unwrap();
        assert_eq!(find(Some(&own), &path), Some(second.join(NAME)));
        std::fs::create_dir(first.join(NAME)).unwrap();
        assert_eq!(find(None, &path), Some(second.join(NAME)), "a directory is no program");
        std::fs::write(own.join(NAME), "").unwrap();
        assert_eq!(find(Some(&own), &path), Some(own.join(NAME)));
    }
}
