//! The instances of one binding: who may call when, what a call may take, and what becomes of an instance after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, TryAcquireError};
use tokio::time::error::Elapsed;
use tokio::time::timeout_at;

use super::answer::Answer;
use super::bindings::provider::paperclip::memory::types as wit;
use super::component::Component;
use super::convert;
use super::engine::Sandbox;
use super::error::{CallError, Failure, LimitKind};
pub use super::instance::InstanceSetup;
use super::instance::{CpuBudgetSpent, Instance};
use super::meter::Metered;
use super::normalize::Normalize;
use memhost_types::ProviderError;

mod calls;
mod optional;

/// Instances that wait for the next call. An instance is in here or with one call, never elsewhere.
#[derive(Default)]
pub(super) struct IdleInstances(Mutex<Vec<(Instant, Box<Instance>)>>);

impl IdleInstances {
    /// Since when the oldest one waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.0.lock().first().map(|(since, _)| *since)
    }

    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn give_up_oldest(&self) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            let oldest = all.remove(0);
            drop(all);
            drop(oldest);
        }
    }
}

/// All instances of one binding with one component and one configuration.
pub struct Instances {
    sandbox: Sandbox,
    component: Component,
    setup: InstanceSetup,
    idle: Arc<IdleInstances>,
    permits: Semaphore,
    permits_total: u32,
    waiting: AtomicU32,
    memory_bytes: AtomicU64,
    normalize: Normalize,
}

/// No call of these instances is at work while this is held.
pub struct Drained<'a> {
    _turns: Option<SemaphorePermit<'a>>,
}

struct Call<'a> {
    instance: Box<Instance>,
    _turn: SemaphorePermit<'a>,
    started: Instant,
    deadline: tokio::time::Instant,
}

type Called<T> = Result<wasmtime::Result<Result<T, wit::Error>>, Elapsed>;

impl Instances {
    /// No instance is made before the first call.
    pub fn new(sandbox: &Sandbox, component: &Component, setup: InstanceSetup) -> Self {
        let idle = Arc::new(IdleInstances::default());
        sandbox.register(&idle);
        let description = component.description();
        // However much one binding may do at once, most of the pool is left to the others.
        let share = (sandbox.options().instances / 4).max(1);
        let permits = setup.limits.concurrent_calls.min(description.max_concurrency).min(share).max(1);
        Self {
            sandbox: sandbox.clone(),
            component: component.clone(),
            idle,
            permits: Semaphore::new(permits as usize),
            permits_total: permits,
            waiting: AtomicU32::new(0),
            memory_bytes: AtomicU64::new(0),
            normalize: Normalize::new(description.provider_key.clone()),
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

    /// Calls that are at work now.
    pub fn in_flight(&self) -> u32 {
        self.permits_total.saturating_sub(u32::try_from(self.permits.available_permits()).unwrap_or(u32::MAX))
    }

    /// Calls that wait for their turn now.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waits until no call is at work. While the answer is held none begins; calls that wait are told to go to the
    /// successor once [`Instances::retire`] was called.
    pub async fn drain(&self) -> Drained<'_> {
        // It is only closed by `retire`, and then nothing is at work that was not before.
        Drained { _turns: self.permits.acquire_many(self.permits_total).await.ok() }
    }

    /// No call begins here any more; those that wait for a turn fail with [`CallError::Retired`].
    pub fn retire(&self) {
        self.permits.close();
    }

    async fn begin(&self) -> Result<Call<'_>, Failure> {
        let started = Instant::now();
        let deadline = tokio::time::Instant::from_std(started) + self.timeout();
        let turn = match self.permits.try_acquire() {
            Ok(turn) => turn,
            Err(TryAcquireError::Closed) => return Err(Failure::before(started, CallError::Retired)),
            Err(TryAcquireError::NoPermits) => {
                self.wait_for_turn(deadline).await.map_err(|error| Failure::before(started, error))?
            }
        };
        let idle = self.idle.0.lock().pop();
        let mut instance = match idle {
            Some((_, instance)) => instance,
            None => self.instantiate(started, deadline).await?,
        };
        instance.arm(&self.setup.limits);
        if self.sandbox.options().meter.is_some() {
            instance.refuel().map_err(|error| Failure::before(started, self.classify(&error, None)))?;
        }
        Ok(Call { instance, _turn: turn, started, deadline })
    }

