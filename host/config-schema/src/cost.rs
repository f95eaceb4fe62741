//! How much work a schema makes of a configuration, before anybody does it. A schema of 1 KB can
//! ask for 2 to the power of 30 comparisons by references that double, and the validator has no
//! limit of its own.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::patterns;

/// The most pairs of a schema and a value that are compared. Each takes about a microsecond.
const MAX_STEPS: usize = 100_000;
/// The deepest chain of schemas: references can go in circles.
const MAX_DEPTH: usize = 256;

/// Keywords whose value is a schema for the same value.
const SAME: [&str; 6] = ["not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"];
/// Keywords whose value is a list of schemas for the same value.
const SAME_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose value is a map of schemas for the same value.
const SAME_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords whose value is a schema, or a list of them, for what is in the value.
const BELOW: [&str; 8] = [
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "propertyNames",
];

/// Why a schema is too much work for any configuration.
pub(crate) fn of_schema(schema: &Value) -> Result<(), String> {
    let mut all = Vec::new();
    each(schema, &mut |member| {
        all.extend(member.get("pattern").and_then(Value::as_str));
        if let Some(Value::Object(named)) = member.get("patternProperties") {
            all.extend(named.keys().map(String::as_str));
        }
    });
    patterns::check(&all)
}

/// Why a schema is too much work for this configuration.
pub(crate) fn of_config(schema: &Value, config: &Value) -> Result<(), String> {
    let mut names: HashMap<&str, Vec<&Value>> = HashMap::new();
    let mut resources = vec![schema];
    each(schema, &mut |member| {
        for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
            if let Some(name) = member.get(keyword).and_then(Value::as_str) {
                names.entry(name).or_default().push(member.whole);
                if keyword.ends_with("id") {
                    resources.push(member.whole);
                }
            }
        }
    });
    Work { names, resources, patterns: HashMap::new(), steps: 0 }.visit(schema, config, 0)
}

/// An object in a schema.
struct Member<'a> {
    whole: &'a Value,
    members: &'a Map<String, Value>,
}

impl<'a> Member<'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name)
    }
}

