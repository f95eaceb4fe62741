//! The gate that every writer passes, so that a backup or a compaction can stop all writes for a moment and knows which
//! keys were written while it copied.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A tree and a key in it.
pub(super) type Place = (&'static str, Vec<u8>);

/// The operation log's tree.
pub(super) const OPERATIONS: &str = "operations";
/// The tree of the indexes of the log. A backup leaves it out.
pub(super) const INDEX: &str = "operation_index";
/// The tree of the providers' private storage.
pub(super) const STORAGE: &str = "binding_storage";
/// The tree of how many bytes each company has. A backup leaves it out.
pub(super) const HELD: &str = "held";

/// The gate of a store.
#[derive(Default)]
pub(super) struct Gate {
    door: RwLock<()>,
    /// The keys that were written since a backup or a compaction began; none without one.
    written: Mutex<Option<BTreeSet<Place>>>,
    /// One backup or compaction at a time: the written keys belong to it.
    turn: Mutex<()>,
}

/// A backup or a compaction in progress. Its list of written keys ends when this is dropped.
pub(super) struct Watching<'a> {
    gate: &'a Gate,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        *self.gate.written.lock() = None;
    }
}

/// A write in progress; who shuts the gate waits for its end.
pub(super) struct Writing<'a> {
    gate: &'a Gate,
    _door: RwLockReadGuard<'a, ()>,
}

impl Gate {
    /// Begins a write; it ends when the answer is dropped.
    pub(super) fn enter(&self) -> Writing<'_> {
        Writing { _door: self.door.read(), gate: self }
    }

    /// Lists written keys from now on, until the answer is dropped. Waits for another backup or compaction to end.
    pub(super) fn watch(&self) -> Watching<'_> {
        let turn = self.turn.lock();
        let _door = self.door.write();
        *self.written.lock() = Some(BTreeSet::new());
        Watching { gate: self, _turn: turn }
    }

    /// The keys that were written since [`Gate::watch`] or since the last call of this. Their writes have ended.
    pub(super) fn written(&self) -> BTreeSet<Place> {
        let _door = self.door.write();
        self.written.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Stops all writes while the first part of the answer is held. The second part is the keys that were written since
    /// [`Gate::watch`] or [`Gate::written`].
    pub(super) fn shut(&self) -> (RwLockWriteGuard<'_, ()>, BTreeSet<Place>) {
        let door = self.door.write();
        let written = self.written.lock().take().unwrap_or_default();
        (door, written)
    }
}

impl Writing<'_> {
    /// Lists the keys that are about to be written. Where nobody watches, this costs one lock.
    pub(super) fn note<I: IntoIterator<Item = Place>>(&self, places: impl FnOnce() -> I) {
        if let Some(written) = &mut *self.gate.written.lock() {
            written.extend(places());
        }
    }
}
