//! Changes of the files in the plugins directory.

use std::path::PathBuf;

use semver::Version;
use serde::Serialize;

use memhost_types::{Digest, ProviderKey};

/// The result of a change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// A file that was added, changed or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// Which file.
    pub path: PathBuf,
    /// The result.
    #[serde(flatten)]
    pub outcome: PluginOutcome,
}
