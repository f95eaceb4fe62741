//! The instances of one binding: permits, the deadline of a call, and what happens to an instance
//! after the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::time::error::Elapsed;
use tokio::time::timeout_at;

use super::answer::Answer;
use super::component::Component;
use super::computing::CpuBudgetSpent;
use super::contract::{Exported, types as wit};
use super::convert;
use super::engine::Sandbox;
use super::error::{CallError, Failure, LimitKind};
use super::imports::GuestStore;
use super::instance::{Instance, InstanceSetup};
use super::log::{MAX_HOST_LINES, host_line};
use super::meter::Metered;
use super::normalize::{Normalize, size_of_records};
use super::pool::IdleQueue;
use memhost_executor::off_executor;
use memhost_types::{CallUsage, LogLine, ProviderError, STORE_UNAVAILABLE};

/// All instances of one binding with one component and one configuration.
pub struct Instances {
    sandbox: Sandbox,
    component: Component,
    setup: InstanceSetup,
    idle: Arc<IdleQueue<Box<Instance>>>,
    permits: Semaphore,
    permits_total: u32,
    waiting: AtomicU32,
    memory_bytes: AtomicU64,
    /// What was left out of answers.
    left_out: Mutex<LeftOut>,
}

/// What the host has left out of a provider's answers because it was wrong: records, or parts of
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How much since the instances were made.
    pub count: u64,
    /// The last of it, as a sentence. Empty: nothing.
    pub last: String,
}

/// No call of these instances runs while this is held, and none begins.
pub struct Drained<'a> {
    instances: &'a Instances,
    _permits: Option<SemaphorePermit<'a>>,
}

impl Drained<'_> {
    /// No call begins here any more. Calls that wait, and later ones, fail with
    /// [`CallError::Retired`].
    pub fn retire(self) {
        self.instances.permits.close();
    }
}

struct Call<'a> {
    instance: Box<Instance>,
    _permit: SemaphorePermit<'a>,
    started: Instant,
    deadline: tokio::time::Instant,
}

/// What a function of the guest comes back with: a trap, or the provider's own answer.
type Called<T> = wasmtime::Result<Result<T, wit::Error>>;

/// Calls a function of a guest with [`Instances::call`]: `call!(self, wire.call_query(&request),
/// check)`.
macro_rules! call {
    ($instances:expr, $wire:ident.$function:ident($($argument:expr),*), $check:expr $(,)?) => {
        $instances.call(
            async |guest: &$wire::Guest, store: &mut $crate::imports::GuestStore| {
                guest.$function(store, $($argument),*).await
            },
            $check,
        )
    };
}
pub(super) use call;

impl Instances {
    /// No instance is made before the first call.
    pub fn new(sandbox: &Sandbox, component: &Component, setup: InstanceSetup) -> Self {
        let idle = Arc::new(IdleQueue::default());
        sandbox.0.pool.register(&idle);
        let description = component.description();
        // One binding never takes more than a quarter of the pool, even where its own limit is
        // higher.
        let share = (sandbox.options().instances / 4).max(1);
        let permits =
            setup.limits.concurrent_calls.min(description.max_concurrency).min(share).max(1);
        Self {
            sandbox: sandbox.clone(),
            component: component.clone(),
            idle,
            permits: Semaphore::new(permits as usize),
            permits_total: permits,
            waiting: AtomicU32::new(0),
            memory_bytes: AtomicU64::new(0),
            left_out: Mutex::default(),
            setup,
        }
    }

    /// The component that serves.
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// The most memory that one instance had after a call, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    /// What the host has left out of answers because it was wrong.
    pub fn left_out(&self) -> LeftOut {
        self.left_out.lock().clone()
    }

    /// Calls that run now.
    pub fn in_flight(&self) -> u32 {
        self.permits_total
            .saturating_sub(u32::try_from(self.permits.available_permits()).unwrap_or(u32::MAX))
    }

