//! A memory item of Apropos, and how it is stored as a record.

use jiff::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::owned::{OwnerRecords, id, invalid, owner_of, text};
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
    pub(super) id: Option<String>,
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
    // Kept and returned; the provider ranks by its own model.
    #[serde(default)]
    embedding: Option<Vec<f64>>,
    #[serde(default)]
    embedding_model: Option<String>,
    // What a search adds.
    #[serde(default, rename = "score")]
    _score: Option<f64>,
}

/// What is changed of an item. `null` clears a field that an item may lack; of any other field it
/// is refused.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ItemChange {
    #[serde(default, rename = "type", deserialize_with = "given")]
    kind: Option<ItemType>,
    #[serde(default, deserialize_with = "given")]
    content: Option<String>,
    #[serde(default, deserialize_with = "given")]
    tags: Option<Vec<String>>,
    #[serde(default, deserialize_with = "given")]
    visibility: Option<Visibility>,
    #[serde(default, deserialize_with = "given")]
    confidence: Option<f64>,
    #[serde(default, deserialize_with = "clearable")]
    agent_kind: Option<Option<String>>,
    #[serde(default, deserialize_with = "clearable")]
    session_id: Option<Option<String>>,
}

/// A field that is there, and no `null`: that would change nothing, and look as if it did.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(value: D) -> Result<Option<T>, D::Error> {
    let given = Option::<T>::deserialize(value)?;
    given
        .map(Some)
        .ok_or_else(|| D::Error::custom("is null; leave it out to keep what the item has"))
}

/// A field that is there; `null` clears it.
fn clearable<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

impl ItemChange {
    /// Whether it changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The session after the change, of an item that is of this one before.
    pub(super) fn session(&self, before: Option<String>) -> Option<String> {
        self.session_id.clone().unwrap_or(before)
    }

