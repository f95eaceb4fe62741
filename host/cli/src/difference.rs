//! What differs between two JSON values.

use std::collections::BTreeSet;

use serde_json::Value;

/// Adds each value that differs: its path, and what it was and is. A value that is not there is
/// null.
pub(super) fn differences<'a>(
    path: &str,
    before: &'a Value,
    after: &'a Value,
    found: &mut Vec<(String, &'a Value, &'a Value)>,
) {
    let (old, new) = match (before, after) {
        (before, after) if before == after => return,
        (Value::Object(old), Value::Object(new)) => (old, new),
        _ => return found.push((path.to_owned(), before, after)),
    };
    let names: BTreeSet<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    for name in names {
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        differences(&path, &before[name], &after[name], found);
    }
}
