//! The results of the tools, as structured data. Many clients show them to the model, so nothing
//! hides in the texts that others wrote. Ids, paths and addresses are as they are: other calls take
//! them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::uri::uri;
use memhost_types::foreign::{visible, visible_lines};
use memhost_types::{
    BrowsePage, CorrectResponse, Corrected, ForgetEffect, ForgetResponse, Job, JsonObject,
    RecordHandle, Snippet, SourceRef,
};

/// A record by its names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecordRef {
    /// The id that other tools take.
    pub(super) id: String,
    /// The same as a resource.
    pub(super) uri: String,
}

impl RecordRef {
    pub(super) fn of(handle: &RecordHandle) -> Self {
        Self { id: handle.provider_record_id.as_str().to_owned(), uri: uri(handle) }
    }
}

/// Where a memory came from.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Source {
    /// `issue_comment`, `issue_document`, `issue`, `run`, `activity`, `manual_note` or
    /// `external_document`.
    pub(super) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) issue_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) comment_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) activity_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) external_ref: Option<String>,
    /// The principal that asserts it, if the host cannot know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) asserted_by: Option<String>,
}

impl From<&SourceRef> for Source {
    fn from(source: &SourceRef) -> Self {
        Self {
            kind: source.kind.as_str(),
            issue_id: source.issue_id.as_deref().map(shown),
            comment_id: source.comment_id.as_deref().map(shown),
            document_key: source.document_key.as_deref().map(shown),
            run_id: source.run_id.as_deref().map(shown),
            activity_id: source.activity_id.as_deref().map(shown),
            external_ref: source.external_ref.as_deref().map(shown),
            asserted_by: source.asserted_by.as_deref().map(shown),
        }
    }
}

/// `memory_jobs`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobsResult {
    /// Newest first.
    pub(super) jobs: Vec<JobState>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

/// How far a job is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobState {
    /// Names it towards an administrator.
    pub(super) id: String,
    /// `queued`, `running`, `succeeded`, `failed` or `cancelled`.
    pub(super) status: &'static str,
    /// When it was left, RFC 3339.
    pub(super) submitted_at: String,
    /// The source of the material.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Source>,
    /// How many records came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) record_count: Option<u32>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Whether an administrator can queue it again.
    pub(super) can_retry: bool,
}

impl From<&Job> for JobState {
    fn from(job: &Job) -> Self {
        Self {
            id: job.id.0.to_string(),
            status: job.status.as_str(),
            submitted_at: job.submitted_at.to_string(),
            source: job.source.as_ref().map(Source::from),
            record_count: job.record_count,
            error: job.error.as_deref().map(shown),
            can_retry: job.can_retry(),
        }
    }
}

/// A record that was found.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FoundRecord {
    /// The id that other tools take.
    pub(super) id: String,
    /// The same as a resource, whose text is not cut.
    pub(super) uri: String,
    /// The record, or its beginning.
    pub(super) text: String,
    /// Whether the text is only the beginning.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_cut: bool,
    /// The better the higher, within this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) score: Option<f64>,
    /// The record's short form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Source>,
    /// Where its provider says that it came from, where the host does not know the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) claimed_source: Option<Source>,
    /// The principal that wrote it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written_by: Option<String>,
    /// Who corrected it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) corrected: Option<CorrectedBy>,
    /// All of this for the text.
    #[serde(skip)]
    pub(super) provenance: String,
    /// Free-form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<JsonObject>,
    /// RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(super) created_at: Option<String>,
    /// RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(super) updated_at: Option<String>,
    /// When its event happened: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(super) happened_at: Option<String>,
    /// From then on it is in no answer: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub(super) expires_at: Option<String>,
}

/// Who corrected a record, and when.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CorrectedBy {
    /// The principal.
    pub(super) by: String,
    /// RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub(super) at: String,
    /// The record before; the record itself where it was changed in place.
    pub(super) from: String,
}

impl From<&Corrected> for CorrectedBy {
    fn from(corrected: &Corrected) -> Self {
        Self {
            by: shown(&corrected.by.to_string()),
            at: corrected.at.to_string(),
            from: corrected.from.provider_record_id.as_str().to_owned(),
        }
    }
}

