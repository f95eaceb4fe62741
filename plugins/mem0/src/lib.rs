//! Records in mem0: in its hosted API, or in its open-source server. It is written with
//! `memhost-sdk` only, like any other provider.

mod api;
mod config;
mod provider;

pub use api::Mem0;
pub use config::Config;

memhost_sdk::export!(Mem0);
memhost_sdk::export_correction!(Mem0);
memhost_sdk::export_extraction!(Mem0);
memhost_sdk::export_health!(Mem0);
memhost_sdk::export_erasure!(Mem0);
