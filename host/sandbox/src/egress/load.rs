//! What a request takes of its call beside what the guest does itself: computing on other threads,
//! and bodies on their way in the host's memory. Both count as the guest's.

use std::sync::Arc;
use std::time::Duration;

use super::{EgressError, Tally};
use crate::computing::{Computing, time_of_thread};
use crate::limiter::{Holding, Memory};
use memhost_types::BindingLimits;

/// The call that a request belongs to. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Load {
    computing: Computing,
    memory: Memory,
    tally: Arc<Tally>,
    cpu_ms: u64,
    memory_bytes: u64,
}

impl Load {
    pub(super) fn new(
        computing: Computing,
        memory: Memory,
        tally: Arc<Tally>,
        limits: &BindingLimits,
    ) -> Self {
        Self {
            computing,
            memory,
            tally,
            cpu_ms: limits.call_cpu_ms,
            memory_bytes: limits.memory_bytes,
        }
    }

    /// The transfer of the call.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Nothing yet of the host's memory. What is added to it counts until it is dropped.
    pub(super) fn holding(&self) -> Holding {
        self.memory.holding()
    }

    /// Counts more of the host's memory.
    pub(super) fn hold(&self, holding: &Holding, bytes: u64) -> Result<(), EgressError> {
        match holding.add(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            true => Ok(()),
            false => Err(EgressError::limit("memoryBytes", self.memory_bytes)),
        }
    }

    /// Whether the call may compute any more: long work is not begun for one that will be ended.
    pub(super) fn check(&self) -> Result<(), EgressError> {
        match self.computing.has_spent(Duration::from_millis(self.cpu_ms)) {
            true => Err(EgressError::limit("callCpuMs", self.cpu_ms)),
            false => Ok(()),
        }
    }

    /// Does work on a thread of its own, whose time counts.
    pub(super) fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = time_of_thread();
        let done = work();
        // The next call of the instance does not pay for one that is over.
        if !self.tally.has_ended() {
            self.computing.add(time_of_thread().saturating_sub(before));
        }
        done
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::limiter::Limiter;
    use crate::ticker::Ticker;

    /// A call with these limits.
    pub(in crate::egress) fn load(limits: BindingLimits) -> Load {
        let computing = Computing::new(&Arc::new(Ticker::start(|| true).unwrap()));
        Load::new(computing, Limiter::new(&limits).memory().clone(), Arc::default(), &limits)
    }

    fn compute(ms: u64) {
        let until = time_of_thread() + Duration::from_millis(ms);
        while time_of_thread() < until {}
    }

    #[test]
    fn work_counts_until_its_call_is_over() {
        let load = load(BindingLimits { call_cpu_ms: 20, ..BindingLimits::default() });
        load.timed(|| compute(5));
        assert!(load.check().is_ok());
        load.timed(|| compute(20));
        assert!(load.check().unwrap_err().to_string().contains("callCpuMs"));
        load.computing.begin();
        load.tally.end();
        load.timed(|| compute(25));
        assert!(load.check().is_ok());
    }

    #[test]
    fn bodies_on_their_way_count_until_they_are_dropped() {
        let load = load(BindingLimits { memory_bytes: 1_000, ..BindingLimits::default() });
        let (one, other) = (load.holding(), load.holding());
        load.hold(&one, 600).unwrap();
        load.hold(&one, 300).unwrap();
        assert!(load.hold(&other, 101).unwrap_err().to_string().contains("memoryBytes"));
        drop(one);
        load.hold(&other, 1_000).unwrap();
    }
}
