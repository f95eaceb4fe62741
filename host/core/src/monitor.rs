//! Health checks of a host, and the figures that its metrics have beside their counters.

pub(crate) mod check;
mod doctor;
mod exposition;
mod hosts;
mod sections;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;

use memhost_access::{Attached, WritePolicy};
use memhost_control::Control;
use memhost_operations::{Operations, Parts};
use memhost_oplog::Oplog;
use memhost_oplog::metrics::Gauges;
use memhost_ports::Clock;
use memhost_postgres::{Group, Membership};
use memhost_queues::{Deliveries, Jobs};
use memhost_registry::bindings::Bindings;
use memhost_registry::plugins::Plugins;
use memhost_registry::versions::ServingBindings;
use memhost_sandbox::Sandbox;
use memhost_store::Store;
use memhost_tenancy::{ServiceError, Tenancy};

pub use self::check::{Check, Health};

/// What belongs to one service and not to its parts.
pub(crate) struct Own {
    pub(crate) data_dir: PathBuf,
    /// Where the files of providers are.
    pub(crate) files_dir: Option<PathBuf>,
    pub(crate) store_id: uuid::Uuid,
    pub(crate) place: Option<Place>,
}

/// What a service serves of a database that several hosts share.
pub(crate) struct Place {
    pub(crate) membership: Arc<Membership>,
    pub(crate) group: Group,
    /// The other services of its host.
    pub(crate) beside: Arc<Beside>,
}

/// The monitors of the services of one host.
#[derive(Default)]
pub(crate) struct Beside {
    monitors: Mutex<Vec<Weak<Monitor>>>,
    taken: AtomicU64,
}

impl Beside {
    /// Adds that of a service. Answers whether it is the first one.
    pub(crate) fn add(&self, monitor: &Arc<Monitor>) -> bool {
        let mut monitors = self.monitors.lock();
        monitors.retain(|known| known.strong_count() > 0);
        monitors.push(Arc::downgrade(monitor));
        self.taken.fetch_add(1, Ordering::Relaxed) == 0
    }

    fn all(&self) -> Vec<Arc<Monitor>> {
        self.monitors.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// How many groups the host has taken over since it was started.
    fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

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
    place: Option<Place>,
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
            place: own.place,
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

    /// Those of the other services of this host: it has one for each group of companies.
    fn beside(&self) -> Vec<Arc<Self>> {
        let all = self.place.as_ref().map(|place| place.beside.all());
        let is_other = |one: &Arc<Self>| !std::ptr::eq(&raw const **one, self);
        all.into_iter().flatten().filter(is_other).collect()
    }

    /// This one and those.
    fn with<'a>(&'a self, beside: &'a [Arc<Self>]) -> impl Iterator<Item = &'a Self> {
        std::iter::once(self).chain(beside.iter().map(|one| &**one))
    }

    /// The id of the data directory. It is made once; a copy and a restored backup have the same
    /// one.
    pub fn store_id(&self) -> uuid::Uuid {
        self.store_id
    }
}
