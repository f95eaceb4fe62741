//! Health checks of a host, and the figures that its metrics have beside their counters.

pub(crate) mod check;
mod doctor;
mod exposition;
mod hosts;
mod sections;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::own::Own;
use memhost_access::{Attached, WritePolicy};
use memhost_control::Control;
use memhost_operations::{Operations, Parts};
use memhost_oplog::Oplog;
use memhost_oplog::metrics::Gauges;
use memhost_ports::Clock;
use memhost_postgres::{Membership, Term};
use memhost_queues::{Deliveries, Jobs};
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::Plugins;
use memhost_registry::versions::ServingBindings;
use memhost_sandbox::Sandbox;
use memhost_store::Store;
use memhost_tenancy::{ServiceError, Tenancy};

pub use self::check::{Check, Health};

/// The work of a [`MetricSource`].
pub type ReadingGauges<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Gauges>, ServiceError>> + Send + 'a>>;

/// Adds figures to the metrics.
pub trait MetricSource: Send + Sync {
    /// The figures as they are now.
    fn gauges<'a>(&'a self, control: &'a Control, now: Timestamp) -> ReadingGauges<'a>;
}

/// Looks at a host. It changes nothing; what it asks providers has entries in the operation log.
pub struct Monitor {
    tenancy: Arc<Tenancy>,
    operations: Arc<Operations>,
    control: Arc<Control>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    oplog: Arc<Oplog>,
    bindings: Arc<Bindings>,
    plugins: Arc<Plugins>,
    serving: Arc<ServingBindings>,
    deliveries: Arc<Deliveries>,
    jobs: Arc<Jobs>,
    policies: Arc<Attached<dyn WritePolicy>>,
    metric_sources: Attached<dyn MetricSource>,
    sandbox: Sandbox,
    data_dir: PathBuf,
    store_id: uuid::Uuid,
    membership: Option<(Arc<Membership>, Term)>,
}

impl Monitor {
    /// Whether the host is quiet, because its data directory was restored from a backup: it
    /// delivers nothing, and sends no request to another system.
    pub fn is_quiet(&self) -> bool {
        self.sandbox.options().is_quiet
    }

    pub(crate) fn new(
        parts: Parts,
        (operations, control): (Arc<Operations>, Arc<Control>),
        own: Own,
    ) -> Self {
        Self {
            operations,
            control,
            sandbox: parts.sandbox,
            data_dir: own.data_dir,
            store_id: own.store_id,
            membership: own.membership,
            metric_sources: Attached::default(),
            tenancy: parts.tenancy,
            store: parts.store,
            clock: parts.clock,
            oplog: parts.oplog,
            bindings: parts.bindings,
            plugins: parts.plugins,
            serving: parts.serving,
            deliveries: parts.deliveries,
            jobs: parts.jobs,
            policies: parts.policies,
        }
    }

    /// The id of the data directory. It is made once; a copy and a restored backup have the same
    /// one.
    pub fn store_id(&self) -> uuid::Uuid {
        self.store_id
    }
}
