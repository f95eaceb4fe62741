//! The providers that this host has: the built-in one and those of the plugins directory, in all
//! their versions.

mod admissions;
mod error;
mod files;
mod kept;
mod progress;
mod registry;
mod remembered;
mod signature;
mod trust;
mod watch;

pub use error::PluginError;
pub use memhost_builtin::LOCAL_MARKDOWN_KEY;
pub use memhost_types::{PluginChange, PluginOutcome};
pub use registry::{Plugin, PluginSource, Plugins, PluginsOptions, RefusedPlugin};
pub use signature::{SignatureError, TrustedKey, Verified, verify};
pub use trust::{Signed, Trust, TrustError};
