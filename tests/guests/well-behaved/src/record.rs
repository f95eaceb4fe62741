//! What is stored of a record, and who may see it.

use std::time::{SystemTime, UNIX_EPOCH};

use memhost_sdk::types::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The parts of a scope that separate records from each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partition {
    agent: Option<String>,
    subject: Option<String>,
    namespace: Option<String>,
}

impl Partition {
    pub(crate) fn of(scope: &Scope) -> Self {
        Self {
            agent: scope.agent_id.clone(),
            subject: scope.subject_id.clone(),
            namespace: scope.namespace.clone(),
        }
    }

    /// A record that was written with a field set is hidden from scopes that have another value
    /// there.
    pub(crate) fn is_visible_in(&self, scope: &Scope) -> bool {
        let fits = |own: &Option<String>, asked: &Option<String>| {
            own.is_none() || asked.is_none() || own == asked
        };
        fits(&self.agent, &scope.agent_id)
            && fits(&self.subject, &scope.subject_id)
            && fits(&self.namespace, &scope.namespace)
    }

    /// Whether everything that the scope names is this partition's.
    pub(crate) fn is_in(&self, scope: &Scope) -> bool {
        let is = |own: &Option<String>, asked: &Option<String>| asked.is_none() || own == asked;
        is(&self.agent, &scope.agent_id)
            && is(&self.subject, &scope.subject_id)
            && is(&self.namespace, &scope.namespace)
    }
}

/// The review state of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Standing {
    /// It never waited.
    #[default]
    Free,
    /// It waits, because its metadata says `"hold": true` or `"confidence": 0`.
    Pending,
    Approved,
    /// Approved in another form.
    Edited,
    Rejected,
}

impl Standing {
    /// The state of a new record with this metadata.
    pub(crate) fn of(metadata: Option<&str>) -> Self {
        let metadata: Option<Value> = metadata.and_then(|json| serde_json::from_str(json).ok());
        let waits = |metadata: Value| {
            metadata["hold"] == true || metadata["confidence"].as_f64() == Some(0.0)
        };
        if metadata.is_some_and(waits) { Self::Pending } else { Self::Free }
    }

    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Free | Self::Approved | Self::Edited)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) partition: Partition,
    #[serde(default)]
    pub(crate) standing: Standing,
    pub(crate) text: String,
    pub(crate) summary: Option<String>,
    pub(crate) metadata: Option<String>,
    pub(crate) source: Option<Source>,
    pub(crate) created_at: String,
    pub(crate) updated_at: String,
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

impl Record {
    /// The record of a capture: its text or else its object, and the metadata of payload and
    /// request together.
    pub(crate) fn captured(request: CaptureRequest) -> Result<Self, Error> {
        let now = now();
        let text = request.payload.text_or_turns().or(request.payload.object);
        let metadata = merged(request.payload.metadata, request.metadata)?;
        Ok(Self {
            partition: Partition::of(&request.scope),
            standing: Standing::of(metadata.as_deref()),
            text: text.unwrap_or_default(),
            summary: None,
            metadata,
            source: Some(Source(request.source)),
            created_at: request.hook.map_or_else(|| now.clone(), |hook| hook.triggered_at),
            updated_at: now,
            expires_at: None,
        })
    }

    pub(crate) fn snippet(self, id: RecordId, score: Score) -> Snippet {
        Snippet {
            id,
            text: self.text,
            score,
            summary: self.summary,
            source: self.source.map(|source| source.0),
            metadata: self.metadata,
            created_at: Some(self.created_at),
            updated_at: Some(self.updated_at),
            expires_at: self.expires_at,
            scope: None,
        }
    }
}

fn merged(payload: Option<String>, request: Option<String>) -> Result<Option<String>, Error> {
    let (Some(payload), Some(request)) = (&payload, &request) else {
        return Ok(payload.or(request));
    };
    let mut all = object(payload, "payload.metadata")?;
    all.extend(object(request, "metadata")?);
    Ok(Some(Value::Object(all).to_string()))
}

fn object(json: &str, field: &str) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(json).map_err(|error| Error::invalid(field, error.to_string()))
}

/// A metadata filter: a record fits if its metadata has every member of the filter with an equal
/// value.
pub(crate) struct Filter(Option<Map<String, Value>>);

impl Filter {
    pub(crate) fn new(json: Option<&str>) -> Result<Self, Error> {
        Ok(Self(json.map(|json| object(json, "metadataFilter")).transpose()?))
    }

    pub(crate) fn lets_through(&self, record: &Record) -> bool {
        let Some(filter) = &self.0 else { return true };
        let metadata: Map<String, Value> = record
            .metadata
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        filter.iter().all(|(name, value)| metadata.get(name) == Some(value))
    }
}

/// An id derived from its parts, so that a repeated delivery writes the same record.
pub(crate) fn name(kind: char, parts: &[&str]) -> String {
    // FNV-1a with 128 bits; 0xff never occurs in UTF-8, so it separates the parts.
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash = bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    format!("{kind}{hash:032x}")
}

/// The time in RFC 3339, always with nine digits, so that later times compare greater.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanos) = (since.as_secs(), since.subsec_nanos());
    // Howard Hinnant's civil_from_days, for days after 1970.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source(#[serde(with = "SourceRefJson")] pub(crate) SourceRef);

#[derive(Serialize, Deserialize)]
#[serde(remote = "SourceRef")]
struct SourceRefJson {
    #[serde(with = "SourceKindJson")]
    kind: SourceKind,
    company_id: String,
    issue_id: Option<String>,
    comment_id: Option<String>,
    document_key: Option<String>,
    run_id: Option<String>,
    activity_id: Option<String>,
    external_ref: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SourceKind")]
enum SourceKindJson {
    IssueComment,
    IssueDocument,
    Issue,
    Run,
    Activity,
    ManualNote,
    ExternalDocument,
    Other(String),
}
