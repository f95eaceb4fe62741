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
}

impl Front {
    /// One of the scope's fields.
    pub(crate) fn scope(&self, name: &str) -> Option<&str> {
        self.scope.get(name).and_then(Value::as_str)
    }

    /// Writes the lines.
    pub(crate) fn encode(&self, out: &mut String) {
        let texts = [
            ("id", &self.id),
            ("createdAt", &self.created_at),
            ("updatedAt", &self.updated_at),
            ("occurredAt", &self.occurred_at),
            ("summary", &self.summary),
            ("operationId", &self.operation_id),
            ("expiresAt", &self.expires_at),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                line(out, name, &Value::from(text.as_str()));
            }
        }
        let objects = [
            ("scope", Some(&self.scope)),
            ("source", Some(&self.source)),
            ("metadata", self.metadata.as_ref()),
        ];
        for (name, object) in objects {
            if let Some(object) = object.filter(|object| name == "metadata" || !object.is_empty()) {
                line(out, name, &Value::Object(object.clone()));
            }
        }
        for (name, value) in &self.other {
            line(out, name, value);
        }
    }

    /// Reads the lines.
    pub(crate) fn decode(head: &str) -> Result<Self, String> {
        if head.trim().is_empty() {
            return Ok(Self::default());
        }
        let map = match exact(head) {
            Some(map) => map,
            None => serde_saphyr::from_str::<Map<String, Value>>(head)
                .map_err(|error| error.to_string())?,
        };
        Ok(Self::from_map(map))
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
