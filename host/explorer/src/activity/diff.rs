//! What is different between two JSON values, field by field, for a person.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;

use crate::kit::bytes;

/// One field: where it is, how it was, how it is.
pub(super) struct Changed {
    path: String,
    before: Option<String>,
    after: Option<String>,
}

/// Fields that change with every change, and ids that say nothing to a person who has the name.
const NOISE: [&str; 7] = ["revision", "updatedAt", "id", "companyId", "createdAt", "createdBy", "setAt"];

/// The fields that are different; all of them where there is one value only.
pub(super) fn of(before: Option<&Value>, after: Option<&Value>) -> Vec<Changed> {
    let leaves = |value: Option<&Value>| {
        let mut found = BTreeMap::new();
        if let Some(value) = value {
            walk(value, String::new(), &mut found);
        }
        found
    };
    let (before, after) = (leaves(before), leaves(after));
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    let changed = changed.filter(|path| !NOISE.contains(&path.as_str()));
    changed
        .map(|path| Changed { path: path.clone(), before: before.get(path).cloned(), after: after.get(path).cloned() })
        .collect()
}

fn walk(value: &Value, path: String, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) if members.is_empty() => drop(found.insert(path, "nothing".to_owned())),
        Value::Object(members) => {
            for (name, member) in members {
                walk(member, if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, found);
            }
        }
        Value::Array(items) if items.is_empty() => drop(found.insert(path, "none".to_owned())),
        // Short lists of words are read as one; what is deeper goes on by number.
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<_> = items.iter().filter_map(Value::as_str).collect();
            found.insert(path, words.join(", "));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, format!("{path}.{}", index + 1), found);
            }
        }
        Value::Null => drop(found.insert(path, "none".to_owned())),
        Value::Bool(is) => drop(found.insert(path, if *is { "yes" } else { "no" }.to_owned())),
        Value::Number(number) => {
            let size = number.as_u64().filter(|_| path.ends_with("Bytes"));
            found.insert(path, size.map_or_else(|| number.to_string(), bytes));
        }
        Value::String(text) => drop(found.insert(path, text.clone())),
    }
}

/// A row a field: what went is struck out, what came stands beside it.
pub(super) fn table(changes: &[Changed]) -> Markup {
    html! {
        @if !changes.is_empty() {
            dl.diff {
                @for change in changes {
                    div {
                        dt { (name(&change.path)) }
                        dd {
                            @if let Some(before) = &change.before { del { span.vh { "was " } (before) } }
                            @if change.before.is_some() && change.after.is_some() { span.arrow aria-hidden="true" { " → " } }
                            @if let Some(after) = &change.after { ins { span.vh { "is " } (after) } }
                        }
                    }
                }
            }
        }
    }
}

/// A path as a person reads it: `limits.callTimeoutMs` is `limits / call timeout ms`.
fn name(path: &str) -> String {
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

    #[test]
    fn only_what_is_different_is_shown() {
        let before = json!({"enabled": true, "revision": 1, "limits": {"callTimeoutMs": 5, "logBytes": 1024}, "agents": ["a", "b"]});
        let after = json!({"enabled": false, "revision": 2, "limits": {"callTimeoutMs": 5, "logBytes": 2048}, "agents": ["a"], "note": "x"});
        let changes = of(Some(&before), Some(&after));
        let said: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.before.as_deref(), c.after.as_deref())).collect();
        assert_eq!(
            said,
            [
                ("agents", Some("a, b"), Some("a")),
                ("enabled", Some("yes"), Some("no")),
                ("limits.logBytes", Some("1 KiB"), Some("2 KiB")),
                ("note", None, Some("x")),
            ]
        );
        assert_eq!(name("limits.callTimeoutMs"), "limits / call timeout ms");
    }

    #[test]
    fn a_word_for_another_is_a_change_too_and_nothing_hostile_gets_through() {
        let changes = of(Some(&json!("queued")), Some(&json!("<script>")));
        let text = table(&changes).into_string();
        assert!(text.contains("queued") && text.contains("&lt;script&gt;"), "{text}");
        assert!(of(Some(&json!(1)), Some(&json!(1))).is_empty());
    }
}
