//! Inserting into and removing from a JSON text, where every other byte stays as somebody wrote it.
//!
//! `jsonc-parser` reads the text and says where each value stands. Its tree for editing (`cst`) is
//! not used: it lays out other people's values anew. In a test with seven settings files, adding an
//! entry and removing it again changed three: an object on one line, a list on one line, and an
//! object with blank lines.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Reads a text as strict JSON, as the tools read their settings.
///
/// # Errors
/// The error, with its line and column.
pub(super) fn parse(text: &str) -> Result<Node<'_>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("is not JSON: {error}; correct it first");
    // `jsonc-parser` accepts more than JSON, also with its strictest options: a line break in a
    // string.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| wrong(&error))?;
    let found = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    found.map_err(|error| wrong(&error))?.value.ok_or_else(|| wrong(&"it is empty"))
}

/// An object or a list in a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Container<'n, 't> {
    /// An object.
    Object(&'n Object<'t>),
    /// A list.
    Array(&'n Array<'t>),
}

impl Container<'_, '_> {
    fn range(self) -> Range<usize> {
        match self {
            Self::Object(object) => object.start()..object.end(),
            Self::Array(array) => array.start()..array.end(),
        }
    }

    fn items(self) -> Vec<Range<usize>> {
        match self {
            Self::Object(object) => {
                object.properties.iter().map(|property| property.start()..property.end()).collect()
            }
            Self::Array(array) => {
                array.elements.iter().map(|element| element.start()..element.end()).collect()
            }
        }
    }
}

/// The text with a value behind the last one of a container. `key` is its name in an object, and
/// `level` says how many containers are around this one.
pub(super) fn append(
    text: &str,
    into: Container<'_, '_>,
    level: usize,
    key: Option<&str>,
    value: &Value,
) -> String {
    let layout = Layout::of(text);
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let new = format!("{}{key}{}", layout.line_break(level + 1), layout.write(value, level + 1));
    match into.items().last() {
        Some(last) => format!("{},{new}{}", &text[..last.end], &text[last.end..]),
        None => {
            let (open, close) = (into.range().start + 1, into.range().end - 1);
            format!("{}{new}{}{}", &text[..open], layout.line_break(level), &text[close..])
        }
    }
}

/// The text without one item of a container, and without the comma and the space on one side of it.
pub(super) fn remove(text: &str, from: Container<'_, '_>, index: usize) -> String {
    let items = from.items();
    let item = &items[index];
    let before = index.checked_sub(1).and_then(|before| items.get(before));
    let removed = match (before, items.get(index + 1)) {
        (Some(before), _) => before.end..item.end,
        (None, Some(after)) => item.start..after.start,
        (None, None) => from.range().start + 1..from.range().end - 1,
    };
    format!("{}{}", &text[..removed.start], &text[removed.end..])
}

/// How a text is laid out.
struct Layout {
    indent: String,
    line_end: &'static str,
}

impl Layout {
    /// As the first indented line has it; two spaces where there is none.
    fn of(text: &str) -> Self {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indented = text
            .lines()
            .skip(1)
            .find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let indent = indented
            .map_or("  ", |line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
        Self { indent: indent.to_owned(), line_end }
    }

    fn line_break(&self, level: usize) -> String {
        format!("{}{}", self.line_end, self.indent.repeat(level))
    }

    /// A value with one line for each item.
    fn write(&self, value: &Value, level: usize) -> String {
        let list = |open: &str, close: &str, items: Vec<String>| {
            if items.is_empty() {
                return format!("{open}{close}");
            }
            let between = format!(",{}", self.line_break(level + 1));
            format!(
                "{open}{}{}{}{close}",
                self.line_break(level + 1),
                items.join(&between),
                self.line_break(level)
            )
        };
        match value {
            Value::Object(members) => {
                let one = |(key, value): (&String, &Value)| {
                    format!("{}: {}", Value::from(key.as_str()), self.write(value, level + 1))
                };
                list("{", "}", members.iter().map(one).collect())
            }
            Value::Array(elements) => list(
                "[",
                "]",
                elements.iter().map(|element| self.write(element, level + 1)).collect(),
            ),
            scalar => scalar.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn root<'n, 't>(node: &'n Node<'t>) -> Container<'n, 't> {
        match node {
            Node::Object(object) => Container::Object(object),
            Node::Array(array) => Container::Array(array),
            _ => panic!("it is a container"),
        }
    }

    #[test]
    fn adding_and_removing_again_leaves_every_byte() {
        for text in [
            "{\n  \"a\": 1\n}\n",
            "{\n\t\"b\": [1, 2],\n\t\"a\": {\"x\": \"\\\"}\"}\n}",
            "{\r\n    \"z\": null\r\n}\r\n",
            "{\"one\":\"line\"}",
            "{\n\n  \"a\": \"ä\",\n\n  \"b\": 2\n\n}\n",
        ] {
            let added = append(
                text,
                root(&parse(text).unwrap()),
                0,
                Some("hooks"),
                &json!({"Stop": [{"n": 1}]}),
            );
            let value: Value = serde_json::from_str(&added).unwrap();
            assert_eq!(value["hooks"], json!({"Stop": [{"n": 1}]}), "{added}");
            let node = parse(&added).unwrap();
            assert_eq!(remove(&added, root(&node), root(&node).items().len() - 1), text);
        }
    }

    #[test]
    fn an_item_goes_with_its_comma() {
        let text = "[\n  1,\n  2\n]";
        let node = parse(text).unwrap();
        assert_eq!(remove(text, root(&node), 0), "[\n  2\n]");
        assert_eq!(remove(text, root(&node), 1), "[\n  1\n]");
        assert_eq!(remove("[ 1 ]", root(&parse("[ 1 ]").unwrap()), 0), "[]");
    }

    #[test]
    fn only_strict_json_is_read() {
        for text in [
            "",
            "{",
            "{\"a\" 1}",
            "[1 2]",
            "{\"a\": 1} x",
            "{\"a\": \"",
            "nul",
            "{1: 2}",
            "// c\n{}",
            "[1,]",
            "['a']",
            "[+1]",
            "[.5]",
            "[0x1]",
            "[NaN]",
            "[01]",
            "[\"\\x41\"]",
            "[\"a\nb\"]",
            "\u{feff}{}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(1_000)).is_err());
    }
}
