//! What the contract knows of a record and a service does not.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::names::{PARTITION, partition_members};
use super::{now, to_unix_millis, utc};
use crate::types::{
    CaptureRequest, Error, RecordId, RecordWrite, Scope, Score, Snippet, SourceRef,
};

/// What a service does not keep of a record by itself. Put it into the record's metadata there as
/// one member, and read it with every record. A record without it was not written by this provider:
/// the default belongs to no partition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tag {
    /// The id that the host knows it by, where that is not the service's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<RecordId>,
    /// The scope that it was written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// Its summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Its metadata as the contract's JSON text, which stays as it is however the service stores
    /// numbers and keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// When what it says became known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// From when on it is in no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// The member of a service's metadata that a tag is.
const MEMBER: &str = "memhost";

impl Tag {
    /// The tag of captured material.
    ///
    /// # Errors
    /// An invalid request if the metadata of the payload or of the request is no object.
    pub fn captured(request: &CaptureRequest) -> Result<Self, Error> {
        let mut metadata =
            object(request.payload.metadata.as_deref(), "payload.metadata")?.unwrap_or_default();
        metadata.extend(object(request.metadata.as_deref(), "metadata")?.unwrap_or_default());
        Ok(Self {
            scope: Some(request.scope.clone()),
            source: Some(request.source.clone()),
            metadata: (!metadata.is_empty()).then(|| Value::Object(metadata).to_string()),
            created_at: request.hook.as_ref().map(|hook| hook.triggered_at.clone()),
            ..Self::default()
        })
    }

    /// With nothing but a scope.
    pub fn of(scope: &Scope) -> Self {
        Self { scope: Some(scope.clone()), ..Self::default() }
    }

    /// The tag in a member of a service's metadata: as JSON, or as a text of JSON where the service
    /// takes no objects.
    pub fn read(member: &Value) -> Option<Self> {
        match member {
            Value::String(json) => serde_json::from_str(json).ok(),
            json => Self::deserialize(json).ok(),
        }
    }

    /// The tag as members of a service's metadata that are texts: itself as `memhost`, its
    /// partition, which [`partition_choices`](super::partition_choices) filters by, and
    /// [`Tag::texts`] with their names after `prefix`.
    pub fn members(&self, prefix: &str) -> Map<String, Value> {
        let texts = self.texts().into_iter().map(|(name, text)| (format!("{prefix}{name}"), text));
        let partition =
            partition_members(self.scope.as_ref()).map(|(name, text)| (name.to_owned(), text));
        let own = [(MEMBER.to_owned(), json!(self).to_string())];
        texts.chain(partition).chain(own).map(|(name, text)| (name, text.into())).collect()
    }

    /// The tag among the members of a service's metadata, where it is `memhost`: as JSON, or as
    /// text.
    pub fn of_members(all: &Map<String, Value>) -> Option<Self> {
        Self::read(all.get(MEMBER)?)
    }

    /// The tag of a record that somebody else wrote, from the metadata that a service knows,
    /// without the members that this SDK sets.
    pub fn foreign(metadata: &Map<String, Value>) -> Self {
        let is_own = |name: &str| name == MEMBER || PARTITION.contains(&name);
        let all: Map<_, _> =
            metadata.clone().into_iter().filter(|(name, _)| !is_own(name)).collect();
        Self {
            metadata: (!all.is_empty()).then(|| Value::Object(all).to_string()),
            ..Self::default()
        }
    }

    /// The tag as JSON without members that are null, where each byte counts.
    pub fn compact(&self) -> Value {
        fn without_nulls(value: &mut Value) {
            if let Value::Object(members) = value {
                members.retain(|_, member| !member.is_null());
                members.values_mut().for_each(without_nulls);
            }
        }
        let mut compact = json!(self);
        without_nulls(&mut compact);
        compact
    }

    /// With the times that a service tells, in any form that [`utc`] reads, where the tag has none.
    #[must_use]
    pub fn or_times(mut self, created_at: Option<&str>, expires_at: Option<&str>) -> Self {
        self.created_at = self.created_at.or_else(|| utc(created_at?));
        self.expires_at = self.expires_at.or_else(|| utc(expires_at?));
        self
    }

