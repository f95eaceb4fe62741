//! What a caller's metadata says of an item.

use memhost_sdk::types::Error;
use serde_json::{Map, Value};

use crate::bound::is_bound;
use crate::item::Item;
use crate::kind::Kind;

/// An item with the members that metadata sets: `kind`, `confidence`, `tags`, `expiresAt` and its
/// scope. The rest is stored unchanged.
///
/// # Errors
/// `invalid-request` that names the member.
pub(crate) fn described(
    mut item: Item,
    mut metadata: Map<String, Value>,
    field: &str,
) -> Result<Item, Error> {
    let wrong = |member: &str, message: String| {
        Err(Error::invalid(&format!("{field}.metadata.{member}"), message))
    };
    match metadata.get("kind") {
        None => {}
        Some(value) => match value.as_str().and_then(Kind::parse) {
            Some(kind) => item.kind = kind,
            None => {
                return wrong(
                    "kind",
                    format!("{value} is not a kind of memory; choose one of {}", Kind::names()),
                );
            }
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
            let tags =
                value.as_array().map(|all| all.iter().map(|tag| tag.as_str().map(str::to_owned)));
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
            None => {
                return wrong(
                    "expiresAt",
                    format!("is {value}; send a time such as 2026-03-01T12:00:00Z"),
                );
            }
        },
    }
    item.is_bound = is_bound(&mut metadata, &item.place, field)?;
    // The provider's own members are not read from the caller, not even if an earlier answer had
    // them.
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
