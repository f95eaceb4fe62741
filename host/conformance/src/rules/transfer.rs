//! Rules of `transfer`.

mod export;
mod import;

use super::partition::PARTITIONS;
use crate::material::text;
use crate::rule::{Rule, optional, rules, types};
use crate::subject::{Subject, answered};
use crate::verdict::{Stop, failed, skipped};
use memhost_sandbox::OptionalInterface;
use memhost_types::{CaptureMode, RecordWrite, Snippet};

const LOSSLESS: &str =
    "Lossless: importing the lines into an empty binding gives the same records.";

pub(super) const RULES: &[Rule] = rules! { Some(OptionalInterface::Transfer);
    "TRF-01" "An export loses nothing"
        "The suite exports records and imports them into an empty binding. Its list has the same \
         records, with the same \
         text, summary, metadata, source and times."
        optional("export-records", LOSSLESS)
        => binding(import::lossless);
    "TRF-02" "An export consists of whole lines"
        "The export of a scope with records has lines. Each is JSON and ends with a line feed."
        optional("chunk.lines", "Whole lines, each ended by a line feed; at most 1 MiB.")
        => binding(export::whole_lines);
    "TRF-03" "An export without a cursor starts from the beginning"
        "Two exports without a cursor, the second one by a fresh instance, have the same lines."
        optional("export-records", "From the start without a cursor.")
        => binding(export::anew);
    "TRF-04" "A long export has several parts"
        "The suite exports records of more than one MiB together in several parts. After importing \
         all parts, each \
         record exists."
        optional("chunk.next-cursor", "None: these were the last ones.")
        => binding(export::to_the_end).thorough();
    "TRF-05" "An export separates partitions"
        "The export of another agent, subject or namespace contains nothing of this agent's record."
        types("scope", PARTITIONS)
        => binding(export::partitions);
    "TRF-06" "An export contains nothing that was forgotten"
        "The suite forgets one of two records, whatever the effect is. The export contains nothing \
         of its text."
        optional(
            "export-records",
            "Records that wait for a person are included; forgotten records are not.",
        )
        => binding(export::forgotten);
    "TRF-07" "Waiting records are exported, too"
        "The suite exports a waiting record and imports it into an empty binding. It waits there."
        optional(
            "export-records",
            "Records that wait for a person are included; forgotten records are not.",
        )
        => binding(import::waits);
    "TRF-08" "An import happens once"
        "The suite imports lines twice, and imports an export into the binding that it came from. \
         Nothing that already \
         existed counts as `imported`, and the list is unchanged."
        optional("import-records", "Idempotent by record.")
        => binding(import::once);
    "TRF-09" "All lines are imported or none"
        "Valid lines followed by a broken one are refused, and none of their records exists."
        optional("import-records", "All lines of a call or none")
        => binding(import::all_or_none);
    "TRF-10" "A refusal names the line"
        "The first line is broken, then the last. The answer is `invalid-request`, and its field \
         names the line, \
         counted from `lines.0`."
        optional("import-records", "such as `lines.12`; the first one is `lines.0`.")
        => binding(import::names_the_line);
    "TRF-11" "An import moves no record to another partition"
        "An agent imports another agent's lines. Whether or not this is refused, the records are \
         not in its list, and \
         the other agent's list is unchanged."
        optional("import-records", "A record stays in its partition, whoever imports it.")
        => binding(import::stays);
};

/// Writes records with all that a record can have, and answers them as the list has them.
async fn written(subject: &Subject) -> Result<Vec<Snippet>, Stop> {
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
async fn exported(subject: &Subject) -> Result<Vec<String>, Stop> {
    let parts = subject.export(&subject.scope()).await?;
    if parts.is_empty() {
        failed("there are records, but the export has no lines")
    } else {
        Ok(parts)
    }
}

/// An empty binding of the same provider.
async fn fresh(subject: &Subject) -> Result<Subject, Stop> {
    let there = subject.empty().await?;
    match there.list(subject.scope()).await?.len() {
        0 => Ok(there),
        count => skipped(format!("a new binding has {count} records already")),
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

/// The first difference of two lists, if any.
fn difference(before: &[Snippet], after: &[Snippet]) -> Option<String> {
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
