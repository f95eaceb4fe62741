//! Short facts about a user, which follow the user everywhere, and facts of a workspace, which its
//! members share. All of them are in every preamble, within a budget of tokens. It is written with
//! `memhost-sdk` only, like any other provider.

mod config;
mod fact;
mod list;
mod place;
mod preamble;
mod provider;
mod request;
mod writing;

pub use config::Config;
pub use provider::Facts;

memhost_sdk::export!(Facts);
memhost_sdk::export_correction!(Facts);
memhost_sdk::export_profile!(Facts);
