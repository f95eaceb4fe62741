//! Writes all rows of a database as lines. The database is opened read-only.

use std::io::Write;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use crate::database::{OBSERVATIONS, SESSIONS, SUMMARIES, rows};
use crate::{Failure, greet, put};

/// Rows of one query. No read transaction stays open while the reader of the lines waits for a host.
const PAGE: usize = 200;

pub(crate) fn run(file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let wrong = |error| Failure::new(file, error);
    let store = open(file)?;
    greet(out, file)?;
    for table in [SESSIONS, OBSERVATIONS, SUMMARIES] {
        let mut after = 0;
        loop {
            let page = rows(&store, table, after, PAGE).map_err(wrong)?;
            let Some(last) = page.last().and_then(|row| row.get("id")?.as_i64()) else { break };
            after = last;
            for mut row in page {
                name_as_today(&mut row);
                put(out, file, &json!({"table": table, "row": Value::Object(row)}))?;
            }
        }
    }
    put(out, file, &json!({"end": true}))
}

/// Older versions had other names for the ids of sessions.
fn name_as_today(row: &mut Map<String, Value>) {
    for (before, today) in [("sdk_session_id", "memory_session_id"), ("claude_session_id", "content_session_id")] {
        if !row.contains_key(today)
            && let Some(id) = row.remove(before)
        {
            row.insert(today.to_owned(), id);
        }
    }
}

fn open(file: &Path) -> Result<Connection, Failure> {
    let wrong = |error| Failure::new(file, error);
    if !file.is_file() {
        let message = "the file does not exist; claude-mem keeps its database at ~/.claude-mem/claude-mem.db";
        return Err(Failure::new(file, message));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(file, flags).map_err(wrong)?;
    for table in [SESSIONS, OBSERVATIONS] {
        if !store.table_exists(None, table).map_err(wrong)? {
            let message = format!("the database has no table `{table}`; give a database of claude-mem");
            return Err(Failure::new(file, message));
        }
    }
    Ok(store)
}
