//! The one engine of a host: configuration, the pool of instance slots, the clock that ends runaway
//! guests.

use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;
use wasmtime::component::Linker;
use wasmtime::{Config, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use super::compiler::Compiler;
use super::egress::{Client, Egress, Network};
use super::error::AdmissionError;
use super::imports::{State, linker};
use super::meter::Meter;
use super::pool::Pool;
use super::stats::{Counters, SandboxStats};
use super::ticker::Ticker;
use memhost_types::{BindingLimits, HttpGrant};

/// The resources that all guests of a host share.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// The most instances at once, idle ones included.
    pub instances: u32,
    /// The most that one linear memory can ever be granted, in bytes. Bindings are limited below
    /// it.
    pub max_memory_bytes: u64,
    /// A PEM file of certificate authorities that outgoing requests trust beside the well-known
    /// ones.
    pub outgoing_roots: Option<PathBuf>,
    /// Whether every outgoing request is refused, whatever is granted: the host is a restored copy.
    pub is_quiet: bool,
    /// Where the cost of each call is noted. `None`: nothing is counted, and no guest slows down.
    pub meter: Option<Meter>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Becomes true when a component of the host's own has to be compiled, which takes seconds.
    pub compiles_own: watch::Sender<bool>,
}

impl Default for SandboxOptions {
    fn default() -> Self {
        Self {
            instances: 1_000,
            max_memory_bytes: 1 << 30,
            outgoing_roots: None,
            is_quiet: false,
            meter: None,
            compiler: Compiler::default(),
            compiles_own: watch::Sender::default(),
        }
    }
}

/// The engine with its pool and its network client. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) engine: Engine,
    pub(super) linker: Linker<State>,
    pub(super) options: SandboxOptions,
    /// The network of guests' requests.
    network: Arc<Network>,
    pub(super) pool: Pool,
    pub(super) ticker: Arc<Ticker>,
}

impl Sandbox {
    /// An engine with its pool and its ticking clock.
    ///
    /// # Errors
    /// Where this machine cannot reserve the address space or start the clock's thread.
    pub fn new(options: SandboxOptions) -> Result<Self, AdmissionError> {
        let engine = Engine::new(&config(&options)).map_err(|error| {
            AdmissionError::io("starting", "the WebAssembly engine", format!("{error:#}"))
        })?;
        let linker = linker(&engine).map_err(|error| {
            AdmissionError::io("linking", "the host's imports", format!("{error:#}"))
        })?;
        let client =
            Client::new(options.outgoing_roots.as_deref()).map_err(AdmissionError::Roots)?;
        let advanced = engine.weak();
        let ticker = Ticker::start(move || {
            advanced.upgrade().map(|engine| engine.increment_epoch()).is_some()
        })
        .map_err(|error| AdmissionError::io("starting", "the epoch's thread", error))?;
        Ok(Self(Arc::new(Inner {
            engine,
            linker,
            pool: Pool::new(options.instances),
            network: Arc::new(Network::new(client, options.is_quiet)),
            options,
            ticker: Arc::new(ticker),
        })))
    }

    /// The resources that all guests share.
    pub fn options(&self) -> &SandboxOptions {
        &self.0.options
    }

    /// Counts since the start, and the instances that exist now.
    pub fn stats(&self) -> SandboxStats {
        let pool = &self.0.pool;
        let slots = u64::from(self.0.options.instances);
        SandboxStats {
            slots,
            instances: pool.instances(),
            idle: pool.idle(),
            ..self.counters().read()
        }
    }

    /// The outgoing requests of one binding's provider, without secrets yet.
    pub fn egress(&self, grants: Vec<HttpGrant>, limits: &BindingLimits) -> Egress {
        Egress::new(Arc::clone(&self.0.network), grants, limits)
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.0.network.counters
    }

    /// The same for compiled code of the same engine, version and kind of machine.
    pub(super) fn engine_fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        self.0.engine.precompile_compatibility_hash().hash(&mut hasher);
        hasher.finish()
    }
}

fn config(options: &SandboxOptions) -> Config {
    let mut pool = PoolingAllocationConfig::new();
    let instances = options.instances;
    // A Rust component for wasip2 is made of about four core instances and two tables; one in
    // Python of fourteen, and of one more for each library with native code.
    pool.total_component_instances(instances)
        .total_core_instances(instances.saturating_mul(16))
        .total_memories(instances.saturating_mul(2))
        .total_tables(instances.saturating_mul(6))
        .total_stacks(instances)
        .max_core_instances_per_component(32)
        .max_memories_per_component(4)
        .max_tables_per_component(16)
        .max_memories_per_module(2)
        .table_elements(100_000)
        .max_component_instance_size(2 << 20)
        .max_core_instance_size(2 << 20)
        .max_memory_size(usize::try_from(options.max_memory_bytes).unwrap_or(usize::MAX))
        // Keeps a fresh instance's first pages mapped, so that clearing them is a memset and no
        // page fault.
        .linear_memory_keep_resident(256 << 10)
        .table_keep_resident(16 << 10)
        .async_stack_keep_resident(16 << 10);
    let mut config = code_config(options.meter.is_some());
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// What the compiled code depends on: the same for the compiler and for the engine that loads it.
pub(super) fn code_config(measures_fuel: bool) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(measures_fuel)
        .wasm_component_model(true)
        .wasm_memory64(false)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(16))
        .max_wasm_stack(512 << 10)
        .async_stack_size(1 << 20);
    config
}
