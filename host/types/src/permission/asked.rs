//! Where a provider asks to go: an origin, or one whose parts are in the binding's configuration.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Host, JsonObject, Origin, OriginError};

const OPEN: &str = "{{config:";
const CLOSE: &str = "}}";

/// An origin as a provider asks for it: `https://api.example.com`, `{{config:/url}}` or
/// `https://{{config:/region}}.example.com`. Each placeholder is a JSON Pointer into the binding's
/// configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum AskedOrigin {
    /// The same for every binding.
    Fixed(Origin),
    /// The binding's configuration decides.
    Configured(ConfiguredOrigin),
}

/// A text with at least one placeholder.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConfiguredOrigin {
    text: String,
    /// The text before each placeholder, and its pointer.
    parts: Vec<(String, String)>,
    rest: String,
}

/// Why a configuration gives no origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// The value at fault.
    pub pointer: String,
    /// The error.
    pub message: String,
    /// Whether there is no value.
    pub is_absent: bool,
}

impl AskedOrigin {
    /// The origin, where it is the same for every binding or has been resolved.
    pub fn fixed(&self) -> Option<&Origin> {
        match self {
            Self::Fixed(origin) => Some(origin),
            Self::Configured(_) => None,
        }
    }

    /// The values of the configuration that decide it, as JSON Pointers.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        let parts = match self {
            Self::Fixed(_) => [].as_slice(),
            Self::Configured(configured) => &configured.parts,
        };
        parts.iter().map(|(_, pointer)| pointer.as_str())
    }

    /// The origin for a binding with this configuration. A placeholder that stands alone may be a
    /// URL: its origin counts.
    ///
    /// # Errors
    /// Where a value is missing or is no text, or what comes out is no plain origin.
    pub fn resolve(&self, config: &JsonObject) -> Result<Origin, Unresolved> {
        match self {
            Self::Fixed(origin) => Ok(origin.clone()),
            Self::Configured(configured) => configured.resolve(config),
        }
    }
}

impl ConfiguredOrigin {
    fn resolve(&self, config: &JsonObject) -> Result<Origin, Unresolved> {
        let config = Value::Object(config.clone());
        let mut text = String::new();
        for (before, pointer) in &self.parts {
            let wrong = |is_absent, message: &str| Unresolved {
                pointer: pointer.clone(),
                message: message.to_owned(),
                is_absent,
            };
            text.push_str(before);
            match config.pointer(pointer) {
                None | Some(Value::Null) => {
                    return Err(wrong(
                        true,
                        "is not set, and the provider's address depends on it",
                    ));
                }
                Some(Value::String(value)) => text.push_str(value),
                Some(Value::Number(value)) if value.is_u64() => text.push_str(&value.to_string()),
                Some(_) => {
                    return Err(wrong(
                        false,
                        "is not a text, and the provider's address depends on it",
                    ));
                }
            }
        }
        text.push_str(&self.rest);
        let is_alone = self.rest.is_empty()
            && self.parts.len() == 1
            && self.parts.iter().all(|(b, _)| b.is_empty());
        let origin = if is_alone { without_path(&text) } else { &text };
        let wrong = |message: String| Unresolved {
            pointer: self.parts.first().map(|(_, pointer)| pointer.clone()).unwrap_or_default(),
            message,
            is_absent: false,
        };
        match origin.parse::<Origin>() {
            Ok(origin) if matches!(origin.host(), Host::Wildcard(_)) => {
                Err(wrong("gives an address with a wildcard; give one host".to_owned()))
            }
            Ok(origin) => Ok(origin),
            Err(error) => {
                Err(wrong(format!("gives no address that the provider may ask for: {error}")))
            }
        }
    }
}

/// A URL up to its path.
fn without_path(url: &str) -> &str {
    let Some((scheme, rest)) = url.split_once("://") else { return url };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    &url[..scheme.len() + "://".len() + authority]
}

