//! A memory provider with eleven kinds of memory. Rules extract candidates from captured text, and
//! each candidate names its rule. A candidate is approved, waits or is dropped, depending on kind,
//! confidence and personal data. Approved items live as long as their kind. It depends on
//! `memhost-sdk`, `memhost-extract` and `memhost-pii` only.

mod bound;
mod clock;
mod config;
mod described;
mod excluded;
mod id;
mod item;
mod lifetime;
mod pii;
mod place;
mod provider;
mod rank;
mod store;
mod words;
mod workflow;
mod write;

#[cfg(not(target_family = "wasm"))]
pub use clock::fix;
pub use config::{Config, FactLife, HypothesisLife, Pii, TodoLife, Workflow};
pub use extract::{Candidate, Group, Kind, extract};
use memhost_extract::{self as extract, due, kind};
pub use provider::Taxonomy;

/// The level of personal data in a text, 0 to 2, as the provider judges it.
pub fn pii_level(text: &str) -> u8 {
    pii::level(text)
}

memhost_sdk::export!(Taxonomy);
memhost_sdk::export_correction!(Taxonomy);
memhost_sdk::export_explain!(Taxonomy);
memhost_sdk::export_extraction!(Taxonomy);
memhost_sdk::export_profile!(Taxonomy);
memhost_sdk::export_review!(Taxonomy);
memhost_sdk::export_transfer!(Taxonomy);
