//! Versions of a provider: what a component is told by, and which of them may serve a binding.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use semver::{Version, VersionReq};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::bounds::check_bytes;
use super::{FieldError, ProviderKey, limits};

const PREFIX: &str = "sha256:";

/// The SHA-256 digest of a component's bytes: what a build is told by, written as `sha256:` and 64
/// hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(transform = super::schema::digest)]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{found}` is no digest; give `sha256:` and 64 hex digits, as `memhost plugin list -o json` \
     shows them"
)]
pub struct DigestError {
    found: String,
}

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first 12 hex digits: enough for a person.
    pub fn short(&self) -> String {
        self.to_string()[PREFIX.len()..PREFIX.len() + 12].to_owned()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let wrong = || DigestError { found: text.escape_debug().take(80).collect() };
        let hex = text
            .strip_prefix(PREFIX)
            .filter(|hex| hex.len() == 64 && hex.is_ascii())
            .ok_or_else(wrong)?;
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Which versions of its provider may serve a binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VersionChoice {
    /// The newest one of the plugins directory that a range allows, in Cargo's grammar: `*`,
    /// `^1.2`, `>=1, <3`. A pre-release only where the range names one.
    Follow(#[schemars(with = "String", transform = super::schema::version_range)] VersionReq),
    /// Exactly this build.
    Pin(Digest),
}

impl Default for VersionChoice {
    fn default() -> Self {
        Self::Follow(VersionReq::STAR)
    }
}

impl VersionChoice {
    /// The newest version that a range allows. `None`: the text is no range.
    pub fn follow(range: &str) -> Option<Self> {
        range.parse().ok().map(Self::Follow)
    }

    /// Checks the length of a range.
    ///
    /// # Errors
    /// If it is longer than 512 bytes.
    pub fn check(&self) -> Result<(), FieldError> {
        match self {
            Self::Follow(range) => {
                check_bytes("version.follow", &range.to_string(), limits::MAX_RECORD_ID_BYTES)
            }
            Self::Pin(_) => Ok(()),
        }
    }

    /// Whether a build may serve.
    pub fn allows(&self, version: &Version, digest: Digest) -> bool {
        match self {
            Self::Follow(range) => range.matches(version),
            Self::Pin(pinned) => *pinned == digest,
        }
    }
}

impl fmt::Display for VersionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follow(range) => write!(f, "follows {range}"),
            Self::Pin(digest) => write!(f, "pinned to {}", digest.short()),
        }
    }
}

/// Which build serves a binding, and which ones are kept from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServingVersion {
    /// The build.
    pub digest: Digest,
    /// Its version.
    pub version: Version,
    /// Builds that were tried and do not serve, until they are tried again by hand or replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_versions: Vec<RejectedVersion>,
}

/// A build that does not serve a binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RejectedVersion {
    /// The build.
    pub digest: Digest,
    /// Its version.
    pub version: Version,
    /// Why, for the person who runs the host.
    pub reason: String,
}

/// The result of a change of a file in the plugins directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "change")]
pub enum PluginOutcome {
    /// It can serve.
    #[serde(rename_all = "camelCase")]
    Admitted {
        /// Its provider.
        provider_key: ProviderKey,
        /// Its version.
        version: Version,
        /// The digest of its bytes.
        digest: Digest,
    },
    /// It was refused.
    Refused {
        /// Why, and what to do about it.
        reason: String,
    },
    /// It was removed; its build goes on for the bindings that it served.
    Gone,
}

/// A file of the plugins directory that was added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// Which file.
    pub path: PathBuf,
    /// The result.
    #[serde(flatten)]
    pub outcome: PluginOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_written() {
        let digest = Digest::of(b"memhost");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        let long = format!("sha256:{}", "é".repeat(32));
        for wrong in ["", "sha256:", "sha256:zz", "md5:00", long.as_str(), &digest.to_string()[7..]]
        {
            assert!(
                wrong.parse::<Digest>().unwrap_err().to_string().contains("64 hex digits"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_choice_is_a_range_or_a_build() {
        let digest = Digest::of(b"x");
        let range: VersionChoice = serde_json::from_str(r#"{"follow":"^1.2"}"#).unwrap();
        assert!(
            range.allows(&Version::new(1, 3, 0), digest)
                && !range.allows(&Version::new(2, 0, 0), digest)
        );
        let pin = VersionChoice::Pin(digest);
        assert!(pin.allows(&Version::new(9, 0, 0), digest));
        assert!(!pin.allows(&Version::new(9, 0, 0), Digest::of(b"y")));
        assert_eq!(serde_json::to_string(&pin).unwrap(), format!(r#"{{"pin":"{digest}"}}"#));
        assert!(serde_json::from_str::<VersionChoice>(r#"{"follow":"soon"}"#).is_err());
    }
}
