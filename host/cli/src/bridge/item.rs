//! A row of claude-mem as a record. It has the metadata of Apropos, and the row itself, so that an
//! export restores it.

use memhost_types::{JsonObject, RecordId, RecordWrite, TextId};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::records::imported;
use super::row::{
    MAX_ROW, OURS, PREFERENCE, Row, Sessions, Table, agent_kind, hash, session_id, text, time,
};

/// The record of a row; none where the row has no text.
pub(super) fn item(
    table: Table,
    row: &Row,
    sessions: &Sessions,
    project: &str,
) -> Option<RecordWrite> {
    if let Some(record) = ours(row, project) {
        return Some(record);
    }
    let memory_session = text(row, "memory_session_id").unwrap_or_default().to_owned();
    let session = sessions.get(&memory_session);
    let (body, kind, tags) = match table {
        Table::Observations => (observation(row), kind(row), tags(row)),
        Table::Summaries => (summary(row), "task_context", Vec::new()),
    };
    if body.trim().is_empty() {
        return None;
    }
    // The hash is the same on every machine that claude-mem syncs; the number is not. A summary has
    // its time instead.
    let other = if table == Table::Summaries { "created_at_epoch" } else { "id" };
    let other = row.get(other).map(ToString::to_string).unwrap_or_default();
    let name = text(row, "content_hash").map_or(other, str::to_owned);
    let created = time(row, "created_at_epoch");
    let agent = session.map_or_else(|| "claude".to_owned(), agent_kind);
    let title = text(row, "title").or_else(|| text(row, "request")).map(str::to_owned);
    let mut kept = json!({"table": table.name(), "session": session, "row": row});
    if kept.to_string().len() > MAX_ROW {
        kept = json!({"table": table.name()});
    }
    let own = [
        ("sessionId", json!(session.map(session_id))),
        ("agentKind", json!(agent)),
        ("type", json!(kind)),
        ("tags", json!(tags)),
        ("externalRef", json!(format!("claude-mem:{}/{memory_session}/{name}", table.name()))),
        ("claudeMem", kept),
    ];
    let id = format!("claude-mem-{}", hash(&[project, table.name(), &memory_session, &name]));
    Some(RecordWrite {
        id: RecordId::parse(&id).ok(),
        summary: title,
        metadata: Some(imported(Some(project), created, &own)),
        ..RecordWrite::new(body)
    })
}

/// The original record, if an export of a host made the row.
fn ours(row: &Row, project: &str) -> Option<RecordWrite> {
    let id = text(row, "content_hash")?.strip_prefix(OURS)?;
    let Exported { memhost } = serde_json::from_str(text(row, "metadata")?).ok()?;
    // In another project it is another record, because the original may be there, too.
    let id = match memhost.project.as_deref() == Some(project) {
        true => id.to_owned(),
        false => format!("claude-mem-{}", hash(&[project, id])),
    };
    let mut metadata = memhost.metadata;
    if let Some(named) = metadata.as_mut().and_then(|metadata| metadata.get_mut("projectId")) {
        *named = project.into();
    }
    Some(RecordWrite {
        id: Some(RecordId::parse(&id).ok()?),
        summary: memhost.summary,
        metadata,
        ..RecordWrite::new(memhost.text)
    })
}

/// The metadata of a row that an export of a host made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exported {
    pub(super) memhost: Original,
}

/// The record of such a row.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Original {
    pub(super) text: String,
    pub(super) summary: Option<String>,
    pub(super) metadata: Option<JsonObject>,
    pub(super) project: Option<String>,
}

/// The type of a record, from the type of an observation.
fn kind(row: &Row) -> &'static str {
    match text(row, "type") {
        Some(PREFERENCE) => PREFERENCE,
        _ if strings(row, "concepts").iter().any(|concept| concept == PREFERENCE) => PREFERENCE,
        Some("decision") => "decision",
        Some("discovery") => "fact",
        _ => "tool_observation",
    }
}

fn strings(row: &Row, column: &str) -> Vec<String> {
    text(row, column).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn tags(row: &Row) -> Vec<String> {
    let mut tags = strings(row, "concepts");
    tags.extend(text(row, "type").map(str::to_owned));
    tags.dedup();
    tags
}

fn observation(row: &Row) -> String {
    let mut parts: Vec<String> = ["title", "subtitle", "narrative", "text"]
        .iter()
        .filter_map(|name| text(row, name).map(str::to_owned))
        .collect();
    let facts: Vec<String> = strings(row, "facts").iter().map(|fact| format!("- {fact}")).collect();
    if !facts.is_empty() {
        parts.push(facts.join("\n"));
    }
    parts.join("\n\n")
}

fn summary(row: &Row) -> String {
    let parts = [
        ("Request", "request"),
        ("Investigated", "investigated"),
        ("Learned", "learned"),
        ("Completed", "completed"),
        ("Next steps", "next_steps"),
        ("Notes", "notes"),
    ];
    let part = |(name, column)| text(row, column).map(|text| format!("{name}: {text}"));
    parts.into_iter().filter_map(part).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use memhost_types::check_id;
    use serde_json::Value;

    use super::*;

    fn row(value: &Value) -> Row {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_observation_becomes_an_item() {
        let session = row(&json!({
            "memory_session_id": "m", "content_session_id": "s/1", "platform_source": "codex",
        }));
        let sessions = Sessions::from([("m".to_owned(), session)]);
        let observed =
            row(&json!({"id": 7, "memory_session_id": "m", "type": "decision", "title": "SQLite",
            "narrative": "Because it is a file.", "facts": "[\"WAL\"]", "concepts": "[\"storage\"]",
            "created_at_epoch": 1_767_225_600_123_i64, "odd": 1}));
        let record = item(Table::Observations, &observed, &sessions, "p").unwrap();
        assert_eq!(record.text, "SQLite\n\nBecause it is a file.\n\n- WAL");
        let metadata = json!(record.metadata);
        assert_eq!(
            (&metadata["agentKind"], &metadata["type"]),
            (&json!("codex"), &json!("decision"))
        );
        assert_eq!(
            (&metadata["source"], &metadata["createdAt"]),
            (&json!("imported"), &json!("2026-01-01T00:00:00.123Z"))
        );
        assert_eq!(metadata["tags"], json!(["storage", "decision"]));
        assert_eq!(metadata["claudeMem"]["row"]["odd"], 1);
        assert!(check_id("id", metadata["sessionId"].as_str().unwrap()).is_ok());
        assert_eq!(item(Table::Observations, &observed, &sessions, "p").unwrap(), record);
        assert_ne!(item(Table::Observations, &observed, &sessions, "q").unwrap().id, record.id);
        for preference in [
            json!({"type": "preference"}),
            json!({"type": "discovery", "concepts": "[\"preference\"]"}),
        ] {
            let mut told = row(&preference);
            told.insert("title".to_owned(), "Likes tea".into());
            let record = item(Table::Observations, &told, &sessions, "p").unwrap();
            assert_eq!(record.metadata.unwrap()["type"], "preference", "{preference}");
        }
        assert!(
            item(Table::Observations, &row(&json!({"id": 1, "title": " "})), &sessions, "p")
                .is_none()
        );
    }
}
