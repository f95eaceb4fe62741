//! The cost of calls, for authors. Counting slows a guest down, so it is off unless a meter is
//! given.

use std::sync::Arc;

use parking_lot::Mutex;

/// What one call of a provider took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metered {
    /// WebAssembly instructions, about: wasmtime's fuel. The same call on the same state takes the
    /// same number on every machine, instantiation left out.
    pub instructions: u64,
    /// The most linear memory that the instance had until the end of the call, in bytes.
    pub memory_bytes: u64,
    /// Microseconds in the provider, instantiation included.
    pub provider_us: u64,
}

/// Where a sandbox notes what each call took, in their order.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Vec<Metered>>>);

impl Meter {
    /// The calls since the last time.
    pub fn take(&self) -> Vec<Metered> {
        std::mem::take(&mut *self.0.lock())
    }

    pub(super) fn note(&self, metered: Metered) {
        self.0.lock().push(metered);
    }
}
