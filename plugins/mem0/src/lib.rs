//! Records in mem0: in its hosted API, or in its open-source server. It is written with `memhost-sdk` only, like any
//! other provider.

mod api;
mod config;
mod extraction;
mod provider;

pub use config::Config;
pub use provider::Mem0;

memhost_sdk::export!(Mem0);
memhost_sdk::export_correction!(Mem0);
memhost_sdk::export_extraction!(Mem0);
memhost_sdk::export_health!(Mem0);
memhost_sdk::export_erasure!(Mem0);
