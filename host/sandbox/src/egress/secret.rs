//! Secrets: put where a guest wrote `{{secret:NAME}}`, and masked in everything that the guest gets to see.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::scrub::{Scrubber, hex_byte};

/// The longest name of a secret, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 64;
/// The shortest value of a secret, in bytes: a shorter one can be guessed by what is masked.
pub(super) const MIN_VALUE_BYTES: usize = 8;
/// How much larger the secrets may make a body, in bytes.
const MAX_GROWTH: usize = 64 << 10;
/// The longest value of a secret, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 8192;

const OPEN: &str = "{{secret:";
const CLOSE: &str = "}}";
const QUERY_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why something is not a secret, or why no secret is put into a request. No message ever holds a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecretError {
    #[error("a secret's name is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`; rename it")]
    Name,
    #[error("the value of the secret `{name}` {problem}")]
    Value { name: String, problem: &'static str },
    #[error("the secret `{0}` is there twice; remove one of them")]
    Twice(String),
    #[error(
        "the request asks for the secret `{0}`, which it cannot have: it must be granted to the binding, and set for this target; see `memhost binding grant` and `memhost secret create`"
    )]
    NotGranted(String),
    #[error("the {0} has `{{{{secret:` without a name and `}}}}` after it; write `{{{{secret:NAME}}}}`")]
    Unfinished(&'static str),
    #[error(
        "the {0} has something beside its `{{{{secret:` placeholder; the placeholder must be the whole value, in a header after a word such as `Bearer`"
    )]
    NotWhole(&'static str),
    #[error("the body names secrets so often that it would grow by more than 64 KiB; name them once")]
    TooMuch,
    #[error("the path of the URL has a `{{{{secret:` placeholder; move it into a header, the query or the JSON body")]
    InPath,
}

/// One secret. Only its name is ever shown.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// A secret of this name, 1 to 64 of `[A-Za-z0-9_-]`, and this value, 8 to 8192 bytes without control characters and without
    /// spaces at its ends.
    ///
    /// # Errors
    /// Which of these rules is broken.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Result<Self, SecretError> {
        let (name, value) = (name.into(), value.into());
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_name_byte) {
            return Err(SecretError::Name);
        }
        let problem = if value.is_empty() {
            "is empty; give it at least one byte"
        } else if value.len() > MAX_VALUE_BYTES {
            "is longer than 8192 bytes; shorten it"
        } else if value.contains(char::is_control) {
            "has a control character, perhaps a line end after it; remove it"
        } else if value.trim() != value {
            "begins or ends with a space, which does not last in a header; remove it"
        } else if value.len() < MIN_VALUE_BYTES {
            "is shorter than 8 bytes, so that it could be guessed by what is masked; take a longer one"
        } else {
            return Ok(Self { name, value });
        };
        Err(SecretError::Value { name, problem })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// The secrets that one guest was granted.
#[derive(Clone, Default)]
pub struct Secrets {
    secrets: Vec<Secret>,
    scrubber: Scrubber,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.secrets).finish()
    }
}

impl Secrets {
    /// These secrets.
    ///
    /// # Errors
    /// Where two of them have the same name.
    pub fn new(secrets: Vec<Secret>) -> Result<Self, SecretError> {
        for (index, secret) in secrets.iter().enumerate() {
            if secrets[..index].iter().any(|earlier| earlier.name == secret.name) {
                return Err(SecretError::Twice(secret.name.clone()));
            }
        }
        let scrubber = Scrubber::new(secrets.iter().map(|secret| (secret.name.as_str(), secret.value.as_str())));
        Ok(Self { secrets, scrubber })
    }

