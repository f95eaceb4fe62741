//! The type [`Transfer`].

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;

use memhost_control::Control;
use memhost_operations::{Operations, Parts};
use memhost_oplog::Oplog;
use memhost_ports::Clock;
use memhost_queues::waiting::WaitingRecords;
use memhost_queues::{Deliveries, Jobs, Reviews};
use memhost_records::Records;
use memhost_registry::ActivityLog;
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::Plugins;
use memhost_registry::secrets::SecretStore;
use memhost_registry::versions::ServingBindings;
use memhost_store::Store;
use memhost_tenancy::Tenancy;

/// Companies as a whole: export, import and erasure.
pub struct Transfer {
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) control: Arc<Control>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) serving: Arc<ServingBindings>,
    pub(crate) secrets: Arc<SecretStore>,
    pub(crate) records: Arc<Records>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) waiting: Arc<WaitingRecords>,
    pub(crate) files_dir: Option<PathBuf>,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
}

impl Transfer {
    /// Moves the companies of these parts; the files of their providers are below `files_dir`.
    pub fn new(
        parts: Parts,
        (operations, control): (Arc<Operations>, Arc<Control>),
        secrets: Arc<SecretStore>,
        files_dir: Option<PathBuf>,
    ) -> Self {
        Self {
            operations,
            control,
            secrets,
            files_dir,
            wake: Arc::clone(&parts.oplog.wake),
            tenancy: parts.tenancy,
            store: parts.store,
            clock: parts.clock,
            oplog: parts.oplog,
            activity: parts.activity,
            bindings: parts.bindings,
            plugins: parts.plugins,
            serving: parts.serving,
            records: parts.records,
            deliveries: parts.deliveries,
            jobs: parts.jobs,
            reviews: parts.reviews,
            waiting: parts.waiting,
        }
    }
}
