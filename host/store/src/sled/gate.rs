//! The gate that every writer passes, so that a backup or a compaction can stop all writes for a
//! moment and knows which keys were written while it copied, and so that nothing is written of a
//! company any more that is being erased.

use std::collections::{BTreeSet, HashMap};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{StoreError, company_of};
use memhost_types::CompanyId;

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
    /// The keys that were written since a backup or a compaction began. `None` without one.
    written: Mutex<Option<BTreeSet<Place>>>,
    /// One backup or compaction at a time: the written keys belong to it.
    turn: Mutex<()>,
    /// Companies of which no row is written any more, each with the last number that its operations
    /// had by then.
    closed: RwLock<HashMap<CompanyId, u64>>,
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

    /// Lets no row of a company in any more, and no operation up to this number. The writes in
    /// progress have ended when this returns.
    pub(super) fn close(&self, company: &CompanyId, last: u64) {
        self.closed.write().insert(company.clone(), last);
        drop(self.door.write());
    }

    /// Whether an operation was in progress when its company was closed.
    pub(super) fn is_late(&self, company: &CompanyId, number: u64) -> bool {
        self.closed.read().get(company).is_some_and(|last| number <= *last)
    }

    /// Lists written keys from now on, until the answer is dropped. Waits for another backup or
    /// compaction to end.
    pub(super) fn watch(&self) -> Watching<'_> {
        let turn = self.turn.lock();
        let _door = self.door.write();
        *self.written.lock() = Some(BTreeSet::new());
        Watching { gate: self, _turn: turn }
    }

    /// The keys that were written since [`Gate::watch`] or since the last call of this. Their
    /// writes have ended.
    pub(super) fn written(&self) -> BTreeSet<Place> {
        let _door = self.door.write();
        self.written.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Stops all writes while the first part of the answer is held. The second part is the keys
    /// that were written since [`Gate::watch`] or [`Gate::written`].
    pub(super) fn shut(&self) -> (RwLockWriteGuard<'_, ()>, BTreeSet<Place>) {
        let door = self.door.write();
        let written = self.written.lock().take().unwrap_or_default();
        (door, written)
    }
}

impl Writing<'_> {
    /// Refuses rows of closed companies. `keys` begin with their companies.
    ///
    /// # Errors
    /// Where one of the companies is closed. Who closes it waits for this write, so none comes
    /// later.
    pub(super) fn admit<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<(), StoreError> {
        let closed = self.gate.closed.read();
        if closed.is_empty() {
            return Ok(());
        }
        match keys.filter_map(company_of).find(|company| closed.contains_key(company)) {
            Some(company) => Err(StoreError::Erased { company }),
            None => Ok(()),
        }
    }

    /// Lists the keys that are about to be written. Where nobody watches, this costs one lock.
    pub(super) fn note<I: IntoIterator<Item = Place>>(&self, places: impl FnOnce() -> I) {
        if let Some(written) = &mut *self.gate.written.lock() {
            written.extend(places());
        }
    }
}
