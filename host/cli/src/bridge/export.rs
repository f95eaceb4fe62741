//! From a host into a database that claude-mem opens: a new one, or a copy. Nothing is ever written into a database that
//! somebody uses.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Transaction, params_from_iter, types};
use serde_json::{Value, json};

use super::claude_mem::all;
use super::item::{OURS, Row, Table};
use super::{ExportArgs, broken};
use crate::CliError;

/// The tables with the columns that the bridge writes. claude-mem adds the rest when it opens the database.
const TABLES: &str = "
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
  memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT 'claude',
  user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT,
  completed_at_epoch INTEGER,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'completed', 'failed')));
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL
  REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE, project TEXT NOT NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, content_hash TEXT, metadata TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL
  REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE, project TEXT NOT NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT, notes TEXT,
  prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);";
/// The longest title of a record that has none of its own, in characters.
const MAX_TITLE: usize = 80;

pub(super) async fn export(args: ExportArgs) -> Result<(), CliError> {
    if args.file.exists() {
        let message = "is there already; name a new file, and --copy-of for what it begins with";
        return Err(broken(&args.file, message));
    }
    let session = args.scope.open().await?;
    let records = all(&session, &args.scope).await?;
    let wrong = |error| broken(&args.file, error);
    let mut store = create(&args.file, args.copy_of.as_deref())?;
    let change = store.transaction().map_err(wrong)?;
    let mut written = 0;
    for record in &records {
        let project = args.scope.project.as_deref().or_else(|| record["metadata"]["projectId"].as_str());
        written += write(&change, record, project.unwrap_or("memhost")).map_err(wrong)?;
    }
    change.commit().map_err(wrong)?;
    let answer = json!({"records": records.len(), "written": written, "unchanged": records.len() - written});
    session.show(&answer, "", |_| {
        let unchanged = records.len() - written;
        format!("{} records: {written} written to {}, {unchanged} there already", records.len(), args.file.display())
    })
}

fn create(file: &Path, copy_of: Option<&Path>) -> Result<Connection, CliError> {
    let wrong = |error| broken(file, error);
    if let Some(original) = copy_of {
        let from = Connection::open_with_flags(original, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| broken(original, error))?;
        // A whole and consistent copy, also of a database that is in use.
        from.execute("VACUUM INTO ?1", [file.to_string_lossy()]).map_err(|error| broken(original, error))?;
        return Connection::open(file).map_err(wrong);
    }
    let store = Connection::open(file).map_err(wrong)?;
    store.execute_batch(TABLES).map_err(wrong)?;
    Ok(store)
}

/// Writes a record as one row, with its session, and answers 0 where it is there already.
fn write(change: &Transaction<'_>, record: &Value, project: &str) -> rusqlite::Result<usize> {
    let kept = &record["metadata"]["claudeMem"];
    let table = kept["table"].as_str().and_then(Table::named);
    match (table, kept["row"].as_object(), kept["session"].as_object()) {
        // It came from there and has not been put right since.
        (Some(table), Some(row), Some(session)) if is_as_it_was(record) => {
            let mut row = row.clone();
            row.remove("id");
            if is_there(change, table, &row)? {
                return Ok(0);
            }
            put_session(change, session.clone())?;
            insert(change, table.name(), &row)
        }
        _ => {
            let (session, row) = own(record, project);
            if is_there(change, Table::Observations, &row)? {
                return Ok(0);
            }
            put_session(change, session)?;
            insert(change, Table::Observations.name(), &row)
        }
    }
}

/// Whether the host never changed an imported record: a correction says when it was.
fn is_as_it_was(record: &Value) -> bool {
    let metadata = &record["metadata"];
    metadata["updatedAt"] == metadata["createdAt"]
}

