//! The index entry of a record.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::Analysis;
use crate::files::Stamp;
use crate::hash::hash;
use crate::record::{Front, Record, instant};
use crate::text::Analyzer;

/// These bits of a session's hash say what it is; a conversation or a run has none of them.
const DOCUMENT: u64 = 1;
const ISSUE: u64 = 2;
const KIND: u64 = DOCUMENT | ISSUE;

/// The fields that separate scopes: agent, subject, namespace.
pub(crate) type Partition = [Option<String>; 3];

/// The place of a record in lists: its time of creation, then a hash of its id. No write changes
/// it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub(crate) struct Key {
    /// Microseconds since 1970; 0 if the file has no time.
    pub(crate) created: i64,
    /// A hash of the id.
    pub(crate) id_hash: u64,
}

/// The index entry of a record.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The record's id.
    pub(crate) id: Rc<str>,
    /// Its file.
    pub(crate) path: Rc<str>,
    /// The state of the file that is indexed.
    pub(crate) stamp: Stamp,
    /// Its partition.
    pub(crate) partition: Partition,
    /// Its place in lists.
    pub(crate) key: Key,
    /// When its content happened, in microseconds since 1970.
    pub(crate) when: i64,
    /// Hash of its session, else of its document, issue or run. 0: none.
    pub(crate) session: u64,
    /// Hashes of its metadata's members, for filters.
    pub(crate) members: Vec<u64>,
    /// Its words.
    pub(crate) analysis: Analysis,
}

impl Entry {
    /// The entry of a record that was read from a file.
    pub(crate) fn of(
        analyzer: &Analyzer,
        id: String,
        path: String,
        stamp: Stamp,
        record: &Record,
    ) -> Self {
        let front = &record.front;
        let micros = |text: Option<&String>| {
            text.and_then(|text| instant(text)).map(jiff::Timestamp::as_microsecond)
        };
        let created = micros(front.created_at.as_ref());
        let modified = i64::try_from(stamp.modified_ns / 1_000).unwrap_or(0);
        Self {
            partition: partition(front),
            key: Key { created: created.unwrap_or(0), id_hash: hash(b"id", id.as_bytes()) },
            when: micros(front.occurred_at.as_ref()).or(created).unwrap_or(modified),
            session: session(front),
            members: front
                .metadata
                .iter()
                .flatten()
                .map(|(name, value)| member(name, value))
                .collect(),
            analysis: Analysis::of(analyzer, record),
            id: id.into(),
            path: path.into(),
            stamp,
        }
    }
}

/// The partition of a record.
pub(crate) fn partition(front: &Front) -> Partition {
    ["agentId", "subjectId", "namespace"].map(|name| front.scope(name).map(str::to_owned))
}

/// The hash of one member of a metadata object. It does not depend on the order of members inside
/// the value.
pub(crate) fn member(name: &str, value: &Value) -> u64 {
    let name = hash(b"member", name.as_bytes()).to_le_bytes();
    hash(&name, value.to_string().as_bytes())
}

/// Whether metadata has every member of a filter.
pub(crate) fn matches(metadata: Option<&Map<String, Value>>, filter: &Map<String, Value>) -> bool {
    filter
        .iter()
        .all(|(name, wanted)| metadata.and_then(|metadata| metadata.get(name)) == Some(wanted))
}

fn session(front: &Front) -> u64 {
    let source = |name: &str| front.source.get(name).and_then(Value::as_str);
    let found = front
        .scope("sessionKey")
        .map(|key| ("session", key))
        .or_else(|| {
            source("documentKey").map(|key| ("document", key.split('#').next().unwrap_or(key)))
        })
        .or_else(|| source("issueId").or_else(|| front.scope("issueId")).map(|key| ("issue", key)))
        .or_else(|| source("runId").or_else(|| front.scope("runId")).map(|key| ("run", key)));
    found.map_or(0, |(kind, key)| {
        let hash = hash(kind.as_bytes(), key.as_bytes());
        match kind {
            "document" => hash & !KIND | DOCUMENT,
            "issue" => hash & !KIND | ISSUE,
            _ => (hash & !KIND).max(KIND + 1),
        }
    })
}

/// Whether the records of a session stand alone: sections of a document and comments of an issue
/// are written to be understood by themselves, turns of a conversation and steps of a run are not.
pub(crate) fn stands_alone(session: u64) -> bool {
    session & KIND != 0
}

/// Whether a session is an issue with its comments.
pub(crate) fn is_issue(session: u64) -> bool {
    session & ISSUE != 0
}
