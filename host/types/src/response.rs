//! What callers get back.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::named::named;
use super::{
    DeliveryId, HookKind, JsonObject, OperationId, Principal, RecordHandle, RecordRow, ReviewId,
    Scope, SourceRef, Usage,
};

/// The meaning of a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreKind {
    /// 0 to 1, comparable between results.
    Similarity,
    /// 0 to 1, comparable only within one result.
    Rank,
}

/// A record as it is returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct Snippet {
    pub handle: RecordHandle,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Absent where there is no score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score_kind: Option<ScoreKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// When its event happened, where the host knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub happened_at: Option<Timestamp>,
    /// From then on it is in no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The scope that it was written in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// What its provider says of its source, where the host does not know the same: it did not see
    /// the record written, or knows another source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_source: Option<Box<SourceRef>>,
    /// The principal that wrote it last, where the host knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<Principal>,
    /// Who corrected it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrected: Option<Corrected>,
}

impl Snippet {
    /// About how many bytes its text, its summary and its metadata have.
    pub fn weight(&self) -> usize {
        let metadata =
            self.metadata.iter().flatten().map(|(name, value)| name.len() + weight_of(value));
        self.text.len() + self.summary.as_ref().map_or(0, String::len) + metadata.sum::<usize>()
    }
}

fn weight_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight_of).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + weight_of(value)).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// How a record took the place of another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Corrected {
    /// The principal that asked for it.
    pub by: Principal,
    /// The record before; the record itself where its provider changed it in place.
    pub from: RecordHandle,
    /// The operation that made it.
    pub operation_id: OperationId,
    /// When it began.
    pub at: Timestamp,
}

named!(
    /// The status of an extraction job.
    #[allow(missing_docs, reason = "the plan's names say it")]
    JobStatus, "status" {
        Queued = "queued",
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Cancelled = "cancelled",
    }
);

/// Extraction that goes on after the call that caused it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct ExtractionJob {
    pub provider_job_id: String,
    pub status: JobStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_kind: Option<HookKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// How many records came of it; a succeeded job with 0 found nothing worth keeping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_count: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether a job that failed or was cancelled may be tried again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// The answer to `capture`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct CaptureResponse {
    pub operation_id: OperationId,
    pub records: Vec<RecordHandle>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<ExtractionJob>,
    /// The host keeps it and will deliver it later; absent if the provider has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// Records that wait for a person: no answer has them before that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_review: Vec<InReview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// A record that was written, or is to be changed, and that a person must approve first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InReview {
    /// Which record.
    pub handle: RecordHandle,
    /// Its item of the review queue.
    pub review_id: ReviewId,
    /// Why it waits.
    pub reason: String,
}

/// A capture that the host keeps for now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// The delivery that shows its state.
    pub delivery_id: DeliveryId,
    /// Why.
    pub reason: String,
}

/// The answer to `upsertRecords`: one handle for each record of the request, in its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct UpsertResponse {
    pub operation_id: OperationId,
    pub records: Vec<RecordHandle>,
    /// Those of them that wait for a person. One that was there already stays as it is until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_review: Vec<InReview>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// The answer to `query`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct ContextBundle {
    pub operation_id: OperationId,
    pub snippets: Vec<Snippet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile_summary: Option<String>,
    /// Why something of the summary is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// One page of `list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListPage {
    /// The operation that made it.
    pub operation_id: OperationId,
    /// In the provider's own stable order.
    pub items: Vec<Snippet>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// There may be more, but the system behind the provider offers no way to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Its usage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// One part of a hit's score, in the provider's own terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// Such as `bm25.text` or `recency`.
    pub name: String,
    /// Finite; what it means is the provider's.
    pub value: f64,
}

/// How one hit came to its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HitTrace {
    /// Which record.
    pub handle: RecordHandle,
    /// At most 100.
    pub contributions: Vec<Contribution>,
}

/// The answer to `explain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The operation that made it.
    pub operation_id: OperationId,
    /// How the provider read the query.
    pub query: Value,
    /// In the order of the query's result.
    pub hits: Vec<HitTrace>,
}

/// A node of a provider's own tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowseNode {
    /// Names it in the next `browse`; opaque, at most 4 KiB.
    pub path: String,
    /// For a person, at most 512 bytes.
    pub label: String,
    /// Whether `browse` with its path finds more.
    pub has_children: bool,
    /// The record behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordHandle>,
}

/// One page of `browse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowsePage {
    /// The operation that made it.
    pub operation_id: OperationId,
    /// In the provider's own stable order.
    pub nodes: Vec<BrowseNode>,
    /// Where the next page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One part of `export`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportPage {
    /// The operation that made it.
    pub operation_id: OperationId,
    /// JSON Lines as the provider writes them, at most 1 MiB; only the same provider reads them.
    pub lines: String,
    /// Where the next part begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The result of `import`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportResponse {
    /// The operation that took them in.
    pub operation_id: OperationId,
    /// Lines that made or changed a record.
    pub imported: u32,
    /// Lines that were there already.
    pub unchanged: u32,
}

/// How far a record is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgetEffect {
    /// Gone, with everything that was derived from it.
    Hard,
    /// Hidden, and still stored.
    Soft,
    /// Hidden here, and readable in a history elsewhere.
    HistoryKept,
    /// There was no such record in this scope.
    NotFound,
}

/// The effect on one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgetOutcome {
    /// Which record.
    pub handle: RecordHandle,
    /// How far it is forgotten.
    pub effect: ForgetEffect,
}

/// The answer to `forget`: one outcome for each handle of the request, in its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct ForgetResponse {
    pub operation_id: OperationId,
    pub outcomes: Vec<ForgetOutcome>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// The answer to `correct`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorrectResponse {
    /// The operation that made it.
    pub operation_id: OperationId,
    /// The record that now holds.
    pub record: RecordHandle,
    /// The record that no longer holds, where another took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<RecordHandle>,
    /// Where the correction waits for a person. The record stays as it is until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_review: Vec<InReview>,
    /// Its usage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// The answer to `get`; the record is absent where there is none in this scope.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct GetResponse {
    pub operation_id: OperationId,
    pub record: Option<Snippet>,
    /// The host's row of the record; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<RecordRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}
