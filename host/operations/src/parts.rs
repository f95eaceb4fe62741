//! The type [`Operations`], and the parts that it is built on: each owns its rows.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::corrections::Corrections;
use memhost_access::{Attached, WritePolicy};
use memhost_oplog::Oplog;
use memhost_ports::Clock;
use memhost_queues::waiting::WaitingRecords;
use memhost_queues::{Deliveries, Jobs, Reviews};
use memhost_records::Records;
use memhost_registry::ActivityLog;
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::Plugins;
use memhost_registry::versions::ServingBindings;
use memhost_sandbox::Sandbox;
use memhost_store::Store;
use memhost_tenancy::Tenancy;
use memhost_types::CursorKey;

/// What operations, and the crates above them, are built on.
#[derive(Clone)]
pub struct Parts {
    /// The companies, who may enter them, and what they may keep.
    pub tenancy: Arc<Tenancy>,
    /// The rows that no other part owns.
    pub store: Arc<dyn Store>,
    /// Time and randomness.
    pub clock: Arc<dyn Clock>,
    /// The operation log, costs, the feed and metrics.
    pub oplog: Arc<Oplog>,
    /// What an operator changed.
    pub activity: Arc<ActivityLog>,
    /// Bindings and what they are assigned to.
    pub bindings: Arc<Bindings>,
    /// The builds of providers.
    pub plugins: Arc<Plugins>,
    /// What serves each binding.
    pub serving: Arc<ServingBindings>,
    /// What the host knows of each record.
    pub records: Arc<Records>,
    /// Deliveries of hooks.
    pub deliveries: Arc<Deliveries>,
    /// Extraction jobs.
    pub jobs: Arc<Jobs>,
    /// What waits for a person, and what was decided.
    pub reviews: Arc<Reviews>,
    /// Records of an import that wait for grants.
    pub waiting: Arc<WaitingRecords>,
    /// The engine.
    pub sandbox: Sandbox,
    /// The policies of bindings.
    pub policies: Arc<Attached<dyn WritePolicy>>,
    /// Seals the cursors of pages.
    pub cursors: CursorKey,
    /// Keys the digests of requests.
    pub digest_key: [u8; 32],
    /// Whether a company without bindings gets a default binding at its first operation.
    pub zero_config: bool,
}

/// The memory operations of a host.
pub struct Operations {
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) activity: Arc<ActivityLog>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) plugins: Arc<Plugins>,
    pub(crate) serving: Arc<ServingBindings>,
    pub(crate) records: Arc<Records>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) reviews: Arc<Reviews>,
    pub(crate) waiting: Arc<WaitingRecords>,
    pub(crate) sandbox: Sandbox,
    pub(crate) policies: Arc<Attached<dyn WritePolicy>>,
    pub(crate) cursors: CursorKey,
    pub(crate) digest_key: [u8; 32],
    pub(crate) zero_config: bool,
    /// Who corrected which record, for the bindings that were asked about since the start.
    pub(crate) corrections: Corrections,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
}

impl Operations {
    /// The operations on these parts.
    pub fn new(parts: Parts) -> Self {
        Self {
            wake: Arc::clone(&parts.oplog.wake),
            corrections: Corrections::default(),
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
            sandbox: parts.sandbox,
            policies: parts.policies,
            cursors: parts.cursors,
            digest_key: parts.digest_key,
            zero_config: parts.zero_config,
        }
    }

    /// Forgets what is cached of a deleted binding.
    pub fn forget_binding(&self, binding: memhost_types::BindingId) {
        self.corrections.forget(binding);
    }
}
