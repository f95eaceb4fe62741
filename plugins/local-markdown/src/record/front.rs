//! Front matter. We write each field as JSON on a line of its own, which is YAML too and reads back
//! exactly; a person may write any YAML.

use serde_json::{Map, Value};

/// The fields between the `---` lines. Times are RFC 3339.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Front {
    /// The record's id; a file without one is named by its path.
    pub(crate) id: Option<String>,
    /// When the record was made.
    pub(crate) created_at: Option<String>,
    /// When it was last written through the provider.
    pub(crate) updated_at: Option<String>,
    /// When its content happened.
    pub(crate) occurred_at: Option<String>,
    /// The summary.
    pub(crate) summary: Option<String>,
    /// The operation that made it.
    pub(crate) operation_id: Option<String>,
    /// From when on it is in no answer.
    pub(crate) expires_at: Option<String>,
    /// Its scope, without the company, which is the binding's.
    pub(crate) scope: Map<String, Value>,
    /// Where it came from.
    pub(crate) source: Map<String, Value>,
    /// Free-form.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// Fields that a person added. They are kept.
    pub(crate) other: Map<String, Value>,
    /// The lines as a person wrote them, with comments. None if they are as we write them.
    pub(crate) lines: Option<String>,
    /// What is above the text and cannot be read. Then all other fields are empty.
    pub(crate) unread: Option<Unread>,
}

/// Front matter that cannot be read. It is the beginning of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unread {
    /// The byte behind it.
    pub(crate) end: usize,
    /// The line of the file at which it cannot be read, from 1.
    pub(crate) line: usize,
    /// Why not.
    pub(crate) reason: String,
}

impl Front {
    /// One of the scope's fields.
    pub(crate) fn scope(&self, name: &str) -> Option<&str> {
        self.scope.get(name).and_then(Value::as_str)
    }

    /// Writes the lines.
    pub(crate) fn encode(&self, out: &mut String) {
        match self.lines.as_deref().and_then(|lines| self.edited(lines)) {
            Some(lines) => out.push_str(&lines),
            None => self.fields().iter().for_each(|(name, value)| line(out, name, value)),
        }
    }

    /// The fields in the order in which they are written.
    fn fields(&self) -> Vec<(&str, Value)> {
        let texts = [
            ("id", &self.id),
            ("createdAt", &self.created_at),
            ("updatedAt", &self.updated_at),
            ("occurredAt", &self.occurred_at),
            ("summary", &self.summary),
            ("operationId", &self.operation_id),
            ("expiresAt", &self.expires_at),
        ];
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, Value::from(text.as_deref()?))));
        let objects = [
            ("scope", Some(&self.scope)),
            ("source", Some(&self.source)),
            ("metadata", self.metadata.as_ref()),
        ];
        let objects = objects.into_iter().filter_map(|(name, object)| {
            let object = object.filter(|object| name == "metadata" || !object.is_empty())?;
            Some((name, Value::Object(object.clone())))
        });
        let other = self.other.iter().map(|(name, value)| (name.as_str(), value.clone()));
        texts.chain(objects).chain(other).collect()
    }

    /// The lines of a person with what has changed since. None if it cannot be done line by line.
    fn edited(&self, lines: &str) -> Option<String> {
        let before = Self::decode(lines).ok()?;
        let (old, new) = (before.fields(), self.fields());
        let value = |fields: &[(&str, Value)], wanted: &str| {
            fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone())
        };
        let (mut edited, mut written) = (String::new(), Vec::new());
        for block in blocks(lines) {
            let Some(name) = name_of(block) else {
                edited.push_str(block);
                continue;
            };
            let now = value(&new, &name);
            if now == value(&old, &name) {
                edited.push_str(block);
            } else {
                if let Some(now) = now {
                    line(&mut edited, &name, &now);
                }
                let comments = block.split_inclusive('\n').filter(|line| line.starts_with('#'));
                edited.extend(comments);
            }
            written.push(name);
        }
        let is_new = |name: &str| !written.iter().any(|written| written == name);
        for (name, value) in new.iter().filter(|(name, _)| is_new(name)) {
            line(&mut edited, name, value);
        }
        let read = Self::decode(&edited).ok()?;
        (Self { lines: None, ..read } == Self { lines: None, ..self.clone() }).then_some(edited)
    }

    /// Reads the lines. The error is the number of the line, from 1, and what is wrong with it.
    pub(crate) fn decode(head: &str) -> Result<Self, (usize, String)> {
        if head.trim().is_empty() {
            return Ok(Self::default());
        }
        if let Some(map) = exact(head) {
            return Ok(Self::from_map(map));
        }
        let map = serde_saphyr::from_str::<Map<String, Value>>(head).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            let reason = error.without_snippet().to_string();
            (usize::try_from(line).unwrap_or(1), reason.lines().collect::<Vec<_>>().join(" "))
        })?;
        Ok(Self { lines: Some(head.to_owned()), ..Self::from_map(map) })
    }

    /// A known field with an unexpected type is kept with the fields that a person added.
    fn from_map(mut map: Map<String, Value>) -> Self {
        let mut text = |name: &str| match map.get(name)? {
            Value::String(text) => Some(text.clone()).inspect(|_| drop(map.remove(name))),
            scalar @ (Value::Number(_) | Value::Bool(_)) => {
                let text = scalar.to_string();
                map.remove(name);
                Some(text)
            }
            _ => None,
        };
        let mut front = Self {
            id: text("id"),
            created_at: text("createdAt"),
            updated_at: text("updatedAt"),
            occurred_at: text("occurredAt"),
            summary: text("summary"),
            operation_id: text("operationId"),
            expires_at: text("expiresAt"),
            ..Self::default()
        };
        let mut object = |name: &str| match map.get(name)? {
            Value::Object(object) => Some(object.clone()).inspect(|_| drop(map.remove(name))),
            _ => None,
        };
        front.scope = object("scope").unwrap_or_default();
        front.source = object("source").unwrap_or_default();
        front.metadata = object("metadata");
        front.other = map;
        front
    }
}