    /// The record as it is after the change.
    pub(super) fn record(
        self,
        records: &OwnerRecords,
        found: &Snippet,
    ) -> Result<RecordWrite, Problem> {
        let (session, agent) = (&self.session_id, &self.agent_kind);
        let cleared: Vec<&str> = [("sessionId", session), ("agentKind", agent)]
            .into_iter()
            .filter_map(|(name, value)| matches!(value, Some(None)).then_some(name))
            .collect();
        let new = NewItem {
            id: None,
            project_id: None,
            session_id: self.session_id.flatten(),
            agent_kind: self.agent_kind.flatten(),
            kind: self.kind,
            content: self.content.unwrap_or_else(|| found.text.clone()),
            tags: self.tags.clone().unwrap_or_default(),
            visibility: self.visibility,
            confidence: self.confidence,
            created_at: None,
            updated_at: None,
            source: None,
            embedding: None,
            embedding_model: None,
            _score: None,
        };
        let given: Vec<&str> = [
            ("type", new.kind.is_some()),
            ("tags", self.tags.is_some()),
            ("visibility", new.visibility.is_some()),
            ("confidence", new.confidence.is_some()),
            ("agentKind", new.agent_kind.is_some()),
            ("sessionId", new.session_id.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
        .collect();
        let mut record = new.record(records, "", false)?;
        let mut metadata = found.metadata.clone().unwrap_or_default();
        let new = record.metadata.take().unwrap_or_default();
        // What was written by a tool gets its project's member with its first change.
        for name in given.into_iter().chain(["updatedAt", records.owner.0]) {
            metadata.extend(new.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        for name in cleared {
            metadata.remove(name);
        }
        // A vector of the text before says nothing of the new one.
        if record.text != found.text {
            metadata.remove("embedding");
            metadata.remove("embeddingModel");
        }
        let id = Some(found.handle.provider_record_id.clone());
        Ok(RecordWrite { id, metadata: Some(metadata), summary: found.summary.clone(), ..record })
    }
}

/// Checks that a body which names a project names that of the address.
pub(super) fn check_project(
    field: &str,
    named: Option<&str>,
    records: &OwnerRecords,
) -> Result<(), Problem> {
    let project = &records.owner.1;
    if named.is_some_and(|named| named != project) {
        return Err(invalid(
            field,
            format!("is not the project of the address; leave it out, or send `{project}`"),
        ));
    }
    Ok(())
}

/// The longest vector, and the longest name of a model in characters.
const MAX_DIMENSIONS: usize = 8_192;
const MAX_MODEL_CHARS: usize = 200;

/// The id of an item of a project. It begins with the project's mark, so that an import cannot name
/// an item of another project. An id of this project stays as it is; any other id is always mapped
/// to the same new one.
pub(super) fn record_id(project: &str, given: Option<&str>) -> String {
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
    let mark = format!("apropos-{}-", &hash(project)[..16]);
    match given {
        None => format!("{mark}{}", Uuid::now_v7()),
        Some(given) if given.starts_with(&mark) => given.to_owned(),
        Some(given) => format!("{mark}{}", hash(given)),
    }
}

/// An item in an answer.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_model: Option<String>,
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
    /// Whether it says nothing else than an item that is there.
    pub(super) fn is(&self, item: &Item) -> bool {
        self.content == item.content
            && self.kind.unwrap_or_default() == item.kind
            && self.tags == item.tags
            && self.session_id == item.session_id
            && self.agent_kind == item.agent_kind
            && self.visibility.unwrap_or_default() == item.visibility
            && self.confidence.unwrap_or(1.0).to_bits() == item.confidence.to_bits()
            && self.source.is_none_or(|source| source == item.source)
            && self.created_at.is_none_or(|at| Some(at) == item.created_at)
            && self.updated_at.is_none_or(|at| Some(at) == item.updated_at)
            && self.embedding.as_ref().filter(|vector| !vector.is_empty())
                == item.embedding.as_ref()
            && self.embedding_model == item.embedding_model
    }

    /// The record to write. `at` is the item's place in the request, for errors; empty for a single
    /// one.
    pub(super) fn record(
        self,
        records: &OwnerRecords,
        at: &str,
        is_import: bool,
    ) -> Result<RecordWrite, Problem> {
        let field = |name: &str| format!("{at}{name}");
        if self.content.trim().is_empty() {
            return Err(invalid(&field("content"), "is empty"));
        }
        check_project(&field("projectId"), self.project_id.as_deref(), records)?;
        let confidence = self.confidence.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&confidence) {
            return Err(invalid(
                &field("confidence"),
                format!("is {confidence}; 0 to 1 is allowed"),
            ));
        }
        if self.tags.len() > MAX_TAGS
            || self.tags.iter().any(|tag| tag.chars().count() > MAX_TAG_CHARS)
        {
            let most = format!(
                "has more than {MAX_TAGS} tags, or one of more than {MAX_TAG_CHARS} characters"
            );
            return Err(invalid(&field("tags"), most));
        }
        for (name, value) in [("sessionId", &self.session_id), ("agentKind", &self.agent_kind)] {
            if let Some(value) = value {
                id(&field(name), value)?;
            }
        }
        if !is_import
            && (self.id.is_some() || self.created_at.is_some() || self.updated_at.is_some())
        {
            let fields = if self.id.is_some() { "id" } else { "createdAt" };
            return Err(invalid(fields, "is set by the host; only an import may send it"));
        }
        if let Some(given) = &self.id {
            id(&field("id"), given)?;
        }
        let embedding = self.embedding.filter(|vector| !vector.is_empty());
        if embedding.as_ref().is_some_and(|vector| vector.len() > MAX_DIMENSIONS) {
            return Err(invalid(
                &field("embedding"),
                format!("has more than {MAX_DIMENSIONS} numbers"),
            ));
        }
        if self
            .embedding_model
            .as_ref()
            .is_some_and(|model| model.chars().count() > MAX_MODEL_CHARS)
        {
            return Err(invalid(
                &field("embeddingModel"),
                format!("has more than {MAX_MODEL_CHARS} characters"),
            ));
        }
        let record_id = record_id(&records.owner.1, self.id.as_deref());
        let now = Timestamp::now();
        let mut metadata = records.filter();
        let source =
            self.source.unwrap_or(if is_import { Source::Imported } else { Source::Manual });
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
        let model = self.embedding_model;
        for (name, value) in [
            ("sessionId", self.session_id),
            ("agentKind", self.agent_kind),
            ("embeddingModel", model),
        ] {
            if let Some(value) = value {
                metadata.insert(name.to_owned(), value.into());
            }
        }
        if let Some(vector) = embedding {
            metadata.insert("embedding".to_owned(), json!(vector));
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
    /// Whether it is of this type, kind of agent and session, where they are given.
    pub(super) fn is_of(
        &self,
        kind: Option<ItemType>,
        agent_kind: Option<&str>,
        session_id: Option<&str>,
    ) -> bool {
        let same = |wanted: Option<&str>, found: &Option<String>| {
            wanted.is_none() || wanted == found.as_deref()
        };
        kind.is_none_or(|kind| kind == self.kind)
            && same(agent_kind, &self.agent_kind)
            && same(session_id, &self.session_id)
    }

    /// A record as an item. A record without Apropos' metadata is a fact.
    pub(super) fn of(records: &OwnerRecords, record: Snippet) -> Self {
        let metadata = record.metadata.as_ref();
        let time = |name: &str| text(metadata, name).and_then(|at| at.parse().ok());
        let tags = metadata.and_then(|metadata| metadata.get("tags")?.as_array());
        let tags =
            tags.into_iter().flatten().filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
        Self {
            id: record.handle.provider_record_id.to_string(),
            project_id: owner_of(&record, records.owner.0, records.field)
                .unwrap_or_else(|| records.owner.1.clone()),
            session_id: text(metadata, "sessionId")
                .or_else(|| record.scope.as_ref()?.session_key.clone()),
            agent_kind: text(metadata, "agentKind")
                .or_else(|| record.source.as_ref()?.client().map(str::to_owned)),
            kind: read(metadata, "type"),
            tags,
            visibility: read(metadata, "visibility"),
            confidence: read::<Option<f64>>(metadata, "confidence").unwrap_or(1.0),
            created_at: time("createdAt").or(record.created_at),
            updated_at: time("updatedAt").or(record.updated_at),
            source: read(metadata, "source"),
            embedding: read(metadata, "embedding"),
            embedding_model: text(metadata, "embeddingModel"),
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
