//! Records and the results of operations, for people.

use crate::page::{Columns, rows};
use crate::texts::{clip, moment, printable, provenance, source_in_full, text};
use memhost_types::{
    CaptureResponse, ContextBundle, CorrectResponse, ExtractionJob, ForgetOutcome, ForgetResponse,
    ForgottenAt, ForgottenScope, GetResponse, InReview, ListPage, RecordHandle, Snippet,
    UpsertResponse, counted,
};

const HITS: &Columns<Snippet> = &[
    ("score", |hit| hit.score.map(|score| format!("{score:.2}")).unwrap_or_default()),
    ("text", |hit| clip(&hit.text, 80)),
    ("source", |hit| provenance(hit.source.as_ref())),
    ("by", |hit| text(&hit.written_by)),
    ("id", |hit| id(&hit.handle)),
];

/// The results of a search.
pub(crate) fn hits(answer: &ContextBundle) -> String {
    rows(&answer.snippets, HITS)
}

const RECORDS: &Columns<Snippet> = &[
    ("id", |record| id(&record.handle)),
    ("text", |record| clip(&record.text, 60)),
    ("source", |record| provenance(record.source.as_ref())),
    ("by", |record| text(&record.written_by)),
    ("created", |record| moment(record.created_at)),
];

/// A page of records.
pub(crate) fn records(answer: &ListPage) -> String {
    let shown = rows(&answer.items, RECORDS);
    match answer.truncated && answer.next_cursor.is_none() {
        true => {
            format!("{shown}\n\nthe list may be incomplete: this provider cannot list all records")
        }
        false => shown,
    }
}

/// One record.
pub(crate) fn record(answer: &GetResponse) -> String {
    let Some(record) = &answer.record else { return "no record".to_owned() };
    let source = record.source.as_ref();
    let mut lines = Vec::new();
    for (label, value) in [
        ("id", id(&record.handle)),
        ("source", source_in_full(source)),
        ("claimed", source_in_full(record.claimed_source.as_deref())),
        ("written", record.written_by.as_ref().map(|by| format!("by {by}")).unwrap_or_default()),
        ("asserted", text(&source.and_then(|source| source.asserted_by.as_ref()))),
        ("corrected", corrected(record)),
        ("happened", text(&record.happened_at)),
        ("created", text(&record.created_at)),
        ("updated", text(&record.updated_at)),
        ("expires", text(&record.expires_at)),
        ("summary", text(&record.summary)),
        ("metadata", text(&record.metadata)),
    ] {
        if !value.is_empty() {
            lines.push(format!("{label:<9} {value}"));
        }
    }
    printable(&format!("{}\n\n{}", lines.join("\n"), record.text))
}

/// Who corrected a record, when, and from which one; empty where that is not known.
fn corrected(record: &Snippet) -> String {
    let corrected = record.corrected.as_ref();
    let said = corrected.map(|corrected| {
        format!("by {} at {} from {}", corrected.by, corrected.at, id(&corrected.from))
    });
    said.unwrap_or_default()
}

const OUTCOMES: &Columns<ForgetOutcome> =
    &[("id", |outcome| id(&outcome.handle)), ("effect", |outcome| text(&outcome.effect))];

/// The outcome for each record of a forget.
pub(crate) fn forgotten(answer: &ForgetResponse) -> String {
    rows(&answer.outcomes, OUTCOMES)
}

const FORGOTTEN: &Columns<ForgottenAt> = &[
    ("binding", |at| text(&at.binding_key)),
    ("forgotten", |at| text(&at.forgotten)),
    ("hidden", |at| text(&at.hidden)),
    ("protected", |at| text(&at.protected)),
    ("error", |at| text(&at.error)),
];

/// What each binding has forgotten of a scope.
pub(crate) fn forgotten_scope(answer: &ForgottenScope) -> String {
    let mut shown = rows(&answer.bindings, FORGOTTEN);
    let discarded = answer.discarded.len();
    if discarded > 0 {
        let deliveries = counted(discarded, "delivery that had", "deliveries that had");
        shown.push_str(&format!("\n\ndiscarded {deliveries} not been captured"));
    }
    shown
}

/// The records and jobs of a capture.
pub(crate) fn captured(answer: &CaptureResponse) -> String {
    let mut lines = written("captured", &answer.records);
    let job = |job: &ExtractionJob| format!("queued extraction job {}", job.provider_job_id);
    lines.extend(answer.jobs.iter().map(job));
    if let Some(held) = &answer.held {
        lines.push(format!("held as delivery {}: {}", text(&held.delivery_id), held.reason));
    }
    lines.extend(answer.in_review.iter().map(in_review));
    lines.join("\n")
}

/// The records of an upsert, after the word for what was done.
pub(crate) fn upserted(what: &str, answer: &UpsertResponse) -> String {
    let mut lines = written(what, &answer.records);
    lines.extend(answer.in_review.iter().map(in_review));
    lines.join("\n")
}

fn written(what: &str, records: &[RecordHandle]) -> Vec<String> {
    records.iter().map(|record| format!("{what} {}", id(record))).collect()
}

/// What became of a correction.
pub(crate) fn corrected_as(answer: &CorrectResponse) -> String {
    let waiting: Vec<String> = answer.in_review.iter().map(in_review).collect();
    match waiting.is_empty() {
        true => format!("corrected {}", id(&answer.record)),
        false => waiting.join("\n"),
    }
}

/// A record or a change that a person must approve first.
fn in_review(item: &InReview) -> String {
    let (record, review) = (id(&item.handle), text(&item.review_id));
    format!("{record} waits for review {review}: {}", item.reason)
}

fn id(handle: &RecordHandle) -> String {
    handle.provider_record_id.to_string()
}
