//! Imports a database of Memori into a host.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use jiff::Timestamp;
use memhost_types::{RecordId, RecordWrite, TextId, counted};
use serde_json::{Value, json};

use super::import::ImportArgs;
use super::program::{Line, Program};
use super::records::{Import, Report, imported};
use super::row::{MAX_ROW, Row, clean, hash, text};
use crate::Result;

/// Records of one subject that are written together.
const BATCH: usize = 200;

pub(super) async fn import(args: ImportArgs) -> Result<()> {
    let session = args.scope.open().await?;
    let arguments = ["memori".as_ref(), "read".as_ref(), args.file.as_os_str()] as [&OsStr; 3];
    let mut program = Program::start(&arguments)?;
    let mut import = Import::new(&session, &args.scope, "memori", "memori");
    let (mut rows, mut messages) = (0, 0_u64);
    let mut waiting: BTreeMap<Option<String>, Vec<RecordWrite>> = BTreeMap::new();
    loop {
        let Line { table, row, end } = program.receive()?;
        if end {
            break;
        }
        rows += 1;
        messages += row.get("messages").and_then(|count| count.as_u64()).unwrap_or_default();
        let subject = text(&row, "entity").map(clean);
        let number = row.get("id").map(ToString::to_string).unwrap_or_default();
        let record = record(&table, &row, args.scope.project.as_deref())
            .filter(|record| import.takes(record, || format!("{table} {number}")));
        let records = waiting.entry(subject.clone()).or_default();
        records.extend(record);
        if records.len() == BATCH {
            let records = std::mem::take(records);
            import.write(None, subject.as_deref(), records).await?;
        }
    }
    for (subject, records) in waiting {
        import.write(None, subject.as_deref(), records).await?;
    }
    let report = import.report;
    let Report { imported, unchanged, left_out } = &report;
    let answer = json!({
        "rows": rows, "imported": imported, "unchanged": unchanged, "messages": messages,
        "leftOut": left_out,
    });
    session.tell(&answer, || {
        let (rows, messages) =
            (counted(rows, "row", "rows"), counted(messages, "message", "messages"));
        format!(
            "{rows}: {imported} imported, {unchanged} unchanged; {messages} of conversations are \
             no memory and left out{}",
            report.complaint()
        )
    })
}

/// The record of a row; none where the row has no text, as a conversation without a summary.
fn record(table: &str, row: &Row, project: Option<&str>) -> Option<RecordWrite> {
    let content = text(row, "content")?;
    let uuid = text(row, "uuid").unwrap_or_default();
    let created = text(row, "date_created").and_then(time);
    let (kind, tag) = match table {
        "memori_conversation" => ("task_context", "conversation"),
        "memori_knowledge_graph" => ("fact", "relation"),
        "memori_process_attribute" => ("fact", "process"),
        _ => ("fact", "entity"),
    };
    let own = [
        ("sessionId", json!(text(row, "session").map(clean))),
        ("agentKind", json!(text(row, "process").map(clean))),
        ("type", json!(kind)),
        ("tags", json!([tag])),
        ("externalRef", json!(format!("memori:{table}/{uuid}"))),
        ("memori", kept(row)),
    ];
    let id = format!("memori-{}", hash(&[project.unwrap_or_default(), table, uuid]));
    Some(RecordWrite {
        id: RecordId::parse(&id).ok(),
        metadata: Some(imported(project, created, &own)),
        created_at: created,
        ..RecordWrite::new(content)
    })
}

/// The row as it is kept beside the record. The content is the record's text, too, and with both a
/// long one is more than the host takes.
fn kept(row: &Row) -> Value {
    let mut kept = row.clone();
    if json!(kept).to_string().len() > MAX_ROW {
        kept.remove("content");
    }
    json!(kept)
}

/// A time as SQLite writes it, in UTC.
fn time(text: &str) -> Option<Timestamp> {
    format!("{}Z", text.replacen(' ', "T", 1)).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_becomes_a_record() {
        let row = json!({"id": 1, "uuid": "u-1", "content": "Ada drinks \
            tea", "num_times": 2, "entity": "user/ada",
            "date_created": "2026-11-23 21:37:39"});
        let row = row.as_object().unwrap();
        let made = record("memori_entity_fact", row, Some("p")).unwrap();
        assert_eq!(
            (made.text.as_str(), made.created_at),
            ("Ada drinks tea", "2026-11-23T21:37:39Z".parse().ok())
        );
        let metadata = json!(made.metadata);
        assert_eq!((&metadata["type"], &metadata["projectId"]), (&json!("fact"), &json!("p")));
        assert_eq!(
            (&metadata["memori"]["num_times"], metadata.get("sessionId")),
            (&json!(2), None)
        );
        assert_ne!(record("memori_entity_fact", row, None).unwrap().id, made.id);
        let long = json!({"uuid": "u-3", "content": "x".repeat(900_000)});
        let made = record("memori_entity_fact", long.as_object().unwrap(), None).unwrap();
        assert!(made.check_sizes().is_ok(), "{:?}", made.metadata);
        let empty = json!({"uuid": "u-2", "session": "s"});
        assert!(record("memori_conversation", empty.as_object().unwrap(), None).is_none());
        assert_eq!(time("yesterday"), None);
    }
}
