//! Records that are moved from one binding to another.

use crate::material::text;
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, failed, skipped};
use memhost_types::{CaptureMode, RecordWrite, Snippet};

/// Writes records with all that a record can have, and answers them as the list has them.
pub(super) async fn written(subject: &Subject) -> Result<Vec<Snippet>, Stop> {
    let rich = RecordWrite {
        summary: Some("A record with a summary".to_owned()),
        metadata: subject.metadata_with("team", "north"),
        ..subject.write(&text(0))
    };
    let mut captured = subject.capture_of(&text(1), CaptureMode::CaptureRecord);
    captured.hook = Some(subject.hook("2026-01-02T03:04:05Z")?);
    // A provider may accept only captures, or only writes.
    for taken in [
        subject.put_all(subject.scope(), vec![rich]).await.map(drop),
        subject.capture(subject.operation(), &captured).await.map(drop),
        subject.put(subject.scope(), &text(2)).await.map(drop),
    ] {
        match taken {
            Ok(()) | Err(Stop::Skipped(_)) => {}
            Err(broken) => return Err(broken),
        }
    }
    let records = subject.list(subject.scope()).await?;
    if records.is_empty() { skipped("there is no record to export") } else { Ok(records) }
}

/// The export of the rule's own scope, which has records.
pub(super) async fn exported(subject: &Subject) -> Result<Vec<String>, Stop> {
    let parts = subject.export(&subject.scope()).await?;
    if parts.is_empty() {
        failed("there are records, but the export has no lines")
    } else {
        Ok(parts)
    }
}

/// An empty binding of the same provider.
pub(super) async fn fresh(subject: &Subject) -> Result<Subject, Stop> {
    let there = subject.empty().await?;
    match there.list(subject.scope()).await?.len() {
        0 => Ok(there),
        count => skipped(format!("a new binding has {count} records already")),
    }
}

/// Imports all parts; how many lines were new.
pub(super) async fn imported(there: &Subject, parts: &[String]) -> Result<u32, Stop> {
    let mut new = 0;
    for part in parts {
        let report = there.try_import(&there.scope(), part).await;
        new += answered("import-records", report)?.imported;
    }
    Ok(new)
}

/// The first difference of two lists, if any.
pub(super) fn difference(before: &[Snippet], after: &[Snippet]) -> Option<String> {
    for old in before {
        let id = &old.handle.provider_record_id;
        let Some(new) = after.iter().find(|new| new.handle == old.handle) else {
            return Some(format!("`{id}` is missing"));
        };
        let fields = [
            ("text", old.text == new.text),
            ("summary", old.summary == new.summary),
            ("metadata", old.metadata == new.metadata),
            ("source", old.source == new.source),
            ("created-at", old.created_at == new.created_at),
            ("updated-at", old.updated_at == new.updated_at),
        ];
        if let Some((name, _)) = fields.iter().find(|(_, is_same)| !is_same) {
            return Some(format!("the {name} of `{id}` differs"));
        }
    }
    (before.len() != after.len())
        .then(|| format!("{} records before, {} after", before.len(), after.len()))
}
