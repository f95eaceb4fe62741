//! A memory item of Apropos, and how it is stored as a record.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::owned::{OwnerRecords, id, invalid, text};
use memhost_http::Problem;
use memhost_types::{JsonObject, RecordWrite, Snippet};

/// The most tags, and the longest one in characters.
const MAX_TAGS: usize = 32;
const MAX_TAG_CHARS: usize = 64;

/// What an item is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ItemType {
    #[default]
    Fact,
    Preference,
    Decision,
    TaskContext,
    ToolObservation,
}

/// Who sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Visibility {
    #[default]
    Project,
    Global,
}

/// Where it is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    #[default]
    Manual,
    Inferred,
    Imported,
}

/// An item as it is sent. Fields that the host sets are accepted by an import only.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewItem {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    agent_kind: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<ItemType>,
    content: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    visibility: Option<Visibility>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    created_at: Option<Timestamp>,
    #[serde(default)]
    updated_at: Option<Timestamp>,
    #[serde(default)]
    source: Option<Source>,
    // An export of a later version may have these. The provider computes its own.
    #[serde(default, rename = "embedding")]
    _embedding: Option<serde_json::Value>,
    #[serde(default, rename = "embeddingModel")]
    _embedding_model: Option<serde_json::Value>,
}

/// The id of an item of a project. It begins with the project's mark, so that an import cannot name an item of another
/// project. An id of this project stays as it is; any other id is always mapped to the same new one.
fn record_id(project: &str, given: Option<&str>) -> String {
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
    let mark = format!("apropos-{}-", &hash(project)[..16]);
    match given {
        None => format!("{mark}{}", Uuid::now_v7()),
        Some(given) if given.starts_with(&mark) => given.to_owned(),
        Some(given) => format!("{mark}{}", hash(given)),
    }
}

/// An item as it is answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Item {
    pub(super) id: String,
    project_id: String,
    session_id: Option<String>,
    agent_kind: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: ItemType,
    pub(super) content: String,
    tags: Vec<String>,
    visibility: Visibility,
    confidence: f64,
    created_at: Option<Timestamp>,
    updated_at: Option<Timestamp>,
    source: Source,
    /// The score of a search, if the provider returns one.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
}

impl NewItem {
    /// The record to write. `at` is the item's place in the request, for errors; empty for a single one.
    pub(super) fn record(self, records: &OwnerRecords, at: &str, is_import: bool) -> Result<RecordWrite, Problem> {
        let field = |name: &str| format!("{at}{name}");
        if self.content.trim().is_empty() {
            return Err(invalid(&field("content"), "is empty"));
        }
        if self.project_id.as_ref().is_some_and(|project| *project != records.owner.1) {
            return Err(invalid(&field("projectId"), "is not the project of the address"));
        }
        let confidence = self.confidence.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(invalid(&field("confidence"), format!("is {confidence}; 0 to 1 is allowed")));
        }
        if self.tags.len() > MAX_TAGS || self.tags.iter().any(|tag| tag.chars().count() > MAX_TAG_CHARS) {
            let most = format!("has more than {MAX_TAGS} tags, or one of more than {MAX_TAG_CHARS} characters");
            return Err(invalid(&field("tags"), most));
        }
        for (name, value) in [("sessionId", &self.session_id), ("agentKind", &self.agent_kind)] {
            if let Some(value) = value {
                id(&field(name), value)?;
            }
        }
        if !is_import && (self.id.is_some() || self.created_at.is_some() || self.updated_at.is_some()) {
            let fields = if self.id.is_some() { "id" } else { "createdAt" };
            return Err(invalid(fields, "is set by the host; only an import may send it"));
        }
        if let Some(given) = &self.id {
            id(&field("id"), given)?;
        }
        let record_id = record_id(&records.owner.1, self.id.as_deref());
        let now = Timestamp::now();
        let mut metadata = records.filter();
        let source = self.source.unwrap_or(if is_import { Source::Imported } else { Source::Manual });
        let created_at = self.created_at.unwrap_or(now);
        for (name, value) in [
            ("type", json!(self.kind.unwrap_or_default())),
            ("tags", json!(self.tags)),
            ("visibility", json!(self.visibility.unwrap_or_default())),
            ("confidence", json!(confidence)),
            ("source", json!(source)),
            ("createdAt", json!(created_at)),
            ("updatedAt", json!(self.updated_at.unwrap_or(created_at))),
        ] {
            metadata.insert(name.to_owned(), value);
        }
        for (name, value) in [("sessionId", self.session_id), ("agentKind", self.agent_kind)] {
            if let Some(value) = value {
                metadata.insert(name.to_owned(), value.into());
            }
        }
        Ok(RecordWrite {
            id: record_id.parse().ok(),
            text: self.content,
            metadata: Some(metadata),
            ..RecordWrite::default()
        })
    }
}

impl Item {
    /// A record as an item. A record without Apropos' metadata is a fact.
    pub(super) fn of(records: &OwnerRecords, record: Snippet) -> Self {
        let metadata = record.metadata.as_ref();
        let time = |name: &str| text(metadata, name).and_then(|at| at.parse().ok());
        let tags = metadata.and_then(|metadata| metadata.get("tags")?.as_array());
        let tags = tags.into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        Self {
            id: record.handle.provider_record_id.to_string(),
            project_id: records.owner.1.clone(),
            session_id: text(metadata, "sessionId"),
            agent_kind: text(metadata, "agentKind"),
            kind: read(metadata, "type"),
            tags,
            visibility: read(metadata, "visibility"),
            confidence: read::<Option<f64>>(metadata, "confidence").unwrap_or(1.0),
            created_at: time("createdAt").or(record.created_at),
            updated_at: time("updatedAt").or(record.updated_at),
            source: read(metadata, "source"),
            score: record.score,
            content: record.text,
        }
    }
}

/// A field of the metadata; its default where it is absent or another system's.
fn read<T: DeserializeOwned + Default>(metadata: Option<&JsonObject>, name: &str) -> T {
    let value = metadata.and_then(|metadata| metadata.get(name)).cloned();
    value.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default()
}