/// Lines with the field that each begins, or what is above the first field.
fn blocks(lines: &str) -> Vec<&str> {
    let (mut blocks, mut begin, mut at) = (Vec::new(), 0, 0);
    for line in lines.split_inclusive('\n') {
        if !line.starts_with([' ', '\t', '#', '-', '\n', '\r']) && at > begin {
            blocks.push(&lines[begin..at]);
            begin = at;
        }
        at += line.len();
    }
    blocks.push(&lines[begin..]);
    blocks
}

/// The name of the field that a block begins.
fn name_of(block: &str) -> Option<String> {
    if block.starts_with('"') {
        return serde_json::Deserializer::from_str(block).into_iter().next()?.ok();
    }
    let name = block.split_once(':').map(|(name, _)| name);
    name.filter(|name| !name.starts_with('#')).map(str::to_owned)
}

fn line(out: &mut String, name: &str, value: &Value) {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        // YAML would not read these as plain names.
        && !matches!(
            name.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off",
        );
    match is_plain {
        true => out.push_str(name),
        false => push_json(out, &Value::from(name)),
    }
    out.push_str(": ");
    push_json(out, value);
    out.push('\n');
}

/// JSON in which characters that YAML or an editor would change are escaped.
fn push_json(out: &mut String, value: &Value) {
    for c in value.to_string().chars() {
        match u32::from(c) {
            code @ (0x7f..=0x9f | 0x2028..=0x2029 | 0xfeff | 0xfffe..=0xffff) => {
                out.push_str(&format!("\\u{code:04x}"));
            }
            _ => out.push(c),
        }
    }
}

/// Reads front matter that the provider wrote: one JSON value on each line.
fn exact(head: &str) -> Option<Map<String, Value>> {
    let mut fields = Map::new();
    for line in head.strip_suffix('\n')?.split('\n') {
        let (name, value) = match line.starts_with('"') {
            true => {
                let mut names = serde_json::Deserializer::from_str(line).into_iter::<String>();
                let name = names.next()?.ok()?;
                (name, line[names.byte_offset()..].strip_prefix(": ")?)
            }
            false => {
                let (name, value) = line.split_once(": ")?;
                (name.to_owned(), value)
            }
        };
        if fields.insert(name, serde_json::from_str(value).ok()?).is_some() {
            return None;
        }
    }
    Some(fields)
}
