//! Converts a caller's records into items: kind and other metadata are read and checked.

use jiff::Timestamp;
use memhost_sdk::types::{Error, RecordWrite};
use serde_json::{Map, Value};

use crate::config::Config;
use crate::described::described;
use crate::excluded::{Offered, excluded};
use crate::item::{Item, Status};
use crate::kind::Kind;
use crate::lifetime::expires;
use crate::place::{Place, Source};
use crate::workflow::judge;

/// The largest metadata of a record, in bytes. It leaves room for the provider's own members within
/// the contract's limit.
const MOST_METADATA: usize = 240 << 10;

/// A JSON object of a request.
///
/// # Errors
/// `invalid-request` that names the field.
pub(crate) fn object(field: &str, json: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str).transpose().map_err(|error| {
        Error::invalid(field, format!("is not a JSON object: {error}; send an object"))
    })
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
/// `invalid-request` for what is not memory, for an unknown kind and for metadata that cannot be
/// read.
pub(crate) fn item(
    writing: &Writing,
    id: String,
    write: RecordWrite,
    field: &str,
) -> Result<Item, Error> {
    let metadata = object(&format!("{field}.metadata"), write.metadata.as_deref())?;
    if write.metadata.as_ref().is_some_and(|metadata| metadata.len() > MOST_METADATA) {
        return Err(Error::invalid(
            &format!("{field}.metadata"),
            format!("is larger than {MOST_METADATA} bytes; send less"),
        ));
    }
    let offered = Offered {
        metadata: metadata.as_ref(),
        text: &write.text,
        as_record: true,
        ..Offered::default()
    };
    if let Some((row, at)) = excluded(&offered) {
        return Err(Error::invalid(&format!("{field}.{at}"), row.message()));
    }
    let time = |member: &str, text: Option<String>| -> Result<Option<Timestamp>, Error> {
        let parsed = text.map(|text| text.parse()).transpose();
        parsed.map_err(|error| {
            Error::invalid(&format!("{field}.{member}"), format!("is not a time: {error}"))
        })
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
        is_bound: false,
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
    item.expires_at = item.expires_at.or_else(|| {
        expires(writing.config, item.kind, &item.text, writing.triggered_at.unwrap_or(writing.now))
    });
    judge(writing.config, &mut item);
    Ok(item)
}
