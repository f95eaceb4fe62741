//! Secrets: put where a guest wrote `{{secret:NAME}}`, and masked in everything that the guest gets
//! to see.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tokio::task::JoinError;

use super::escape::hex_byte;
use super::scrub::Scrubber;
use memhost_types::{SecretUse, counted};

mod body;
mod sign;

/// The longest name of a secret, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 64;
/// The shortest value of a secret, in bytes: a shorter one can be guessed by what is masked.
pub(super) const MIN_VALUE_BYTES: usize = 8;
/// The longest value of a secret, in bytes.
pub(super) const MAX_VALUE_BYTES: usize = 8192;
/// How much larger the secrets may make a body, a query, or the headers of a request, in bytes.
pub(super) const MAX_GROWTH: usize = 64 << 10;

const OPEN: &str = "{{secret:";
const CLOSE: &str = "}}";
const QUERY_ESCAPES: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why something is not a secret, or why no secret is put into a request. No message ever holds a
/// value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecretError {
    #[error("a secret's name is not 1 to 64 of A-Z, a-z, 0-9, `_` and `-`; rename it")]
    Name,
    #[error("the value of the secret `{name}` {problem}")]
    Value { name: String, problem: String },
    #[error("the secrets of the binding are too long together; grant it fewer or shorter ones")]
    TooLong,
    #[error("the host stopped while it prepared the secrets; try again")]
    Interrupted,
    #[error("the secret `{0}` is there twice; remove one of them")]
    Twice(String),
    #[error(
        "the request asks for the secret `{0}`, which it cannot have: it must be granted to the \
         binding, and set for this target; see `memhost binding grant` and `memhost secret create`"
    )]
    NotGranted(String),
    #[error(
        "the {0} has `{{{{secret:` without a name and `}}}}` after it; write `{{{{secret:NAME}}}}`"
    )]
    Unfinished(&'static str),
    #[error(
        "the {0} has something beside its `{{{{secret:` placeholder; the placeholder must be the \
         whole value, \
         in a header after a word such as `Bearer`"
    )]
    NotWhole(&'static str),
    /// The operator pinned where it goes.
    #[error(
        "the request has the secret `{name}` in {place}, and the secret is for `{used_as}` only; \
         change the provider, or set the secret again with `memhost secret update {name} --as USE`"
    )]
    Misplaced { name: String, place: String, used_as: SecretUse },
    #[error(
        "the request names secrets so often that it would grow by more than 64 KiB; name them once"
    )]
    TooMuch,
    #[error(
        "the path of the URL has a `{{{{secret:` placeholder; move it into a header, the query or \
         the JSON body"
    )]
    InPath,
}

impl From<JoinError> for SecretError {
    fn from(_: JoinError) -> Self {
        Self::Interrupted
    }
}

/// One secret. Only its name is ever shown.
#[derive(Clone)]
pub struct Secret {
    name: String,
    value: String,
}

impl Secret {
    /// A secret of this name, 1 to 64 of `[A-Za-z0-9_-]`, and this value, 8 to 8192 bytes without
    /// control characters and without spaces at its ends.
    ///
    /// # Errors
    /// Which of these rules is broken.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Result<Self, SecretError> {
        let (name, value) = (name.into(), value.into());
        if !(1..=MAX_NAME_BYTES).contains(&name.len()) || !name.bytes().all(is_name_byte) {
            return Err(SecretError::Name);
        }
        let length =
            format!("has {}; 8 to 8,192 are allowed", counted(value.len(), "byte", "bytes"));
        let problem = if value.is_empty() || value.len() > MAX_VALUE_BYTES {
            length
        } else if value.contains(char::is_control) {
            "has a control character, perhaps a line end after it; remove it".to_owned()
        } else if value.trim() != value {
            "begins or ends with a space, which does not last in a header; remove it".to_owned()
        } else if value.len() < MIN_VALUE_BYTES {
            length
        } else {
            return Ok(Self { name, value });
        };
        Err(SecretError::Value { name, problem })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many bytes the value has.
    pub(super) fn len(&self) -> usize {
        self.value.len()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// The secrets that one guest was granted, each with the place where it may be.
#[derive(Clone, Default)]
pub struct Secrets {
    secrets: Vec<(Secret, SecretUse)>,
    scrubber: Scrubber,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets")
            .field(&self.secrets.iter().map(|(secret, _)| secret).collect::<Vec<_>>())
            .finish()
    }
}

impl Secrets {
    /// These secrets.
    ///
    /// # Errors
    /// Where two of them have the same name, or they are too long together.
    pub fn new(secrets: Vec<(Secret, SecretUse)>) -> Result<Self, SecretError> {
        for (index, (secret, _)) in secrets.iter().enumerate() {
            if secrets[..index].iter().any(|(earlier, _)| earlier.name == secret.name) {
                return Err(SecretError::Twice(secret.name.clone()));
            }
        }
        let pairs = secrets.iter().flat_map(|(secret, used_as)| {
            let values = std::iter::once(secret.value.as_str()).chain(used_as.parts(&secret.value));
            values.map(|value| (secret.name.as_str(), value))
        });
        let scrubber = Scrubber::new(pairs).ok_or(SecretError::TooLong)?;
        Ok(Self { secrets, scrubber })
    }

    /// Those of these numbers. All of them are still masked.
    pub(super) fn only(&self, is_allowed: impl Fn(usize) -> bool) -> Self {
        let allowed = self.secrets.iter().enumerate().filter(|(number, _)| is_allowed(*number));
        Self {
            secrets: allowed.map(|(_, secret)| secret.clone()).collect(),
            scrubber: self.scrubber.clone(),
        }
    }

