//! Memory and tables, summed over everything in a store. wasmtime's own limits are per memory.

use wasmtime::ResourceLimiter;

use super::error::LimitKind;
use memhost_types::BindingLimits;

/// Counts what one instance has and refuses more than its limits.
pub(super) struct Limiter {
    memory_bytes: usize,
    memory_max: usize,
    table_elements: usize,
    table_max: usize,
    hit: Option<LimitKind>,
}

impl Limiter {
    pub(super) fn new(limits: &BindingLimits) -> Self {
        Self {
            memory_bytes: 0,
            memory_max: usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX),
            table_elements: 0,
            table_max: usize::try_from(limits.table_elements).unwrap_or(usize::MAX),
            hit: None,
        }
    }

    /// The limit that was refused last, if any: what a crash that follows is most likely about.
    pub(super) fn hit(&self) -> Option<LimitKind> {
        self.hit
    }

    /// What all memories together have.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes as u64
    }

    pub(super) fn forget_hit(&mut self) {
        self.hit = None;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
        let sum = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if sum > self.memory_max {
            self.hit = Some(LimitKind::Memory);
            return Ok(false);
        }
        self.memory_bytes = sum;
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _max: Option<usize>) -> wasmtime::Result<bool> {
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
    fn tables_are_summed() {
        let limits = BindingLimits { table_elements: 10, ..BindingLimits::default() };
        let mut limiter = Limiter::new(&limits);
        assert!(limiter.table_growing(0, 6, None).unwrap());
        assert!(!limiter.table_growing(0, 6, None).unwrap());
        assert_eq!(limiter.hit(), Some(LimitKind::TableElements));
    }
}
