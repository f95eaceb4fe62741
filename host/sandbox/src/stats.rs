//! Counters of the sandbox since the host started.

use std::time::Duration;

use parking_lot::Mutex;

/// Counts since the host started, and the instances that exist now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxStats {
    /// Instances that may exist at once.
    pub slots: u64,
    /// Instances that exist, with the idle ones.
    pub instances: u64,
    /// Instances that are idle.
    pub idle: u64,
    /// Instances made since the start.
    pub made: u64,
    /// Components compiled since the start.
    pub compiled: u64,
    /// Microseconds that compiling took.
    pub compile_us: u64,
    /// Components loaded in their compiled form since the start.
    pub loaded: u64,
    /// Outgoing requests that were answered.
    pub requests: u64,
    /// Outgoing requests that were refused or failed.
    pub requests_refused: u64,
    /// Bytes of request bodies.
    pub bytes_sent: u64,
    /// Bytes of response bodies.
    pub bytes_received: u64,
}

/// The counters of a sandbox. `slots`, `instances` and `idle` are those of the pool and stay 0
/// here.
#[derive(Default)]
pub(super) struct Counters(Mutex<SandboxStats>);

impl Counters {
    pub(super) fn made(&self) {
        self.0.lock().made += 1;
    }

    pub(super) fn compiled(&self, took: Duration) {
        let mut stats = self.0.lock();
        stats.compiled += 1;
        stats.compile_us += u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    }

    pub(super) fn loaded(&self) {
        self.0.lock().loaded += 1;
    }

    pub(super) fn request(&self, sent: u64, received: u64) {
        let mut stats = self.0.lock();
        stats.requests += 1;
        stats.bytes_sent += sent;
        stats.bytes_received += received;
    }

    pub(super) fn request_refused(&self) {
        self.0.lock().requests_refused += 1;
    }

    pub(super) fn read(&self) -> SandboxStats {
        *self.0.lock()
    }
}
