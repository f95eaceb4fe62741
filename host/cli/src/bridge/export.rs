//! Exports records from a host into a new database that claude-mem opens.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::item::{Exported, Original};
use super::program::Program;
use super::records::{all, is_of, word};
use super::row::{OURS, PREFERENCE, Table};
use crate::Result;
use crate::args::ScopeArgs;
use memhost_types::{JsonObject, Snippet, counted};

/// The longest title of a record without a summary, in characters.
const MAX_TITLE: usize = 80;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The database to create; the file must not exist.
    file: PathBuf,
    /// Start from a copy of this database.
    #[arg(long, value_name = "FILE")]
    copy_of: Option<PathBuf>,
    #[command(flatten)]
    scope: ScopeArgs,
}

pub(super) async fn export(args: ExportArgs) -> Result<()> {
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
        let project = args.scope.project.as_deref().or_else(|| word(record, "projectId"));
        program.send(&row(record, project.unwrap_or("memhost")))?;
    }
    let Written { written, unchanged } = program.finish()?;
    let answer = json!({"records": records.len(), "written": written, "unchanged": unchanged});
    session.tell(&answer, || {
        let file = args.file.display();
        let records = counted(records.len(), "record", "records");
        format!("{records}: {written} written to {file}, {unchanged} unchanged")
    })
}

/// What the program says at the end.
#[derive(Debug, Deserialize)]
struct Written {
    written: u64,
    unchanged: u64,
}

/// A record as a row with its session.
fn row(record: &Snippet, project: &str) -> Line {
    let kept = record.metadata.as_ref().and_then(|metadata| metadata.get("claudeMem"));
    let kept = kept.and_then(|kept| Line::deserialize(kept).ok());
    match kept {
        // It came from claude-mem and was not corrected.
        Some(kept) if Table::named(&kept.table).is_some() && is_unchanged(record) => kept,
        _ => new_row(record, project),
    }
}

/// A line for the program: a row and its session.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    table: String,
    session: JsonObject,
    row: JsonObject,
}

/// Whether an imported record was never corrected. A correction sets the time of the update.
fn is_unchanged(record: &Snippet) -> bool {
    let at = |name: &str| record.metadata.as_ref().and_then(|metadata| metadata.get(name));
    at("updatedAt") == at("createdAt")
}

/// The row and the session of a record that was created in the host.
fn new_row(record: &Snippet, project: &str) -> Line {
    let word = |name: &str| word(record, name);
    let Snippet { text, summary, metadata, .. } = record;
    let created = word("createdAt").and_then(|at| at.parse().ok()).or(record.created_at);
    let created: Timestamp = created.unwrap_or_else(Timestamp::now);
    let (at, epoch) = (created.to_string(), created.as_millisecond());
    let session_id = word("sessionId").unwrap_or("memhost");
    // Has a prefix, so that it is never the id of a session of claude-mem.
    let memory_session = format!("memhost-{project}-{session_id}");
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("record").trim();
    let title = summary.clone().unwrap_or_else(|| cut(first_line));
    let kind = match word("type") {
        Some("decision") => "decision",
        Some("tool_observation" | "task_context") => "change",
        _ => "discovery",
    };
    let tags = metadata.as_ref().and_then(|metadata| metadata.get("tags")?.as_array());
    let mut tags = tags.cloned().unwrap_or_default();
    // claude-mem has no type for it; an import recognizes the concept.
    if word("type") == Some(PREFERENCE) && !tags.contains(&PREFERENCE.into()) {
        tags.push(PREFERENCE.into());
    }
    let original = Original {
        text: text.clone(),
        summary: summary.clone(),
        metadata: metadata.clone(),
        project: Some(project.to_owned()),
    };
    let kept = json!(Exported { memhost: original });
    let columns = |columns: &[(&str, Value)]| -> JsonObject {
        columns.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    };
    let session = columns(&[
        ("content_session_id", json!(session_id)),
        ("memory_session_id", json!(memory_session)),
        ("project", json!(project)),
        ("platform_source", json!(word("agentKind").unwrap_or("claude"))),
        ("started_at", json!(at)),
        ("started_at_epoch", json!(epoch)),
        ("status", json!("completed")),
    ]);
    let row = columns(&[
        ("memory_session_id", json!(memory_session)),
        ("project", json!(project)),
        ("type", json!(kind)),
        ("title", json!(title)),
        ("narrative", json!(text)),
        ("facts", json!("[]")),
        ("concepts", json!(json!(tags).to_string())),
        ("files_read", json!("[]")),
        ("files_modified", json!("[]")),
        ("content_hash", json!(format!("{OURS}{}", record.handle.provider_record_id))),
        ("metadata", json!(kept.to_string())),
        ("created_at", json!(at)),
        ("created_at_epoch", json!(epoch)),
    ]);
    Line { table: Table::Observations.name().to_owned(), session, row }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MAX_TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