    fn timeout(&self) -> Duration {
        Duration::from_millis(self.setup.limits.call_timeout_ms)
    }

    async fn wait_for_turn(&self, deadline: tokio::time::Instant) -> Result<SemaphorePermit<'_>, CallError> {
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
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) => Err(CallError::Retired),
            Err(_) => Err(busy),
        }
    }

    async fn instantiate(&self, started: Instant, deadline: tokio::time::Instant) -> Result<Box<Instance>, Failure> {
        let slot = self.sandbox.slot().ok_or_else(|| {
            Failure::before(started, CallError::NoInstance { slots: self.sandbox.options().instances as usize })
        })?;
        let made = Instance::new(&self.sandbox, &self.component, &self.setup, slot);
        match timeout_at(deadline, made).await {
            Ok(Ok(instance)) => Ok(Box::new(instance)),
            Ok(Err(error)) => Err(Failure::before(started, self.classify(&error, None))),
            Err(_) => Err(Failure::before(started, self.timed_out())),
        }
    }

    /// Puts a sound instance back and throws any other away.
    fn finish<T, U>(
        &self,
        mut call: Call<'_>,
        called: Called<T>,
        normalize: impl FnOnce(T) -> Result<U, CallError>,
    ) -> Result<Answer<U>, Failure> {
        let provider_us = micros(call.started);
        let embedded = std::mem::take(&mut call.instance.store.data_mut().embedded);
        let state = call.instance.store.data();
        state.outgoing.end();
        let log = state.log.take();
        let memory_bytes = state.limiter.memory_bytes();
        self.memory_bytes.fetch_max(memory_bytes, Ordering::Relaxed);
        if let Some(meter) = &self.sandbox.options().meter {
            meter.note(Metered { instructions: call.instance.spent(), memory_bytes, provider_us });
        }
        let full = state.quota.as_ref().and_then(|quota| quota.take_refusal());
        let failed = |error, log, embedded| Err(Failure { error, log, provider_us, embedded });
        match called {
            Err(_) => failed(self.timed_out(), log, embedded),
            Ok(Err(error)) => failed(self.classify(&error, call.instance.store.data().limiter.hit()), log, embedded),
            Ok(Ok(answer)) => {
                self.idle.0.lock().push((Instant::now(), call.instance));
                match answer {
                    Err(error) => {
                        let error = match (convert::error(error), full) {
                            (ProviderError::Internal(message), Some(full)) => {
                                ProviderError::QuotaExceeded(format!("{message} ({full})"))
                            }
                            (error, _) => error,
                        };
                        failed(CallError::Provider(error), log, embedded)
                    }
                    Ok(answer) => match normalize(answer) {
                        Ok(value) => Ok(Answer { value, log, provider_us, embedded }),
                        Err(error) => failed(error, log, embedded),
                    },
                }
            }
        }
    }

    fn no_interface(&self, call: Call<'_>, name: &'static str) -> Failure {
        let failure = Failure::before(call.started, CallError::NoInterface(name));
        self.idle.0.lock().push((Instant::now(), call.instance));
        failure
    }

    fn timed_out(&self) -> CallError {
        CallError::TimedOut { limit: "callTimeoutMs", ms: self.setup.limits.call_timeout_ms }
    }

    fn classify(&self, error: &wasmtime::Error, hit: Option<LimitKind>) -> CallError {
        let limits = &self.setup.limits;
        if error.downcast_ref::<CpuBudgetSpent>().is_some() {
            return CallError::TimedOut { limit: "callCpuMs", ms: limits.call_cpu_ms };
        }
        let message = format!("{:#}", error.root_cause());
        let exceeded = |kind, name, max| CallError::LimitExceeded { kind, name, max };
        match hit {
            Some(LimitKind::Memory) => exceeded(LimitKind::Memory, "memoryBytes", limits.memory_bytes),
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
        Self { error, log: Vec::new(), provider_us: micros(started), embedded: Vec::new() }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
