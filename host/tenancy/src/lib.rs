//! Companies: which there are, who may enter them, what they may keep and for how long. Every call
//! of a caller comes through here first.
//!
//! This crate owns the table `Companies` and the host's rows of known and erased companies, and of
//! sessions in the explorer. It calls no provider.

mod entry;
mod error;
mod events;
mod gate;
mod known;
mod paging;
mod quota;
mod readers;
mod retention;
mod sessions;
mod settings;
mod state;
mod tenancy;
#[cfg(test)]
mod tests;

pub use error::ServiceError;
pub use gate::Authentication;
pub use known::KnownCompanies;
pub use paging::{Page, WantedPage};
pub use quota::CompanyUsage;
pub use readers::{forgetter_of, reader_of};
pub use sessions::{Session, Sessions};
pub use settings::{Erased, ImportGuard, Retention, Tombstone};
pub use tenancy::{Tenancy, TenancyParts};
