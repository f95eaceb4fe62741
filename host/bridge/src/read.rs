//! Writes all rows of a database as lines. The database is opened read-only.

use std::io::Write;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use crate::database::{OBSERVATIONS, SESSIONS, SUMMARIES, distrust, rows};
use crate::lines::{Failure, greet, put};
use crate::memori;

/// Rows of one query. No read transaction stays open while the reader of the lines waits for a
/// host.
const PAGE: usize = 200;

/// A system whose database is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct System {
    name: &'static str,
    /// Where its database is.
    hint: &'static str,
    /// Tables without which it is no such database.
    needed: &'static [&'static str],
    /// Its tables, each with the question for its rows; they are read where they exist. The rows of
    /// a question have the member `id`, and the question ends before its condition on it.
    tables: &'static [(&'static str, &'static str)],
}

pub(crate) const CLAUDE_MEM: System = System {
    name: "claude-mem",
    hint: "claude-mem keeps its database at ~/.claude-mem/claude-mem.db",
    needed: &[SESSIONS, OBSERVATIONS],
    tables: &[
        (SESSIONS, "SELECT * FROM sdk_sessions r WHERE true"),
        (OBSERVATIONS, "SELECT * FROM observations r WHERE true"),
        (SUMMARIES, "SELECT * FROM session_summaries r WHERE true"),
    ],
};

pub(crate) const MEMORI: System = System {
    name: "Memori",
    hint: "give the SQLite database that your program gives to Memori",
    needed: &[memori::FACTS, "memori_entity"],
    tables: memori::TABLES,
};

pub(crate) fn run(system: System, file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let wrong = |error| Failure::new(file, error);
    let store = open(system, file)?;
    greet(out, file)?;
    for (table, question) in system.tables {
        let mut after = 0;
        let question = format!("{question} AND r.id > ?1 ORDER BY r.id LIMIT {PAGE}");
        while store.table_exists(None, *table).map_err(wrong)? {
            let page = rows(&store, &question, after).map_err(wrong)?;
            let Some(last) = page.last() else { break };
            let last = last.get("id").and_then(Value::as_i64);
            after = last.ok_or_else(|| {
                Failure::new(
                    file,
                    format!(
                        "a row of the table `{table}` has an id that is not an integer; repair it"
                    ),
                )
            })?;
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
    for (before, today) in
        [("sdk_session_id", "memory_session_id"), ("claude_session_id", "content_session_id")]
    {
        if !row.contains_key(today)
            && let Some(id) = row.remove(before)
        {
            row.insert(today.to_owned(), id);
        }
    }
}

fn open(system: System, file: &Path) -> Result<Connection, Failure> {
    let wrong = |error| Failure::new(file, error);
    if !file.is_file() {
        return Err(Failure::new(file, format!("the file does not exist; {}", system.hint)));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(file, flags).map_err(wrong)?;
    distrust(&store).map_err(wrong)?;
    for table in system.needed {
        if !store.table_exists(None, *table).map_err(wrong)? {
            let message =
                format!("the database has no table `{table}`; give a database of {}", system.name);
            return Err(Failure::new(file, message));
        }
    }
    Ok(store)
}
