//! Memory and tables, summed over everything in a store, with what the host keeps for the guest.
//! wasmtime's own limits are per memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::ResourceLimiter;

use super::error::LimitKind;
use memhost_types::BindingLimits;

/// The memory of one instance: its linear memories, and buffers that the host has because of the
/// guest.
#[derive(Clone)]
pub(super) struct Memory(Arc<AtomicUsize>, usize);

impl Memory {
    fn grow(&self, bytes: usize) -> bool {
        let grown = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
    }

    /// Counts a buffer of the host, until the answer is dropped. `None` if the guest has no room
    /// for it.
    pub(super) fn hold(&self, bytes: usize) -> Option<Held> {
        self.grow(bytes).then(|| Held(Arc::clone(&self.0), bytes))
    }

    /// Counts a buffer of the host that grows, from nothing on.
    pub(super) fn holding(&self) -> Holding {
        Holding { memory: self.clone(), bytes: AtomicUsize::new(0) }
    }
}

/// What header fields take of the host's memory, in bytes, with their places in a map.
pub(super) fn bytes_of_fields(fields: &http::HeaderMap) -> usize {
    fields.iter().map(|(name, value)| bytes_of_field(name.as_str().len(), value.len())).sum()
}

/// The same of one field, by the lengths of its name and its value.
pub(super) fn bytes_of_field(name: usize, value: usize) -> usize {
    const PLACE: usize = 128;
    PLACE.saturating_add(name).saturating_add(value)
}

/// Memory of the host that counts as the guest's.
pub(super) struct Held(Arc<AtomicUsize>, usize);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Memory of the host that counts as the guest's and grows while it is in use.
pub(super) struct Holding {
    memory: Memory,
    bytes: AtomicUsize,
}

impl Holding {
    /// Counts more of it. False: the guest has no room for that, and it is not counted.
    pub(super) fn add(&self, bytes: usize) -> bool {
        let fits = self.memory.grow(bytes);
        if fits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// Counts what one instance has and refuses more than its limits.
pub(super) struct Limiter {
    memory: Memory,
    table_elements: usize,
    table_max: usize,
    hit: Option<LimitKind>,
}

impl Limiter {
    pub(super) fn new(limits: &BindingLimits) -> Self {
        Self {
            memory: Memory(
                Arc::default(),
                usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            ),
            table_elements: 0,
            table_max: usize::try_from(limits.table_elements).unwrap_or(usize::MAX),
            hit: None,
        }
    }

    /// The limit that was refused last, if any: what a crash that follows is most likely about.
    pub(super) fn hit(&self) -> Option<LimitKind> {
        self.hit
    }

    /// What all memories together have, with the host's buffers.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory.0.load(Ordering::Relaxed) as u64
    }

    /// Where buffers of the host are counted.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Something of the host was refused because the guest has no room for it, and the call ends
    /// for that.
    pub(super) fn refuse_memory(&mut self) {
        self.hit = Some(LimitKind::Memory);
    }

    pub(super) fn forget_hit(&mut self) {
        self.hit = None;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let fits = self.memory.grow(desired.saturating_sub(current));
        if !fits {
            self.hit = Some(LimitKind::Memory);
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _max: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let sum = self.table_elements.saturating_add(desired.saturating_sub(current));
        if sum > self.table_max {
            self.hit = Some(LimitKind::TableElements);
            return Ok(false);
        }
        self.table_elements = sum;
        Ok(true)
    }

    fn instances(&self) -> usize {
        32
    }

    fn tables(&self) -> usize {
        32
    }

    fn memories(&self) -> usize {
        8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_summed() {
        let limits = BindingLimits { memory_bytes: 3 << 16, ..BindingLimits::default() };
        let mut limiter = Limiter::new(&limits);
        assert!(limiter.memory_growing(0, 2 << 16, None).unwrap());
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
        assert!(!limiter.memory_growing(1 << 16, 2 << 16, None).unwrap());
        assert_eq!(limiter.hit(), Some(LimitKind::Memory));
    }

    #[test]
    fn buffers_of_the_host_count_until_they_are_dropped() {
        let mut limiter =
            Limiter::new(&BindingLimits { memory_bytes: 2 << 16, ..BindingLimits::default() });
        let held = limiter.memory().hold(1 << 16).unwrap();
        assert_eq!(limiter.memory_bytes(), 1 << 16);
        assert!(limiter.memory().hold((1 << 16) + 1).is_none());
        assert!(!limiter.memory_growing(0, 2 << 16, None).unwrap());
        drop(held);
        assert!(limiter.memory_growing(0, 2 << 16, None).unwrap());
    }

    #[test]
    fn tables_are_summed() {
        let limits = BindingLimits { table_elements: 10, ..BindingLimits::default() };
        let mut limiter = Limiter::new(&limits);
        assert!(limiter.table_growing(0, 6, None).unwrap());
        assert!(!limiter.table_growing(0, 6, None).unwrap());
        assert_eq!(limiter.hit(), Some(LimitKind::TableElements));
    }
}
