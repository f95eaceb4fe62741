//! Imports a claude-mem database into a host.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use serde_json::{Value, json};

use super::ImportArgs;
use super::events;
use super::item::item;
use super::program::Program;
use super::records::{Import, Report};
use super::row::{Row, Sessions, Table, project_of};
use crate::CliError;
use memhost_types::counted;

/// Rows that are written together; the host takes 1,000 records in one request.
const BATCH: usize = 200;

pub(super) async fn import(args: ImportArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let arguments = ["claude-mem".as_ref(), "read".as_ref(), args.file.as_os_str()] as [&OsStr; 3];
    let mut program = Program::start(&arguments)?;
    let (sessions, mut line) = read_sessions(&mut program)?;
    let mut import = Import::new(&session, &args.scope, "claude-mem", "claudeMem");
    let (project, events) =
        (args.scope.project.as_deref(), events::send(&session, &args.scope, &sessions).await?);
    let (mut batch, mut rows) = (Vec::new(), 0);
    while line["end"] != true {
        let row = row_of(line);
        rows += usize::from(row.is_some());
        batch.extend(row);
        if batch.len() == BATCH {
            write(&mut import, std::mem::take(&mut batch), &sessions, project).await?;
        }
        line = program.receive()?;
    }
    write(&mut import, batch, &sessions, project).await?;
    let Report { imported, unchanged } = import.report;
    let answer = json!({"rows": rows, "sessions": sessions.len(), "imported": imported, "unchanged": unchanged,
        "events": events});
    session.show(&answer, "", |_| {
        let (rows, sessions) =
            (counted(rows, "row", "rows"), counted(sessions.len(), "session", "sessions"));
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

/// Writes the records of these rows that the host does not have yet.
async fn write(
    import: &mut Import<'_>,
    rows: Vec<(Table, Row)>,
    sessions: &Sessions,
    named: Option<&str>,
) -> Result<(), CliError> {
    let mut by_project: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (table, row) in rows {
        let project = named.map_or_else(|| project_of(&row), str::to_owned);
        by_project
            .entry(project.clone())
            .or_default()
            .extend(item(table, &row, sessions, &project));
    }
    for (project, records) in by_project {
        import.write(Some(&project), None, records).await?;
    }
    Ok(())
}
