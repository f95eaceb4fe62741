//! Counters of the sandbox since the host started.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// Components loaded from the compiled cache since the start.
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

#[derive(Default)]
pub(super) struct Counters {
    made: AtomicU64,
    compiled: AtomicU64,
    compile_us: AtomicU64,
    loaded: AtomicU64,
    requests: AtomicU64,
    requests_refused: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn made(&self) {
        add(&self.made, 1);
    }

    pub(super) fn compiled(&self, took: Duration) {
        add(&self.compiled, 1);
        add(&self.compile_us, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn loaded(&self) {
        add(&self.loaded, 1);
    }

    pub(super) fn request(&self, sent: u64, received: u64) {
        add(&self.requests, 1);
        add(&self.bytes_sent, sent);
        add(&self.bytes_received, received);
    }

    pub(super) fn request_refused(&self) {
        add(&self.requests_refused, 1);
    }

    pub(super) fn read(&self) -> SandboxStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SandboxStats {
            made: read(&self.made),
            compiled: read(&self.compiled),
            compile_us: read(&self.compile_us),
            loaded: read(&self.loaded),
            requests: read(&self.requests),
            requests_refused: read(&self.requests_refused),
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
            ..SandboxStats::default()
        }
    }
}
