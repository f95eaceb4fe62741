//! One instance of a component in a store of its own, made for one binding and never used by
//! another.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use wasmtime::UpdateDeadline;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder};
use wasmtime_wasi_http::WasiHttpCtx;

use super::clocks::{CoarseMonotonicClock, CoarseWallClock};
use super::component::Component;
use super::computing::Computing;
use super::contract::Exports;
use super::egress::{Egress, GuestHttp};
use super::engine::Sandbox;
use super::imports::{GuestStore, HttpMemory, State};
use super::limiter::Limiter;
use super::log::GuestLog;
use super::open_files::OpenFiles;
use super::quota::DirectoryQuota;
use memhost_ports::{BindingStorage, Embedder};
use memhost_types::{BindingLimits, Grants};

/// Handles that one instance may hold at once: files, streams, pollables. What each keeps in the
/// host's memory is in `host/docs/wasi.md`.
const MAX_HANDLES: usize = 1_024;
/// Handles that an instance may keep after a call. A component keeps its directory and its standard
/// output; one that keeps more has lost them, or hoards them.
const MAX_KEPT_HANDLES: usize = 64;
/// All names and values of one list of header fields, as the host keeps them, in bytes.
const MAX_FIELDS_BYTES: usize = 64 << 10;
/// Random bytes that a guest may ask for in one call.
const MAX_RANDOM_BYTES: u64 = 64 << 10;
/// More fuel than any call uses: it is counted and limits nothing.
const PLENTY: u64 = 1 << 62;

/// What a binding gives its instances.
#[derive(Clone)]
pub struct InstanceSetup {
    /// The configuration, an object.
    pub config: Arc<str>,
    /// The private storage, if granted.
    pub storage: Option<Arc<dyn BindingStorage>>,
    /// The private directory, if granted. The guest sees it as `/data`.
    pub directory: Option<Directory>,
    /// What embeds texts, if granted.
    pub embeddings: Option<Arc<dyn Embedder>>,
    /// What was granted of what the component asks for: the guest may ask. Its clocks are exact
    /// where it says so.
    pub grants: Arc<Grants>,
    /// Where requests may go, if anywhere.
    pub egress: Option<Arc<Egress>>,
    /// What an instance may use.
    pub limits: BindingLimits,
}

impl InstanceSetup {
    /// For calls that belong to no binding, such as `describe`: an empty configuration, and nothing
    /// granted.
    pub fn without_grants(limits: BindingLimits) -> Self {
        Self {
            config: "{}".into(),
            storage: None,
            directory: None,
            embeddings: None,
            grants: Arc::default(),
            egress: None,
            limits,
        }
    }
}

/// A private directory on the host.
#[derive(Clone)]
pub struct Directory {
    /// Where it is.
    pub path: PathBuf,
    /// What a guest may do in it.
    pub access: DirectoryAccess,
}

/// What a guest may do in its directory.
#[derive(Clone)]
pub enum DirectoryAccess {
    /// Look only.
    ReadOnly,
    /// Everything, up to what the directory may hold.
    ReadWrite(Arc<DirectoryQuota>),
}

pub(super) struct Instance {
    pub(super) store: GuestStore,
    pub(super) exports: Exports,
    _slot: OwnedSemaphorePermit,
}

