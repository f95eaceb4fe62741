//! The type [`Control`].

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;

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
use memhost_sandbox::Sandbox;
use memhost_store::Store;
use memhost_tenancy::Tenancy;

/// The control plane of a host: what operators make, change and look at.
pub struct Control {
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) serving: Arc<ServingBindings>,
    pub(crate) secrets: Arc<SecretStore>,
    pub(crate) sandbox: Sandbox,
    pub(crate) records: Arc<Records>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) waiting: Arc<WaitingRecords>,
    /// What happened before was told by another service, or by none.
    pub(crate) began_at: Timestamp,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
}

impl Control {
    /// The control plane on these parts. `sandbox` runs the checks of configurations.
    pub fn new(parts: Parts, operations: Arc<Operations>, secrets: Arc<SecretStore>) -> Self {
        let began_at = parts.clock.now();
        Self {
            operations,
            secrets,
            sandbox: parts.sandbox,
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
            began_at,
        }
    }

    /// Something about a binding has changed: records that wait may go on.
    pub(crate) fn go_on_waiting(&self) {
        self.waiting.go_on();
        self.wake.notify_one();
    }
}
