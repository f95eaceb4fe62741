//! What becomes of the files in the plugins directory, for whoever follows it.

use std::path::PathBuf;

use semver::Version;
use serde::Serialize;

use memhost_types::{Digest, ProviderKey};

/// What became of a file.
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
        /// Of its bytes.
        digest: Digest,
    },
    /// It is kept out.
    Refused {
        /// Why, and what to do about it.
        reason: String,
    },
    /// It is not there any more; its build goes on for the bindings that it served.
    Gone,
}

/// A file that came, changed or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginChange {
    /// Which file.
    pub path: PathBuf,
    /// What became of it.
    #[serde(flatten)]
    pub outcome: PluginOutcome,
}
