//! Secrets in JSON bodies. A body carries texts of people, and some of them are about placeholders.

use std::borrow::Cow;

use super::{CLOSE, MAX_GROWTH, OPEN, SecretError, Secrets, find_open};
use memhost_types::SecretUse;

/// The deepest place that has a pointer: a pointer has at most 128 bytes.
const MAX_DEPTH: usize = 128;
/// The longest key as it is written, in bytes: each of a pointer's takes at most six.
const MAX_KEY_BYTES: usize = 6 * 128;

impl Secrets {
    /// A JSON body with the secrets in their places: strings that are nothing but a placeholder, at
    /// the secret's pointer. Keys, other strings and every other byte stay as they are. So does a
    /// placeholder in another place or of a secret that is not there, and a body that is not JSON.
    ///
    /// # Errors
    /// Where the body would grow by more than 64 KiB.
    pub fn in_json<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, [u8]>, SecretError> {
        let same = Cow::Borrowed(body);
        let is_for_bodies = |used_as: &SecretUse| matches!(used_as, SecretUse::Body { .. });
        if !self.secrets.iter().any(|(_, used_as)| is_for_bodies(used_as))
            || find_open(body, 0, false).is_none()
        {
            return Ok(same);
        }
        // Writing a parsed value out again would change numbers, spaces and doubled keys. So it is
        // only checked, and since it is JSON, its strings can be found by their quotes.
        let Ok(text) = std::str::from_utf8(body) else { return Ok(same) };
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return Ok(same);
        }
        let mut out = String::with_capacity(text.len());
        let mut place = Place::default();
        let mut rest = text;
        while let Some((before, string, after)) = next_string(rest) {
            out.push_str(before);
            place.pass(before);
            let is_key = after[1..].trim_ascii_start().starts_with(':');
            if is_key {
                place.key(string);
            }
            match self.body_value(string, &place).filter(|_| !is_key) {
                Some(value) => out.push_str(&json_escaped(value)),
                None => out.push_str(string),
            }
            // Only the opening quote went out with what is before the string.
            out.push('"');
            rest = &after[1..];
            if out.len() + rest.len() > text.len() + MAX_GROWTH {
                return Err(SecretError::TooMuch);
            }
        }
        out.push_str(rest);
        Ok(if out == text { same } else { Cow::Owned(out.into_bytes()) })
    }

    fn body_value(&self, string: &str, place: &Place) -> Option<&str> {
        let name = string.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
        let (secret, used_as) = self.secrets.iter().find(|(secret, _)| secret.name() == name)?;
        match used_as {
            SecretUse::Body { pointer } if place.is_at(pointer) => Some(&secret.value),
            _ => None,
        }
    }
}

/// Where in a JSON text a reader is.
#[derive(Default)]
struct Place {
    /// The outermost levels.
    levels: Vec<Level>,
    depth: usize,
}

enum Level {
    /// The key as a JSON Pointer has it. None: no pointer is that long.
    Object(Option<String>),
    Array(usize),
}

impl Place {
    /// Reads what is between two strings.
    fn pass(&mut self, between: &str) {
        for byte in between.bytes() {
            match byte {
                b'{' => self.enter(Level::Object(None)),
                b'[' => self.enter(Level::Array(0)),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.levels.truncate(self.depth);
                }
                b',' if self.depth <= MAX_DEPTH => {
                    if let Some(Level::Array(index)) = self.levels.last_mut() {
                        *index += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn enter(&mut self, level: Level) {
        if self.depth < MAX_DEPTH {
            self.levels.push(level);
        }
        self.depth += 1;
    }

    fn key(&mut self, written: &str) {
        if self.depth <= MAX_DEPTH
            && let Some(Level::Object(key)) = self.levels.last_mut()
        {
            *key = if written.len() <= MAX_KEY_BYTES { token(written) } else { None };
        }
    }

    /// Whether this JSON Pointer leads here. Nothing is made of the levels: a body may have very
    /// many strings, each of them behind very many keys.
    fn is_at(&self, pointer: &str) -> bool {
        let mut rest = pointer;
        let is_here = self.depth <= MAX_DEPTH
            && self.levels.iter().all(|level| {
                let Some(behind) = rest.strip_prefix('/') else { return false };
                let (part, next) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
                rest = next;
                match level {
                    Level::Array(index) => is_index(part, *index),
                    Level::Object(key) => key.as_deref() == Some(part),
                }
            });
        is_here && rest.is_empty()
    }
}

/// Whether a part of a JSON Pointer is this index, in the one form that an index has.
fn is_index(part: &str, index: usize) -> bool {
    part.parse() == Ok(index) && (part == "0" || !part.starts_with(['0', '+']))
}

/// A key, as it is written in JSON, in the form that it has in a JSON Pointer. `None` if it is no
/// text.
fn token(written: &str) -> Option<String> {
    let key: String = match written.contains('\\') {
        true => serde_json::from_str(&format!("\"{written}\"")).ok()?,
        false => written.to_owned(),
    };
    Some(if key.contains(['~', '/']) { key.replace('~', "~0").replace('/', "~1") } else { key })
}

/// What is up to and with the next quote of a JSON text, the string in the quotes as it is written,
/// and what follows, beginning with the closing quote.
fn next_string(json: &str) -> Option<(&str, &str, &str)> {
    let start = json.find('"')? + 1;
    let mut escaped = false;
    let length = json[start..].bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    let (string, after) = json[start..].split_at(length);
    Some((&json[..start], string, after))
}

fn json_escaped(value: &str) -> String {
    // A value has no control characters, so nothing else needs an escape.
    value.replace('\\', "\\\\").replace('"', "\\\"")
}
