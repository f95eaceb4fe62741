//! Converts a caller's records into items: kind and other metadata are read and checked.

use jiff::Timestamp;
use memhost_sdk::types::{Error, RecordWrite};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::excluded::{Offered, excluded};
use crate::item::{Item, Status};
use crate::kind::Kind;
use crate::lifetime::expires;
use crate::place::{Place, Source};
use crate::workflow::judge;

/// The largest metadata of a record, in bytes. It leaves room for the provider's own members within the contract's
/// limit.
const MOST_METADATA: usize = 240 << 10;

/// A JSON object of a request.
///
/// # Errors
/// `invalid-request` that names the field.
pub(crate) fn object(field: &str, json: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str)
        .transpose()
        .map_err(|error| Error::invalid(field, format!("is not a JSON object: {error}; send an object")))
}

/// The context of a write.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    pub(crate) config: &'a Config,
    pub(crate) operation: &'a str,
    pub(crate) place: &'a Place,
    pub(crate) source: Option<&'a Source>,
    pub(crate) now: Timestamp,
    /// When it was said, if a hook says so.
    pub(crate) triggered_at: Option<Timestamp>,
}

/// An item from a written record; `field` is its place in the request.
///
/// # Errors
/// `invalid-request` for what is not memory, for an unknown kind and for metadata that cannot be read.
pub(crate) fn item(writing: &Writing, id: String, write: RecordWrite, field: &str) -> Result<Item, Error> {
    let metadata = object(&format!("{field}.metadata"), write.metadata.as_deref())?;
    if write.metadata.as_ref().is_some_and(|metadata| metadata.len() > MOST_METADATA) {
        return Err(Error::invalid(
            &format!("{field}.metadata"),
            format!("is larger than {MOST_METADATA} bytes; send less"),
        ));
    }
    let offered = Offered { metadata: metadata.as_ref(), text: &write.text, as_record: true, ..Offered::default() };
    if let Some((row, at)) = excluded(&offered) {
        return Err(Error::invalid(&format!("{field}.{at}"), row.message()));
    }
    let time = |member: &str, text: Option<String>| -> Result<Option<Timestamp>, Error> {
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(|error| Error::invalid(&format!("{field}.{member}"), format!("is not a time: {error}")))
    };
    let item = Item {
        id,
        kind: Kind::Note,
        text: write.text,
        summary: write.summary,
        confidence: 1.0,
        status: Status::Pending,
        pii_risk: 0,
        tags: Vec::new(),
        extracted: None,
        place: writing.place.clone(),
        source: write.source.as_ref().map(Source::from).or_else(|| writing.source.cloned()),
        metadata: None,
        operation: writing.operation.to_owned(),
        created_at: time("createdAt", write.created_at)?.unwrap_or(writing.now),
        updated_at: writing.now,
        triggered_at: writing.triggered_at,
        expires_at: time("expiresAt", write.expires_at)?,
        decision: None,
    };
    let mut item = match metadata {
        Some(metadata) => described(item, metadata, field)?,
        None => item,
    };
    item.expires_at = item
        .expires_at
        .or_else(|| expires(writing.config, item.kind, &item.text, writing.triggered_at.unwrap_or(writing.now)));
    judge(writing.config, &mut item);
    Ok(item)
}

/// An item with the members that metadata sets: `kind`, `confidence`, `tags`, `expiresAt`. The rest is stored
/// unchanged.
///
/// # Errors
/// `invalid-request` that names the member.
pub(crate) fn described(mut item: Item, mut metadata: Map<String, Value>, field: &str) -> Result<Item, Error> {
    let wrong = |member: &str, message: String| Err(Error::invalid(&format!("{field}.metadata.{member}"), message));
    match metadata.get("kind") {
        None => {}
        Some(value) => match value.as_str().and_then(Kind::parse) {
            Some(kind) => item.kind = kind,
            None => return wrong("kind", format!("{value} is not a kind of memory; choose one of {}", Kind::names())),
        },
    }
    match metadata.get("confidence") {
        None => {}
        Some(value) => match value.as_f64().filter(|value| (0.0..=1.0).contains(value)) {
            Some(confidence) => item.confidence = confidence,
            None => return wrong("confidence", format!("is {value}; send a number from 0 to 1")),
        },
    }
    match metadata.get("tags") {
        None => {}
        Some(value) => {
            let tags = value.as_array().map(|all| all.iter().map(|tag| tag.as_str().map(str::to_owned)));
            match tags.and_then(Iterator::collect) {
                Some(tags) => item.tags = tags,
                None => return wrong("tags", format!("is {value}; send a list of texts")),
            }
        }
    }
    match metadata.get("expiresAt") {
        None => {}
        Some(value) => match value.as_str().and_then(|text| text.parse().ok()) {
            Some(end) => item.expires_at = Some(end),
            None => return wrong("expiresAt", format!("is {value}; send a time such as 2026-03-01T12:00:00Z")),
        },
    }
    // The provider's own members are not read from the caller, not even if an earlier answer had them.
    for own in [
        "kind",
        "confidence",
        "tags",
        "expiresAt",
        "status",
        "piiRisk",
        "rule",
        "ruleConfidence",
        "adjustments",
        "subject",
        "evidence",
        "confidenceBand",
        "triggeredAt",
        "useCount",
        "lastUsedAt",
    ] {
        if item.extracted.is_some()
            || !matches!(own, "rule" | "ruleConfidence" | "adjustments" | "subject" | "evidence")
        {
            metadata.remove(own);
        }
    }
    item.metadata = (!metadata.is_empty()).then_some(metadata);
    Ok(item)
}
