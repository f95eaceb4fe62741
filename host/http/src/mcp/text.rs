//! Answers as text, for models that are shown nothing else: short, with ids that the next call can take.

use std::fmt::Write;

use super::results::{
    BrowseResult, CorrectResult, ForgetResult, FoundRecord, JobsResult, NoteResult, RemoveResult, SaveResult,
    SearchResult,
};
use memhost_types::ForgetEffect;

pub(super) fn searched(answer: &SearchResult) -> String {
    let mut text = match answer.records.len() {
        0 => "No record fits. Other words may find more; do not make up what was not found.".to_owned(),
        1 => "1 record:".to_owned(),
        count => format!("{count} records, best first:"),
    };
    for record in &answer.records {
        let _ = write!(text, "\n\n[{}]{}\n{}", record.id, provenance(record), record.text);
        if record.is_cut {
            let _ = write!(text, " … (cut; all of it is the resource {})", record.uri);
        }
    }
    if let Some(profile) = &answer.profile_summary {
        let _ = write!(text, "\n\nIn general: {profile}");
    }
    text
}

/// When, and from where.
fn provenance(record: &FoundRecord) -> String {
    let when = record.updated_at.as_ref().or(record.created_at.as_ref());
    let mut parts: Vec<String> = when.and_then(|at| at.get(..10)).map(str::to_owned).into_iter().collect();
    if let Some(source) = &record.source {
        parts.push(source.kind.replace('_', " "));
        for (name, id) in [
            ("issue", &source.issue_id),
            ("comment", &source.comment_id),
            ("document", &source.document_key),
            ("run", &source.run_id),
            ("from", &source.external_ref),
        ] {
            parts.extend(id.as_ref().map(|id| format!("{name} {id}")));
        }
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

pub(super) fn noted(answer: &NoteResult) -> String {
    format!("Noted as [{}].", answer.record.id)
}

pub(super) fn corrected(answer: &CorrectResult) -> String {
    match &answer.superseded {
        Some(old) => format!("Corrected: [{}] holds now, in the place of [{}].", answer.record.id, old.id),
        None => format!("Corrected [{}].", answer.record.id),
    }
}

pub(super) fn forgotten(answer: &ForgetResult) -> String {
    let lines = answer.outcomes.iter().map(|outcome| format!("[{}] {}", outcome.id, effect(outcome.effect)));
    lines.collect::<Vec<_>>().join("\n")
}

fn effect(effect: ForgetEffect) -> &'static str {
    match effect {
        ForgetEffect::Hard => "is forgotten.",
        ForgetEffect::Soft => "is hidden; the provider still stores it.",
        ForgetEffect::HistoryKept => "is hidden here; a history elsewhere still has it.",
        ForgetEffect::NotFound => "was not found in this scope: nothing was forgotten. Search for its id.",
    }
}

pub(super) fn browsed(answer: &BrowseResult) -> String {
    if answer.nodes.is_empty() {
        return "There is nothing below this.".to_owned();
    }
    let mut lines: Vec<String> = Vec::with_capacity(answer.nodes.len() + 1);
    for node in &answer.nodes {
        let record = node.record.as_ref().map(|record| format!(" [{}]", record.id)).unwrap_or_default();
        let below = if node.has_children { format!(" (more below path {})", node.path) } else { String::new() };
        lines.push(format!("- {}{record}{below}", node.label));
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
        let records = job.record_count.map(|count| format!(", {count} records")).unwrap_or_default();
        let error = job.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let source = job.source.as_ref().map(|source| format!(" of {}", source.kind.replace('_', " ")));
        let source = source.unwrap_or_default();
        lines.push(format!("- [{}]{source} {}{records}{error}", job.id, job.status));
    }
    if let Some(cursor) = &answer.next_cursor {
        lines.push(format!("There are more, with cursor {cursor}"));
    }
    lines.join("\n")
}

pub(super) fn saved(answer: &SaveResult) -> String {
    format!("Saved as [{}].", answer.fact_id)
}

pub(super) fn removed(answer: &RemoveResult) -> String {
    let id = &answer.fact_id;
    if answer.is_removed {
        format!("Removed [{id}].")
    } else {
        format!("There is no fact [{id}]: nothing was removed.")
    }
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
                "source":{"kind":"issue_comment","companyId":"acme","issueId":"i7","commentId":"c1"}}"#,
        )
        .unwrap();
        let found = |most| SearchResult {
            operation_id: "o".to_owned(),
            records: vec![FoundRecord::of(snippet.clone(), most)],
            profile_summary: None,
        };
        let text = searched(&found(100));
        assert_eq!(text, "1 record:\n\n[r 1] (2026-11-20, issue comment, issue i7, comment c1)\näöüß and more");
        let cut = searched(&found(4));
        assert!(cut.ends_with("\näöüß … (cut; all of it is the resource memory://p/r%201)"), "{cut}");
    }
}
