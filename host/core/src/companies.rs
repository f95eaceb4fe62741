//! A company as a whole: retention, erasure, export, import, and the events of its sessions and tools.

mod events;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod lifecycle;

pub use import::Imported;
pub use lifecycle::{Erased, Retention, Tombstone};