/// Every object of a schema, whether or not it is a schema. `serde_json` bounds how deep they are.
fn each<'a>(value: &'a Value, seen: &mut impl FnMut(Member<'a>)) {
    match value {
        Value::Object(members) => {
            seen(Member { whole: value, members });
            members.values().for_each(|member| each(member, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| each(item, seen)),
        _ => {}
    }
}

struct Work<'a> {
    names: HashMap<&'a str, Vec<&'a Value>>,
    resources: Vec<&'a Value>,
    /// The steps that each pattern makes of 16 bytes.
    patterns: HashMap<&'a str, usize>,
    steps: usize,
}

impl<'a> Work<'a> {
    /// Counts every pair of a schema and a value that could be compared.
    fn visit(&mut self, schema: &'a Value, value: &Value, depth: usize) -> Result<(), String> {
        let Value::Object(words) = schema else { return Ok(()) };
        let choices = words.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        self.count(if depth > MAX_DEPTH {
            MAX_STEPS + 1
        } else {
            1 + size(value) / 256 + choices
        })?;
        if let (Some(Value::String(pattern)), Value::String(text)) = (words.get("pattern"), value) {
            self.compare(pattern, text.len())?;
        }
        for word in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(target) = words.get(word).and_then(Value::as_str) {
                for target in self.targets(target) {
                    self.visit(target, value, depth + 1)?;
                }
            }
        }
        for word in SAME {
            self.all(words.get(word), value, depth)?;
        }
        for word in SAME_LISTS {
            self.all(words.get(word), value, depth)?;
        }
        for schemas in SAME_MAPS.iter().filter_map(|word| words.get(*word)?.as_object()) {
            for schema in schemas.values() {
                self.visit(schema, value, depth + 1)?;
            }
        }
        let below: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => return Ok(()),
        };
        for word in BELOW {
            for value in &below {
                self.all(words.get(word), value, depth)?;
            }
        }
        if let Some(Value::Object(patterns)) = words.get("patternProperties") {
            let names = value
                .as_object()
                .map_or(0, |members| members.keys().map(|name| name.len() + 1).sum());
            for (pattern, schema) in patterns {
                self.compare(pattern, names)?;
                for value in &below {
                    self.visit(schema, value, depth + 1)?;
                }
            }
        }
        if let (Some(Value::Object(named)), Value::Object(members)) =
            (words.get("properties"), value)
        {
            for (name, schema) in named {
                if let Some(value) = members.get(name) {
                    self.visit(schema, value, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        match self.steps > MAX_STEPS {
            true => Err("it makes too much work of this configuration".to_owned()),
            false => Ok(()),
        }
    }

    /// Counts the comparison of texts of this length with a pattern.
    fn compare(&mut self, pattern: &'a str, length: usize) -> Result<(), String> {
        let steps = *self.patterns.entry(pattern).or_insert_with(|| patterns::steps(pattern));
        self.count(length.saturating_mul(steps) / 16)
    }

    fn all(
        &mut self,
        schemas: Option<&'a Value>,
        value: &Value,
        depth: usize,
    ) -> Result<(), String> {
        match schemas {
            Some(Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| self.visit(schema, value, depth + 1))
            }
            Some(schema) => self.visit(schema, value, depth + 1),
            None => Ok(()),
        }
    }

    /// Everything that a reference could mean. The validator takes one of them.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let mut found: Vec<&'a Value> =
            self.names.get(fragment).into_iter().flatten().copied().collect();
        // An address is relative to another one: what ends like it is meant.
        let is_meant = |name: &&str| !address.is_empty() && name.ends_with(address);
        let named =
            self.names.iter().filter(|(name, _)| is_meant(name)).flat_map(|(_, found)| found);
        let mut bases: Vec<&'a Value> = named.copied().collect();
        if bases.is_empty() {
            bases.clone_from(&self.resources);
        }
        let pointer = fragment
            .replace("%25", "%")
            .replace("%22", "\"")
            .replace("%7E", "~")
            .replace("%2F", "/");
        found.extend(bases.iter().filter_map(|base| base.pointer(&pointer)));
        found
    }
}

/// About how long a value is, without what is in it.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `levels` schemas, each of which asks for the next one twice.
    fn doubling(levels: usize, word: &str) -> Value {
        let mut defs = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            defs.insert(level.to_string(), json!({ word: [next, next] }));
        }
        defs.insert(levels.to_string(), json!({"type": "object"}));
        json!({"$defs": defs, "$ref": "#/$defs/0"})
    }

    #[test]
    fn schemas_that_double_are_refused_and_short_ones_are_not() {
        for word in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(of_config(&doubling(8, word), &json!({})), Ok(()));
            assert!(
                of_config(&doubling(30, word), &json!({})).unwrap_err().contains("too much work"),
                "{word}"
            );
        }
    }

    #[test]
    fn doubling_with_the_depth_of_the_configuration_is_refused() {
        let once = json!({"$ref": "#"});
        let schema = json!({"properties": {"a": {"allOf": [once, once]}}});
        let deep = |levels| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        assert_eq!(of_config(&schema, &deep(6)), Ok(()));
        assert!(of_config(&schema, &deep(40)).is_err());
    }

    #[test]
    fn references_by_name_and_in_circles_are_followed() {
        let circle = json!({"$defs": {"a": {"$anchor": "x", "$ref": "#x"}}, "$ref": "#x"});
        assert!(of_config(&circle, &json!({})).is_err());
        let twice = json!({"$dynamicRef": "#x"});
        let dynamic = json!({"$dynamicAnchor": "x", "anyOf": [twice, twice]});
        assert!(of_config(&dynamic, &json!({})).is_err());
        let embedded = json!({
            "$defs": {"a": {"$id": "b.json", "properties": {"c": {"$ref": "b.json"}}}},
            "$ref": "b.json",
        });
        assert_eq!(of_config(&embedded, &json!({"c": {"c": {}}})), Ok(()));
    }

    #[test]
    fn long_texts_and_large_patterns_do_not_meet() {
        let schema = json!({
            "properties": {"a": {"pattern": "[ab]*a[ab]{1000}c"}, "b": {"pattern": "^a+$"}},
        });
        let long = "a".repeat(200 << 10);
        assert_eq!(of_config(&schema, &json!({"a": "a", "b": long})), Ok(()));
        assert!(of_config(&schema, &json!({"a": long})).unwrap_err().contains("too much work"));
        let names = json!({"patternProperties": {"[ab]*a[ab]{1000}c": {}}});
        assert_eq!(of_config(&names, &json!({"a": 1, "b": 2})), Ok(()));
        assert!(of_config(&names, &json!({ long.as_str(): 1 })).is_err());
    }

    #[test]
    fn a_schema_of_a_real_provider_is_little_work() {
        let schema = json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "format": "uri", "pattern": "^https://"},
                "models": {
                    "type": "array",
                    "items": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/model"}]},
                },
            },
            "required": ["url"], "additionalProperties": false,
            "$defs": {"model": {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}}},
        });
        let models: Vec<Value> = (0..1_000).map(|n| json!({"name": n.to_string()})).collect();
        assert_eq!(of_config(&schema, &json!({"url": "https://x", "models": models})), Ok(()));
    }
}
