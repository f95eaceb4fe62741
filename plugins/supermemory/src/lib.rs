//! Records in supermemory. It is written with `memhost-sdk` only, like any other provider.

mod api;
mod config;
mod provider;

pub use api::Supermemory;
pub use config::Config;

memhost_sdk::export!(Supermemory);
memhost_sdk::export_correction!(Supermemory);
memhost_sdk::export_extraction!(Supermemory);
memhost_sdk::export_profile!(Supermemory);
memhost_sdk::export_health!(Supermemory);
memhost_sdk::export_erasure!(Supermemory);
