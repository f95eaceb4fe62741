//! Every writer passes through here, so that a backup can shut the door for a moment and knows what was written while it
//! was copying.

use std::collections::BTreeSet;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Which tree, and which key in it.
pub(super) type Place = (&'static str, Vec<u8>);

/// The operation log's tree.
pub(super) const OPERATIONS: &str = "operations";
/// The tree of the providers' private storage.
pub(super) const STORAGE: &str = "binding_storage";

/// The door of the store.
#[derive(Default)]
pub(super) struct Gate {
    door: RwLock<()>,
    /// What was written since a backup began; none where none is being made.
    written: Mutex<Option<BTreeSet<Place>>>,
    /// One backup at a time: what was written belongs to one of them.
    turn: Mutex<()>,
}

/// A backup is being made; what is noted for it is forgotten when this is dropped.
pub(super) struct Watching<'a> {
    gate: &'a Gate,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        *self.gate.written.lock() = None;
    }
}

/// Somebody is writing; a backup waits.
pub(super) struct Writing<'a> {
    gate: &'a Gate,
    _door: RwLockReadGuard<'a, ()>,
}

impl Gate {
    /// Before a write; it ends when the answer is dropped.
    pub(super) fn enter(&self) -> Writing<'_> {
        Writing { _door: self.door.read(), gate: self }
    }

    /// From now on it is noted what is written, until the answer is dropped. Waits for another backup to end.
    pub(super) fn watch(&self) -> Watching<'_> {
        let turn = self.turn.lock();
        let _door = self.door.write();
        *self.written.lock() = Some(BTreeSet::new());
        Watching { gate: self, _turn: turn }
    }

    /// Nobody writes while the first half of the answer is held; the second is what was written since [`Gate::watch`].
    pub(super) fn shut(&self) -> (RwLockWriteGuard<'_, ()>, BTreeSet<Place>) {
        let door = self.door.write();
        let written = self.written.lock().take().unwrap_or_default();
        (door, written)
    }
}

impl Writing<'_> {
    /// What is about to be written. While no backup is being made, that is one look.
    pub(super) fn note<I: IntoIterator<Item = Place>>(&self, places: impl FnOnce() -> I) {
        if let Some(written) = &mut *self.gate.written.lock() {
            written.extend(places());
        }
    }
}
