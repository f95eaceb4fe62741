//! A tree of the database, as everything in `sled` uses it: the database behind it is another one
//! after a compaction.

use std::ops::RangeBounds;
use std::sync::Arc;

use parking_lot::RwLock;
use sled::{Batch, IVec, Iter, Result};

/// A key, and its new value. `None` removes it.
pub(super) type KeyChange = (IVec, Option<IVec>);

/// A tree. Its clones are the same tree, also after a compaction.
///
/// A compaction replaces the tree behind it while the gate is shut. Writers are inside of the gate,
/// so none of them writes to the tree before. An iterator that was made before goes on in the tree
/// before, which has the same content.
#[derive(Clone)]
pub(super) struct Tree(Arc<RwLock<sled::Tree>>);

impl From<sled::Tree> for Tree {
    fn from(tree: sled::Tree) -> Self {
        Self(Arc::new(RwLock::new(tree)))
    }
}

impl Tree {
    /// The tree of sled that is behind it now. Keep it for one call, inside of the gate if it is
    /// written to.
    pub(super) fn now(&self) -> sled::Tree {
        self.0.read().clone()
    }

    /// Puts another tree behind it. The caller has shut the gate.
    pub(super) fn replace(&self, tree: sled::Tree) {
        *self.0.write() = tree;
    }

    pub(super) fn get<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<IVec>> {
        self.now().get(key)
    }

    pub(super) fn contains_key<K: AsRef<[u8]>>(&self, key: K) -> Result<bool> {
        self.now().contains_key(key)
    }

    pub(super) fn insert<K: AsRef<[u8]>, V: Into<IVec>>(
        &self,
        key: K,
        value: V,
    ) -> Result<Option<IVec>> {
        self.now().insert(key, value)
    }

    pub(super) fn remove<K: AsRef<[u8]>>(&self, key: K) -> Result<Option<IVec>> {
        self.now().remove(key)
    }

    pub(super) fn apply_batch(&self, batch: Batch) -> Result<()> {
        self.now().apply_batch(batch)
    }

    pub(super) fn range<K: AsRef<[u8]>, R: RangeBounds<K>>(&self, range: R) -> Iter {
        self.now().range(range)
    }

    pub(super) fn scan_prefix<P: AsRef<[u8]>>(&self, prefix: P) -> Iter {
        self.now().scan_prefix(prefix)
    }

    pub(super) fn iter(&self) -> Iter {
        self.now().iter()
    }
}
