//! The host itself: opening it, its keys and secrets, its health and metrics, backups, and what it
//! publishes.

mod attached;
mod backup;
mod caches;
mod check;
pub(crate) mod compaction;
mod control;
mod exposition;
mod follow;
mod health;
mod keys;
mod open;
mod options;
mod privacy;
mod secrets;
mod service;
mod workbench;

pub use attached::{MetricSource, ReadingGauges};
pub use backup::{BackupRequest, BackupView, check_backup, restore_backup};
pub use check::{Check, Health};
pub use control::{AdmittedPlugin, PluginView};
pub use options::{Audit, ServiceOptions, WrapStore};
pub use service::Service;
pub use workbench::Workbench;
