//! The host's instance slots, and the idle instances that give theirs up when all are taken.

use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Idle instances of one binding, the oldest first. An instance is in here or serves one call,
/// never both.
pub(super) struct IdleQueue<T>(Mutex<Vec<(Instant, T)>>);

impl<T> Default for IdleQueue<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> IdleQueue<T> {
    pub(super) fn push(&self, instance: T) {
        self.0.lock().push((Instant::now(), instance));
    }

    /// The youngest: its memory is most likely still cached.
    pub(super) fn pop(&self) -> Option<T> {
        self.0.lock().pop().map(|(_, instance)| instance)
    }
}

/// What the pool needs of an [`IdleQueue`]. It does not need the type of an instance.
trait Idle: Send + Sync {
    /// Since when the oldest one is idle.
    fn oldest(&self) -> Option<Instant>;
    fn len(&self) -> usize;
    fn drop_oldest(&self);
}

impl<T: Send> Idle for IdleQueue<T> {
    fn oldest(&self) -> Option<Instant> {
        self.0.lock().first().map(|(since, _)| *since)
    }

    fn len(&self) -> usize {
        self.0.lock().len()
    }

    fn drop_oldest(&self) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            let oldest = all.remove(0);
            // Freeing an instance takes time, and other calls need the lock.
            drop(all);
            drop(oldest);
        }
    }
}

/// All slots of a host.
pub(super) struct Pool {
    total: u32,
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Weak<dyn Idle>>>,
}

impl Pool {
    pub(super) fn new(slots: u32) -> Self {
        Self {
            total: slots,
            slots: Arc::new(Semaphore::new(slots as usize)),
            idle: Mutex::default(),
        }
    }

    /// Makes the instances of a queue give up their slots when another binding needs one.
    pub(super) fn register<T: Send + 'static>(&self, queue: &Arc<IdleQueue<T>>) {
        let weak: Weak<IdleQueue<T>> = Arc::downgrade(queue);
        let mut all = self.idle.lock();
        all.retain(|idle| idle.strong_count() > 0);
        all.push(weak);
    }

    /// A slot. Where none is free, the instance that is idle for the longest time is dropped. None
    /// where none is idle.
    pub(super) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return Some(slot);
            }
            let queues: Vec<_> = self.idle.lock().iter().filter_map(Weak::upgrade).collect();
            let oldest = queues
                .iter()
                .filter_map(|queue| Some((queue.oldest()?, queue)))
                .min_by_key(|(since, _)| *since)?;
            // Another task may have taken it meanwhile; then the next round finds another one.
            oldest.1.drop_oldest();
        }
    }

    /// Instances that exist, with the idle ones.
    pub(super) fn instances(&self) -> u64 {
        u64::from(self.total).saturating_sub(self.slots.available_permits() as u64)
    }

    /// Instances that are idle.
    pub(super) fn idle(&self) -> u64 {
        let queues: Vec<_> = self.idle.lock().iter().filter_map(Weak::upgrade).collect();
        queues.iter().map(|queue| queue.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instance_that_is_idle_for_the_longest_time_gives_up_its_slot() {
        let pool = Pool::new(2);
        let (one, other) = (Arc::new(IdleQueue::default()), Arc::new(IdleQueue::default()));
        pool.register(&one);
        pool.register(&other);
        one.push(pool.slot().unwrap());
        other.push(pool.slot().unwrap());
        assert_eq!((pool.instances(), pool.idle()), (2, 2));
        let _taken = pool.slot().unwrap();
        assert!(one.pop().is_none() && other.0.lock().len() == 1);
        let _taken = pool.slot().unwrap();
        assert!(pool.slot().is_none(), "none is idle any more");
    }
}
