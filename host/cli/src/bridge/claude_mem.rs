//! From claude-mem's database into a host. Tables and columns were looked up in a database that version 13.25 makes;
//! columns that are not known are kept, ones that are missing are left out, so that older stores are read as well.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

use super::item::{Row, Table, item, project_of};
use super::{ImportArgs, broken, events};
use crate::CliError;
use crate::args::ScopeArgs;
use crate::memory::send;
use crate::session::Session;

/// Records of one request, and about how many bytes at most; the host takes 1,000 and 32 MiB.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 4 << 20;
/// Records of a page.
const PAGE: usize = 1_000;

/// What is known of the sessions, by `memory_session_id`.
pub(super) type Sessions = HashMap<String, Row>;

pub(super) async fn import(args: ImportArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let store = open(&args.file)?;
    let sessions = read_sessions(&store).map_err(|error| broken(&args.file, error))?;
    let mut report = Report { sessions: sessions.len(), ..Report::default() };
    report.events = events::send(&session, &args.scope, &sessions).await?;
    let mut known: HashMap<String, HashMap<String, Value>> = HashMap::new();
    for table in [Table::Observations, Table::Summaries] {
        let mut after = 0;
        loop {
            let rows = read(&store, table.name(), after, BATCH).map_err(|error| broken(&args.file, error))?;
            let Some(last) = rows.last().and_then(|row| row.get("id")?.as_i64()) else { break };
            after = last;
            report.rows += rows.len();
            let mut by_project: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for row in rows {
                let project = args.scope.project.clone().unwrap_or_else(|| project_of(&row));
                by_project.entry(project.clone()).or_default().extend(item(table, &row, &sessions, &project));
            }
            for (project, records) in by_project {
                let scope = ScopeArgs { project: Some(project.clone()), ..args.scope.clone() };
                if !known.contains_key(&project) {
                    known.insert(project.clone(), present(&session, &scope).await?);
                }
                let there = known.get(&project);
                let is_new = |record: &Value| {
                    let id = record["id"].as_str().unwrap_or_default();
                    there.and_then(|there| there.get(id)) != Some(&content(record))
                };
                let (new, same): (Vec<Value>, Vec<Value>) = records.into_iter().partition(is_new);
                report.unchanged += same.len();
                report.imported += write(&session, &scope, new).await?;
            }
        }
    }
    let answer = json!({"rows": report.rows, "sessions": report.sessions, "imported": report.imported,
        "unchanged": report.unchanged, "events": report.events});
    session.show(&answer, "", |_| {
        format!(
            "{} rows of {} sessions: {} imported, {} there already",
            report.rows, report.sessions, report.imported, report.unchanged
        )
    })
}

#[derive(Default)]
struct Report {
    rows: usize,
    sessions: usize,
    imported: usize,
    unchanged: usize,
    events: usize,
}

/// The records of a project, by id.
async fn present(session: &Session, scope: &ScopeArgs) -> Result<HashMap<String, Value>, CliError> {
    let mut found = HashMap::new();
    for record in all(session, scope).await? {
        let id = record["handle"]["providerRecordId"].as_str().unwrap_or_default().to_owned();
        found.insert(id, content(&record));
    }
    Ok(found)
}

/// What an import would write of a record, without the row itself: claude-mem counts and numbers in it.
fn content(record: &Value) -> Value {
    let mut metadata = record["metadata"].clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("claudeMem");
    }
    json!([record["text"], record["summary"], metadata])
}

/// All records of a scope, page by page.
pub(super) async fn all(session: &Session, scope: &ScopeArgs) -> Result<Vec<Value>, CliError> {
    let (mut records, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let body = json!({"limit": PAGE, "cursor": cursor});
        let page = send(session, scope, "list", body).await?;
        records.extend(page["items"].as_array().cloned().unwrap_or_default());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return Ok(records);
        }
    }
}

async fn write(session: &Session, scope: &ScopeArgs, records: Vec<Value>) -> Result<usize, CliError> {
    let (mut batch, mut bytes, mut written) = (Vec::new(), 0, 0);
    let mut records = records.into_iter().peekable();
    while let Some(record) = records.next() {
        bytes += record.to_string().len();
        batch.push(record);
        let is_full = records.peek().is_none_or(|next| bytes + next.to_string().len() > BATCH_BYTES);
        if is_full {
            let source =
                json!({"kind": "external_document", "companyId": session.company, "externalRef": "claude-mem"});
            let sent = std::mem::take(&mut batch);
            written += sent.len();
            send(session, scope, "records", json!({"source": source, "records": sent})).await?;
            bytes = 0;
        }
    }
    Ok(written)
}

fn open(file: &Path) -> Result<Connection, CliError> {
    if !file.is_file() {
        return Err(broken(
            file,
            "there is no such file; claude-mem keeps its database at ~/.claude-mem/claude-mem.db",
        ));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(file, flags).map_err(|error| broken(file, error))?;
    for table in ["sdk_sessions", "observations"] {
        if !store.table_exists(None, table).map_err(|error| broken(file, error))? {
            return Err(broken(file, format!("has no table `{table}`; is it a database of claude-mem?")));
        }
    }
    Ok(store)
}

fn read_sessions(store: &Connection) -> rusqlite::Result<Sessions> {
    let (mut sessions, mut after) = (Sessions::new(), 0);
    loop {
        let rows = read(store, "sdk_sessions", after, PAGE)?;
        let Some(last) = rows.last().and_then(|row| row.get("id")?.as_i64()) else { return Ok(sessions) };
        after = last;
        for row in rows {
            if let Some(id) = row.get("memory_session_id").and_then(Value::as_str) {
                sessions.insert(id.to_owned(), row);
            }
        }
    }
}

/// Rows behind an id, whole, without what is null or no text or number.
fn read(store: &Connection, table: &str, after: i64, limit: usize) -> rusqlite::Result<Vec<Row>> {
    if !store.table_exists(None, table)? {
        return Ok(Vec::new());
    }
    let mut query = store.prepare(&format!("SELECT * FROM {table} WHERE id > ?1 ORDER BY id LIMIT {limit}"))?;
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
