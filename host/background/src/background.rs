//! The type [`Background`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::{Mutex, Notify};

use crate::batch_order::BatchOrder;
use memhost_control::Control;
use memhost_operations::{Operations, Parts};
use memhost_oplog::Oplog;
use memhost_ports::Clock;
use memhost_queues::waiting::WaitingRecords;
use memhost_queues::{Deliveries, Jobs, RetryPolicy};
use memhost_records::Records;
use memhost_registry::bindings::Bindings;
use memhost_registry::versions::ServingBindings;
use memhost_store::Store;
use memhost_tenancy::Tenancy;

/// The hooks of a host, its extraction jobs, and what else it does by itself.
pub struct Background {
    pub(crate) tenancy: Arc<Tenancy>,
    pub(crate) operations: Arc<Operations>,
    pub(crate) control: Arc<Control>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) oplog: Arc<Oplog>,
    pub(crate) bindings: Arc<Bindings>,
    pub(crate) serving: Arc<ServingBindings>,
    pub(crate) records: Arc<Records>,
    pub(crate) deliveries: Arc<Deliveries>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) waiting: Arc<WaitingRecords>,
    pub(crate) retry: RetryPolicy,
    pub(crate) batch_order: BatchOrder,
    /// Wakes background work: something may be due.
    pub(crate) wake: Arc<Notify>,
    /// Held while providers are asked to forget what has expired: one round at a time.
    pub(crate) forgetting: Arc<Mutex<()>>,
    /// Whether no more background work is started.
    pub(crate) is_shutting_down: AtomicBool,
}

impl Background {
    /// Background work on these parts; nothing runs before [`Background::start`].
    pub fn new(
        parts: Parts,
        (operations, control): (Arc<Operations>, Arc<Control>),
        retry: RetryPolicy,
    ) -> Self {
        Self {
            operations,
            control,
            retry,
            batch_order: BatchOrder::default(),
            forgetting: Arc::default(),
            is_shutting_down: AtomicBool::new(false),
            wake: Arc::clone(&parts.oplog.wake),
            tenancy: parts.tenancy,
            store: parts.store,
            clock: parts.clock,
            oplog: parts.oplog,
            bindings: parts.bindings,
            serving: parts.serving,
            records: parts.records,
            deliveries: parts.deliveries,
            jobs: parts.jobs,
            waiting: parts.waiting,
        }
    }
}
