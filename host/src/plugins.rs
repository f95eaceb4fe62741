//! The providers that this host has: the built-in one and those of the plugins directory.

mod builtin;
mod registry;

pub use builtin::LOCAL_MARKDOWN_KEY;
pub use registry::{Plugin, PluginSource, Plugins, RefusedPlugin};
