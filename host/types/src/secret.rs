//! How a secret is presented to the server that it is for.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest name of a header or parameter, and the longest pointer, in bytes.
const MAX_NAME_BYTES: usize = 128;
/// The shortest part of a value that is secret by itself, in bytes.
const MIN_PART_BYTES: usize = 8;
/// The longest name of a service or region that is signed for, in bytes.
const MAX_SIGNED_BYTES: usize = 64;
/// The longest word before a secret, in bytes.
const MAX_PREFIX_BYTES: usize = 16;

/// The one place of a request where a secret may be. Elsewhere on the same server another of its
/// users could read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "kind",
    deny_unknown_fields
)]
pub enum SecretUse {
    /// It is the value of a header.
    Header {
        /// The header, such as `authorization`. Case does not matter.
        #[schemars(length(min = 1, max = 128))]
        name: String,
        /// The word before it, such as `Bearer`; one space follows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1, max = 16))]
        prefix: Option<String>,
    },
    /// It is the value of a parameter of the query.
    Query {
        /// The parameter's name, decoded.
        #[schemars(length(min = 1, max = 128))]
        parameter: String,
    },
    /// It is a string of the JSON body.
    Body {
        /// Where, as a JSON Pointer (RFC 6901), such as `/auth/key`.
        #[schemars(length(min = 1, max = 128))]
        pointer: String,
    },
    /// HTTP Basic: it is `USER:PASSWORD`, and the host encodes it behind `Basic` in the header
    /// `authorization`.
    Basic,
    /// AWS Signature Version 4: it is `ACCESS-KEY-ID:SECRET-ACCESS-KEY`, with `:SESSION-TOKEN`
    /// where there is one. The host signs each request with it.
    #[serde(rename = "sigv4")]
    SigV4 {
        /// The service's name in signatures, such as `bedrock-agentcore`.
        #[schemars(length(min = 1, max = 64))]
        service: String,
        /// The region, such as `eu-central-1`.
        #[schemars(length(min = 1, max = 64))]
        region: String,
    },
}

/// Why a text or value is no use of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecretUseError {
    #[error(
        "`{0}` does not say where a secret goes; write `header:NAME`, `header:NAME:WORD` for a \
         word before it \
         such as `Bearer`, `query:PARAMETER`, `body:/JSON/POINTER`, `basic` or \
         `sigv4:SERVICE:REGION`"
    )]
    Kind(String),
    #[error("`{0}` is not the name of a header; use 1 to 128 letters, digits and `-`")]
    Header(String),
    #[error("the host writes the header `{0}` itself; name another one")]
    Reserved(String),
    #[error("`{0}` is not a word before a secret; use 1 to 16 letters, such as `Bearer`")]
    Prefix(String),
    #[error("the name of a parameter has 1 to 128 bytes without control characters")]
    Parameter,
    #[error(
        "`{0}` is not a JSON Pointer to a member; write it like `/key`, with at most 128 bytes"
    )]
    Pointer(String),
    #[error("`{0}` is not the name of a service or region; use 1 to 64 of a-z, 0-9 and `-`")]
    Signed(String),
    #[error("is not {0}; write it in this form")]
    Value(&'static str),
}

/// Headers that belong to a connection or that the host sets.
const RESERVED: [&str; 11] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl SecretUse {
    /// The header `authorization` with the word `Bearer`, as most servers take it.
    #[must_use]
    pub fn bearer() -> Self {
        Self::Header { name: "authorization".to_owned(), prefix: Some("Bearer".to_owned()) }
    }

    /// Whether a value has the form that this use needs, which the error tells.
    ///
    /// # Errors
    /// The form.
    pub fn check_value(&self, value: &str) -> Result<(), SecretUseError> {
        // What is shorter is not looked for in answers.
        let parts = self.parts(value);
        let are_long = parts.iter().all(|part| part.len() >= MIN_PART_BYTES);
        match self {
            Self::Basic if parts.is_empty() || !are_long => {
                Err(SecretUseError::Value("`USER:PASSWORD` with a password of 8 bytes or more"))
            }
            Self::SigV4 { .. }
                if !(1..=2).contains(&parts.len()) || !are_long || value.starts_with(':') =>
            {
                Err(SecretUseError::Value(
                    "`ACCESS-KEY-ID:SECRET-ACCESS-KEY`, or that and `:SESSION-TOKEN`",
                ))
            }
            _ => Ok(()),
        }
    }

    /// The parts of a value that are secret by themselves.
    #[must_use]
    pub fn parts<'v>(&self, value: &'v str) -> Vec<&'v str> {
        match self {
            // A user has no colon, and a password may have some.
            Self::Basic => {
                value.split_once(':').into_iter().map(|(_, password)| password).collect()
            }
            Self::SigV4 { .. } => value.split(':').skip(1).collect(),
            _ => Vec::new(),
        }
    }

    /// The same with a header's name in lower case.
    ///
    /// # Errors
    /// Which part of it is not valid.
    pub fn checked(self) -> Result<Self, SecretUseError> {
        match self {
            Self::Header { name, prefix } => {
                let name = name.to_ascii_lowercase();
                let is_name = (1..=MAX_NAME_BYTES).contains(&name.len())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                if !is_name {
                    return Err(SecretUseError::Header(shown(&name)));
                }
                if RESERVED.contains(&name.as_str()) {
                    return Err(SecretUseError::Reserved(name));
                }
                match prefix {
                    Some(prefix) if !is_prefix(&prefix) => {
                        Err(SecretUseError::Prefix(shown(&prefix)))
                    }
                    prefix => Ok(Self::Header { name, prefix }),
                }
            }
            Self::Query { parameter } => {
                let is_name = (1..=MAX_NAME_BYTES).contains(&parameter.len())
                    && !parameter.chars().any(char::is_control);
                if is_name { Ok(Self::Query { parameter }) } else { Err(SecretUseError::Parameter) }
            }
            Self::Body { pointer } => {
                let is_pointer = pointer.starts_with('/') && pointer.len() <= MAX_NAME_BYTES;
                if is_pointer {
                    Ok(Self::Body { pointer })
                } else {
                    Err(SecretUseError::Pointer(shown(&pointer)))
                }
            }
            Self::Basic => Ok(Self::Basic),
            Self::SigV4 { service, region } => {
                if let Some(wrong) = [&service, &region].into_iter().find(|name| !is_signed(name)) {
                    return Err(SecretUseError::Signed(shown(wrong)));
                }
                Ok(Self::SigV4 { service, region })
            }
        }
    }
}

