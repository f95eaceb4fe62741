//! Changing a JSON file in place: an entry is put in or taken out, and every other byte stays as somebody wrote it, with
//! its order, its indentation and its line ends.

use std::ops::Range;

use serde_json::Value;

/// A value in a text, with where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// From its first byte to behind its last.
    pub(super) span: Range<usize>,
    /// What is in it.
    pub(super) kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// Members: the key, where its text stands, and the value.
    Object(Vec<(String, Range<usize>, Node)>),
    /// Elements.
    Array(Vec<Node>),
    /// Anything else.
    Scalar(Value),
}

impl Node {
    /// The member of this name.
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        self.members().iter().find(|(key, ..)| key == name).map(|(.., value)| value)
    }

    /// The members, where it is an object.
    pub(super) fn members(&self) -> &[(String, Range<usize>, Node)] {
        if let Kind::Object(members) = &self.kind { members } else { &[] }
    }

    /// The elements, where it is an array.
    pub(super) fn elements(&self) -> &[Node] {
        if let Kind::Array(elements) = &self.kind { elements } else { &[] }
    }

    /// The text, where it is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let Kind::Scalar(Value::String(text)) = &self.kind { Some(text) } else { None }
    }
}

/// Where a text is no JSON: at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no JSON at byte {0}")]
pub(super) struct NoJson(pub(super) usize);

/// Reads a whole text.
pub(super) fn parse(text: &str) -> Result<Node, NoJson> {
    let mut reader = Reader { text: text.as_bytes(), at: 0, depth: 0 };
    // A byte order mark is no JSON, but some editors write one.
    if text.starts_with('\u{feff}') {
        reader.at = 3;
    }
    let node = reader.value()?;
    reader.space();
    if reader.at == text.len() { Ok(node) } else { Err(NoJson(reader.at)) }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Result<(), NoJson> {
        self.space();
        if self.text.get(self.at) == Some(&byte) {
            self.at += 1;
            return Ok(());
        }
        Err(NoJson(self.at))
    }

    fn is_next(&mut self, byte: u8) -> bool {
        self.space();
        self.text.get(self.at) == Some(&byte)
    }

    fn value(&mut self) -> Result<Node, NoJson> {
        self.space();
        self.depth += 1;
        if self.depth > 64 {
            return Err(NoJson(self.at));
        }
        let start = self.at;
        let kind = match self.text.get(self.at) {
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(_) => Kind::Scalar(self.scalar()?),
            None => return Err(NoJson(self.at)),
        };
        self.depth -= 1;
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self) -> Result<Kind, NoJson> {
        self.take(b'{')?;
        let mut members = Vec::new();
        while !self.is_next(b'}') {
            if !members.is_empty() {
                self.take(b',')?;
                self.space();
            }
            let start = self.at;
            let Value::String(key) = self.scalar()? else { return Err(NoJson(start)) };
            let span = start..self.at;
            self.take(b':')?;
            members.push((key, span, self.value()?));
        }
        self.take(b'}')?;
        Ok(Kind::Object(members))
    }

    fn array(&mut self) -> Result<Kind, NoJson> {
        self.take(b'[')?;
        let mut elements = Vec::new();
        while !self.is_next(b']') {
            if !elements.is_empty() {
                self.take(b',')?;
            }
            elements.push(self.value()?);
        }
        self.take(b']')?;
        Ok(Kind::Array(elements))
    }

    fn scalar(&mut self) -> Result<Value, NoJson> {
        let start = self.at;
        if self.text.get(start) == Some(&b'"') {
            self.at += 1;
            while let Some(byte) = self.text.get(self.at) {
                self.at += if *byte == b'\\' { 2 } else { 1 };
                if *byte == b'"' {
                    break;
                }
            }
        } else {
            while self.text.get(self.at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)) {
                self.at += 1;
            }
        }
        let text = self.text.get(start..self.at).ok_or(NoJson(start))?;
        serde_json::from_slice(text).map_err(|_| NoJson(start))
    }
}

/// How a file is laid out: what one level is indented by, and how its lines end. Empty where all is on one line.
pub(super) struct Layout {
    unit: String,
    line_end: &'static str,
}

