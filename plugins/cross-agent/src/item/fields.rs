//! The metadata of an item: the names of its fields, their values and defaults.

use jiff::Timestamp;
use memhost_sdk::types::Error;
use serde_json::{Map, Value, json};

use super::Item;

/// The values of `type`.
const TYPES: &[&str] = &["fact", "preference", "decision", "task_context", "tool_observation"];
/// The values of `visibility`.
const VISIBILITIES: &[&str] = &["project", "global"];
/// The values of `source`.
const SOURCES: &[&str] = &["manual", "inferred", "imported"];

/// The confidence of a raw exchange without one.
const RESIDUE_CONFIDENCE: f64 = 0.5;

/// The fields that ranking and visibility use.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts {
    /// Every project of the company sees it.
    pub(crate) is_global: bool,
    /// 0 to 1; 1 if it is not given.
    pub(crate) confidence: f32,
    /// The age, in microseconds since 1970: the later of the item's own times, else the time of the
    /// write.
    pub(crate) when: i64,
    /// Its tags.
    pub(crate) tags: Vec<String>,
}

impl Facts {
    /// The fields of an item.
    pub(crate) fn of(item: &Item) -> Self {
        let empty = Map::new();
        let metadata = item.metadata.as_ref().unwrap_or(&empty);
        let time = |text: &str| text.parse::<Timestamp>().ok().map(Timestamp::as_microsecond);
        let said =
            ["updatedAt", "createdAt"].into_iter().find_map(|name| time(text(metadata, name)?));
        let tags = metadata.get("tags").and_then(Value::as_array).into_iter().flatten();
        #[allow(clippy::cast_possible_truncation, reason = "a share needs no more")]
        let confidence = metadata.get("confidence").and_then(Value::as_f64).unwrap_or(1.0) as f32;
        Self {
            is_global: text(metadata, "visibility") == Some("global"),
            confidence: confidence.clamp(0.0, 1.0),
            when: said.or_else(|| time(&item.updated_at)).unwrap_or(0),
            tags: tags.filter_map(|tag| tag.as_str().map(str::to_owned)).collect(),
        }
    }
}

/// The text of a member.
pub(super) fn text<'a>(metadata: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    metadata.get(name)?.as_str()
}

/// A JSON object of a request.
pub(crate) fn object(field: &str, json: Option<&str>) -> Result<Option<Map<String, Value>>, Error> {
    json.map(serde_json::from_str).transpose().map_err(|error| {
        Error::invalid(field, format!("is not a JSON object: {error}; send an object"))
    })
}

/// Refuses metadata if a known member has a wrong value.
///
/// # Errors
/// The member at fault, below `field`.
pub(crate) fn check(field: &str, metadata: &Map<String, Value>) -> Result<(), Error> {
    let wrong =
        |name: &str, message: String| Err(Error::invalid(&format!("{field}.{name}"), message));
    for (name, known) in [("type", TYPES), ("visibility", VISIBILITIES), ("source", SOURCES)] {
        if let Some(value) = metadata.get(name)
            && !value.as_str().is_some_and(|value| known.contains(&value))
        {
            return wrong(name, format!("is {value}; choose one of {}", known.join(", ")));
        }
    }
    if let Some(value) = metadata.get("confidence")
        && !value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value))
    {
        return wrong("confidence", format!("is {value}; choose a number from 0 to 1"));
    }
    if let Some(value) = metadata.get("tags")
        && !value.as_array().is_some_and(|tags| tags.iter().all(Value::is_string))
    {
        return wrong("tags", format!("is {value}; send an array of strings"));
    }
    Ok(())
}

/// Sets the missing fields of a raw exchange: `task_context`, `inferred`, and a confidence of 0.5.
pub(crate) fn fill_residue(metadata: &mut Map<String, Value>) {
    let defaults = [
        ("type", json!("task_context")),
        ("source", json!("inferred")),
        ("confidence", json!(RESIDUE_CONFIDENCE)),
    ];
    for (name, value) in defaults {
        metadata.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_members_of_an_item_are_refused_by_name() {
        for (metadata, field) in [
            (json!({"type": "rumour"}), "m.type"),
            (json!({"type": 1}), "m.type"),
            (json!({"visibility": "world"}), "m.visibility"),
            (json!({"source": "hearsay"}), "m.source"),
            (json!({"confidence": 1.5}), "m.confidence"),
            (json!({"confidence": "high"}), "m.confidence"),
            (json!({"tags": "one"}), "m.tags"),
            (json!({"tags": [1]}), "m.tags"),
        ] {
            let error = check("m", metadata.as_object().unwrap()).unwrap_err();
            assert!(
                matches!(&error, Error::InvalidRequest(at) if at.field.as_deref() == Some(field)),
                "{error:?}"
            );
        }
        let fine = json!({
            "type": "decision", "confidence": 0, "tags": [], "visibility": "global", "x": [1],
        });
        check("m", fine.as_object().unwrap()).unwrap();
    }
}
