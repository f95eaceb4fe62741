//! Exports records from a host into a new database that claude-mem opens.

use std::ffi::OsStr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ExportArgs;
use super::program::Program;
use super::records::{all, is_of};
use super::row::{OURS, PREFERENCE, Table};
use crate::CliError;
use memhost_types::counted;

/// The longest title of a record without a summary, in characters.
const MAX_TITLE: usize = 80;

pub(super) async fn export(args: ExportArgs) -> Result<(), CliError> {
    let session = args.scope.open().await?;
    let mut arguments: Vec<&OsStr> =
        vec!["claude-mem".as_ref(), "write".as_ref(), args.file.as_os_str()];
    if let Some(original) = &args.copy_of {
        arguments.extend(["--copy-of".as_ref(), original.as_os_str()]);
    }
    // Before there is a file: a host that does not answer leaves none behind.
    let mut records = all(&session, &args.scope).await?;
    if let Some(project) = &args.scope.project {
        records.retain(|record| is_of(record, project));
    }
    let mut program = Program::start(&arguments)?;
    for record in &records {
        let project =
            args.scope.project.as_deref().or_else(|| record["metadata"]["projectId"].as_str());
        program.send(&row(record, project.unwrap_or("memhost")))?;
    }
    let report = program.finish()?;
    let (written, unchanged) = (&report["written"], &report["unchanged"]);
    let answer = json!({"records": records.len(), "written": written, "unchanged": unchanged});
    session.show(&answer, "", |_| {
        let file = args.file.display();
        let records = counted(records.len(), "record", "records");
        format!("{records}: {written} written to {file}, {unchanged} unchanged")
    })
}

/// A record as a row with its session.
fn row(record: &Value, project: &str) -> Value {
    let kept = &record["metadata"]["claudeMem"];
    let table = kept["table"].as_str().and_then(Table::named);
    match table {
        // It came from claude-mem and was not corrected.
        Some(table)
            if kept["row"].is_object() && kept["session"].is_object() && is_unchanged(record) =>
        {
            json!({"table": table.name(), "session": kept["session"], "row": kept["row"]})
        }
        _ => new_row(record, project),
    }
}

/// Whether an imported record was never corrected. A correction sets the time of the update.
fn is_unchanged(record: &Value) -> bool {
    let metadata = &record["metadata"];
    metadata["updatedAt"] == metadata["createdAt"]
}

/// The row and the session of a record that was created in the host.
fn new_row(record: &Value, project: &str) -> Value {
    let metadata = &record["metadata"];
    let word = |name: &str| metadata[name].as_str();
    let text = record["text"].as_str().unwrap_or_default();
    let id = record["handle"]["providerRecordId"].as_str().unwrap_or_default();
    let created =
        word("createdAt").or_else(|| record["createdAt"].as_str()).and_then(|at| at.parse().ok());
    let created: Timestamp = created.unwrap_or_else(Timestamp::now);
    let (at, epoch) = (created.to_string(), created.as_millisecond());
    let session_id = word("sessionId").unwrap_or("memhost");
    // Has a prefix, so that it is never the id of a session of claude-mem.
    let memory_session = format!("memhost-{project}-{session_id}");
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("record").trim();
    let title = record["summary"].as_str().map_or_else(|| cut(first_line), str::to_owned);
    let kind = match word("type") {
        Some("decision") => "decision",
        Some("tool_observation" | "task_context") => "change",
        _ => "discovery",
    };
    let mut tags = metadata["tags"].as_array().cloned().unwrap_or_default();
    // claude-mem has no type for it; an import recognizes the concept.
    if word("type") == Some(PREFERENCE) && !tags.contains(&PREFERENCE.into()) {
        tags.push(PREFERENCE.into());
    }
    let kept = json!({"memhost": {"text": text, "summary": record["summary"], "metadata": metadata,
        "project": project}});
    let session = json!({"content_session_id": session_id, "memory_session_id": memory_session, "project": project,
        "platform_source": word("agentKind").unwrap_or("claude"), "started_at": at, "started_at_epoch": epoch,
        "status": "completed"});
    let row = json!({"memory_session_id": memory_session, "project": project, "type": kind, "title": title,
        "narrative": text, "facts": "[]", "concepts": json!(tags).to_string(), "files_read": "[]",
        "files_modified": "[]", "content_hash": format!("{OURS}{id}"), "metadata": kept.to_string(),
        "created_at": at, "created_at_epoch": epoch});
    json!({"table": Table::Observations.name(), "session": session, "row": row})
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
