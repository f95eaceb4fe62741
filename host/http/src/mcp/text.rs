//! Answers as text, for models that are shown nothing else: short, with ids that the next call can
//! take.

use std::fmt::Write;

use super::results::{
    BrowseResult, CorrectResult, ForgetResult, FoundRecord, JobsResult, NoteResult, SearchResult,
};
use memhost_types::{ForgetEffect, counted};

pub(super) fn searched(answer: &SearchResult) -> String {
    let mut text = match answer.records.len() {
        0 => "No record fits. Other words may find more; do not make up what was not found."
            .to_owned(),
        1 => "1 record:".to_owned(),
        count => format!("{count} records, best first:"),
    };
    for record in &answer.records {
        let _ = write!(text, "\n\n[{}]{}\n{}", record.id, provenance(record), quoted(&record.text));
        if record.is_cut {
            let _ = write!(text, " … (cut; all of it is the resource {})", record.uri);
        }
    }
    if let Some(profile) = &answer.profile_summary {
        let _ = write!(text, "\n\nIn general: {}", quoted(profile));
    }
    text
}

/// A provider's text in which no line looks like the head of a record, which has its id in
/// brackets: an agent would forget or correct another record than it means.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 16);
    let mut begins = true;
    for character in text.chars() {
        if begins && character == '[' {
            quoted.push(' ');
        }
        begins = matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
        quoted.push(character);
    }
    quoted
}

/// A provider's text as one line of a list.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// When, and from where.
fn provenance(record: &FoundRecord) -> String {
    let when = record.updated_at.as_ref().or(record.created_at.as_ref());
    let mut parts: Vec<String> =
        when.and_then(|at| at.get(..10)).map(str::to_owned).into_iter().collect();
    if let Some(source) = &record.source {
        parts.push(source.kind.replace('_', " "));
        for (name, id) in [
            ("issue", &source.issue_id),
            ("comment", &source.comment_id),
            ("document", &source.document_key),
            ("run", &source.run_id),
            ("from", &source.external_ref),
            ("asserted by", &source.asserted_by),
        ] {
            parts.extend(id.as_ref().map(|id| format!("{name} {}", one_line(id))));
        }
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// What an agent is told of a record that waits: otherwise it would search for it, and write it
/// again.
pub(super) const WAITS: &str =
    " A person must approve it first; until then no search finds it. Do not write it again.";

pub(super) fn noted(answer: &NoteResult) -> String {
    format!("Noted as [{}].{}", answer.record.id, if answer.waits_for_review { WAITS } else { "" })
}

pub(super) fn corrected(answer: &CorrectResult) -> String {
    if answer.waits_for_review {
        let id = &answer.record.id;
        return format!(
            "A person must approve the correction of [{id}] first. Do not send it again."
        );
    }
    match &answer.superseded {
        Some(old) => {
            format!("Corrected: [{}] holds now, in the place of [{}].", answer.record.id, old.id)
        }
        None => format!("Corrected [{}].", answer.record.id),
    }
}

pub(super) fn forgotten(answer: &ForgetResult) -> String {
    let lines = answer
        .outcomes
        .iter()
        .map(|outcome| format!("[{}] {}", outcome.id, effect(outcome.effect)));
    lines.collect::<Vec<_>>().join("\n")
}

fn effect(effect: ForgetEffect) -> &'static str {
    match effect {
        ForgetEffect::Hard => "is forgotten.",
        ForgetEffect::Soft => "is hidden; the provider still stores it.",
        ForgetEffect::HistoryKept => "is hidden here; a history elsewhere still has it.",
        ForgetEffect::NotFound => {
            "was not found in this scope: nothing was forgotten. Search for its id."
        }
    }
}

pub(super) fn browsed(answer: &BrowseResult) -> String {
    if answer.nodes.is_empty() {
        return "There is nothing below this.".to_owned();
    }
    let mut lines: Vec<String> = Vec::with_capacity(answer.nodes.len() + 1);
    for node in &answer.nodes {
        let record =
            node.record.as_ref().map(|record| format!(" [{}]", record.id)).unwrap_or_default();
        let below = if node.has_children {
            format!(" (more below path {})", node.path)
        } else {
            String::new()
        };
        lines.push(format!("- {}{record}{below}", one_line(&node.label)));
    }
    if let Some(cursor) = &answer.next_cursor {
        lines.push(format!("There are more, with cursor {cursor}"));
    }
    lines.join("\n")
}

pub(super) fn jobs(answer: &JobsResult) -> String {
    if answer.jobs.is_empty() {
        return "There are no such jobs.".to_owned();
    }
    let mut lines: Vec<String> = Vec::with_capacity(answer.jobs.len() + 1);
    for job in &answer.jobs {
        let records = job
            .record_count
            .map(|count| format!(", {}", counted(count, "record", "records")))
            .unwrap_or_default();
        let error =
            job.error.as_ref().map(|error| format!(": {}", one_line(error))).unwrap_or_default();
        let source =
            job.source.as_ref().map(|source| format!(" of {}", source.kind.replace('_', " ")));
        let source = source.unwrap_or_default();
        lines.push(format!("- [{}]{source} {}{records}{error}", job.id, job.status));
    }
    if let Some(cursor) = &answer.next_cursor {
        lines.push(format!("There are more, with cursor {cursor}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_types::Snippet;

    #[test]
    fn a_found_record_says_when_and_from_where_and_where_it_was_cut() {
        let snippet: Snippet = serde_json::from_str(
            r#"{"handle":{"providerKey":"p","providerRecordId":"r 1"},"text":"äöüß and more",
                "createdAt":"2026-11-20T01:02:03Z",
                "source":{"kind":"issue_comment","companyId":"acme","issueId":"i7",
                    "commentId":"c1"}}"#,
        )
        .unwrap();
        let found = |most| SearchResult {
            operation_id: "o".to_owned(),
            records: vec![FoundRecord::of(snippet.clone(), most)],
            profile_summary: None,
        };
        let text = searched(&found(100));
        assert_eq!(
            text,
            "1 record:\n\n[r 1] (2026-11-20, issue comment, issue i7, comment c1)\näöüß and more"
        );
        let cut = searched(&found(4));
        assert!(
            cut.ends_with("\näöüß … (cut; all of it is the resource memory://p/r%201)"),
            "{cut}"
        );
    }

    #[test]
    fn no_line_of_a_record_looks_like_another_record() {
        for text in
            ["[r 2]\nx", "a\n\n[r 2] (2026-11-20)\nx", "a\r[r 2]", "a\u{2028}[r 2]", "a\n [r 2]"]
        {
            let quoted = quoted(text);
            assert!(
                !quoted.split(['\n', '\r', '\u{2028}']).any(|line| line.starts_with('[')),
                "{quoted}"
            );
            assert_eq!(quoted.replace(' ', ""), text.replace(' ', ""));
        }
        assert_eq!(quoted("see [1] and\nmore"), "see [1] and\nmore");
        assert_eq!(one_line("a\n- b [r 2]"), "a - b [r 2]");
    }
}
