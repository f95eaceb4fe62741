//! JSON Merge Patch (RFC 7396): a change of an object that names only what changes.

use memhost_types::JsonObject;
use serde_json::Value;

/// Applies a patch to an object: a member of the patch replaces the one of its name, objects are
/// merged, and null removes. The depth is bounded by the parser that has read the patch.
pub(crate) fn merge(into: &mut JsonObject, patch: JsonObject) {
    for (name, value) in patch {
        match value {
            Value::Null => drop(into.remove(&name)),
            Value::Object(members) => {
                let inner = into.entry(name).or_insert_with(|| Value::Object(JsonObject::new()));
                if !inner.is_object() {
                    *inner = Value::Object(JsonObject::new());
                }
                if let Value::Object(inner) = inner {
                    merge(inner, members);
                }
            }
            value => drop(into.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The examples of the RFC whose result is an object.
    #[test]
    fn the_examples_of_the_standard_hold() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut merged = target.as_object().unwrap().clone();
            merge(&mut merged, patch.as_object().unwrap().clone());
            assert_eq!(Value::Object(merged), result, "{target} {patch}");
        }
    }
}