impl FoundRecord {
    /// A record whose text is cut after so many characters.
    pub(super) fn of(snippet: Snippet, most: usize) -> Self {
        let provenance = snippet.provenance().join(", ");
        let end = snippet.text.char_indices().nth(most).map(|(at, _)| at);
        let mut text = snippet.text;
        if let Some(end) = end {
            text.truncate(end);
        }
        let RecordRef { id, uri } = RecordRef::of(&snippet.handle);
        Self {
            id,
            uri,
            text: visible_lines(&text).into_owned(),
            is_cut: end.is_some(),
            score: snippet.score.map(shortened),
            summary: snippet.summary.as_deref().map(shown_lines),
            source: snippet.source.as_ref().map(Source::from),
            claimed_source: snippet.claimed_source.as_deref().map(Source::from),
            written_by: snippet.written_by.as_ref().map(|by| shown(&by.to_string())),
            corrected: snippet.corrected.as_ref().map(CorrectedBy::from),
            provenance,
            metadata: snippet.metadata.map(shown_metadata),
            created_at: snippet.created_at.map(|at| at.to_string()),
            updated_at: snippet.updated_at.map(|at| at.to_string()),
            happened_at: snippet.happened_at.map(|at| at.to_string()),
            expires_at: snippet.expires_at.map(|at| at.to_string()),
        }
    }
}

fn shown(text: &str) -> String {
    visible(text).into_owned()
}

/// A text of several lines.
pub(super) fn shown_lines(text: &str) -> String {
    visible_lines(text).into_owned()
}

/// Metadata in whose texts nothing is hidden.
pub(super) fn shown_metadata(metadata: JsonObject) -> JsonObject {
    fn value(found: Value) -> Value {
        match found {
            Value::String(text) => Value::String(shown_lines(&text)),
            Value::Array(elements) => Value::Array(elements.into_iter().map(value).collect()),
            Value::Object(members) => Value::Object(shown_metadata(members)),
            other => other,
        }
    }
    metadata.into_iter().map(|(name, found)| (shown(&name), value(found))).collect()
}

/// A score with three digits that count. More of them say nothing to a model, and each costs
/// tokens.
fn shortened(score: f64) -> f64 {
    format!("{score:.2e}").parse().unwrap_or(score)
}

/// The answer to `memory_search`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SearchResult {
    /// Where the search is recorded.
    pub(super) operation_id: String,
    /// The hits, best first.
    pub(super) records: Vec<FoundRecord>,
    /// The provider's summary of the scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile_summary: Option<String>,
}

/// The answer to `memory_note`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NoteResult {
    /// Where the write is recorded.
    pub(super) operation_id: String,
    /// The record that was written.
    pub(super) record: RecordRef,
    /// Whether a person must approve it first: until then nobody finds it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) waits_for_review: bool,
}

/// The answer to `memory_correct`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CorrectResult {
    /// Where the correction is recorded.
    pub(super) operation_id: String,
    /// The record that now holds.
    pub(super) record: RecordRef,
    /// The record that no longer holds, where another took its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) superseded: Option<RecordRef>,
    /// Whether a person must approve the correction first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) waits_for_review: bool,
}

impl From<CorrectResponse> for CorrectResult {
    fn from(answer: CorrectResponse) -> Self {
        Self {
            operation_id: answer.operation_id.to_string(),
            record: RecordRef::of(&answer.record),
            superseded: answer.superseded.as_ref().map(RecordRef::of),
            waits_for_review: !answer.in_review.is_empty(),
        }
    }
}

/// The effect on one record.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForgetOutcome {
    /// Which.
    pub(super) id: String,
    /// How far it is forgotten.
    pub(super) effect: ForgetEffect,
}

/// The answer to `memory_forget`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForgetResult {
    /// Where it is recorded.
    pub(super) operation_id: String,
    /// One for each id of the call, in its order.
    pub(super) outcomes: Vec<ForgetOutcome>,
}

impl From<ForgetResponse> for ForgetResult {
    fn from(answer: ForgetResponse) -> Self {
        let outcomes = answer.outcomes.into_iter().map(|outcome| ForgetOutcome {
            id: outcome.handle.provider_record_id.as_str().to_owned(),
            effect: outcome.effect,
        });
        Self { operation_id: answer.operation_id.to_string(), outcomes: outcomes.collect() }
    }
}

/// A node of the provider's own tree.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// Names it in the next call.
    pub(super) path: String,
    /// For a person.
    pub(super) label: String,
    /// Whether there is more below it.
    pub(super) has_children: bool,
    /// The record behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) record: Option<RecordRef>,
}

/// The answer to `memory_browse`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrowseResult {
    /// Where it is recorded.
    pub(super) operation_id: String,
    /// The children, in the provider's own order.
    pub(super) nodes: Vec<Node>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

impl From<BrowsePage> for BrowseResult {
    fn from(page: BrowsePage) -> Self {
        let nodes = page.nodes.into_iter().map(|node| Node {
            record: node.record.as_ref().map(RecordRef::of),
            path: node.path,
            label: shown(&node.label),
            has_children: node.has_children,
        });
        Self {
            operation_id: page.operation_id.to_string(),
            nodes: nodes.collect(),
            next_cursor: page.next_cursor,
        }
    }
}
