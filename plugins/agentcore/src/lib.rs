//! Records in AWS Bedrock AgentCore Memory. It is written with `memhost-sdk` only, like any other
//! provider.

mod api;
mod config;
mod extraction;
mod metadata;
mod place;
mod provider;
mod turns;

pub use api::AgentCore;
pub use config::Config;

memhost_sdk::export!(AgentCore);
memhost_sdk::export_correction!(AgentCore);
memhost_sdk::export_extraction!(AgentCore);
memhost_sdk::export_health!(AgentCore);
memhost_sdk::export_erasure!(AgentCore);
