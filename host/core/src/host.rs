//! The host itself: opening it, its keys and secrets, its health and metrics, backups, and what it publishes.

mod backup;
pub(crate) mod caches;
mod control;
pub(crate) mod feed;
mod health;
pub(crate) mod keys;
pub(crate) mod metrics;
mod open;
mod options;
pub(crate) mod secrets;
pub(crate) mod vault;
mod workbench;

pub use backup::{BackupRequest, BackupView, check_backup, restore_backup};
pub use control::{AdmittedPlugin, PluginView};
pub use feed::{Follower, HostEvent, Notice};
pub use health::{Check, Health};
pub use open::Service;
pub use options::{Audit, ServiceOptions, WrapStore};
pub use secrets::{SecretView, SetSecret};
pub use vault::VaultError;
pub use workbench::Workbench;
