//! Records and the results of operations, for people.

use serde_json::Value;

use crate::output::{clip, moment, printable, provenance, table, text};
use crate::page::items;
use memhost_types::counted;

/// The results of a search.
pub(crate) fn hits(answer: &Value) -> String {
    let row = |snippet: &Value| {
        let score =
            snippet["score"].as_f64().map(|score| format!("{score:.2}")).unwrap_or_default();
        vec![score, clip(&text(snippet, "/text"), 80), provenance(snippet), id(snippet)]
    };
    table(&["score", "text", "source", "id"], items(answer, "snippets").iter().map(row).collect())
}

/// A page of records.
pub(crate) fn records(answer: &Value) -> String {
    let row = |item: &Value| {
        vec![
            id(item),
            clip(&text(item, "/text"), 60),
            provenance(item),
            moment(&text(item, "/createdAt")),
        ]
    };
    let shown = table(
        &["id", "text", "source", "created"],
        items(answer, "items").iter().map(row).collect(),
    );
    match answer["truncated"] == true && answer["nextCursor"].is_null() {
        true => {
            format!("{shown}\n\nthe list may be incomplete: this provider cannot list all records")
        }
        false => shown,
    }
}

/// One record.
pub(crate) fn record(answer: &Value) -> String {
    let record = &answer["record"];
    let mut lines = Vec::new();
    for (label, value) in [
        ("id", id(record)),
        ("source", provenance(record)),
        ("asserted", text(record, "/source/assertedBy")),
        ("corrected", corrected(record)),
        ("created", text(record, "/createdAt")),
        ("updated", text(record, "/updatedAt")),
        ("summary", text(record, "/summary")),
        ("metadata", text(record, "/metadata")),
    ] {
        if !value.is_empty() {
            lines.push(format!("{label:<9} {value}"));
        }
    }
    printable(&format!("{}\n\n{}", lines.join("\n"), text(record, "/text")))
}

/// Who corrected a record, and from which one; empty where that is not known.
fn corrected(record: &Value) -> String {
    let (by, from) =
        (text(record, "/corrected/by"), text(record, "/corrected/from/providerRecordId"));
    if by.is_empty() { by } else { format!("by {by} from {from}") }
}

/// The outcome for each record of a forget.
pub(crate) fn forgotten(answer: &Value) -> String {
    let row = |outcome: &Value| vec![id(outcome), text(outcome, "/effect")];
    table(&["id", "effect"], items(answer, "outcomes").iter().map(row).collect())
}

/// What each binding has forgotten of a scope.
pub(crate) fn forgotten_scope(answer: &Value) -> String {
    let row = |at: &Value| {
        let count = |name: &str| at[name].as_u64().unwrap_or_default().to_string();
        vec![text(at, "/bindingKey"), count("forgotten"), count("hidden"), text(at, "/error")]
    };
    let bindings = items(answer, "bindings").iter().map(row).collect();
    let mut shown = table(&["binding", "forgotten", "hidden", "error"], bindings);
    let discarded = items(answer, "discarded").len();
    if discarded > 0 {
        let deliveries = counted(discarded, "delivery that had", "deliveries that had");
        shown.push_str(&format!("\n\ndiscarded {deliveries} not been captured"));
    }
    shown
}

/// The records and jobs of a write.
pub(crate) fn written(what: &str, answer: &Value) -> String {
    let records = items(answer, "records").iter();
    let mut lines: Vec<String> =
        records.map(|record| format!("{what} {}", text(record, "/providerRecordId"))).collect();
    for job in items(answer, "jobs") {
        lines.push(format!("queued extraction job {}", text(job, "/providerJobId")));
    }
    if let Some(reason) = answer["held"]["reason"].as_str() {
        lines.push(format!("held as delivery {}: {reason}", text(answer, "/held/deliveryId")));
    }
    lines.extend(in_review(answer));
    lines.join("\n")
}

/// What became of a correction.
pub(crate) fn corrected_as(answer: &Value) -> String {
    let waiting: Vec<String> = in_review(answer).collect();
    match waiting.is_empty() {
        true => format!("corrected {}", text(answer, "/record/providerRecordId")),
        false => waiting.join("\n"),
    }
}

/// Records and changes that a person must approve first.
fn in_review(answer: &Value) -> impl Iterator<Item = String> + '_ {
    items(answer, "inReview").iter().map(|item| {
        let (record, review) = (id(item), text(item, "/reviewId"));
        format!("{record} waits for review {review}: {}", text(item, "/reason"))
    })
}

fn id(value: &Value) -> String {
    text(value, "/handle/providerRecordId")
}