    /// A header's value with the secrets in their places.
    ///
    /// # Errors
    /// Where a placeholder is unfinished or names a secret that is not granted.
    pub fn in_header<'a>(&self, text: &'a str) -> Result<Cow<'a, str>, SecretError> {
        Ok(self.expand(text, Place::Header)?.map_or(Cow::Borrowed(text), Cow::Owned))
    }

    /// A path and query with the secrets, percent-encoded, in the query. A placeholder may be percent-encoded too.
    ///
    /// # Errors
    /// Where a placeholder is in the path, is unfinished or names a secret that is not granted.
    pub fn in_query<'a>(&self, path_and_query: &'a str) -> Result<Cow<'a, str>, SecretError> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if find_open(path.as_bytes(), 0, true).is_some() {
            return Err(SecretError::InPath);
        }
        let expanded = self.expand(query, Place::Query)?;
        Ok(expanded.map_or(Cow::Borrowed(path_and_query), |query| Cow::Owned(format!("{path}?{query}"))))
    }

    /// A JSON body with the secrets in the places of string values that are nothing but a placeholder; keys, other
    /// strings and every other byte stay as they are. So does a placeholder of a secret that is not there, and a body
    /// that is not JSON: a body carries texts of people, and some of them are about this.
    ///
    /// # Errors
    /// Where the body would grow by more than 64 KiB.
    pub fn in_json<'a>(&self, body: &'a [u8]) -> Result<Cow<'a, [u8]>, SecretError> {
        let same = Cow::Borrowed(body);
        if find_open(body, 0, false).is_none() {
            return Ok(same);
        }
        // Writing a parsed value out again would change numbers, spaces and doubled keys. So it is only checked, and
        // since it is JSON, its strings can be found by their quotes.
        let Ok(text) = std::str::from_utf8(body) else { return Ok(same) };
        if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            return Ok(same);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, string, after)) = next_string(rest) {
            out.push_str(before);
            let is_key = after[1..].trim_ascii_start().starts_with(':');
            match self.named_by(string).filter(|_| !is_key) {
                Some(secret) => out.push_str(&json_escaped(&secret.value)),
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

    fn named_by(&self, string: &str) -> Option<&Secret> {
        let name = string.strip_prefix(OPEN)?.strip_suffix(CLOSE)?;
        self.secrets.iter().find(|secret| secret.name == name)
    }

    /// The bytes with `[secret NAME]` for every occurrence of a value: plain, percent-encoded, escaped as in JSON, or the
    /// whole value in base64; values of less than 4 bytes only plain. Give it whole, uncompressed texts: a value that is
    /// cut into two pieces is not found in either.
    pub fn scrub<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.scrubber.scrub(bytes)
    }

    /// The same as [`Self::scrub`] for text.
    pub fn scrub_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.scrubber.scrub(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    // One pass over what the guest wrote: what a value holds is never read as a placeholder.
    fn expand(&self, text: &str, place: Place) -> Result<Option<String>, SecretError> {
        let percent = place == Place::Query;
        let mut out = String::new();
        let mut done = 0;
        while let Some((start, after)) = find_open(text.as_bytes(), done, percent) {
            let (name, end) =
                read_name(text.as_bytes(), after, percent).ok_or(SecretError::Unfinished(place.name()))?;
            let Some(secret) = self.secrets.iter().find(|secret| secret.name == name) else {
                return Err(SecretError::NotGranted(name));
            };
            if !place.is_whole(&text[..start], &text[end..]) {
                return Err(SecretError::NotWhole(place.name()));
            }
            out.push_str(&text[done..start]);
            out.push_str(&place.encode(&secret.value));
            done = end;
        }
        if done == 0 {
            return Ok(None);
        }
        out.push_str(&text[done..]);
        Ok(Some(out))
    }
}

/// Where a placeholder is looked for by its braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Header,
    Query,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Query => "query",
        }
    }

    fn encode(self, value: &str) -> Cow<'_, str> {
        match self {
            Self::Header => value.into(),
            Self::Query => utf8_percent_encode(value, QUERY_ESCAPES).into(),
        }
    }

    /// Whether the placeholder between these two is the whole value: what stands beside a secret could hide it from the
    /// masks, and a text that somebody else wrote has something beside it.
    fn is_whole(self, before: &str, after: &str) -> bool {
        match self {
            Self::Query => {
                let begins = matches!(before.as_bytes().last(), None | Some(b'=' | b'&'));
                begins && matches!(after.as_bytes().first(), None | Some(b'&'))
            }
            // `Bearer` and its like.
            Self::Header => {
                let scheme = before.strip_suffix(' ').unwrap_or(before);
                let is_scheme = scheme.len() <= 16 && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
                after.is_empty() && (before.is_empty() || (is_scheme && before.ends_with(' ')))
            }
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The byte that is meant at `at`, and where the next one begins.
fn byte_at(bytes: &[u8], at: usize, percent: bool) -> Option<(u8, usize)> {
    let byte = *bytes.get(at)?;
    let decoded = if percent && byte == b'%' { hex_byte(bytes, at + 1) } else { None };
    Some(decoded.map_or((byte, at + 1), |decoded| (decoded, at + 3)))
}

/// Where `wanted`, which is at `at`, ends.
fn skip(bytes: &[u8], at: usize, percent: bool, wanted: &str) -> Option<usize> {
    wanted.bytes().try_fold(at, |at, wanted| {
        byte_at(bytes, at, percent).filter(|(byte, _)| *byte == wanted).map(|(_, next)| next)
    })
}

/// Where the next placeholder begins, and where its name does.
fn find_open(bytes: &[u8], from: usize, percent: bool) -> Option<(usize, usize)> {
    (from..bytes.len()).find_map(|start| Some((start, skip(bytes, start, percent, OPEN)?)))
}

/// The name at `at`, and where its placeholder ends.
fn read_name(bytes: &[u8], mut at: usize, percent: bool) -> Option<(String, usize)> {
    let mut name = String::new();
    while let Some((byte, next)) = byte_at(bytes, at, percent).filter(|(byte, _)| is_name_byte(*byte)) {
        name.push(char::from(byte));
        at = next;
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
    }
    let end = skip(bytes, at, percent, CLOSE)?;
    (!name.is_empty()).then_some((name, end))
}

/// What is up to and with the next quote of a JSON text, the string in the quotes as it is written, and what follows,
/// beginning with the closing quote.
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

#[cfg(test)]
mod tests;
