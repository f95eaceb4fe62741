//! The name of a provider in a registry: `oci://HOST[:PORT]/NAME[:TAG][@DIGEST]`.

use std::fmt;
use std::str::FromStr;

use crate::error::OciError;
use memhost_types::Digest;

/// The longest name of a repository, in bytes.
const MAX_NAME: usize = 255;
/// The longest tag, in bytes.
const MAX_TAG: usize = 128;

/// The name of a provider in a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The registry's host, with its port where one is named.
    pub host: String,
    /// The repository in it.
    pub name: String,
    /// The tag. `None`: none was named.
    pub tag: Option<String>,
    /// The digest of the manifest. `None`: whatever the tag leads to.
    pub digest: Option<Digest>,
}

impl Reference {
    /// The same repository at a tag, pinned to nothing.
    #[must_use]
    pub fn at(&self, tag: &str) -> Self {
        Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() }
    }

    /// The same, pinned to a manifest.
    #[must_use]
    pub fn pinned(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// The registry's host without its port.
    pub(crate) fn hostname(&self) -> &str {
        hostname(&self.host)
    }
}

/// The host of `HOST:PORT`; an IPv6 address keeps its brackets.
#[must_use]
pub fn hostname(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Whether a host is this machine.
#[must_use]
pub fn is_loopback(hostname: &str) -> bool {
    let bare = hostname.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

impl FromStr for Reference {
    type Err = OciError;

    fn from_str(text: &str) -> Result<Self, OciError> {
        let wrong =
            |why| OciError::Reference { text: text.escape_debug().take(300).collect(), why };
        let rest =
            text.strip_prefix("oci://").ok_or_else(|| wrong("it does not begin with `oci://`"))?;
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => {
                let digest = digest.parse();
                (rest, Some(digest.map_err(|_| wrong("what follows the @ is no sha256 digest"))?))
            }
            None => (rest, None),
        };
        let (host, path) = rest.split_once('/').ok_or_else(|| wrong("it has no name"))?;
        let (name, tag) = match path.rsplit_once(':') {
            Some((name, tag)) => (name, Some(tag.to_owned())),
            None => (path, None),
        };
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) || hostname(host).is_empty() {
            return Err(wrong("its host is not a name or an address"));
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_part = |part: &str| {
            let bytes = part.as_bytes();
            let ends = bytes.first().is_some_and(|byte| is_word(*byte))
                && bytes.last().is_some_and(|byte| is_word(*byte));
            ends && bytes.iter().all(|byte| is_word(*byte) || b"._-".contains(byte))
                && !part.contains("..")
        };
        if name.len() > MAX_NAME || !name.split('/').all(is_part) {
            return Err(wrong("its name has other letters than a-z, 0-9, `.`, `_`, `-` and `/`"));
        }
        let is_tag = |tag: &String| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            (1..=MAX_TAG).contains(&tag.len())
                && !tag.starts_with(['.', '-'])
                && tag.bytes().all(is_letter)
        };
        if tag.as_ref().is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("its tag has other letters than A-Z, a-z, 0-9, `.`, `_` and `-`"));
        }
        Ok(Self { host: host.to_owned(), name: name.to_owned(), tag, digest })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.host, self.name)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_written_as_it_was_read() {
        let digest = Digest::of(b"manifest");
        for text in [
            "oci://registry.example/facts:0.1.0".to_owned(),
            "oci://localhost:5000/team/facts".to_owned(),
            "oci://[::1]:5000/facts:v1".to_owned(),
            format!("oci://registry.example/facts@{digest}"),
            format!("oci://registry.example/facts:1.0@{digest}"),
        ] {
            let read: Reference = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        let read: Reference = "oci://localhost:5000/team/facts".parse().unwrap();
        assert_eq!((read.hostname(), &read.tag), ("localhost", &None));
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for text in [
            "registry.example/facts",
            "oci://registry.example",
            "oci:///facts",
            "oci://:5000/facts",
            "oci://user@registry.example/facts",
            "oci://registry.example/Facts",
            "oci://registry.example/../facts",
            "oci://registry.example//facts",
            "oci://registry.example/facts:",
            "oci://registry.example/facts:a b",
            "oci://registry.example/facts@sha256:12",
            "oci://registry.example/facts?x=1",
            "oci://registry.example\n/facts",
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains("oci://HOST/NAME:TAG"), "{text}: {error}");
        }
    }

    #[test]
    fn this_machine_is_known_by_name_and_address() {
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "128.0.0.1", "10.0.0.1", "[::2]", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
