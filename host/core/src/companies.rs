//! A company as a whole: retention, erasure, export, import, and the events of its sessions and
//! tools.

pub(crate) mod cache;
pub(crate) mod events;
mod export;
mod holdings;
pub(crate) mod import;
pub(crate) mod known;
mod lifecycle;
mod quota;
mod retention;
pub(crate) mod waiting;

pub use cache::{Erased, Retention, Tombstone};
pub use export::Line as ExportLine;
pub use import::{ImportOptions, Imported, MAX_LINE as MAX_IMPORT_LINE};
pub use known::KnownCompanies;
pub use quota::CompanyUsage;
