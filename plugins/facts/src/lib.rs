//! Short facts about a user, who has them everywhere, and of a workspace, whose members share them: all of them are in
//! every preamble, within a budget of tokens. It is written with `memhost-sdk` only, like any other provider.

mod config;
mod fact;
mod list;
mod place;
mod preamble;
mod provider;
mod request;
mod tokens;
mod writing;

pub use config::Config;
pub use provider::Facts;

memhost_sdk::export!(Facts);
memhost_sdk::export_correction!(Facts);
memhost_sdk::export_profile!(Facts);
