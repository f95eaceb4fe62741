//! Ids are types: a company's id cannot be passed where an agent's is meant, and none that came in
//! from outside is longer than a key may be or holds what a path or a log line could be broken
//! with.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{FieldError, limits, schema};

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {problem}")]
pub struct IdError {
    /// The kind of id, such as `companyId`.
    pub what: &'static str,
    /// The error, and the allowed values.
    pub problem: String,
}

/// Ids that Paperclip or another embedder gives out: 1 to 128 bytes, no `/`, `\`, control
/// characters or outer spaces, not `.` or `..`.
pub trait TextId: Sized {
    /// The name of such an id in JSON.
    const NAME: &'static str;
    /// The id, if the text is one.
    ///
    /// # Errors
    /// Which rule the text breaks.
    fn parse(text: &str) -> Result<Self, IdError>;
}

pub(crate) fn check_outside_id(what: &'static str, text: &str, max: usize) -> Result<(), IdError> {
    let problem = if text.is_empty() {
        "is empty; give an id of at least one character".to_owned()
    } else if text.len() > max {
        format!("is {} bytes long; at most {max} are allowed", text.len())
    } else if let Some(bad) = text.chars().find(|c| c.is_control()) {
        format!(
            "holds the control character U+{:04X}; use printable characters only",
            u32::from(bad)
        )
    } else if text.contains(['/', '\\']) {
        "holds a path separator; `/` and `\\` are not allowed".to_owned()
    } else if text == "." || text == ".." {
        "is a path component with a meaning of its own; use another id".to_owned()
    } else if text.trim() != text {
        "begins or ends with a space; remove it".to_owned()
    } else {
        return Ok(());
    };
    Err(IdError { what, problem })
}

/// Whether a text is an id from outside, such as a run's.
///
/// # Errors
/// Which rule the text breaks, at the field.
pub fn check_id(field: &str, text: &str) -> Result<(), FieldError> {
    check_outside_id("", text, limits::MAX_OUTSIDE_ID_BYTES)
        .map_err(|error| FieldError::new(field, error.problem))
}

