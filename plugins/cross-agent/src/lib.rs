//! One memory for each project, whichever agent framework runs a session in it: typed items with
//! confidence, tags and visibility, found by words and, if a model is granted, by meaning, and
//! ranked by recency × relevance × confidence. It is written with `memhost-sdk` only, like any
//! other provider.

mod config;
mod index;
mod item;
mod meaning;
mod provider;
mod rank;
mod store;
mod text;

pub use config::{Config, Weights};
pub use provider::CrossAgent;

memhost_sdk::export!(CrossAgent);
memhost_sdk::export_correction!(CrossAgent);
memhost_sdk::export_explain!(CrossAgent);
memhost_sdk::export_extraction!(CrossAgent);
memhost_sdk::export_transfer!(CrossAgent);
