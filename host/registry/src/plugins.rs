//! The providers that this host has: the built-in one and those of the plugins directory, in all
//! their versions.

mod admissions;
mod components;
mod cosign;
mod error;
mod files;
mod plugin;
mod progress;
mod registry;
mod scan;
mod signature;
#[cfg(test)]
mod tests;
mod trust;

pub use components::ComponentsDir;
pub use cosign::{CosignError, CosignKey, CosignProof};
pub use error::PluginError;
pub use files::{Fingerprint, list as list_files, read as read_file, read_signature};
pub use memhost_builtin::LOCAL_MARKDOWN_KEY;
pub use memhost_types::{PluginChange, PluginOutcome};
pub use plugin::{Build, Plugin, PluginSource, RefusedPlugin};
pub use registry::{Plugins, PluginsOptions};
pub use signature::{SignatureError, TrustedKey, Verified, verify};
pub use trust::{Signed, Trust, TrustError};
