//! Imports a claude-mem database into a host.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::item::item;
use super::program::{Line, Program};
use super::records::{Import, Report};
use super::row::{Row, Sessions, Table, agent_kind, hash, project_of, session_id, text, time};
use crate::Result;
use crate::args::ScopeArgs;
use crate::session::Session;
use memhost_http::api::Items;
use memhost_types::{Event, RecordWrite, counted};

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The database, opened read-only; with --project all its records go into one project.
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) scope: ScopeArgs,
}

/// Rows that are written together; the host takes 1,000 records in one request.
const BATCH: usize = 200;

pub(super) async fn import(args: ImportArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let arguments = ["claude-mem".as_ref(), "read".as_ref(), args.file.as_os_str()] as [&OsStr; 3];
    let mut program = Program::start(&arguments)?;
    let (sessions, mut line) = read_sessions(&mut program)?;
    let mut import = Import::new(&session, &args.scope, "claude-mem", "claudeMem");
    let (project, events) =
        (args.scope.project.as_deref(), send(&session, &args.scope, &sessions).await?);
    let (mut batch, mut rows) = (Vec::new(), 0);
    while !line.end {
        let row = Table::named(&line.table).map(|table| (table, line.row));
        rows += usize::from(row.is_some());
        batch.extend(row);
        if batch.len() == BATCH {
            write(&mut import, std::mem::take(&mut batch), &sessions, project).await?;
        }
        line = program.receive()?;
    }
    write(&mut import, batch, &sessions, project).await?;
    let report = import.report;
    let Report { imported, unchanged, left_out } = &report;
    let answer = json!({
        "rows": rows, "sessions": sessions.len(), "imported": imported, "unchanged": unchanged,
        "events": events, "leftOut": left_out,
    });
    session.tell(&answer, || {
        let (rows, sessions) =
            (counted(rows, "row", "rows"), counted(sessions.len(), "session", "sessions"));
        let complaint = report.complaint();
        format!("{rows} of {sessions}: {imported} imported, {unchanged} unchanged{complaint}")
    })
}

/// The sessions, which come before all other rows, and the line after them.
fn read_sessions(program: &mut Program) -> Result<(Sessions, Line)> {
    let mut sessions = Sessions::new();
    loop {
        let line: Line = program.receive()?;
        if line.table != "sdk_sessions" {
            return Ok((sessions, line));
        }
        if let Some(id) = line.row.get("memory_session_id").and_then(|id| id.as_str()) {
            sessions.insert(id.to_owned(), line.row);
        }
    }
}

/// Writes the records of these rows that the host does not have yet.
async fn write(
    import: &mut Import<'_>,
    rows: Vec<(Table, Row)>,
    sessions: &Sessions,
    named: Option<&str>,
) -> Result<()> {
    let mut by_project: BTreeMap<String, Vec<RecordWrite>> = BTreeMap::new();
    for (table, row) in rows {
        let project = named.map_or_else(|| project_of(&row), str::to_owned);
        let number = row.get("id").map(ToString::to_string).unwrap_or_default();
        let place = || format!("{} {number}", table.name());
        let record = item(table, &row, sessions, &project);
        let record = record.filter(|record| import.takes(record, place));
        by_project.entry(project).or_default().extend(record);
    }
    for (project, records) in by_project {
        import.write(Some(&project), None, records).await?;
    }
    Ok(())
}

/// The most bytes of a title; the host takes 16 KiB of details, in which a sign may have six.
const TITLE: usize = 2 << 10;

/// The title of a session.
fn title(row: &Row) -> Option<&str> {
    text(row, "custom_title").map(|title| &title[..title.floor_char_boundary(TITLE)])
}

/// Events of one request; the host takes 1,000.
const EVENTS: usize = 500;

/// Sends the sessions as events, one for the start and, if known, one for the end, and answers how
/// many. An event has the same id in every import, so the host records it once.
async fn send(session: &Session, scope: &ScopeArgs, sessions: &Sessions) -> Result<usize> {
    let mut events = Vec::new();
    for (memory_id, row) in sessions {
        let project = scope.project.clone().unwrap_or_else(|| project_of(row));
        for (kind, column) in
            [("session.started", "started_at_epoch"), ("session.stopped", "completed_at_epoch")]
        {
            let Some(at) = time(row, column) else { continue };
            let mut event = json!({
                "eventId": format!("claude-mem-{kind}-{}", hash(&[memory_id])),
                "type": kind,
                "projectId": project,
                "sessionId": session_id(row),
                "agentKind": agent_kind(row),
                "occurredAt": at,
                "details": {"importedFrom": "claude-mem", "title": title(row)},
            });
            for (name, value) in [("agentId", &session.agent), ("runId", &scope.run)] {
                if let Some(value) = value {
                    event[name] = value.as_str().into();
                }
            }
            events.push(event);
        }
    }
    for batch in events.chunks(EVENTS) {
        let body = json!({"events": batch});
        session.host.post::<Items<Event>>(&session.runtime("events"), &body).await?;
    }
    Ok(events.len())
}
