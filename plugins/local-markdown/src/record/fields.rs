//! The contract's values in front matter, with the plan's field names.

use memhost_sdk::types::{Scope, SourceKind, SourceRef};
use serde_json::{Map, Value};

/// A scope, without the company.
pub(crate) fn scope_fields(scope: &Scope) -> Map<String, Value> {
    fields([
        ("agentId", scope.agent_id.as_ref()),
        ("actorAgentId", scope.actor_agent_id.as_ref()),
        ("projectId", scope.project_id.as_ref()),
        ("issueId", scope.issue_id.as_ref()),
        ("runId", scope.run_id.as_ref()),
        ("subjectId", scope.subject_id.as_ref()),
        ("sessionKey", scope.session_key.as_ref()),
        ("namespace", scope.namespace.as_ref()),
    ])
}

/// A source, with its company: it is returned unchanged.
pub(crate) fn source_fields(source: &SourceRef) -> Map<String, Value> {
    let kind = Some(source.kind.name().to_owned());
    fields([
        ("kind", kind.as_ref()),
        ("companyId", Some(&source.company_id)),
        ("issueId", source.issue_id.as_ref()),
        ("commentId", source.comment_id.as_ref()),
        ("documentKey", source.document_key.as_ref()),
        ("runId", source.run_id.as_ref()),
        ("activityId", source.activity_id.as_ref()),
        ("externalRef", source.external_ref.as_ref()),
    ])
}

/// The inverse of [`source_fields`]. None if a person omitted the kind.
pub(super) fn source(fields: &Map<String, Value>, company: &str) -> Option<SourceRef> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = text("kind")?;
    Some(SourceRef {
        kind: SourceKind::of_name(&kind),
        company_id: text("companyId").unwrap_or_else(|| company.to_owned()),
        issue_id: text("issueId"),
        comment_id: text("commentId"),
        document_key: text("documentKey"),
        run_id: text("runId"),
        activity_id: text("activityId"),
        external_ref: text("externalRef"),
    })
}

/// A point in time as we or a person wrote it: RFC 3339, or a date alone, which is its midnight in
/// UTC.
pub(crate) fn instant(text: &str) -> Option<jiff::Timestamp> {
    let text = text.trim();
    let midnight = || {
        let date: jiff::civil::Date = text.parse().ok()?;
        date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    };
    text.parse().ok().or_else(midnight)
}

fn fields<const N: usize>(all: [(&str, Option<&String>); N]) -> Map<String, Value> {
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?.clone()))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_comes_back() {
        for kind in [
            "issue_comment",
            "issue_document",
            "issue",
            "run",
            "activity",
            "manual_note",
            "of_tomorrow",
        ] {
            let text = |name: &str| Some(name.to_owned());
            let before = SourceRef {
                kind: SourceKind::of_name(kind),
                company_id: "company".to_owned(),
                issue_id: text("i"),
                comment_id: text("c"),
                document_key: text("d"),
                run_id: text("r"),
                activity_id: text("a"),
                external_ref: text("e"),
            };
            assert_eq!(source(&source_fields(&before), "another"), Some(before));
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(instant("2026-03-01").unwrap().to_string(), "2026-03-01T00:00:00Z");
        assert_eq!(
            instant("2026-03-01T12:00:00+02:00").unwrap().to_string(),
            "2026-03-01T10:00:00Z"
        );
        assert!(instant("last week").is_none());
    }
}
