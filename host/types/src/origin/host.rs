//! Hosts: domain names, wildcards and addresses, read as a URL parser reads them and refused where
//! it would guess.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use super::error::{OriginError, shown};

const MAX_HOST_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// The host of an [`Origin`](super::Origin) or a [`Target`](super::Target), in lower case and
/// without a trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name of at most 253 bytes with labels of 1 to 63 bytes.
    Domain(String),
    /// All subdomains at any depth of this domain, which has two labels or more, but not the domain
    /// itself. Nothing checks whether the domain is a public suffix such as `co.uk`.
    Wildcard(String),
    /// An address.
    Ip(IpAddr),
}

impl Host {
    pub(super) fn parse(text: &str, wildcards: bool) -> Result<Self, OriginError> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Some(parent) = name.strip_prefix("*.").filter(|_| wildcards) {
            check_domain(parent)?;
            if !parent.contains('.') {
                return Err(OriginError::Wildcard(shown(text)));
            }
            return Ok(Self::Wildcard(parent.to_owned()));
        }
        if let Ok(ip) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Ip(ip.into()));
        }
        check_domain(&name)?;
        Ok(Self::Domain(name))
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wildcard(parent), Self::Domain(name)) => name
                .strip_suffix(parent.as_str())
                .is_some_and(|sub| sub.len() > 1 && sub.ends_with('.')),
            (Self::Wildcard(_), _) | (_, Self::Wildcard(_)) => false,
            _ => self == other,
        }
    }

    /// Whether both are wildcards and the other one's domain is below this one's.
    pub(super) fn is_above(&self, other: &Self) -> bool {
        match other {
            Self::Wildcard(below) => self.covers(&Self::Domain(below.clone())),
            Self::Domain(_) | Self::Ip(_) => false,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => f.write_str(name),
            Self::Wildcard(parent) => write!(f, "*.{parent}"),
            Self::Ip(IpAddr::V4(ip)) => ip.fmt(f),
            Self::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

fn check_domain(name: &str) -> Result<(), OriginError> {
    if !name.is_ascii() {
        return Err(OriginError::NotAscii(shown(name)));
    }
    let fine = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(character) = name.chars().find(|c| !fine(c)) {
        return Err(OriginError::Character { host: shown(name), character });
    }
    if name.len() > MAX_HOST_BYTES {
        return Err(OriginError::HostTooLong(shown(name)));
    }
    if name.split('.').any(str::is_empty) {
        return Err(OriginError::EmptyLabel(shown(name)));
    }
    if name.split('.').any(|label| label.len() > MAX_LABEL_BYTES) {
        return Err(OriginError::LabelTooLong(shown(name)));
    }
    // A URL parser reads such a host as an IPv4 address, in spellings such as `0x7f.1`, whatever
    // DNS has for it.
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(OriginError::Ipv4(shown(name)));
    }
    Ok(())
}
