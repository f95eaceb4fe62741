//! Origins: the scheme, host and port that a guest was granted, and the one comparison with where
//! it wants to go.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod error;
mod host;
pub use error::OriginError;
use error::shown;
pub use host::Host;

/// The schemes that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

impl Scheme {
    /// The scheme's name in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where a URL names none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn parse(text: &str) -> Result<Self, OriginError> {
        let known = [Self::Http, Self::Https]
            .into_iter()
            .find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()));
        known.ok_or_else(|| OriginError::Scheme(shown(text)))
    }
}

macro_rules! accessors_and_display {
    ($name:ident) => {
        impl $name {
            /// The scheme.
            pub fn scheme(&self) -> Scheme {
                self.scheme
            }

            /// The host.
            pub fn host(&self) -> &Host {
                &self.host
            }

            /// The port, which is the scheme's default one where none was given.
            pub fn port(&self) -> u16 {
                self.port
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
                if self.port == self.scheme.default_port() {
                    Ok(())
                } else {
                    write!(f, ":{}", self.port)
                }
            }
        }
    };
}

accessors_and_display!(Origin);
accessors_and_display!(Target);

/// Where a guest may go: `https://api.example.com`, `http://10.0.0.5:8080`,
/// `https://*.example.com`. Its canonical text is in lower case and leaves out the scheme's default
/// port.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(transform = super::schema::origin)]
pub struct Origin {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Origin {
    /// Whether a target has this scheme and port, and this host or one under this wildcard.
    pub fn allows(&self, target: &Target) -> bool {
        self.scheme == target.scheme && self.port == target.port && self.host.covers(&target.host)
    }

    /// Whether everything that another origin allows is allowed by this one.
    pub fn includes(&self, other: &Self) -> bool {
        let hosts = self.host == other.host
            || self.host.covers(&other.host)
            || self.host.is_above(&other.host);
        (self.scheme, self.port) == (other.scheme, other.port) && hosts
    }

    /// Whether what a guest asks for is a [`Target`] that this origin [allows](Self::allows).
    pub fn matches(&self, scheme: Option<&str>, authority: &str) -> bool {
        Target::parse(scheme, authority).is_ok_and(|target| self.allows(&target))
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, OriginError> {
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| OriginError::NoScheme(shown(text)))?;
        let scheme = Scheme::parse(scheme)?;
        let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(OriginError::UserInfo(shown(text)));
        }
        let (host, port) = parse_authority(scheme, authority, true)?;
        let part = match rest.strip_prefix('/').unwrap_or(rest).chars().next() {
            None => return Ok(Self { scheme, host, port }),
            Some('?') => "query",
            Some('#') => "fragment",
            Some(_) => "path",
        };
        Err(OriginError::Rest { text: shown(text), part })
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;

    fn try_from(text: String) -> Result<Self, OriginError> {
        text.parse()
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> Self {
        origin.to_string()
    }
}

/// Where a guest wants to go. Its host is never a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    scheme: Scheme,
    host: Host,
    port: u16,
}

impl Target {
    /// The host, and the port where it is not the scheme's: what a `Host` header holds.
    pub fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The target of a request with this scheme (`https` where it is missing) and this
    /// `host[:port]`. Upper case and one trailing dot do not matter. Connect to this target's host
    /// and port, not to the text it was read from.
    ///
    /// # Errors
    /// Which rule of an origin the scheme or the authority breaks.
    pub fn parse(scheme: Option<&str>, authority: &str) -> Result<Self, OriginError> {
        let scheme = scheme.map_or(Ok(Scheme::Https), Scheme::parse)?;
        let (host, port) = parse_authority(scheme, authority, false)?;
        Ok(Self { scheme, host, port })
    }
}

fn parse_authority(
    scheme: Scheme,
    text: &str,
    wildcards: bool,
) -> Result<(Host, u16), OriginError> {
    if text.contains('@') {
        return Err(OriginError::UserInfo(shown(text)));
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => {
            let not_v6 = || OriginError::Ipv6(shown(text));
            let (inner, port) = inner.split_once(']').ok_or_else(not_v6)?;
            let ip = inner.parse::<Ipv6Addr>().map_err(|_| not_v6())?;
            let port = if port.is_empty() {
                None
            } else {
                Some(port.strip_prefix(':').ok_or_else(not_v6)?)
            };
            (Host::Ip(ip.into()), port)
        }
        None if text.matches(':').count() > 1 => return Err(OriginError::Ipv6(shown(text))),
        None => match text.split_once(':') {
            Some((host, port)) => (Host::parse(host, wildcards)?, Some(port)),
            None => (Host::parse(text, wildcards)?, None),
        },
    };
    let Some(port) = port else { return Ok((host, scheme.default_port())) };
    // `u16::from_str` alone would take a plus sign.
    let number =
        port.bytes().all(|byte| byte.is_ascii_digit()).then(|| port.parse().ok()).flatten();
    let number =
        number.filter(|&number| number != 0).ok_or_else(|| OriginError::Port(shown(port)))?;
    Ok((host, number))
}

#[cfg(test)]
mod tests;
