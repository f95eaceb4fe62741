//! Writes lines into a new database. An existing database is never changed, and an error leaves no
//! file behind.

use std::io::{BufRead, Write};
use std::path::Path;

use rusqlite::{Connection, OpenFlags, Transaction};
use serde_json::{Value, json};

use crate::database::{OBSERVATIONS, SCHEMA, SUMMARIES, distrust, has, insert, insert_session};
use crate::lines::{Failure, greet, next, put};

pub(crate) fn run(
    file: &Path,
    copy_of: Option<&Path>,
    mut input: impl BufRead,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if file.exists() {
        let message =
            "the file exists; name a new file, and with --copy-of the database to start from";
        return Err(Failure::new(file, message));
    }
    let done = create(file, copy_of).and_then(|mut store| fill(&mut store, file, &mut input, out));
    let (written, unchanged) = done.inspect_err(|_| {
        // A half-written database would look complete.
        let _ = std::fs::remove_file(file);
    })?;
    put(out, file, &json!({"written": written, "unchanged": unchanged}))
}

fn create(file: &Path, copy_of: Option<&Path>) -> Result<Connection, Failure> {
    let wrong = |error| Failure::new(file, error);
    if let Some(original) = copy_of {
        let wrong = |error| Failure::new(original, error);
        let from = Connection::open_with_flags(original, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(wrong)?;
        distrust(&from).map_err(wrong)?;
        // A consistent copy, even while claude-mem uses the original.
        from.execute("VACUUM INTO ?1", [file.to_string_lossy()]).map_err(wrong)?;
        let copy = Connection::open(file).map_err(|error| Failure::new(file, error))?;
        distrust(&copy).map_err(|error| Failure::new(file, error))?;
        return Ok(copy);
    }
    let store = Connection::open(file).map_err(wrong)?;
    store.execute_batch(SCHEMA).map_err(wrong)?;
    Ok(store)
}

/// Answers how many rows were written, and how many the database had already.
fn fill(
    store: &mut Connection,
    file: &Path,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<(usize, usize), Failure> {
    let wrong = |error| Failure::new(file, error);
    greet(out, file)?;
    let change = store.transaction().map_err(wrong)?;
    let (mut written, mut unchanged) = (0, 0);
    while let Some(line) = next(input, file)? {
        if line["end"] == true {
            change.commit().map_err(wrong)?;
            return Ok((written, unchanged));
        }
        match write(&change, file, line)? {
            true => written += 1,
            false => unchanged += 1,
        }
    }
    Err(Failure::new(file, "the input ended too early; nothing was written"))
}

/// Writes a row with its session; false where the database has the row already.
fn write(change: &Transaction<'_>, file: &Path, mut line: Value) -> Result<bool, Failure> {
    let table = match line["table"].as_str() {
        Some(OBSERVATIONS) => OBSERVATIONS,
        Some(SUMMARIES) => SUMMARIES,
        _ => return Err(Failure::new(file, "the input has a line without a known table")),
    };
    let (Value::Object(session), Value::Object(mut row)) =
        (line["session"].take(), line["row"].take())
    else {
        return Err(Failure::new(file, "the input has a line without a session or a row"));
    };
    row.remove("id");
    let put = || {
        if has(change, table, &row)? {
            return Ok(false);
        }
        insert_session(change, session)?;
        insert(change, table, &row).map(|()| true)
    };
    put().map_err(|error: rusqlite::Error| Failure::new(file, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Value {
        json!({
            "table": "observations",
            "session": {"content_session_id": "s", "memory_session_id": "m", "project": "p",
                "started_at": "t",
                "started_at_epoch": 1},
            "row": {"memory_session_id": "m", "project": "p", "type": "discovery",
                "created_at": "t",
                "created_at_epoch": 1, "odd": 2},
        })
    }

    #[test]
    fn rows_are_written_once_and_only_up_to_the_end_mark() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new.db");
        let mut out = Vec::new();
        let failure = run(&file, None, format!("{}\n", line()).as_bytes(), &mut out).unwrap_err();
        assert!(failure.message.contains("too early") && !file.exists(), "{failure:?}");

        let input = format!("{0}\n{0}\n{{\"end\":true}}\n", line());
        let mut out = Vec::new();
        run(&file, None, input.as_bytes(), &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, [json!({"protocol": 1}), json!({"written": 1, "unchanged": 1})]);
        let failure = run(&file, None, &b""[..], &mut Vec::new()).unwrap_err();
        assert!(failure.message.contains("the file exists") && file.exists(), "{failure:?}");
    }

    #[test]
    fn a_line_that_cannot_be_written_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new.db");
        for line in [
            "no JSON",
            "{}",
            r#"{"table":"sqlite_master"}"#,
            r#"{"table":"observations","row":{}}"#,
        ] {
            assert!(
                run(&file, None, format!("{line}\n").as_bytes(), &mut Vec::new()).is_err(),
                "{line}"
            );
            assert!(!file.exists(), "{line}");
        }
    }
}
