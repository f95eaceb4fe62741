//! The request and the outline of the answer, from an operation record.

use serde_json::{Value, json};

use crate::CliError;
use crate::output::text;
use memhost_types::OperationKind;

/// An operation that can be repeated.
pub(super) struct Recorded {
    /// The route of the runtime plane.
    pub(super) route: &'static str,
    /// Its request.
    pub(super) request: Value,
    /// Whether it changed what the provider holds.
    pub(super) is_write: bool,
}

impl Recorded {
    /// From a record that holds the whole request.
    pub(super) fn of(operation: &Value, binding: &Value) -> Result<Self, CliError> {
        let (id, kind) = (text(operation, "/id"), text(operation, "/kind"));
        let wrong = |message: String| CliError::input("OPERATION", format!("{id} {message}"));
        let asked = kind
            .parse::<OperationKind>()
            .ok()
            .filter(|kind| !matches!(kind, OperationKind::Export | OperationKind::Import));
        let Some(route) = asked.and_then(OperationKind::route) else {
            return Err(wrong(format!(
                "is of the kind {kind}, which is not a request to a provider; choose another \
                 operation"
            )));
        };
        let key = text(binding, "/key");
        let how = format!(
            "it must be made under the policy `{{\"retention\":{{\"snapshots\":\"full\"}}}}` of \
             the binding `{key}`; \
             `memhost binding update {key} --policy JSON` sets the whole policy"
        );
        let kept = operation["payload"]["text"]
            .as_str()
            .ok_or_else(|| wrong(format!("has no copy of its request: {how}")))?;
        let bytes = operation["payload"]["bytes"].as_u64().unwrap_or_default();
        if bytes > kept.len() as u64 {
            return Err(wrong(format!(
                "has only {} of {bytes} bytes of its request: {how}",
                kept.len()
            )));
        }
        let mut request: Value = serde_json::from_str(kept)
            .map_err(|error| wrong(format!("has a request that cannot be read: {error}")))?;
        if let Some(members) = request.as_object_mut() {
            members.retain(|_, value| !value.is_null());
            // Only the host that made a cursor accepts it.
            members.remove("cursor");
            members.insert("bindingKey".to_owned(), key.into());
        }
        Ok(Self { route, request, is_write: asked.is_some_and(OperationKind::is_write) })
    }
}

/// What a record says of an answer: the records, their number, and the outcome.
pub(super) fn outline(operation: &Value) -> Value {
    let outline = json!({
        "outcome": operation["outcome"],
        "recordCount": operation["recordCount"],
        "records": operation.get("records").cloned().unwrap_or_else(|| json!([])),
        "error": operation["error"],
    });
    without_id(&outline, &text(operation, "/id"))
}

/// An answer without what differs each time: the operation's id, also within other ids, and times.
pub(super) fn settled(answer: &Value, id: &str) -> Value {
    let mut answer = answer.clone();
    if let Some(members) = answer.as_object_mut() {
        members.remove("operationId");
        members.remove("nextCursor");
    }
    let records = answer.get_mut("written").and_then(Value::as_array_mut);
    for record in records.into_iter().flatten().filter_map(Value::as_object_mut) {
        record.remove("updatedAt");
    }
    without_id(&answer, id)
}

fn without_id(value: &Value, id: &str) -> Value {
    match value {
        Value::String(text) if !id.is_empty() => text.replace(id, "OPERATION").into(),
        Value::Array(items) => items.iter().map(|item| without_id(item, id)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), without_id(member, id))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(kind: &str, text: &str, bytes: u64) -> Value {
        json!({ "id": "op-7", "kind": kind, "payload": { "text": text, "bytes": bytes } })
    }

    #[test]
    fn a_request_comes_back_without_what_is_of_its_host() {
        let asked = r#"{"query":"gate","cursor":"x","bindingKey":null}"#;
        let found =
            Recorded::of(&operation("list", asked, asked.len() as u64), &json!({ "key": "notes" }))
                .unwrap();
        assert_eq!(
            (found.route, found.request),
            ("list", json!({ "query": "gate", "bindingKey": "notes" }))
        );
    }

    #[test]
    fn a_record_without_a_whole_request_says_how_to_keep_one() {
        let binding = json!({ "key": "notes" });
        let cut =
            Recorded::of(&operation("query", "{", 3_000), &binding).err().unwrap().to_string();
        assert!(cut.contains("1 of 3000 bytes") && cut.contains("snapshots"), "{cut}");
        let none = json!({ "id": "op-7", "kind": "query" });
        let none = Recorded::of(&none, &binding).err().unwrap().to_string();
        assert!(
            none.contains("op-7 has no copy of its request")
                && none.contains("binding update notes"),
            "{none}"
        );
        assert!(Recorded::of(&operation("extraction", "{}", 2), &binding).is_err());
    }

    #[test]
    fn ids_that_are_made_of_the_operation_are_no_difference() {
        let answer = |id: &str| json!({ "operationId": id, "records": [{ "providerRecordId": format!("{id}-0") }] });
        assert_eq!(settled(&answer("op-1"), "op-1"), settled(&answer("op-2"), "op-2"));
        assert_ne!(settled(&answer("op-1"), "op-1"), settled(&json!({ "records": [] }), "op-2"));
    }
}
