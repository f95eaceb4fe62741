//! The tables of claude-mem, and rows of any table. The names were looked up in a database that
//! version 13.25 makes.

use rusqlite::config::DbConfig;
use rusqlite::types::{self, ValueRef};
use rusqlite::{Connection, Transaction, params_from_iter};
use serde_json::{Map, Value, json};

/// A row by its columns.
pub(crate) type Row = Map<String, Value>;

pub(crate) const SESSIONS: &str = "sdk_sessions";
pub(crate) const OBSERVATIONS: &str = "observations";
pub(crate) const SUMMARIES: &str = "session_summaries";

/// The tables with the columns that the bridge writes. claude-mem adds the rest when it opens the
/// database.
pub(crate) const SCHEMA: &str = "
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, content_session_id TEXT NOT NULL,
  memory_session_id TEXT UNIQUE, project TEXT NOT NULL, platform_source TEXT NOT NULL DEFAULT \
  'claude',
  user_prompt TEXT, started_at TEXT NOT NULL, started_at_epoch INTEGER NOT NULL, completed_at TEXT,
  completed_at_epoch INTEGER,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'completed', 'failed')));
CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL
  REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE, project TEXT NOT \
  NULL, text TEXT,
  type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, \
  files_read TEXT,
  files_modified TEXT, prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, content_hash \
  TEXT, metadata TEXT,
  created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT \
NULL
  REFERENCES sdk_sessions(memory_session_id) ON DELETE CASCADE ON UPDATE CASCADE, project TEXT NOT \
  NULL, request TEXT,
  investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited \
  TEXT, notes TEXT,
  prompt_number INTEGER, discovery_tokens INTEGER DEFAULT 0, created_at TEXT NOT NULL,
  created_at_epoch INTEGER NOT NULL);";

/// Trusts nothing of the schema: a file of somebody else may have triggers, views and generated
/// columns that call functions and virtual tables which do more than compute. Nor may it rewrite
/// itself below SQLite.
pub(crate) fn distrust(store: &Connection) -> rusqlite::Result<()> {
    store.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    store.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map(drop)
}

/// The rows of a question about those with an id above `after`. Columns that are null or binary are
/// left out; columns that are not known stay.
pub(crate) fn rows(store: &Connection, question: &str, after: i64) -> rusqlite::Result<Vec<Row>> {
    let mut query = store.prepare_cached(question)?;
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let rows = query.query_map([after], |row| {
        let mut found = Map::new();
        for (index, name) in names.iter().enumerate() {
            let value = match row.get_ref(index)? {
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                ValueRef::Null | ValueRef::Blob(_) => continue,
            };
            found.insert(name.clone(), value);
        }
        Ok(found)
    })?;
    rows.collect()
}

/// Whether the table has the row: with its content hash, or where it has none with its session and
/// time.
pub(crate) fn has(change: &Transaction<'_>, table: &str, row: &Row) -> rusqlite::Result<bool> {
    let columns = columns(change, table)?;
    let has_hash =
        row.contains_key("content_hash") && columns.iter().any(|column| column == "content_hash");
    let column = if has_hash { "content_hash" } else { "created_at_epoch" };
    let question = format!("SELECT 1 FROM {table} WHERE memory_session_id = ?1 AND {column} = ?2");
    let member = |name: &str| value(row.get(name).unwrap_or(&Value::Null));
    change
        .prepare_cached(&question)?
        .exists(params_from_iter(["memory_session_id", column].map(member)))
}

/// Inserts a session unless the table has it. Another session may have the same id of the tool;
/// then this one gets the id that it has in the memory.
pub(crate) fn insert_session(change: &Transaction<'_>, mut session: Row) -> rusqlite::Result<()> {
    session.remove("id");
    let has = |session: &Row, column: &str| -> rusqlite::Result<bool> {
        let mut query =
            change.prepare_cached(&format!("SELECT 1 FROM {SESSIONS} WHERE {column} = ?1"))?;
        query.exists([value(session.get(column).unwrap_or(&Value::Null))])
    };
    if has(&session, "memory_session_id")? {
        return Ok(());
    }
    if has(&session, "content_session_id")?
        && let Some(own) = session.get("memory_session_id").cloned()
    {
        session.insert("content_session_id".to_owned(), own);
    }
    insert(change, SESSIONS, &session)
}

/// Inserts those columns of a row that the table has.
pub(crate) fn insert(change: &Transaction<'_>, table: &str, row: &Row) -> rusqlite::Result<()> {
    let columns = columns(change, table)?;
    let row: Vec<(&String, &Value)> =
        row.iter().filter(|(name, _)| columns.contains(name)).collect();
    let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let mut insert = change
        .prepare_cached(&format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", ")))?;
    insert.execute(params_from_iter(row.iter().map(|(_, member)| value(member)))).map(drop)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_calls_only_what_computes() {
        let store = Connection::open_in_memory().unwrap();
        let asks = "CREATE TABLE observations (id INTEGER PRIMARY KEY);
            CREATE VIEW asks AS SELECT rtreecheck('observations');
            CREATE TRIGGER reads AFTER INSERT ON observations BEGIN SELECT \
            rtreecheck('observations'); END;";
        store.execute_batch(asks).unwrap();
        distrust(&store).unwrap();
        for text in ["SELECT * FROM asks", "INSERT INTO observations VALUES (1) RETURNING id"] {
            let refused = store.query_row(text, [], |_| Ok(())).unwrap_err().to_string();
            assert!(refused.contains("unsafe use of rtreecheck"), "{text}: {refused}");
        }
        // `writable_schema` stays off, whatever is asked.
        store.execute_batch("PRAGMA writable_schema = ON").unwrap();
        assert!(store.execute("UPDATE sqlite_schema SET sql = 'x'", []).is_err());
    }
}