    /// Calls that wait for a permit now.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until no call runs: at most as long as a call may take. Calls that wait for a permit
    /// already come first.
    pub async fn drain(&self) -> Drained<'_> {
        // It fails only where they were retired, and only a `Drained` retires: no call runs then
        // either.
        Drained {
            instances: self,
            _permits: self.permits.acquire_many(self.permits_total).await.ok(),
        }
    }

    /// Calls one function of a guest: takes a permit and an instance, arms the deadline, calls,
    /// tells a trap from an answer, checks the answer, and gives the instance back.
    ///
    /// `function` calls the generated function of its interface. `check` turns the answer into the
    /// host's types.
    ///
    /// # Errors
    /// As [`CallError`] says; [`CallError::NoInterface`] where the component does not export the
    /// interface.
    pub(super) async fn call<I: Exported, T: 'static, U>(
        &self,
        function: impl AsyncFnOnce(&I, &mut GuestStore) -> Called<T>,
        check: impl FnOnce(&Normalize, T) -> Result<U, CallError>,
    ) -> Result<Answer<U>, Failure> {
        let mut call = self.begin().await?;
        let Instance { store, exports, .. } = &mut *call.instance;
        let Some(interface) = I::of(exports) else { return Err(self.no_interface(call, I::NAME)) };
        let computing = store.data().computing.clone();
        let budget = Duration::from_millis(self.setup.limits.call_cpu_ms);
        let called =
            timeout_at(call.deadline, computing.within(budget, function(interface, store))).await;
        let called = called.map(|called| called.unwrap_or_else(|spent| Err(spent.into())));
        self.finish(call, called, check)
    }

    async fn begin(&self) -> Result<Call<'_>, Failure> {
        let started = Instant::now();
        let deadline = tokio::time::Instant::from_std(started) + self.timeout();
        let permit = match self.permits.try_acquire() {
            Ok(permit) => permit,
            Err(TryAcquireError::Closed) => {
                return Err(Failure::before(started, CallError::Retired));
            }
            Err(TryAcquireError::NoPermits) => Box::pin(self.wait_for_permit(deadline))
                .await
                .map_err(|error| Failure::before(started, error))?,
        };
        let mut instance = match self.idle.pop() {
            Some(instance) => instance,
            // Boxed: otherwise every call's future has room for this rare path.
            None => Box::pin(self.instantiate(started, deadline)).await?,
        };
        instance.arm(deadline.into_std());
        if self.sandbox.options().meter.is_some() {
            instance
                .refuel()
                .map_err(|error| Failure::before(started, self.classify(&error, None)))?;
        }
        Ok(Call { instance, _permit: permit, started, deadline })
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.setup.limits.call_timeout_ms)
    }

    async fn wait_for_permit(
        &self,
        deadline: tokio::time::Instant,
    ) -> Result<SemaphorePermit<'_>, CallError> {
        struct Waiting<'a>(&'a AtomicU32);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let busy = CallError::Busy { waiting: self.setup.limits.queued_calls };
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.setup.limits.queued_calls {
            return Err(busy);
        }
        match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(CallError::Retired),
            Err(_) => Err(busy),
        }
    }

    async fn instantiate(
        &self,
        started: Instant,
        deadline: tokio::time::Instant,
    ) -> Result<Box<Instance>, Failure> {
        let slot = self.sandbox.0.pool.slot().ok_or_else(|| {
            Failure::before(
                started,
                CallError::NoInstance { slots: self.sandbox.options().instances as usize },
            )
        })?;
        let made = Instance::new(&self.sandbox, &self.component, &self.setup, slot);
        match timeout_at(deadline, made).await {
            Ok(Ok(instance)) => Ok(Box::new(instance)),
            Ok(Err(error)) => Err(Failure::before(started, self.classify(&error, None))),
            Err(_) => Err(Failure::before(started, self.timed_out())),
        }
    }

    /// Gives a sound instance back and drops any other.
    fn finish<T: 'static, U>(
        &self,
        mut call: Call<'_>,
        called: Result<Called<T>, Elapsed>,
        check: impl FnOnce(&Normalize, T) -> Result<U, CallError>,
    ) -> Result<Answer<U>, Failure> {
        let provider_us = micros(call.started);
        let usage = std::mem::take(&mut call.instance.store.data_mut().metered);
        let state = call.instance.store.data();
        let metered = CallUsage { usage, outgoing: state.outgoing.end() };
        // Only then has it surely done nothing, and the same request can be sent again.
        let is_undone = state.storage_is_away
            && !state.storage_was_written
            && state.quota.is_none()
            && metered.outgoing.is_empty();
        let mut log = state.log.take();
        let memory_bytes = state.limiter.memory_bytes();
        self.memory_bytes.fetch_max(memory_bytes, Ordering::Relaxed);
        if let Some(meter) = &self.sandbox.options().meter {
            meter.note(Metered { instructions: call.instance.spent(), memory_bytes, provider_us });
        }
        let full = state.quota.as_ref().and_then(|quota| quota.take_refusal());
        let failed = |error, log, metered| Err(Failure { error, log, provider_us, metered });
        match called {
            Err(_) => failed(self.timed_out(), log, metered),
            Ok(Err(error)) => failed(
                self.classify(&error, call.instance.store.data().limiter.hit()),
                log,
                metered,
            ),
            Ok(Ok(answer)) => {
                if call.instance.is_sound() {
                    self.idle.push(call.instance);
                }
                match answer {
                    Err(error) => {
                        let error = match (convert::error(error), full, is_undone) {
                            (ProviderError::Internal(message), Some(full), _) => {
                                ProviderError::QuotaExceeded(format!("{message} ({full})"))
                            }
                            (ProviderError::Internal(message), None, true) => {
                                let retry_after_ms =
                                    u64::try_from(STORE_UNAVAILABLE.as_millis()).ok();
                                ProviderError::Unavailable { message, retry_after_ms }
                            }
                            (error, ..) => error,
                        };
                        failed(CallError::Provider(error), log, metered)
                    }
                    Ok(answer) => {
                        let bytes = size_of_records(&answer);
                        let checks =
                            Normalize::new(self.component.description().provider_key.clone());
                        let checked = off_executor(bytes, || check(&checks, answer));
                        let left_out = checks.into_left_out();
                        self.note_left_out(&left_out, &mut log);
                        match checked {
                            Ok(value) => Ok(Answer { value, log, provider_us, metered, left_out }),
                            Err(error) => failed(error, log, metered),
                        }
                    }
                }
            }
        }
    }

    /// Counts what was left out of an answer, and names it in the log of the call.
    fn note_left_out(&self, left_out: &[String], log: &mut Vec<LogLine>) {
        let Some(last) = left_out.last() else { return };
        let mut all = self.left_out.lock();
        all.count += left_out.len() as u64;
        all.last.clone_from(last);
        log.extend(left_out.iter().take(MAX_HOST_LINES).map(|text| host_line("warn", text)));
    }

    fn no_interface(&self, call: Call<'_>, name: &'static str) -> Failure {
        let failure = Failure::before(call.started, CallError::NoInterface(name));
        self.idle.push(call.instance);
        failure
    }

    fn timed_out(&self) -> CallError {
        CallError::TimedOut { limit: "callTimeoutMs", ms: self.setup.limits.call_timeout_ms }
    }

    fn classify(&self, error: &wasmtime::Error, hit: Option<LimitKind>) -> CallError {
        let limits = &self.setup.limits;
        if let Some(CallError::BadAnswer(message)) = error.downcast_ref::<CallError>() {
            return CallError::BadAnswer(message.clone());
        }
        if error.downcast_ref::<CpuBudgetSpent>().is_some() {
            return CallError::TimedOut { limit: "callCpuMs", ms: limits.call_cpu_ms };
        }
        let message = format!("{:#}", error.root_cause());
        let exceeded = |kind, name, max| CallError::LimitExceeded { kind, name, max };
        match hit {
            Some(LimitKind::Memory) => {
                exceeded(LimitKind::Memory, "memoryBytes", limits.memory_bytes)
            }
            Some(LimitKind::TableElements) => {
                exceeded(LimitKind::TableElements, "tableElements", limits.table_elements)
            }
            // wasmtime has no type for this one.
            _ if message.contains("fuel allocated for hostcalls") => {
                exceeded(LimitKind::Transfer, "transferBytes", limits.transfer_bytes)
            }
            _ => CallError::Trapped { message: memhost_types::cut_message(message) },
        }
    }
}

impl Failure {
    fn before(started: Instant, error: CallError) -> Self {
        Self { error, log: Vec::new(), provider_us: micros(started), metered: CallUsage::default() }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
