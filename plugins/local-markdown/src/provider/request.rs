//! Converts requests into records.

use memhost_sdk::types::{Error, SourcePayload};
use serde_json::{Map, Value};

use crate::hash::hash;

/// A rendering longer than this, in bytes, is written without line breaks.
const RENDERING: usize = 512 << 10;
/// Operation ids up to this many bytes are part of record ids as they are.
const SHORT_ID: usize = 128;

/// A JSON object of a request.
pub(super) fn object(field: &str, json: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str).transpose().map_err(|error| {
        Error::invalid(field, format!("is not a JSON object: {error}; send an object"))
    })
}

/// The payload's own metadata and the request's, which wins.
pub(super) fn merged(
    payload: Option<&str>,
    request: Option<&str>,
) -> Result<Option<Map<String, Value>>, Error> {
    let (payload, request) = (object("payload.metadata", payload)?, object("metadata", request)?);
    Ok(match (payload, request) {
        (Some(mut payload), Some(request)) => {
            payload.extend(request);
            Some(payload)
        }
        (payload, request) => payload.or(request),
    })
}

/// The text of a captured payload, and its metadata.
pub(super) fn contents(payload: SourcePayload) -> Result<(String, Map<String, Value>), Error> {
    let mut other = Map::new();
    let text = payload.text_or_turns();
    if let Some(kind) = payload.mime_type {
        other.insert("mimeType".to_owned(), Value::String(kind));
    }
    let object: Option<Value> = payload
        .object
        .as_deref()
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid("payload.object", format!("is not JSON: {error}")))?;
    let text = match (text, object) {
        (Some(text), Some(object)) => {
            other.insert("object".to_owned(), object);
            text
        }
        (Some(text), None) => text,
        (None, object) => object.as_ref().map(readable).unwrap_or_default(),
    };
    Ok((text, other))
}

/// A structured object as Markdown.
fn readable(object: &Value) -> String {
    let pretty = serde_json::to_string_pretty(object).unwrap_or_default();
    let shown = if pretty.len() <= RENDERING { pretty } else { object.to_string() };
    format!("```json\n{shown}\n```\n")
}

/// Ids for an operation's records, so that the same operation makes the same records. A later
/// `attempt` gives another id, in case the first is taken.
pub(super) fn new_id(operation_id: &str, number: Option<usize>, attempt: u32) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut id = if operation_id.len() <= SHORT_ID
        && !operation_id.is_empty()
        && operation_id.chars().all(is_plain)
    {
        operation_id.to_owned()
    } else {
        let part = |kind: &[u8]| hash(kind, operation_id.as_bytes());
        format!("operation-{:016x}{:016x}", part(b"operation"), part(b"again"))
    };
    if let Some(number) = number {
        id.push_str(&format!(".{number}"));
    }
    if attempt > 0 {
        id.push_str(&format!("~{attempt}"));
    }
    id
}