    /// Whether the record has expired, for services that go on answering with it.
    pub fn has_expired(&self) -> bool {
        let millis = |at: &str| to_unix_millis(at).unwrap_or(i64::MAX);
        self.expires_at.as_deref().is_some_and(|at| millis(at) <= millis(&now()))
    }

    /// The tag of a record that is written as it is. `source` is that of the request.
    pub fn written(record: &RecordWrite, scope: &Scope, source: Option<&SourceRef>) -> Self {
        Self {
            id: record.id.clone(),
            scope: Some(scope.clone()),
            source: record.source.as_ref().or(source).cloned(),
            summary: record.summary.clone(),
            metadata: record.metadata.clone(),
            created_at: record.created_at.clone(),
            expires_at: record.expires_at.clone(),
        }
    }

    /// The tag of a record that replaces this one: source and time stay where the new one has none.
    #[must_use]
    pub fn replaced_by(self, new: Self) -> Self {
        Self {
            id: self.id,
            scope: self.scope,
            source: new.source.or(self.source),
            created_at: new.created_at.or(self.created_at),
            ..new
        }
    }

    /// Whether a record with this tag may be returned to a scope: a record that was written with a
    /// partition set is hidden from scopes that have another value there.
    pub fn is_visible_in(&self, scope: &Scope) -> bool {
        let fits = |own: &Option<String>, asked: &Option<String>| {
            own.is_none() || asked.is_none() || own == asked
        };
        self.scope.as_ref().is_none_or(|own| {
            own.company_id == scope.company_id
                && fits(&own.agent_id, &scope.agent_id)
                && fits(&own.subject_id, &scope.subject_id)
                && fits(&own.namespace, &scope.namespace)
        })
    }

    /// Members of the metadata that are texts and whose names are plain, of letters, digits, `-`
    /// and `_`: what services filter by. They go beside the tag into the service's own metadata.
    pub fn texts(&self) -> Vec<(String, String)> {
        texts(
            self.metadata
                .as_deref()
                .and_then(|json| serde_json::from_str(json).ok())
                .unwrap_or_default(),
        )
    }

    /// The record as the contract has it. Its id is that of the tag, or else the service's.
    pub fn snippet(
        self,
        id: impl Into<RecordId>,
        text: impl Into<String>,
        score: Score,
    ) -> Snippet {
        Snippet {
            score,
            summary: self.summary,
            source: self.source,
            metadata: self.metadata,
            created_at: self.created_at,
            expires_at: self.expires_at,
            scope: self.scope,
            ..Snippet::new(self.id.unwrap_or_else(|| id.into()), text)
        }
    }
}

/// The contract's filter: a record fits if its metadata has every member of the filter with an
/// equal value.
#[derive(Debug, Clone, Default)]
pub struct Filter(Map<String, Value>);

impl Filter {
    /// The filter of a request.
    ///
    /// # Errors
    /// An invalid request if it is no object.
    pub fn new(json: Option<&str>) -> Result<Self, Error> {
        Ok(Self(object(json, "metadataFilter")?.unwrap_or_default()))
    }

    /// Whether every record fits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its members that services can filter by, see [`Tag::texts`]. Each answer is looked through
    /// with [`Filter::fits`] all the same.
    pub fn texts(&self) -> Vec<(String, String)> {
        texts(self.0.clone())
    }

    /// Whether a record with this tag fits.
    pub fn fits(&self, tag: &Tag) -> bool {
        let metadata =
            tag.metadata.as_deref().and_then(|json| serde_json::from_str::<Map<_, _>>(json).ok());
        self.0.iter().all(|(name, value)| {
            metadata.as_ref().is_some_and(|metadata| metadata.get(name) == Some(value))
        })
    }
}

fn texts(members: Map<String, Value>) -> Vec<(String, String)> {
    let is_plain = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) if is_plain(&name) && !text.contains('\0') && text.len() < 512 => {
            Some((name, text))
        }
        _ => None,
    };
    members.into_iter().filter_map(text).collect()
}

fn object(json: Option<&str>, field: &str) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid(field, error.to_string()))
}