impl Layout {
    /// As the text has it; two spaces where it says nothing.
    pub(super) fn of(text: &str) -> Self {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indented = text.lines().skip(1).find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let unit = indented.map_or("  ", |line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]);
        Self { unit: unit.to_owned(), line_end }
    }

    fn break_at(&self, level: usize) -> String {
        format!("{}{}", self.line_end, self.unit.repeat(level))
    }

    /// A value, laid out at a level.
    fn write(&self, value: &Value, level: usize) -> String {
        let list = |open: &str, close: &str, items: Vec<String>| match items.is_empty() {
            true => format!("{open}{close}"),
            false => {
                let between = format!(",{}", self.break_at(level + 1));
                format!("{open}{}{}{}{close}", self.break_at(level + 1), items.join(&between), self.break_at(level))
            }
        };
        match value {
            Value::Object(members) => {
                let one = |(key, value): (&String, &Value)| {
                    format!("{}: {}", Value::from(key.as_str()), self.write(value, level + 1))
                };
                list("{", "}", members.iter().map(one).collect())
            }
            Value::Array(elements) => {
                list("[", "]", elements.iter().map(|element| self.write(element, level + 1)).collect())
            }
            scalar => scalar.to_string(),
        }
    }
}

/// The text with a value added behind what an object or an array at this level holds; `key` for an object.
pub(super) fn add(text: &str, into: &Node, level: usize, key: Option<&str>, value: &Value) -> String {
    let layout = Layout::of(text);
    let key = key.map(|key| format!("{}: ", Value::from(key))).unwrap_or_default();
    let new = format!("{}{key}{}", layout.break_at(level + 1), layout.write(value, level + 1));
    let last = match &into.kind {
        Kind::Object(members) => members.last().map(|(.., value)| value.span.end),
        Kind::Array(elements) => elements.last().map(|element| element.span.end),
        Kind::Scalar(_) => None,
    };
    match last {
        Some(end) => format!("{},{new}{}", &text[..end], &text[end..]),
        // What was empty is laid out anew.
        None => {
            let (open, close) = (into.span.start + 1, into.span.end - 1);
            format!("{}{new}{}{}", &text[..open], layout.break_at(level), &text[close..])
        }
    }
}

/// The text without one of the things that an object or an array holds, given where each of them stands.
pub(super) fn remove(text: &str, container: &Node, items: &[Range<usize>], index: usize) -> String {
    let item = &items[index];
    // With the comma and the space on one side of it; alone, it leaves an empty container.
    let gone = match (index.checked_sub(1).and_then(|before| items.get(before)), items.get(index + 1)) {
        (Some(before), _) => before.end..item.end,
        (None, Some(after)) => item.start..after.start,
        (None, None) => container.span.start + 1..container.span.end - 1,
    };
    format!("{}{}", &text[..gone.start], &text[gone.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_added_and_removed_again_leaves_every_byte() {
        for text in [
            "{\n  \"a\": 1\n}\n",
            "{\n\t\"b\": [1, 2],\n\t\"a\": {\"x\": \"\\\"}\"}\n}",
            "{\r\n    \"z\": null\r\n}\r\n",
            "{\"one\":\"line\"}",
        ] {
            let root = parse(text).unwrap();
            let added = add(text, &root, 0, Some("hooks"), &json!({"Stop": [{"n": 1}]}));
            let value: Value = serde_json::from_str(&added).unwrap();
            assert_eq!(value["hooks"], json!({"Stop": [{"n": 1}]}), "{added}");
            let root = parse(&added).unwrap();
            let items: Vec<_> = root.members().iter().map(|(_, key, value)| key.start..value.span.end).collect();
            assert_eq!(remove(&added, &root, &items, items.len() - 1), text);
        }
    }

    #[test]
    fn the_first_of_several_goes_with_its_comma() {
        let text = "[\n  1,\n  2\n]";
        let root = parse(text).unwrap();
        let items: Vec<_> = root.elements().iter().map(|element| element.span.clone()).collect();
        assert_eq!(remove(text, &root, &items, 0), "[\n  2\n]");
        assert_eq!(remove(text, &root, &items, 1), "[\n  1\n]");
    }

    #[test]
    fn what_is_no_json_is_said_to_be_none() {
        for text in ["", "{", "{\"a\" 1}", "[1 2]", "{\"a\": 1} x", "{\"a\": \"", "nul", "{1: 2}", "// c\n{}"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(1_000)).is_err());
    }
}
