//! A company as a whole: retention, erasure, export, import, and the events of its sessions and tools.

pub(crate) mod cache;
mod events;
mod export;
pub(crate) mod import;
mod lifecycle;

pub use cache::{Erased, Retention, Tombstone};
pub use import::Imported;