impl Instance {
    /// Instantiates. Start functions of the component run here, so the caller must bound the time.
    pub(super) async fn new(
        sandbox: &Sandbox,
        component: &Component,
        setup: &InstanceSetup,
        slot: OwnedSemaphorePermit,
    ) -> wasmtime::Result<Self> {
        let log = GuestLog::new(setup.limits.log_bytes);
        let mut wasi = WasiCtxBuilder::new();
        wasi.stdout(log.stdout())
            .stderr(log.stderr())
            .max_random_size(MAX_RANDOM_BYTES)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false);
        if !setup.grants.clock {
            wasi.wall_clock(CoarseWallClock).monotonic_clock(CoarseMonotonicClock::new());
        }
        // A hand-over to another thread costs ten times what a file operation on a local disk does.
        // The calls that can take long are handed over all the same: `imports/directory.rs`.
        wasi.allow_blocking_current_thread(true);
        let (mut quota, mut files) = (None, Arc::<OpenFiles>::default());
        if let Some(Directory { path, access }) = &setup.directory {
            let permissions = match access {
                DirectoryAccess::ReadOnly => FsPerms::ReadOnly,
                DirectoryAccess::ReadWrite(bounded) => {
                    quota = Some(Arc::clone(bounded));
                    files = Arc::clone(bounded.open_files());
                    FsPerms::ReadWrite
                }
            };
            wasi.preopened_dir(path, "/data", permissions)?;
        }
        let mut table = wasmtime::component::ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(MAX_FIELDS_BYTES);
        let (computing, limiter) = (Computing::new(&sandbox.0.ticker), Limiter::new(&setup.limits));
        let state = State {
            wasi: wasi.build(),
            http,
            http_memory: HttpMemory::default(),
            outgoing: GuestHttp::new(
                setup.egress.clone(),
                log.clone(),
                limiter.memory().clone(),
                computing.clone(),
            ),
            table,
            limiter,
            quota,
            files,
            log,
            config: Arc::clone(&setup.config),
            grants: Arc::clone(&setup.grants),
            limits: setup.limits,
            deadline: Instant::now() + Duration::from_millis(setup.limits.call_timeout_ms),
            storage: setup.storage.clone().map(BindingStorage::for_instance),
            storage_is_away: false,
            storage_was_written: false,
            embedder: setup.embeddings.clone(),
            metered: Vec::new(),
            reports: 0,
            report_bytes: 0,
            computing: computing.clone(),
        };
        let mut store = GuestStore::new(&sandbox.0.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_max_component_handles(MAX_HANDLES);
        store.set_hostcall_fuel(usize::try_from(setup.limits.transfer_bytes).unwrap_or(usize::MAX));
        // A guest that computes lets others have the thread at every tick but the first. Its budget
        // is looked at then.
        store.epoch_deadline_callback(|_| {
            // Tokio looks at the network before it wakes a task that yields in this way. A yield
            // that wakes itself is run again at once, and requests wait until all guests end.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        });
        store.set_epoch_deadline(1);
        if sandbox.options().meter.is_some() {
            store.set_fuel(PLENTY)?;
        }
        let budget = Duration::from_millis(setup.limits.call_cpu_ms);
        let exports = computing.within(budget, component.instantiate(&mut store)).await??;
        sandbox.counters().made();
        Ok(Self { store, exports, _slot: slot })
    }

    /// Begins to count instructions. Only where the engine counts.
    pub(super) fn refuel(&mut self) -> wasmtime::Result<()> {
        self.store.set_fuel(PLENTY)
    }

    /// Instructions since [`Instance::refuel`].
    pub(super) fn spent(&self) -> u64 {
        self.store.get_fuel().map_or(0, |left| PLENTY.saturating_sub(left))
    }

    /// Gives the next call, which ends at this moment, its full budget.
    pub(super) fn arm(&mut self, deadline: Instant) {
        let state = self.store.data_mut();
        state.deadline = deadline;
        if let Some(storage) = &state.storage {
            storage.begin_call();
        }
        state.computing.begin();
        state.limiter.forget_hit();
        state.metered.clear();
        (state.storage_is_away, state.storage_was_written) = (false, false);
        (state.reports, state.report_bytes) = (0, 0);
        state.outgoing.begin();
        // The present tick may end at once. Most calls are shorter than a whole one, and one that
        // yields may go on on another thread.
        self.store.set_epoch_deadline(2);
    }

    /// Whether it may serve another call: it has not kept more handles than a component needs.
    pub(super) fn is_sound(&mut self) -> bool {
        let state = self.store.data_mut();
        state.files.count();
        state.settle_http();
        let kept = state.table.iter_mut().count();
        if kept > MAX_KEPT_HANDLES {
            tracing::debug!(
                kept,
                most = MAX_KEPT_HANDLES,
                "an instance kept handles after its call and is dropped"
            );
        }
        kept <= MAX_KEPT_HANDLES
    }
}
