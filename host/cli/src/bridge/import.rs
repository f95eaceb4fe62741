//! Imports a claude-mem database into a host.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;

use serde_json::{Value, json};

use super::ImportArgs;
use super::events;
use super::item::item;
use super::program::Program;
use super::records::{all, write};
use super::row::{Row, Sessions, Table, project_of};
use crate::CliError;
use crate::args::ScopeArgs;
use crate::session::Session;
use memhost_types::counted;

/// Rows that are written together; the host takes 1,000 records in one request.
const BATCH: usize = 200;

pub(super) async fn import(args: ImportArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let arguments = ["claude-mem".as_ref(), "read".as_ref(), args.file.as_os_str()] as [&OsStr; 3];
    let mut program = Program::start(&arguments)?;
    let (sessions, mut line) = read_sessions(&mut program)?;
    let mut import = Import::new(&session, &args.scope, &sessions);
    import.report.events = events::send(&session, &args.scope, &sessions).await?;
    let mut batch = Vec::new();
    while line["end"] != true {
        batch.extend(row_of(line));
        if batch.len() == BATCH {
            import.write(std::mem::take(&mut batch)).await?;
        }
        line = program.receive()?;
    }
    import.write(batch).await?;
    let Report { rows, imported, unchanged, events } = import.report;
    let answer = json!({"rows": rows, "sessions": sessions.len(), "imported": imported, "unchanged": unchanged,
        "events": events});
    session.show(&answer, "", |_| {
        let (rows, sessions) = (counted(rows, "row", "rows"), counted(sessions.len(), "session", "sessions"));
        format!("{rows} of {sessions}: {imported} imported, {unchanged} unchanged")
    })
}

/// The sessions, which come before all other rows, and the line after them.
fn read_sessions(program: &mut Program) -> Result<(Sessions, Value), CliError> {
    let mut sessions = Sessions::new();
    loop {
        let mut line = program.receive()?;
        if line["table"] != "sdk_sessions" {
            return Ok((sessions, line));
        }
        if let (Some(id), Value::Object(row)) =
            (line["row"]["memory_session_id"].as_str().map(str::to_owned), line["row"].take())
        {
            sessions.insert(id, row);
        }
    }
}

/// The row of a line.
fn row_of(mut line: Value) -> Option<(Table, Row)> {
    let table = Table::named(line["table"].as_str()?)?;
    match line["row"].take() {
        Value::Object(row) => Some((table, row)),
        _ => None,
    }
}

#[derive(Default)]
struct Report {
    rows: usize,
    imported: usize,
    unchanged: usize,
    events: usize,
}

struct Import<'a> {
    session: &'a Session,
    scope: &'a ScopeArgs,
    sessions: &'a Sessions,
    /// The content of the records that each project has already, by id.
    known: HashMap<String, HashMap<String, Value>>,
    report: Report,
}

impl<'a> Import<'a> {
    fn new(session: &'a Session, scope: &'a ScopeArgs, sessions: &'a Sessions) -> Self {
        Self { session, scope, sessions, known: HashMap::new(), report: Report::default() }
    }

    /// Writes the records of these rows that the host does not have yet.
    async fn write(&mut self, rows: Vec<(Table, Row)>) -> Result<(), CliError> {
        self.report.rows += rows.len();
        let mut by_project: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (table, row) in rows {
            let project = self.scope.project.clone().unwrap_or_else(|| project_of(&row));
            by_project.entry(project.clone()).or_default().extend(item(table, &row, self.sessions, &project));
        }
        for (project, records) in by_project {
            let scope = ScopeArgs { project: Some(project.clone()), ..self.scope.clone() };
            if !self.known.contains_key(&project) {
                self.known.insert(project.clone(), present(self.session, &scope).await?);
            }
            let known = self.known.get(&project);
            let is_new = |record: &Value| {
                let id = record["id"].as_str().unwrap_or_default();
                known.and_then(|known| known.get(id)) != Some(&content(record))
            };
            let (new, same): (Vec<Value>, Vec<Value>) = records.into_iter().partition(is_new);
            self.report.unchanged += same.len();
            self.report.imported += write(self.session, &scope, new).await?;
        }
        Ok(())
    }
}

/// The content of a project's records, by id.
async fn present(session: &Session, scope: &ScopeArgs) -> Result<HashMap<String, Value>, CliError> {
    let mut found = HashMap::new();
    for record in all(session, scope).await? {
        let id = record["handle"]["providerRecordId"].as_str().unwrap_or_default().to_owned();
        found.insert(id, content(&record));
    }
    Ok(found)
}

/// The content of a record that an import compares. The original row is not part of it, because claude-mem changes
/// counters in it.
fn content(record: &Value) -> Value {
    let mut metadata = record["metadata"].clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("claudeMem");
    }
    json!([record["text"], record["summary"], metadata])
}
