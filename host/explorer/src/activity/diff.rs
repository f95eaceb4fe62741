//! The difference between two JSON values, field by field.

use maud::{Markup, html};
use serde_json::Value;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::components::bytes;

/// One field: its path, its value before and after.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

/// A path and a value, as a person reads it.
type Field = (String, String);

/// Values with more fields are not compared field by field: that takes a time that grows with the
/// product of both.
const MOST: usize = 300;
/// Fields that change with every change, and ids of things that are shown by name.
const IGNORED: [&str; 7] =
    ["revision", "updatedAt", "id", "companyId", "createdAt", "createdBy", "setAt"];

/// The fields that differ. All fields, if there is only one value.
pub(super) fn changes(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let (before, after) = (fields(before), fields(after));
    if before.len().max(after.len()) > MOST && before != after {
        let count =
            |fields: &[Field]| (!fields.is_empty()).then(|| format!("{} fields", fields.len()));
        return vec![Change {
            path: "too many to compare".to_owned(),
            before: count(&before),
            after: count(&after),
        }];
    }
    let mut changes = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &before, &after) {
        if !matches!(operation, DiffOp::Equal { .. }) {
            pair(&before[operation.old_range()], &after[operation.new_range()], &mut changes);
        }
    }
    changes
}

/// Makes one change of a removed and an added field of the same path.
fn pair(removed: &[Field], added: &[Field], changes: &mut Vec<Change>) {
    let mut added: Vec<&Field> = added.iter().collect();
    for (path, before) in removed {
        let found = added.iter().position(|(other, _)| other == path).map(|at| added.remove(at));
        let after = found.map(|(_, value)| value.clone());
        changes.push(Change { path: path.clone(), before: Some(before.clone()), after });
    }
    let added = added.into_iter().map(|(path, value)| (path.clone(), value.clone()));
    changes.extend(added.map(|(path, value)| Change { path, before: None, after: Some(value) }));
}

/// The fields of a value, in the order of their names. Elements of a list have the path of the
/// list.
fn fields(value: Option<&Value>) -> Vec<Field> {
    let mut found = Vec::new();
    if let Some(value) = value {
        collect(value, String::new(), &mut found);
    }
    found.retain(|(path, _)| !IGNORED.contains(&path.as_str()));
    found
}

fn collect(value: &Value, path: String, found: &mut Vec<Field>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, member) in members {
                collect(
                    member,
                    if path.is_empty() { name.clone() } else { format!("{path}.{name}") },
                    found,
                );
            }
        }
        // A list of words is one value.
        Value::Array(items) if !items.is_empty() && !items.iter().all(Value::is_string) => {
            items.iter().for_each(|item| collect(item, path.clone(), found));
        }
        value => {
            let text = text(value, &path);
            found.push((path, text));
        }
    }
}

fn text(value: &Value, path: &str) -> String {
    match value {
        Value::Object(_) => "empty".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "none".to_owned(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => {
            let size = number.as_u64().filter(|_| path.ends_with("Bytes"));
            size.map_or_else(|| number.to_string(), bytes)
        }
        Value::String(text) => text.clone(),
    }
}

/// One row for each field: the value before is struck out, the value after stands beside it.
pub(super) fn table(changes: &[Change]) -> Markup {
    html! {
        @if !changes.is_empty() {
            dl.diff {
                @for change in changes {
                    div {
                        dt { (label(&change.path)) }
                        dd {
                            @if let Some(before) = &change.before {
                                del { span.vh { "before " } (before) }
                            }
                            @if change.before.is_some() && change.after.is_some() {
                                span.arrow aria-hidden="true" { " → " }
                            }
                            @if let Some(after) = &change.after {
                                ins { span.vh { "after " } (after) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A path as a person reads it: `limits.callTimeoutMs` is `limits / call timeout ms`.
fn label(path: &str) -> String {
    if path.is_empty() {
        return "value".to_owned();
    }
    let mut text = String::with_capacity(path.len() + 8);
    for letter in path.chars() {
        match letter {
            '.' => text.push_str(" / "),
            '_' => text.push(' '),
            letter if letter.is_ascii_uppercase() => {
                text.push(' ');
                text.push(letter.to_ascii_lowercase());
            }
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(changes: &[Change]) -> Vec<(&str, Option<&str>, Option<&str>)> {
        changes.iter().map(|c| (c.path.as_str(), c.before.as_deref(), c.after.as_deref())).collect()
    }

    #[test]
    fn only_what_is_different_is_shown() {
        let limits = |log: u32| json!({"callTimeoutMs": 5, "logBytes": log});
        let before =
            json!({"enabled": true, "revision": 1, "limits": limits(1024), "agents": ["a", "b"]});
        let after = json!({
            "enabled": false, "revision": 2, "limits": limits(2048), "agents": ["a"], "note": "x",
        });
        let changes = changes(Some(&before), Some(&after));
        assert_eq!(
            rows(&changes),
            [
                ("agents", Some("a, b"), Some("a")),
                ("enabled", Some("yes"), Some("no")),
                ("limits.logBytes", Some("1 KiB"), Some("2 KiB")),
                ("note", None, Some("x")),
            ]
        );
        assert_eq!(label("limits.callTimeoutMs"), "limits / call timeout ms");
    }

    #[test]
    fn values_of_very_many_fields_are_only_counted() {
        let many = |value: u32| {
            (0..50_000).map(|n| (format!("f{n}"), json!(value))).collect::<serde_json::Map<_, _>>()
        };
        let (before, after) = (Value::Object(many(1)), Value::Object(many(2)));
        let changes_of = |after| changes(Some(&before), Some(after));
        assert_eq!(
            rows(&changes_of(&after)),
            [("too many to compare", Some("50000 fields"), Some("50000 fields"))]
        );
        assert!(changes_of(&before).is_empty());
    }

    #[test]
    fn removing_the_first_element_of_a_list_leaves_the_others_alone() {
        let before = json!({
            "http": [{"origin": "a", "methods": ["GET"]}, {"origin": "b", "methods": ["PUT"]}],
        });
        let after = json!({"http": [{"origin": "b", "methods": ["PUT"]}]});
        let changes = changes(Some(&before), Some(&after));
        assert_eq!(
            rows(&changes),
            [("http.methods", Some("GET"), None), ("http.origin", Some("a"), None)]
        );
    }

    #[test]
    fn plain_values_differ_and_markup_is_escaped() {
        let found = changes(Some(&json!("queued")), Some(&json!("<script>")));
        let text = table(&found).into_string();
        assert!(text.contains("queued") && text.contains("&lt;script&gt;"), "{text}");
        assert!(changes(Some(&json!(1)), Some(&json!(1))).is_empty());
        assert_eq!(changes(None, Some(&json!({"a": 1, "b": {}}))).len(), 2);
    }
}
