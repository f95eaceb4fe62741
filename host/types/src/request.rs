//! What callers ask.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    BindingKey, HookContext, JsonObject, RecordFilter, RecordHandle, RecordId, Scope,
    SourcePayload, SourceRef, Visibility,
};

mod check;

/// Raw material, or the record itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureMode {
    /// The provider decides what becomes a record.
    #[default]
    CaptureResidue,
    /// The payload is the record to keep.
    CaptureRecord,
}

/// The purpose of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// For the start of a run, within few tokens.
    AgentPreamble,
    /// For one question.
    #[default]
    Answer,
    /// For a person who looks around.
    Browse,
}

/// `capture`: something happened. Without a binding key the caller's active binding takes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct CaptureRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    pub source: SourceRef,
    pub payload: SourcePayload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookContext>,
    #[serde(default)]
    pub mode: CaptureMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata: Option<JsonObject>,
    /// The readers of the resulting records; absent: as the binding's policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// Whether it takes the place of what came from the same source before, such as an earlier
    /// revision of a document: that is forgotten once a record of this counts. Needs the right to
    /// forget, and takes what the caller could forget.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces_source: bool,
}

/// One record to write. `id` is ours: the plan's write has none, and is valid as it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct RecordWrite {
    /// Absent: a new record. Present: that record is replaced, or made under this id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RecordId>,
    #[schemars(length(max = super::limits::MAX_TEXT_BYTES))]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_SUMMARY_BYTES))]
    pub summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata: Option<JsonObject>,
    /// Absent: the request's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// When its content became known; absent: now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    /// When the record leaves all answers; absent: it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

impl RecordWrite {
    /// A new record of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// `upsertRecords`: curated writes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct UpsertRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    #[schemars(transform = super::schema::items)]
    pub records: Vec<RecordWrite>,
    /// The readers of the records; absent: as the binding's policy says. A record that is
    /// replaced keeps its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
}

/// `query`: find what fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct QueryRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    #[schemars(length(max = super::limits::MAX_QUERY_BYTES))]
    pub query: String,
    /// 1 to 1,000; 10 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::top_k)]
    pub top_k: Option<u32>,
    #[serde(default)]
    pub intent: Intent,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata_filter: Option<JsonObject>,
    /// How many tokens of the answer the caller can use, 1 to 100,000: the provider may answer less
    /// because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100000))]
    pub token_budget: Option<u32>,
    /// Only these records; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<RecordFilter>,
}

/// `list`: everything, page by page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct ListRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::cursor)]
    pub cursor: Option<String>,
    /// 1 to 1,000; 50 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::page_size)]
    pub limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::free_json)]
    pub metadata_filter: Option<JsonObject>,
    /// Only these records; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<RecordFilter>,
}

/// `browse`: the children of a node of the provider's own tree. Needs a provider with the interface
/// `browse`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BrowseRequest {
    /// Without one the caller's active binding answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// The scope of the tree.
    pub scope: Scope,
    /// As the provider named it, at most 4 KiB; empty: the root.
    #[serde(default)]
    #[schemars(length(max = super::limits::MAX_NODE_PATH_BYTES))]
    pub path: String,
    /// Where the page begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::cursor)]
    pub cursor: Option<String>,
    /// 1 to 1,000; 50 where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::page_size)]
    pub limit: Option<u32>,
}

/// `get`: one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct GetRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    pub handle: RecordHandle,
}

/// `forget`: make records unreachable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct ForgetRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    #[schemars(transform = super::schema::items)]
    pub handles: Vec<RecordHandle>,
}

/// How a record is to be corrected: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CorrectionPatch {
    /// In natural language, for providers that understand it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = super::limits::MAX_QUERY_BYTES))]
    pub instruction: Option<String>,
    /// The record as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordWrite>,
}

/// `correct`: somebody said that a record is wrong. Needs a provider with the interface
/// `correction`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the plan's names say it")]
pub struct CorrectRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    pub scope: Scope,
    pub handle: RecordHandle,
    pub patch: CorrectionPatch,
}

/// `export`: a part of everything that a binding holds, in the provider's own lines. Needs a
/// provider with the interface `transfer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportRequest {
    /// Without one the caller's active binding answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// The scope of the records; the company alone: all of them.
    pub scope: Scope,
    /// Where the part begins: `nextCursor` of the part before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = super::schema::cursor)]
    pub cursor: Option<String>,
}

/// `import`: whole lines of an export of the same provider. Needs a provider with the interface
/// `transfer`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportRequest {
    /// Without one the caller's active binding takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_key: Option<BindingKey>,
    /// The scope of the imported records.
    pub scope: Scope,
    /// JSON Lines, at most 1 MiB; all of them are imported or none.
    #[schemars(length(max = super::limits::MAX_TRANSFER_BYTES))]
    pub lines: String,
}
