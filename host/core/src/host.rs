//! The host itself: opening it, its keys and secrets, its health and metrics, backups, and what it
//! publishes.

mod attached;
mod backup;
mod caches;
pub(crate) mod compaction;
mod control;
pub(crate) mod doctor;
mod exposition;
mod follow;
mod keys;
mod open;
mod options;
mod secrets;
mod service;
mod workbench;

pub use attached::{MetricSource, ReadingGauges};
pub use backup::{BackupRequest, BackupView, check_backup, restore_backup};
pub use control::{AdmittedPlugin, PluginView};
pub use doctor::check::{Check, Health};
pub use options::{Audit, ServiceOptions, WrapStore};
pub use service::Service;
pub use workbench::Workbench;
