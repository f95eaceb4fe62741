//! A build of a provider.

use std::cmp::Ordering;
use std::path::PathBuf;

use schemars::JsonSchema;
use semver::Version;
use serde::Serialize;

use crate::plugins::trust::Signed;
use memhost_sandbox::Component;
use memhost_types::{Digest, VersionChoice};

/// The source of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind", content = "path")]
pub enum PluginSource {
    /// This binary.
    Builtin,
    /// A file of the plugins directory.
    File(PathBuf),
    /// A copy. The file is gone, and the copy serves the bindings that the file served.
    #[serde(rename = "kept")]
    Copy,
}

/// An admitted build of a provider.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// Its source.
    pub source: PluginSource,
    /// The component.
    pub component: Component,
    /// Whose it is.
    pub signed: Signed,
    /// When its file was written: the later of two builds of one version is the newer.
    pub(super) written: (i64, i64),
}

impl Plugin {
    /// The digest that identifies the build.
    pub fn digest(&self) -> Digest {
        self.component.inspection().digest
    }

    /// The provider's version.
    pub fn version(&self) -> &Version {
        &self.component.description().version
    }

    /// Whether a binding that makes this choice may be served by it.
    pub fn is_allowed_by(&self, choice: &VersionChoice) -> bool {
        choice.allows(self.version(), self.digest())
    }

    /// Whether it replaces another build of its provider: it has a higher version, or the same
    /// version, its file is there, and it was written later.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        match self.version().cmp(other.version()) {
            Ordering::Greater => true,
            Ordering::Equal => {
                self.is_present()
                    && self.digest() != other.digest()
                    && (!other.is_present() || self.written > other.written)
            }
            Ordering::Less => false,
        }
    }

    /// Whether its file is there. Only then may it replace another build.
    pub fn is_present(&self) -> bool {
        self.source != PluginSource::Copy
    }
}

/// A file that was refused.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedPlugin {
    /// Which file.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}
