//! The built-in memory provider: records as Markdown files that a person can read, grep, edit and
//! keep under git, found by BM25 and by the records around a hit. It is written with `memhost-sdk`
//! only, like any other provider.

mod config;
mod files;
mod hash;
mod index;
mod library;
mod meaning;
mod provider;
mod rank;
mod record;
mod text;

pub use config::{Config, Language, Ranking};
pub use provider::LocalMarkdown;

memhost_sdk::export!(LocalMarkdown);
memhost_sdk::export_correction!(LocalMarkdown);
memhost_sdk::export_explain!(LocalMarkdown);
memhost_sdk::export_browse!(LocalMarkdown);
memhost_sdk::export_extraction!(LocalMarkdown);
