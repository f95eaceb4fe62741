//! What is stored of a record, and who may see it.

use memhost_sdk::types::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A record as it is stored, under its id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The partitions that it was written in.
    agent: Option<String>,
    subject: Option<String>,
    namespace: Option<String>,
    /// The text of the record.
    pub(crate) text: String,
    summary: Option<String>,
    metadata: Option<Map<String, Value>>,
    /// Where it came from. It is returned unchanged.
    source: Option<SourceRef>,
    /// When it happened, if that is known.
    happened_at: Option<String>,
    /// From when on it is in no answer.
    expires_at: Option<String>,
}

impl Record {
    fn new(text: String, scope: &Scope, source: Option<SourceRef>) -> Self {
        Self {
            agent: scope.agent_id.clone(),
            subject: scope.subject_id.clone(),
            namespace: scope.namespace.clone(),
            text,
            summary: None,
            metadata: None,
            source,
            happened_at: None,
            expires_at: None,
        }
    }

    /// What a capture is about, as one record.
    pub(crate) fn captured(request: CaptureRequest) -> Result<Self, Error> {
        let text = request.payload.text_or_turns();
        let SourcePayload { object, metadata, .. } = request.payload;
        let text = text
            .or(object)
            .ok_or_else(|| Error::invalid("payload", "has neither a text nor an object"))?;
        let mut all = object_of(metadata.as_deref(), "payload.metadata")?.unwrap_or_default();
        all.extend(object_of(request.metadata.as_deref(), "metadata")?.unwrap_or_default());
        Ok(Self {
            metadata: (!all.is_empty()).then_some(all),
            happened_at: request.hook.map(|hook| hook.triggered_at),
            ..Self::new(text, &request.scope, Some(request.source))
        })
    }

    /// The record of an upsert.
    pub(crate) fn written(write: &RecordWrite, request: &UpsertRequest) -> Self {
        // The host has checked that it is an object.
        let metadata = write.metadata.as_ref().and_then(|json| serde_json::from_str(json).ok());
        let source = write.source.as_ref().or(request.source.as_ref()).cloned();
        let (summary, happened_at) = (write.summary.clone(), write.created_at.clone());
        let expires_at = write.expires_at.clone();
        Self {
            summary,
            metadata,
            happened_at,
            expires_at,
            ..Self::new(write.text.clone(), &request.scope, source)
        }
    }

    /// A record that was written with a partition set is not visible to scopes that have another
    /// value there.
    pub(crate) fn is_visible_in(&self, scope: &Scope) -> bool {
        let fits = |own: &Option<String>, asked: &Option<String>| {
            own.is_none() || asked.is_none() || own == asked
        };
        fits(&self.agent, &scope.agent_id)
            && fits(&self.subject, &scope.subject_id)
            && fits(&self.namespace, &scope.namespace)
    }

    /// The record as the contract's type.
    pub(crate) fn snippet(self, id: RecordId, score: Score) -> Snippet {
        Snippet {
            score,
            summary: self.summary,
            source: self.source,
            metadata: self.metadata.map(|metadata| Value::Object(metadata).to_string()),
            created_at: self.happened_at,
            expires_at: self.expires_at,
            ..Snippet::new(id, self.text)
        }
    }
}

/// A metadata filter: a record fits if its metadata has every member of the filter with an equal
/// value.
pub(crate) struct Filter(Option<Map<String, Value>>);

impl Filter {
    pub(crate) fn new(json: Option<&str>) -> Result<Self, Error> {
        Ok(Self(object_of(json, "metadataFilter")?))
    }

    pub(crate) fn lets_through(&self, record: &Record) -> bool {
        let has = |(name, value)| {
            record.metadata.as_ref().is_some_and(|metadata| metadata.get(name) == Some(value))
        };
        self.0.iter().flatten().all(has)
    }
}

fn object_of(json: Option<&str>, field: &str) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid(field, error.to_string()))
}
