//! Schemas as trees that a person can read: what a value is, what it may hold, and what that means.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::prose::prose;

/// Named types inside of a body are shown so deep; further down their names lead to the list of
/// types.
const DEPTH: usize = 2;

/// The document's named schemas.
pub(super) struct Schemas<'a> {
    all: Option<&'a Map<String, Value>>,
}

/// The target of a value that is a reference into the document.
pub(super) fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

impl<'a> Schemas<'a> {
    pub(super) fn of(document: &'a Value) -> Self {
        Self { all: document["components"]["schemas"].as_object() }
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'a String, &'a Value)> {
        self.all.into_iter().flatten()
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        name_of(schema).and_then(|name| self.all?.get(name)).unwrap_or(schema)
    }

    /// A value in a few words.
    pub(super) fn inline(&self, schema: &Value) -> Markup {
        if let Some(name) = name_of(schema) {
            return html! { a href={ "#type-" (name) } { (name) } };
        }
        if let Some(either) = alternatives(schema) {
            if let Some(values) =
                either.iter().map(|one| one["const"].as_str()).collect::<Option<Vec<_>>>()
            {
                return html! { "one of " (values.join(", ")) };
            }
            return html! {
                @for (index, one) in either.iter().enumerate() {
                    @if index > 0 { " or " } (self.inline(one))
                }
            };
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ if schema["const"].is_string() => vec!["string"],
            _ => vec!["anything"],
        };
        html! {
            @for (index, one) in types.iter().enumerate() {
                @if index > 0 { " or " }
                @if *one == "array" { "list of " (self.inline(&schema["items"])) }
                @else if *one == "object" && schema["additionalProperties"].is_object() {
                    "object of " (self.inline(&schema["additionalProperties"]))
                }
                @else { (one) }
            }
            (limits(schema))
        }
    }

    /// The members of what a body is.
    pub(super) fn members(&self, schema: &'a Value) -> Markup {
        self.tree(self.resolve(schema), DEPTH)
    }

    /// A named type with everything that is known of it.
    pub(super) fn show(&self, schema: &'a Value) -> Markup {
        html! {
            (prose(schema["description"].as_str().unwrap_or_default()))
            @if schema["properties"].is_object() || alternatives(schema).is_some() {
                (self.tree(schema, 0))
            }
            @else { p.media { (self.inline(schema)) } }
        }
    }

    fn tree(&self, schema: &'a Value, depth: usize) -> Markup {
        let is_required = |name: &str| {
            schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
        };
        html! {
            @if let Some(members) = schema["properties"].as_object() {
                dl.members {
                    @for (name, member) in members {
                        dt {
                            code { (name) }
                            @if is_required(name) { " " span.required { "required" } }
                        }
                        dd {
                            span.is { (self.inline(member)) }
                            (prose(member["description"].as_str().unwrap_or_default()))
                            @if depth > 0 { @if let Some((name, inner)) = self.inner(member) {
                                details { summary { (name) } (self.tree(inner, depth - 1)) }
                            } }
                        }
                    }
                }
            }
            @if let Some(either) = alternatives(schema) {
                ul.either {
                    @for one in either {
                        li {
                            (self.inline_or_const(one))
                            (prose(one["description"].as_str().unwrap_or_default()))
                            @if one["properties"].is_object() { (self.tree(one, depth)) }
                        }
                    }
                }
            }
        }
    }

    fn inline_or_const(&self, schema: &Value) -> Markup {
        match schema["const"].as_str() {
            Some(value) => html! { code { (value) } },
            None => self.inline(schema),
        }
    }

    /// The named type with members that a member is, or is a list of.
    fn inner(&self, member: &'a Value) -> Option<(&'a str, &'a Value)> {
        let either = alternatives(member).into_iter().flatten();
        let named =
            std::iter::once(member).chain(either).chain([&member["items"]]).find_map(name_of)?;
        let schema = self.all?.get(named)?;
        schema["properties"].is_object().then_some((named, schema))
    }
}

/// The alternatives of a value, if it has several.
fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array())
}

/// The limits of a value.
fn limits(schema: &Value) -> Markup {
    let range =
        |low: &str, high: &str, of: &str| match (schema[low].as_number(), schema[high].as_number())
        {
            (Some(low), Some(high)) => Some(format!("{low} to {high}{of}")),
            (Some(low), None) => Some(format!("at least {low}{of}")),
            (None, Some(high)) => Some(format!("at most {high}{of}")),
            (None, None) => None,
        };
    let values = schema["enum"].as_array().map(|values| {
        let values: Vec<String> = values
            .iter()
            .map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned))
            .collect();
        values.join(", ")
    });
    let facts = [
        schema["format"]
            .as_str()
            .filter(|format| !format.contains("int") && *format != "double")
            .map(str::to_owned),
        values,
        range("minimum", "maximum", ""),
        range("minLength", "maxLength", " characters"),
        range("minItems", "maxItems", " elements"),
        Some(&schema["default"])
            .filter(|value| !value.is_null())
            .map(|value| format!("default {value}")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    html! {
        @if !facts.is_empty() { span.limits { " · " (facts.join(" · ")) } }
        @if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| pattern.len() <= 60) {
            span.limits { " · " code { (pattern) } }
        }
    }
}