    /// The value of the header of this name with the secrets in their places.
    ///
    /// # Errors
    /// Where a placeholder is unfinished, or names a secret that is not granted or is for another
    /// place.
    pub fn in_header<'a>(&self, name: &str, text: &'a str) -> Result<Cow<'a, str>, SecretError> {
        Ok(self.expand(text, Place::Header(name))?.map_or(Cow::Borrowed(text), Cow::Owned))
    }

    /// A path and query with the secrets, percent-encoded, in the query. A placeholder may be
    /// percent-encoded too.
    ///
    /// # Errors
    /// Where a placeholder is in the path, is unfinished, or names a secret that is not granted or
    /// is for another place; where the query would grow by more than 64 KiB.
    pub fn in_query<'a>(&self, path_and_query: &'a str) -> Result<Cow<'a, str>, SecretError> {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        if find_open(path.as_bytes(), 0, true).is_some() {
            return Err(SecretError::InPath);
        }
        let expanded = self.expand(query, Place::Query)?;
        Ok(expanded
            .map_or(Cow::Borrowed(path_and_query), |query| Cow::Owned(format!("{path}?{query}"))))
    }

    /// The bytes with `[secret NAME]` for every occurrence of a value: plain, percent-encoded,
    /// escaped as in JSON, or the whole value in base64; values of less than 4 bytes only plain.
    /// Give it whole, uncompressed texts: a value that is cut into two pieces is not found in
    /// either.
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
    fn expand(&self, text: &str, place: Place<'_>) -> Result<Option<String>, SecretError> {
        let percent = place == Place::Query;
        let mut out = String::new();
        let mut done = 0;
        while let Some((start, after)) = find_open(text.as_bytes(), done, percent) {
            let (name, end) = read_name(text.as_bytes(), after, percent)
                .ok_or(SecretError::Unfinished(place.name()))?;
            let Some((secret, used_as)) =
                self.secrets.iter().find(|(secret, _)| secret.name == name)
            else {
                return Err(SecretError::NotGranted(name));
            };
            if !place.is_whole(&text[..start], &text[end..]) {
                return Err(SecretError::NotWhole(place.name()));
            }
            if !place.is_for(used_as, &text[..start]) {
                let place = place.shown(&text[..start]);
                return Err(SecretError::Misplaced { name, place, used_as: used_as.clone() });
            }
            out.push_str(&text[done..start]);
            match used_as {
                SecretUse::Basic => STANDARD.encode_string(&secret.value, &mut out),
                _ => out.push_str(&place.encode(&secret.value)),
            }
            if out.len() > text.len() + MAX_GROWTH {
                return Err(SecretError::TooMuch);
            }
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
enum Place<'a> {
    /// The header of this name.
    Header(&'a str),
    Query,
}

impl Place<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Header(_) => "header",
            Self::Query => "query",
        }
    }

    /// Whether a secret of this use may be behind `before`, which is all that is before it.
    fn is_for(self, used_as: &SecretUse, before: &str) -> bool {
        match (self, used_as) {
            (Self::Header(here), SecretUse::Header { name, prefix }) => {
                let word = before.strip_suffix(' ').unwrap_or(before);
                here.eq_ignore_ascii_case(name)
                    && word.eq_ignore_ascii_case(prefix.as_deref().unwrap_or_default())
            }
            (Self::Header(here), SecretUse::Basic) => {
                here.eq_ignore_ascii_case(AUTHORIZATION.as_str())
                    && before.trim_end().eq_ignore_ascii_case("Basic")
            }
            (Self::Query, SecretUse::Query { parameter: wanted }) => parameter(before) == *wanted,
            _ => false,
        }
    }

    fn shown(self, before: &str) -> String {
        match self {
            Self::Header(name) => {
                let word = before.trim_end();
                let behind =
                    if word.is_empty() { String::new() } else { format!(" behind `{word}`") };
                format!("the header `{name}`{behind}")
            }
            Self::Query => {
                format!(
                    "the parameter `{}` of the query",
                    parameter(before).chars().take(100).collect::<String>()
                )
            }
        }
    }

    fn encode(self, value: &str) -> Cow<'_, str> {
        match self {
            Self::Header(_) => value.into(),
            Self::Query => utf8_percent_encode(value, QUERY_ESCAPES).into(),
        }
    }

    /// Whether the placeholder between these two is the whole value: what stands beside a secret
    /// could hide it from the masks, and a text that somebody else wrote has something beside it.
    fn is_whole(self, before: &str, after: &str) -> bool {
        match self {
            Self::Query => {
                let begins = matches!(before.as_bytes().last(), None | Some(b'=' | b'&'));
                begins && matches!(after.as_bytes().first(), None | Some(b'&'))
            }
            // `Bearer` and its like.
            Self::Header(_) => {
                let scheme = before.strip_suffix(' ').unwrap_or(before);
                let is_scheme =
                    scheme.len() <= 16 && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
                after.is_empty() && (before.is_empty() || (is_scheme && before.ends_with(' ')))
            }
        }
    }
}

/// The name of the parameter whose value comes next; empty if there is none.
fn parameter(before: &str) -> String {
    let pair = before.rsplit('&').next().unwrap_or_default();
    let name = pair.strip_suffix('=').unwrap_or_default().replace('+', " ");
    percent_decode_str(&name).decode_utf8_lossy().into_owned()
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
    while let Some((byte, next)) =
        byte_at(bytes, at, percent).filter(|(byte, _)| is_name_byte(*byte))
    {
        name.push(char::from(byte));
        at = next;
        if name.len() > MAX_NAME_BYTES {
            return None;
        }
    }
    let end = skip(bytes, at, percent, CLOSE)?;
    (!name.is_empty()).then_some((name, end))
}

#[cfg(test)]
mod tests;
