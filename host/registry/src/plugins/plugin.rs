//! A build of a provider.

use std::cmp::Ordering;
use std::path::PathBuf;

use schemars::JsonSchema;
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::plugins::trust::Signed;
use memhost_sandbox::Component;
use memhost_types::{Binding, Digest, Grants, JsonObject, PermissionRequest, VersionChoice};

/// The source of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// What decides which of a provider's builds serves a binding. A trait, so that these rules do not
/// need a component.
pub trait Build {
    /// The digest that identifies the build.
    fn digest(&self) -> Digest;

    /// The provider's version.
    fn version(&self) -> &Version;

    /// Whether its file is there. Only then may it replace another build.
    fn is_present(&self) -> bool;

    /// When its file was written, in seconds and nanoseconds.
    fn written(&self) -> (i64, i64);

    /// What the provider asks for, as it describes itself.
    fn described_requests(&self) -> &[PermissionRequest];

    /// What it asks for at a binding with this configuration, in the same order.
    fn requests(&self, config: &JsonObject) -> Vec<PermissionRequest> {
        self.described_requests().iter().map(|request| request.resolved(config)).collect()
    }

    /// What it asks for at a binding and the binding has granted.
    fn granted(&self, binding: &Binding) -> Grants {
        binding.grants.effective(&self.requests(&binding.config))
    }

    /// Whether a binding that makes this choice may be served by it.
    fn is_allowed_by(&self, choice: &VersionChoice) -> bool {
        choice.allows(self.version(), self.digest())
    }

    /// Whether it replaces another build of its provider: it has a higher version, or the same
    /// version, its file is there, and it was written later.
    fn is_newer_than(&self, other: &Self) -> bool {
        match self.version().cmp(other.version()) {
            Ordering::Greater => true,
            Ordering::Equal => {
                self.is_present()
                    && self.digest() != other.digest()
                    && (!other.is_present() || self.written() > other.written())
            }
            Ordering::Less => false,
        }
    }
}

impl Build for Plugin {
    fn digest(&self) -> Digest {
        self.component.inspection().digest
    }

    fn version(&self) -> &Version {
        &self.component.description().version
    }

    fn is_present(&self) -> bool {
        self.source != PluginSource::Copy
    }

    fn written(&self) -> (i64, i64) {
        self.written
    }

    fn described_requests(&self) -> &[PermissionRequest] {
        &self.component.description().permissions
    }
}

/// A file that was refused.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedPlugin {
    /// Which file.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
}
