//! Records in claude-mem, as observations of a project of its worker. It is written with
//! `memhost-sdk` only, like any other provider.

mod api;
mod browse;
mod config;
mod provider;

pub use api::ClaudeMem;
pub use config::Config;

memhost_sdk::export!(ClaudeMem);
memhost_sdk::export_correction!(ClaudeMem);
memhost_sdk::export_extraction!(ClaudeMem);
memhost_sdk::export_browse!(ClaudeMem);
memhost_sdk::export_health!(ClaudeMem);
