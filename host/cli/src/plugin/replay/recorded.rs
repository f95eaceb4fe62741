//! The request and the outline of the answer, from an operation record.

use serde_json::{Value, json};

use crate::{CliError, Result};
use memhost_types::{BindingKey, Operation, OperationKind, PayloadSnapshot};

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
    pub(super) fn of(operation: &Operation, key: &BindingKey) -> Result<Self> {
        let (id, kind) = (operation.id, operation.kind);
        let wrong = |message: String| CliError::input("OPERATION", format!("{id} {message}"));
        let asked = Some(kind)
            .filter(|kind| !matches!(kind, OperationKind::Export | OperationKind::Import));
        let Some(route) = asked.and_then(OperationKind::route) else {
            return Err(wrong(format!(
                "is of the kind {kind}, which is not a request to a provider; choose another \
                 operation"
            )));
        };
        let how = format!(
            "it must be made under the policy `{{\"retention\":{{\"snapshots\":\"full\"}}}}` of \
             the binding `{key}`; \
             `memhost binding update {key} --policy JSON` sets the whole policy"
        );
        let PayloadSnapshot { text: kept, bytes } = operation
            .payload
            .as_ref()
            .ok_or_else(|| wrong(format!("has no copy of its request: {how}")))?;
        if *bytes > kept.len() as u64 {
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
            members.insert("bindingKey".to_owned(), key.as_str().into());
        }
        Ok(Self { route, request, is_write: kind.is_write() })
    }
}

/// What a record says of an answer: the records, their number, and the outcome.
pub(super) fn outline(operation: &Operation) -> Value {
    let outline = json!({
        "outcome": operation.outcome,
        "recordCount": operation.record_count,
        "records": operation.records,
        "error": operation.error,
    });
    without_id(&outline, &operation.id.to_string())
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
    use crate::plugin::trial::id;

    fn operation(kind: &str, payload: Option<(&str, u64)>) -> Operation {
        serde_json::from_value(json!({
            "id": "0199f0a0-0000-7000-8000-000000000000", "companyId": "acme", "kind": kind,
            "outcome": "succeeded", "principal": "operator", "scope": { "companyId": "acme" },
            "startedAt": "2026-11-01T00:00:00Z", "recordCount": 0,
            "payload": payload.map(|(text, bytes)| json!({ "text": text, "bytes": bytes })),
        }))
        .unwrap()
    }

    #[test]
    fn a_request_comes_back_without_what_is_of_its_host() {
        let asked = r#"{"query":"gate","cursor":"x","bindingKey":null}"#;
        let operation = operation("list", Some((asked, asked.len() as u64)));
        let found = Recorded::of(&operation, &id("notes").unwrap()).unwrap();
        assert_eq!(
            (found.route, found.request),
            ("list", json!({ "query": "gate", "bindingKey": "notes" }))
        );
    }

    #[test]
    fn a_record_without_a_whole_request_says_how_to_keep_one() {
        let said = |operation: &Operation| {
            Recorded::of(operation, &id("notes").unwrap()).err().unwrap().to_string()
        };
        let cut = said(&operation("query", Some(("{", 3_000))));
        assert!(cut.contains("1 of 3000 bytes") && cut.contains("snapshots"), "{cut}");
        let none = said(&operation("query", None));
        assert!(
            none.contains("-000000000000 has no copy of its request")
                && none.contains("binding update notes"),
            "{none}"
        );
        assert!(said(&operation("extraction", Some(("{}", 2)))).contains("is of the kind"));
    }

    #[test]
    fn ids_that_are_made_of_the_operation_are_no_difference() {
        let answer = |id: &str| {
            let record = json!({ "providerRecordId": format!("{id}-0") });
            json!({ "operationId": id, "records": [record] })
        };
        assert_eq!(settled(&answer("op-1"), "op-1"), settled(&answer("op-2"), "op-2"));
        assert_ne!(settled(&answer("op-1"), "op-1"), settled(&json!({ "records": [] }), "op-2"));
    }
}
