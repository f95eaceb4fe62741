//! A record and its file: front matter between `---` lines, then the text, byte for byte.
//!
//! We write each field of the front matter as JSON on a line of its own, which is YAML too. A person may write any YAML.

use memhost_sdk::types::{HookContext, Scope, SourceKind, SourceRef};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A record as its file holds it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Front {
    /// The record's id; a file without one is named by its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// When the record was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<String>,
    /// When it was last written through the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
    /// When what it tells of happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) occurred_at: Option<String>,
    /// A short form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// The event that it was captured for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hook_id: Option<String>,
    /// Who and what it is about, without the company, which is the binding's.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) scope: Map<String, Value>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) source: Map<String, Value>,
    /// Free-form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// What a person added: kept.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

/// Front matter and text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Record {
    /// What stands between the `---` lines.
    pub(crate) front: Front,
    /// The rest of the file.
    pub(crate) text: String,
}

const FENCE: &str = "---\n";

impl Record {
    /// The file's content.
    pub(crate) fn encode(&self) -> String {
        let mut out = String::from(FENCE);
        if let Ok(Value::Object(fields)) = serde_json::to_value(&self.front) {
            for (name, value) in fields {
                out.push_str(&format!("{name}: {value}\n"));
            }
        }
        out.push_str(FENCE);
        out.push_str(&self.text);
        out
    }

    /// From a file's content. What has no front matter, or none that can be read, is all text.
    pub(crate) fn decode(content: &str) -> Self {
        let whole = || Self { front: Front::default(), text: content.to_owned() };
        let Some(rest) = content.strip_prefix(FENCE).or_else(|| content.strip_prefix("---\r\n")) else {
            return whole();
        };
        let Some((head, text)) = split_fence(rest) else { return whole() };
        let front = exact(head).or_else(|| serde_saphyr::from_str::<Front>(head).ok());
        match front {
            Some(front) => Self { front, text: text.to_owned() },
            None => {
                log::warn!("a file's front matter is not YAML; it is taken as text until somebody mends it");
                whole()
            }
        }
    }

    /// Where it came from, if that is known.
    pub(crate) fn source(&self, company: &str) -> Option<SourceRef> {
        let text = |name: &str| self.front.source.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(SourceRef {
            kind: source_kind(&text("kind")?)?,
            company_id: company.to_owned(),
            issue_id: text("issueId"),
            comment_id: text("commentId"),
            document_key: text("documentKey"),
            run_id: text("runId"),
            activity_id: text("activityId"),
            external_ref: text("externalRef"),
        })
    }

    /// One of the scope's fields.
    pub(crate) fn scope(&self, name: &str) -> Option<&str> {
        self.front.scope.get(name).and_then(Value::as_str)
    }
}

/// The lines before the next fence and what is behind it.
fn split_fence(rest: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line, "---\n" | "---\r\n" | "---") {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// What we wrote ourselves, read back exactly: a JSON value a line.
fn exact(head: &str) -> Option<Front> {
    let mut fields = Map::new();
    for line in head.lines() {
        let (name, value) = line.split_once(": ")?;
        fields.insert(name.to_owned(), serde_json::from_str(value).ok()?);
    }
    serde_json::from_value(Value::Object(fields)).ok()
}

/// The scope's fields for the front matter.
pub(crate) fn scope_fields(scope: &Scope) -> Map<String, Value> {
    fields([
        ("agentId", scope.agent_id.as_ref()),
        ("projectId", scope.project_id.as_ref()),
        ("issueId", scope.issue_id.as_ref()),
        ("runId", scope.run_id.as_ref()),
        ("subjectId", scope.subject_id.as_ref()),
        ("sessionKey", scope.session_key.as_ref()),
        ("namespace", scope.namespace.as_ref()),
    ])
}

/// The source's fields for the front matter.
pub(crate) fn source_fields(source: &SourceRef) -> Map<String, Value> {
    let kind = KINDS.iter().find(|(kind, _)| *kind == source.kind).map(|(_, name)| (*name).to_owned());
    fields([
        ("kind", kind.as_ref()),
        ("issueId", source.issue_id.as_ref()),
        ("commentId", source.comment_id.as_ref()),
        ("documentKey", source.document_key.as_ref()),
        ("runId", source.run_id.as_ref()),
        ("activityId", source.activity_id.as_ref()),
        ("externalRef", source.external_ref.as_ref()),
    ])
}

/// When a captured thing happened.
pub(crate) fn occurred_at(hook: Option<&HookContext>) -> Option<String> {
    hook.map(|hook| hook.triggered_at.clone())
}

fn fields<const N: usize>(all: [(&str, Option<&String>); N]) -> Map<String, Value> {
    all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?.clone())))).collect()
}

const KINDS: [(SourceKind, &str); 7] = [
    (SourceKind::IssueComment, "issue_comment"),
    (SourceKind::IssueDocument, "issue_document"),
    (SourceKind::Issue, "issue"),
    (SourceKind::Run, "run"),
    (SourceKind::Activity, "activity"),
    (SourceKind::ManualNote, "manual_note"),
    (SourceKind::ExternalDocument, "external_document"),
];

fn source_kind(name: &str) -> Option<SourceKind> {
    KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn records_round_trip(text: String, summary: Option<String>, metadata in prop::collection::btree_map(any::<String>(), json(), 0..4)) {
            let front = Front {
                id: Some("id: with \"quotes\"".to_owned()),
                summary,
                metadata: Some(metadata.into_iter().collect()),
                ..Front::default()
            };
            let record = Record { front, text };
            prop_assert_eq!(Record::decode(&record.encode()), record);
        }
    }

    #[test]
    fn hand_written_front_matter_is_read() {
        let record = Record::decode(
            "---\nid: my-note\nsummary: >\n  folded\n  text\nmood: happy\nmetadata:\n  tags: [a, b]\n---\n# Title\n",
        );
        assert_eq!(record.front.id.as_deref(), Some("my-note"));
        assert_eq!(record.front.summary.as_deref(), Some("folded text\n"));
        assert_eq!(record.front.other["mood"], "happy");
        assert_eq!(record.front.metadata.as_ref().unwrap()["tags"][1], "b");
        assert_eq!(record.text, "# Title\n");
        assert_eq!(Record::decode(&record.encode()), record);
    }

    #[test]
    fn a_file_without_front_matter_is_all_text() {
        for text in ["plain", "", "---\nnever closed", "--- \nx\n---\n"] {
            assert_eq!(Record::decode(text), Record { front: Front::default(), text: text.to_owned() });
        }
    }
}