impl FromStr for AskedOrigin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        if !text.contains(OPEN) {
            return text.parse().map(Self::Fixed);
        }
        let wrong = || {
            OriginError::Placeholder(text.chars().take(100).flat_map(char::escape_debug).collect())
        };
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (pointer, after) = after.split_once(CLOSE).ok_or_else(wrong)?;
            // A pointer has `~` only in `~0` and `~1`.
            let is_pointer = pointer.starts_with('/')
                && pointer.len() <= 256
                && !pointer.contains(|c: char| c.is_control() || c == '{' || c == '}')
                && pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
            if !is_pointer {
                return Err(wrong());
            }
            parts.push((before.to_owned(), pointer.to_owned()));
            rest = after;
        }
        let configured = ConfiguredOrigin { text: text.to_owned(), parts, rest: rest.to_owned() };
        let has_braces = |text: &str| text.contains(['{', '}']);
        if has_braces(rest) || configured.parts.iter().any(|(before, _)| has_braces(before)) {
            return Err(wrong());
        }
        Ok(Self::Configured(configured))
    }
}

impl TryFrom<String> for AskedOrigin {
    type Error = OriginError;

    fn try_from(text: String) -> Result<Self, OriginError> {
        text.parse()
    }
}

impl From<AskedOrigin> for String {
    fn from(asked: AskedOrigin) -> Self {
        asked.to_string()
    }
}

impl From<Origin> for AskedOrigin {
    fn from(origin: Origin) -> Self {
        Self::Fixed(origin)
    }
}

impl fmt::Display for AskedOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(origin) => origin.fmt(f),
            Self::Configured(configured) => f.write_str(&configured.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolved(asked: &str, config: &Value) -> Result<String, Unresolved> {
        let asked: AskedOrigin = asked.parse().unwrap();
        asked.resolve(config.as_object().unwrap()).map(|origin| origin.to_string())
    }

    #[test]
    fn a_configuration_gives_a_plain_origin() {
        let fine = |asked: &str, config: Value| resolved(asked, &config).unwrap();
        assert_eq!(
            fine("{{config:/url}}", json!({"url": "http://10.0.0.5:8000/v1?x"})),
            "http://10.0.0.5:8000"
        );
        assert_eq!(
            fine("{{config:/a~1b/0}}", json!({"a/b": ["https://A.example"]})),
            "https://a.example"
        );
        let asked = "https://{{config:/region}}.example.com:{{config:/port}}";
        assert_eq!(
            fine(asked, json!({"region": "eu", "port": 8443})),
            "https://eu.example.com:8443"
        );
        assert_eq!(fine("https://a.example", json!({})), "https://a.example");
    }

    #[test]
    fn what_is_no_plain_origin_is_refused() {
        let asked = "{{config:/url}}";
        for url in [
            "a.example",
            "ftp://a.example",
            "https://*.a.example",
            "https://u:p@a.example",
            "https://",
            "",
        ] {
            let error = resolved(asked, &json!({ "url": url })).unwrap_err();
            assert_eq!((error.pointer.as_str(), error.is_absent), ("/url", false), "{url}");
        }
        let within = "https://{{config:/region}}.example.com";
        for region in [
            "evil.org/",
            "evil.org#",
            "evil.org?",
            "evil.org:443",
            "u@evil.org",
            "*",
            "a b",
            "evil.org\\",
        ] {
            let error = resolved(within, &json!({ "region": region }));
            assert!(error.is_err(), "{region}: {error:?}");
        }
        assert!(resolved(asked, &json!({})).unwrap_err().is_absent);
        assert!(!resolved(asked, &json!({"url": {}})).unwrap_err().is_absent);
    }

    #[test]
    fn placeholders_are_checked_where_they_are_asked_for() {
        for wrong in [
            "{{config:url}}",
            "{{config:/url}",
            "{{config:}}",
            "{{{config:/url}}",
            "{{config:/a~2}}",
        ] {
            assert!(wrong.parse::<AskedOrigin>().is_err(), "{wrong}");
        }
        let text = "https://{{config:/region}}.example.com";
        assert_eq!(text.parse::<AskedOrigin>().unwrap().to_string(), text);
    }
}
