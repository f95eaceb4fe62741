//! Records in OpenViking, as files below a user's memories and peers. It is written with
//! `memhost-sdk` only, like any other provider.

mod api;
mod browse;
mod config;
mod name;
mod provider;
mod sessions;

pub use api::OpenViking;
pub use config::Config;

memhost_sdk::export!(OpenViking);
memhost_sdk::export_correction!(OpenViking);
memhost_sdk::export_extraction!(OpenViking);
memhost_sdk::export_browse!(OpenViking);
memhost_sdk::export_health!(OpenViking);
memhost_sdk::export_erasure!(OpenViking);
