//! Addresses: the base that an operator configures, and the parts of a path.

use std::str::FromStr;

/// Why an address is none that a client can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{url}` {fault}; write it like https://api.example.com or http://127.0.0.1:8000/v1")]
pub struct BadUrl {
    url: String,
    fault: &'static str,
}

impl From<BadUrl> for crate::types::Error {
    fn from(error: BadUrl) -> Self {
        Self::internal(format!("the binding's configuration has a wrong address: {error}"))
    }
}

/// A base address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) scheme_is_https: bool,
    pub(super) authority: String,
    /// The beginning of every path, without a slash at its end.
    pub(super) path: String,
}

impl FromStr for Base {
    type Err = BadUrl;

    fn from_str(url: &str) -> Result<Self, BadUrl> {
        let bad = |fault| BadUrl { url: url.chars().take(200).collect(), fault };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| bad("has no scheme"))?;
        let scheme_is_https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(bad("has a scheme that is neither http nor https")),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.is_empty() {
            return Err(bad("has no host"));
        }
        if rest.contains(['?', '#', '@', '\\'])
            || rest.contains(|c: char| c.is_whitespace() || c.is_control())
        {
            return Err(bad("has more than a host, a port and a path"));
        }
        Ok(Self {
            scheme_is_https,
            authority: authority.to_owned(),
            path: path.trim_end_matches('/').to_owned(),
        })
    }
}

/// A text as one part of a path or a query: everything but letters, digits and `-._~` is
/// percent-encoded, so that a slash in an id does not lead elsewhere.
pub fn segment(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    // A part that is only dots is a way up.
    if encoded.bytes().all(|byte| byte == b'.') { encoded.replace('.', "%2E") } else { encoded }
}
