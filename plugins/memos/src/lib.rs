//! Records in MemOS's cloud. It is written with `memhost-sdk` only, like any other provider.

mod answers;
mod api;
mod config;
mod provider;

pub use api::Memos;
pub use config::Config;

memhost_sdk::export!(Memos);
memhost_sdk::export_correction!(Memos);
memhost_sdk::export_extraction!(Memos);
memhost_sdk::export_health!(Memos);
memhost_sdk::export_erasure!(Memos);