/// The row and the session of a record that was made here.
fn own(record: &Value, project: &str) -> (Row, Row) {
    let metadata = &record["metadata"];
    let word = |name: &str| metadata[name].as_str();
    let text = record["text"].as_str().unwrap_or_default();
    let id = record["handle"]["providerRecordId"].as_str().unwrap_or_default();
    let created = word("createdAt").or_else(|| record["createdAt"].as_str()).and_then(|at| at.parse().ok());
    let created: Timestamp = created.unwrap_or_else(Timestamp::now);
    let (at, epoch) = (created.to_string(), created.as_millisecond());
    let session_id = word("sessionId").unwrap_or("memhost");
    // Of its own, so that it is never that of a session which claude-mem has.
    let memory_session = format!("memhost-{project}-{session_id}");
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("record").trim();
    let title = record["summary"].as_str().map_or_else(|| cut(first_line), str::to_owned);
    let kind = match word("type") {
        Some("decision") => "decision",
        Some("tool_observation" | "task_context") => "change",
        _ => "discovery",
    };
    let tags = metadata["tags"].as_array().cloned().unwrap_or_default();
    let kept = json!({"memhost": {"text": text, "summary": record["summary"], "metadata": metadata,
        "project": project}});
    let session = json!({"content_session_id": session_id, "memory_session_id": memory_session, "project": project,
        "platform_source": word("agentKind").unwrap_or("claude"), "started_at": at, "started_at_epoch": epoch,
        "status": "completed"});
    let row = json!({"memory_session_id": memory_session, "project": project, "type": kind, "title": title,
        "narrative": text, "facts": "[]", "concepts": json!(tags).to_string(), "files_read": "[]",
        "files_modified": "[]", "content_hash": format!("{OURS}{id}"), "metadata": kept.to_string(),
        "created_at": at, "created_at_epoch": epoch});
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    (object(session), object(row))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Whether a row is there: by its hash, or where it has none by its session and time.
fn is_there(change: &Transaction<'_>, table: Table, row: &Row) -> rusqlite::Result<bool> {
    let (session, columns) = (&row["memory_session_id"], columns(change, table.name())?);
    let named = if row.contains_key("content_hash") && columns.iter().any(|column| column == "content_hash") {
        "content_hash"
    } else {
        "created_at_epoch"
    };
    let question = format!("SELECT 1 FROM {} WHERE memory_session_id = ?1 AND {named} = ?2", table.name());
    let mut query = change.prepare_cached(&question)?;
    query.exists(params_from_iter([session, row.get(named).unwrap_or(&Value::Null)].map(value)))
}

/// Makes sure that a session is there. One of the same tool may have it under another name.
fn put_session(change: &Transaction<'_>, mut session: Row) -> rusqlite::Result<()> {
    session.remove("id");
    let known = |column: &str| -> rusqlite::Result<bool> {
        let mut query = change.prepare_cached(&format!("SELECT 1 FROM sdk_sessions WHERE {column} = ?1"))?;
        query.exists([value(&session[column])])
    };
    if known("memory_session_id")? {
        return Ok(());
    }
    if known("content_session_id")? {
        let own = session["memory_session_id"].clone();
        session.insert("content_session_id".to_owned(), own);
    }
    insert(change, "sdk_sessions", &session).map(drop)
}

/// Inserts the columns of a row that the table has.
fn insert(change: &Transaction<'_>, table: &str, row: &Row) -> rusqlite::Result<usize> {
    let there = columns(change, table)?;
    let row: Vec<(&String, &Value)> = row.iter().filter(|(name, _)| there.contains(name)).collect();
    let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let mut insert = change.prepare_cached(&format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", ")))?;
    insert.execute(params_from_iter(row.iter().map(|(_, member)| value(member))))
}

fn columns(change: &Transaction<'_>, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut query = change.prepare_cached("SELECT name FROM pragma_table_info(?1)")?;
    query.query_map([table], |row| row.get(0))?.collect()
}

fn value(json: &Value) -> types::Value {
    match json {
        Value::Null => types::Value::Null,
        Value::Number(number) => match number.as_i64() {
            Some(number) => types::Value::Integer(number),
            None => types::Value::Real(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => types::Value::Text(text.clone()),
        other => types::Value::Text(other.to_string()),
    }
}