fn is_prefix(text: &str) -> bool {
    (1..=MAX_PREFIX_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_signed(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_SIGNED_BYTES).contains(&text.len()) && text.bytes().all(fits)
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The form that [`SecretUse::from_str`] reads.
impl fmt::Display for SecretUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, prefix: None } => write!(f, "header:{name}"),
            Self::Header { name, prefix: Some(prefix) } => write!(f, "header:{name}:{prefix}"),
            Self::Query { parameter } => write!(f, "query:{parameter}"),
            Self::Body { pointer } => write!(f, "body:{pointer}"),
            Self::Basic => f.write_str("basic"),
            Self::SigV4 { service, region } => write!(f, "sigv4:{service}:{region}"),
        }
    }
}

impl FromStr for SecretUse {
    type Err = SecretUseError;

    fn from_str(text: &str) -> Result<Self, SecretUseError> {
        let parsed = match text.split_once(':') {
            Some(("header", rest)) => match rest.split_once(':') {
                Some((name, prefix)) => {
                    Self::Header { name: name.to_owned(), prefix: Some(prefix.to_owned()) }
                }
                None => Self::Header { name: rest.to_owned(), prefix: None },
            },
            Some(("query", parameter)) => Self::Query { parameter: parameter.to_owned() },
            Some(("body", pointer)) => Self::Body { pointer: pointer.to_owned() },
            Some(("sigv4", rest)) => {
                let (service, region) = rest.split_once(':').unwrap_or((rest, ""));
                Self::SigV4 { service: service.to_owned(), region: region.to_owned() }
            }
            None if text == "basic" => Self::Basic,
            _ => return Err(SecretUseError::Kind(shown(text))),
        };
        parsed.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_written_as_it_is_read() {
        for text in [
            "header:authorization:Bearer",
            "header:x-api-key",
            "query:api key:2",
            "body:/auth/key",
            "basic",
            "sigv4:bedrock-agentcore:eu-central-1",
        ] {
            assert_eq!(text.parse::<SecretUse>().unwrap().to_string(), text);
        }
        assert_eq!("header:Authorization:Bearer".parse(), Ok(SecretUse::bearer()));
        let json =
            serde_json::json!({"kind": "header", "name": "authorization", "prefix": "Bearer"});
        assert_eq!(serde_json::to_value(SecretUse::bearer()).unwrap(), json);
        assert_eq!(serde_json::from_value::<SecretUse>(json).unwrap(), SecretUse::bearer());
        let signed: SecretUse = "sigv4:s:r".parse().unwrap();
        assert_eq!(
            serde_json::to_value(signed).unwrap(),
            serde_json::json!({"kind": "sigv4", "service": "s", "region": "r"})
        );
        assert_eq!(
            serde_json::to_value(SecretUse::Basic).unwrap(),
            serde_json::json!({"kind": "basic"})
        );
    }

    #[test]
    fn a_value_has_the_form_of_its_use_and_its_parts_are_secret() {
        let signed: SecretUse = "sigv4:s:r".parse().unwrap();
        for (used_as, value, parts) in [
            (&SecretUse::Basic, "user:pass:word", Some(&["pass:word"][..])),
            (&SecretUse::Basic, "password", None),
            (&SecretUse::Basic, "user:short", None),
            (&signed, "AKID:long-key", Some(&["long-key"])),
            (&signed, "AKID:long-key:the-token", Some(&["long-key", "the-token"])),
            (&signed, "AKID-alone", None),
            (&signed, ":long-key", None),
            (&signed, "AKID:long-key:", None),
            (&signed, "AKID:long-key:the-token:something", None),
            (&SecretUse::bearer(), "any", Some(&[])),
        ] {
            assert_eq!(used_as.check_value(value).is_ok(), parts.is_some(), "{used_as} {value}");
            assert!(parts.is_none_or(|parts| used_as.parts(value) == parts), "{used_as} {value}");
        }
    }

    #[test]
    fn what_is_no_use_is_refused_with_what_to_write() {
        for (text, part) in [
            ("authorization", "header:NAME"),
            ("cookie:a", "query:PARAMETER"),
            ("header:", "letters, digits"),
            ("header:x y", "letters, digits"),
            ("header:Host", "host writes"),
            ("header:authorization:Bearer now", "Bearer"),
            ("query:", "1 to 128"),
            ("body:key", "JSON Pointer"),
            ("basic:x", "header:NAME"),
            ("sigv4:s3", "service or region"),
            ("sigv4:s3:EU", "service or region"),
        ] {
            let error = text.parse::<SecretUse>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
