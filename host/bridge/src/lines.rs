//! The JSON lines that the program and `memhost` say to each other.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The version of the JSON lines; `memhost` refuses a program of another one.
pub const PROTOCOL: u64 = 1;

/// An error about a file.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) file: PathBuf,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(file: &Path, message: impl std::fmt::Display) -> Self {
        Self { file: file.to_owned(), message: message.to_string() }
    }
}

/// Writes one line.
pub(crate) fn put(out: &mut impl Write, file: &Path, line: &Value) -> Result<(), Failure> {
    writeln!(out, "{line}")
        .map_err(|error| Failure::new(file, format!("the output cannot be written: {error}")))
}

/// Says that the database is open.
pub(crate) fn greet(out: &mut impl Write, file: &Path) -> Result<(), Failure> {
    put(out, file, &json!({ "protocol": PROTOCOL }))?;
    out.flush()
        .map_err(|error| Failure::new(file, format!("the output cannot be written: {error}")))
}

/// Reads one line. `None` at the end of the input.
pub(crate) fn next(input: &mut impl BufRead, file: &Path) -> Result<Option<Value>, Failure> {
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => serde_json::from_str(&line).map(Some).map_err(|error| {
            Failure::new(file, format!("the input has a line that is not JSON: {error}"))
        }),
        Err(error) => Err(Failure::new(file, format!("the input cannot be read: {error}"))),
    }
}
