//! `transfer`: everything out, and in again.

mod export;
mod import;

use super::partition::PARTITIONS;
use crate::material::text;
use crate::rule::{Rule, Run, optional, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, failed, skipped};
use memhost_sandbox::OptionalInterface;
use memhost_types::{CaptureMode, RecordWrite, Snippet};

const LOSSLESS: &str = "Lossless: importing the lines into an empty binding gives the same records.";

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        "TRF-01",
        "An export loses nothing",
        "Records are exported and imported into an empty binding: its list has the same ones, with the same text, \
         summary, metadata, source and times.",
        optional("export-records", LOSSLESS),
        Run::Binding(|subject| Box::pin(import::lossless(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-02",
        "An export is whole lines",
        "The export of a scope with records has lines, each of them JSON and ended by a line feed.",
        optional("chunk.lines", "Whole lines, each ended by a line feed; at most 1 MiB."),
        Run::Binding(|subject| Box::pin(export::whole_lines(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-03",
        "An export begins anew",
        "Two exports without a cursor, the second one of a fresh instance, have the same lines.",
        optional("export-records", "From the start without a cursor."),
        Run::Binding(|subject| Box::pin(export::anew(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-04",
        "An export goes on to its end",
        "Records of more than one MiB together are exported in several parts: with all of them imported, each record \
         is there.",
        optional("chunk.next-cursor", "None: these were the last ones."),
        Run::Binding(|subject| Box::pin(export::to_the_end(subject))),
    )
    .of(OptionalInterface::Transfer)
    .thorough(),
    Rule::new(
        "TRF-05",
        "An export keeps partitions apart",
        "The export of another agent, subject or namespace has nothing of this one's record.",
        types("scope", PARTITIONS),
        Run::Binding(|subject| Box::pin(export::partitions(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-06",
        "What is forgotten is not exported",
        "One of two records is forgotten, whatever the effect is called: the export has nothing of its text.",
        optional("export-records", "What waits for a person goes with them; what was forgotten does not."),
        Run::Binding(|subject| Box::pin(export::forgotten(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-07",
        "What waits for a person moves, too",
        "A record that waits is exported and imported into an empty binding: it waits there.",
        optional("export-records", "What waits for a person goes with them; what was forgotten does not."),
        Run::Binding(|subject| Box::pin(import::waits(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-08",
        "An import happens once",
        "Lines are imported twice, and an export into the binding that it came from: nothing is `imported` that was \
         there already, and the list is as it was.",
        optional("import-records", "Idempotent by record."),
        Run::Binding(|subject| Box::pin(import::once(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-09",
        "All lines are imported or none",
        "Whole lines with a broken one behind them are refused, and no record of the whole ones is there.",
        optional("import-records", "All lines of a call or none"),
        Run::Binding(|subject| Box::pin(import::all_or_none(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-10",
        "A refusal names the line",
        "A broken line is the first one, and the last one: `invalid-request`, and its field is that line's, counted from \
         `lines.0`.",
        optional("import-records", "such as `lines.12`; the first one is `lines.0`."),
        Run::Binding(|subject| Box::pin(import::names_the_line(subject))),
    )
    .of(OptionalInterface::Transfer),
    Rule::new(
        "TRF-11",
        "An import moves nothing to another partition",
        "An agent imports another agent's lines: be it refused or not, they are not in that agent's list, and the other \
         one's is as it was.",
        optional("import-records", "A record stays in its partition, whoever imports it."),
        Run::Binding(|subject| Box::pin(import::stays(subject))),
    )
    .of(OptionalInterface::Transfer),
];

/// Writes records with all that a record can have, and answers them as the list has them.
async fn written(subject: &Subject) -> Result<Vec<Snippet>, Stop> {
    let rich = RecordWrite {
        summary: Some("A record with a summary".to_owned()),
        metadata: subject.metadata_with("team", "north"),
        ..subject.write(&text(0))
    };
    let mut captured = subject.capture_of(&text(1), CaptureMode::CaptureRecord);
    captured.hook = Some(subject.hook("hook", "2026-01-02T03:04:05Z")?);
    // Who takes captures only has no summaries, and who takes writes only no sources.
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
async fn exported(subject: &Subject) -> Result<Vec<String>, Stop> {
    let parts = subject.export(&subject.scope()).await?;
    if parts.is_empty() { failed("there are records, and the export has no line") } else { Ok(parts) }
}

/// An empty binding of the same provider.
async fn fresh(subject: &Subject) -> Result<Subject, Stop> {
    let there = subject.empty().await?;
    match there.list(subject.scope()).await?.len() {
        0 => Ok(there),
        count => skipped(format!("{count} records are there in a binding to which nothing was told")),
    }
}

/// Imports all parts; how many lines were new.
async fn imported(there: &Subject, parts: &[String]) -> Result<u32, Stop> {
    let mut new = 0;
    for part in parts {
        let report = there.try_import(&there.scope(), part).await;
        new += answered("import-records", report)?.imported;
    }
    Ok(new)
}

/// What is not the same in two lists, if anything.
fn difference(before: &[Snippet], after: &[Snippet]) -> Option<String> {
    for old in before {
        let id = &old.handle.provider_record_id;
        let Some(new) = after.iter().find(|new| new.handle == old.handle) else {
            return Some(format!("`{id}` is not there"));
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
            return Some(format!("the {name} of `{id}` is another one"));
        }
    }
    (before.len() != after.len()).then(|| format!("{} records before, {} after", before.len(), after.len()))
}