/// An id that is in every operation is shared: its clones do not copy the text.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident($text:ty), $json:literal, $check:expr, $schema:path) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, JsonSchema)]
        #[serde(try_from = "String")]
        #[schemars(transform = $schema)]
        pub struct $name($text);

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(&self.0)
            }
        }

        impl $name {
            fn check(text: &str) -> Result<(), IdError> {
                let check: fn(&'static str, &str) -> Result<(), IdError> = $check;
                check($json, text)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl TextId for $name {
            const NAME: &'static str = $json;
            fn parse(text: &str) -> Result<Self, IdError> {
                Self::check(text)?;
                Ok(Self(text.into()))
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::check(&text)?;
                Ok(Self(text.into()))
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.as_str().to_owned()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

text_id!(
    /// A company: the outermost partition. Nothing is ever shared between two of them.
    CompanyId(Arc<str>), "companyId", |what, text| check_outside_id(
        what, text, limits::MAX_OUTSIDE_ID_BYTES,
    ), schema::outside_id
);
text_id!(
    /// An agent of one company.
    AgentId(Arc<str>), "agentId", |what, text| check_outside_id(
        what, text, limits::MAX_OUTSIDE_ID_BYTES,
    ), schema::outside_id
);
text_id!(
    /// The stable name of a binding inside its company: `[a-z0-9]` first, then `[a-z0-9._-]`, at
    /// most 64 bytes.
    BindingKey(Arc<str>), "bindingKey", check_key, schema::key
);
text_id!(
    /// The provider's own name, as its `describe` gives it: the same rule as a binding's key.
    ProviderKey(Arc<str>), "providerKey", check_key, schema::key
);
text_id!(
    /// A provider's own name for one record: 1 to 512 bytes without control characters.
    RecordId(String), "providerRecordId", check_record_id, schema::record_id
);

fn check_key(what: &'static str, text: &str) -> Result<(), IdError> {
    let fine = text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.bytes().all(|b| {
            b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-')
        });
    if fine {
        return Ok(());
    }
    let problem =
        "is not a key: 1 to 64 of a-z, 0-9, `.`, `_` and `-`, a letter or digit first".to_owned();
    Err(IdError { what, problem })
}

fn check_record_id(what: &'static str, text: &str) -> Result<(), IdError> {
    let problem = if text.is_empty() {
        "is empty; a record id has at least one character".to_owned()
    } else if text.len() > limits::MAX_RECORD_ID_BYTES {
        format!("is {} bytes long; at most {} are allowed", text.len(), limits::MAX_RECORD_ID_BYTES)
    } else if let Some(bad) = text.chars().find(|c| c.is_control()) {
        format!("holds the control character U+{:04X}", u32::from(bad))
    } else {
        return Ok(());
    };
    Err(IdError { what, problem })
}

/// A binding's identity. Its key may be given to another binding once it is deleted; its id never.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct BindingId(pub Uuid);

impl BindingId {
    /// The id of the binding that a company has as long as nobody has decided who answers. Once
    /// somebody has, nothing gets it again.
    pub fn implied_of(company: &CompanyId) -> Self {
        let hash = blake3::hash(&[b"implied binding\0", company.as_str().as_bytes()].concat());
        let bytes = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        Self(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for BindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One operation of one company: a UUID of version 7 whose random part begins with the operation's
/// number in its company's log (40 bits), so that the id alone finds the record.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(transform = schema::uuid_v7)]
pub struct OperationId(Uuid);

impl OperationId {
    /// The largest sequence number that an id can carry.
    pub const MAX_SEQUENCE: u64 = (1 << 40) - 1;

    /// The id of the operation `sequence` that begins at `unix_ms`; `random` tells apart what a
    /// restored backup could otherwise number twice.
    pub fn new(unix_ms: u64, sequence: u64, random: u64) -> Self {
        // RFC 9562, 5.7: 48 bits of time, version, 12 bits rand_a, variant, 62 bits rand_b, which
        // may be a counter.
        let high = (unix_ms << 16) | 0x7000 | ((random >> 32) & 0x0fff);
        let low = (0b10 << 62) | ((sequence & Self::MAX_SEQUENCE) << 22) | (random & 0x003f_ffff);
        Self(Uuid::from_u64_pair(high, low))
    }

    /// The id as a UUID of version 7, which orders by time.
    pub fn uuid(self) -> Uuid {
        self.0
    }

    /// When the operation began, in whole milliseconds.
    pub fn began_at(self) -> Timestamp {
        let unix_ms = i64::try_from(self.0.as_u64_pair().0 >> 16).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::MAX)
    }

    /// The operation's number in its company's log.
    pub fn sequence(self) -> u64 {
        (self.0.as_u64_pair().1 >> 22) & Self::MAX_SEQUENCE
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for OperationId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let id =
            Uuid::try_parse(text).ok().filter(|id| id.get_version_num() == 7).ok_or_else(|| {
                IdError {
                    what: "operationId",
                    problem: format!(
                        "is not an operation's id; `{}` is not a UUID of version 7",
                        text.escape_debug()
                    ),
                }
            })?;
        Ok(Self(id))
    }
}

/// A delivery's identity.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct DeliveryId(pub Uuid);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_operation_id_carries_its_sequence(
            ms in 0..(1_u64 << 48), sequence in 0..=OperationId::MAX_SEQUENCE, random: u64,
        ) {
            let id = OperationId::new(ms, sequence, random);
            prop_assert_eq!(id.sequence(), sequence);
            prop_assert_eq!(id.to_string().parse::<OperationId>().unwrap(), id);
        }

        #[test]
        fn ids_sort_as_their_operations(
            ms in 0..(1_u64 << 48) - 1, sequence in 0..OperationId::MAX_SEQUENCE, random: u64,
        ) {
            prop_assert!(
                OperationId::new(ms, sequence, random) < OperationId::new(
                    ms + 1, sequence + 1, random,
                )
            );
        }
    }

    #[test]
    fn ids_from_outside_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("a/b", "path separator"),
            ("a\\b", "path separator"),
            ("..", "path component"),
            ("a\nb", "U+000A"),
            (" a", "space"),
            (&"x".repeat(129), "129 bytes"),
        ] {
            let error = CompanyId::parse(text).unwrap_err();
            assert!(error.to_string().contains(reason), "{text:?}: {error}");
        }
        assert!(CompanyId::parse("local-board").is_ok());
        assert!(BindingKey::parse("mem0-prod").is_ok());
        assert!(BindingKey::parse("Mem0").is_err());
        assert!(RecordId::parse("viking://user/x.md").is_ok());
    }
}
