//! The private storage of one binding. Its keys have the binding's own prefix, and its size is
//! counted.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use sled::Batch;

use super::gate::STORAGE;
use super::tree::Tree;
use super::trees::Trees;
use crate::StoreError;
use crate::partitions::{SizeLimit, check_batch, check_key, check_value};
use crate::reserve::Need;
use memhost_executor::off_executor;
use memhost_ports::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
use memhost_types::limits;

/// The size of a partition, shared by all of its handles, so that the limit holds for all of them
/// together.
pub(super) type Used = Arc<Mutex<StorageSize>>;

/// Growth of a partition by one write that is not new data, in bytes.
const SMALL: u64 = 4 << 10;

/// What looking at an entry costs, as bytes: work on so many takes about as long.
const ENTRY_BYTES: usize = 128;

/// The effect of a write on the size of a partition.
struct SizeChange {
    before: StorageSize,
    total: StorageSize,
    /// The written bytes.
    bytes: usize,
}

pub(super) struct Partition {
    trees: Trees,
    prefix: Vec<u8>,
    limit: SizeLimit,
    used: Used,
}

/// The key of a partition's size. The size is written in one batch with the keys that it counts.
pub(super) fn sum_key(partition: &[u8]) -> Vec<u8> {
    [b"\x02".as_slice(), partition].concat()
}

/// The size of a partition. Where none is stored, all of the partition is read.
pub(super) fn measure(tree: &Tree, prefix: &[u8]) -> sled::Result<StorageSize> {
    if let Some(sum) = tree.get(sum_key(prefix))?
        && let Some((bytes, keys)) = sum.split_first_chunk::<8>()
        && let Ok(keys) = keys.try_into()
    {
        return Ok(StorageSize {
            bytes: u64::from_le_bytes(*bytes),
            keys: u64::from_le_bytes(keys),
        });
    }
    let mut size = StorageSize::default();
    for entry in tree.scan_prefix(prefix) {
        let (key, value) = entry?;
        size.bytes += (key.len() - prefix.len() + value.len()) as u64;
        size.keys += 1;
    }
    Ok(size)
}

/// A size in its stored form.
fn sum_value(size: StorageSize) -> [u8; 16] {
    let mut value = [0; 16];
    value[..8].copy_from_slice(&size.bytes.to_le_bytes());
    value[8..].copy_from_slice(&size.keys.to_le_bytes());
    value
}

/// The size of one key; zero where it has no value.
fn size_of(key: &[u8], value: Option<usize>) -> StorageSize {
    value.map_or(StorageSize::default(), |value| StorageSize {
        bytes: (key.len() + value) as u64,
        keys: 1,
    })
}

/// The new total once an entry of size `before` has size `after`.
fn changed(sum: StorageSize, before: StorageSize, after: StorageSize) -> StorageSize {
    let new = |sum: u64, before: u64, after: u64| sum.saturating_add(after).saturating_sub(before);
    StorageSize {
        bytes: new(sum.bytes, before.bytes, after.bytes),
        keys: new(sum.keys, before.keys, after.keys),
    }
}

fn broken(error: &sled::Error) -> StorageError {
    StorageError::Failed(format!("the host's store failed: {error}"))
}

impl Partition {
    /// A batch that writes these keys, in one step with the new sum.
    fn write(
        &self,
        mut batch: Batch,
        keys: Vec<Vec<u8>>,
        change: SizeChange,
    ) -> Result<(), StorageError> {
        let (sum, SizeChange { before, total, bytes }) = (sum_key(&self.prefix), change);
        // On a full disk a binding may still delete, and write down that it did.
        let need = if total.bytes > before.bytes + SMALL { Need::New } else { Need::Present };
        let broken =
            |error: StoreError| StorageError::Failed(format!("the host's store failed: {error}"));
        batch.insert(sum.as_slice(), &sum_value(total));
        let writing = self.trees.enter(need, bytes).map_err(broken)?;
        writing.admit(std::iter::once(self.prefix.as_slice())).map_err(broken)?;
        writing.note(|| keys.into_iter().chain([sum]).map(|key| (STORAGE, key)));
        let done = self.trees.storage.apply_batch(batch);
        self.trees.disk.wrote("writing", done).map_err(broken)
    }

    pub(super) fn new(trees: Trees, prefix: Vec<u8>, limit: StorageSize, used: Used) -> Self {
        Self { trees, prefix, limit: SizeLimit(limit), used }
    }

    fn alive(&self) -> Result<(), StorageError> {
        self.trees.disk.alive().map_err(|error| StorageError::Failed(error.to_string()))
    }

    fn key(&self, key: &[u8]) -> Vec<u8> {
        [self.prefix.as_slice(), key].concat()
    }

    fn size_of(&self, key: &[u8]) -> Result<StorageSize, StorageError> {
        let value = self.trees.storage.get(self.key(key)).map_err(|error| broken(&error))?;
        Ok(size_of(key, value.map(|value| value.len())))
    }
}

/// The key of the host's own record of a partition. No company's id begins with a control
/// character, so this is no key of a partition.
pub(super) fn state_key(partition: &[u8]) -> Vec<u8> {
    [b"\x01".as_slice(), partition].concat()
}

impl Partition {
    /// A migration's writes and the host's own record, all or nothing. The limits of a guest's
    /// batch do not apply; the partition's limit does.
    pub(super) fn apply_with_state(
        &self,
        writes: Vec<StorageWrite>,
        state: &[u8],
    ) -> Result<(), StorageError> {
        let mut used = self.used.lock();
        let (mut total, mut batch, mut keys, mut bytes) =
            (*used, Batch::default(), Vec::new(), state.len());
        for write in writes {
            let (key, value) = match write {
                StorageWrite::Put(StorageEntry { key, value }) => (key, Some(value)),
                StorageWrite::Delete(key) => (key, None),
            };
            check_key(&key)?;
            keys.push(self.key(&key));
            bytes += value.as_ref().map_or(0, Vec::len);
            total =
                changed(total, self.size_of(&key)?, size_of(&key, value.as_ref().map(Vec::len)));
            match value {
                Some(value) => {
                    check_value(&value)?;
                    batch.insert(self.key(&key), value);
                }
                None => batch.remove(self.key(&key)),
            }
        }
        self.limit.check(total, *used)?;
        batch.insert(state_key(&self.prefix), state);
        keys.push(state_key(&self.prefix));
        self.write(batch, keys, SizeChange { before: *used, total, bytes })?;
        *used = total;
        Ok(())
    }
}

impl Partition {
    /// One page of the entries under a prefix.
    fn page(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        count: usize,
    ) -> Result<StoragePage, StorageError> {
        self.alive()?;
        let full_prefix = self.key(prefix);
        // A cursor before the prefix begins at the prefix; one behind it finds nothing.
        let start = cursor.map_or_else(
            || full_prefix.clone(),
            |cursor| self.key(cursor).max(full_prefix.clone()),
        );
        let mut page = StoragePage::default();
        let mut bytes = 0;
        for entry in self.trees.storage.range(start..) {
            let (key, value) = entry.map_err(|error| broken(&error))?;
            if !key.starts_with(&full_prefix) {
                break;
            }
            let key = key[self.prefix.len()..].to_vec();
            bytes += key.len() + value.len();
            let is_full = page.entries.len() == count
                || (bytes > limits::MAX_STORAGE_PAGE_BYTES && !page.entries.is_empty());
            if is_full {
                page.next = Some(key);
                break;
            }
            page.entries.push(StorageEntry { key, value: value.to_vec() });
        }
        Ok(page)
    }

    /// All writes of a guest or none.
    fn write_all(&self, writes: &[StorageWrite]) -> Result<(), StorageError> {
        let mut used = self.used.lock();
        let mut sizes: std::collections::HashMap<&[u8], (StorageSize, StorageSize)> =
            std::collections::HashMap::new();
        let (mut bytes, mut batch) = (0, Batch::default());
        for write in writes {
            let (key, value) = match write {
                StorageWrite::Put(StorageEntry { key, value }) => (key, Some(value)),
                StorageWrite::Delete(key) => (key, None),
            };
            bytes += key.len() + value.map_or(0, Vec::len);
            let before = match sizes.get(key.as_slice()) {
                Some((before, _)) => *before,
                None => self.size_of(key)?,
            };
            sizes.insert(key, (before, size_of(key, value.map(Vec::len))));
            match value {
                Some(value) => batch.insert(self.key(key), value.as_slice()),
                None => batch.remove(self.key(key)),
            }
        }
        let total =
            sizes.values().fold(*used, |sum, (before, after)| changed(sum, *before, *after));
        self.limit.check(total, *used)?;
        let keys = sizes.keys().map(|key| self.key(key)).collect();
        self.write(batch, keys, SizeChange { before: *used, total, bytes })?;
        *used = total;
        Ok(())
    }
}

#[async_trait]
impl BindingStorage for Partition {
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        check_key(key)?;
        self.alive()?;
        let value = self.trees.storage.get(self.key(key)).map_err(|error| broken(&error))?;
        Ok(value.map(|value| value.to_vec()))
    }

    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        count: usize,
    ) -> Result<StoragePage, StorageError> {
        let max = limits::MAX_STORAGE_PAGE;
        let count = if count == 0 { max } else { count.min(max) };
        // How much is there is known only once it is read.
        off_executor(count * ENTRY_BYTES, || self.page(prefix, cursor, count))
    }

    async fn apply(&self, writes: Vec<StorageWrite>) -> Result<(), StorageError> {
        check_batch(&writes)?;
        let bytes = writes.iter().map(|write| match write {
            StorageWrite::Put(entry) => entry.key.len() + entry.value.len(),
            StorageWrite::Delete(key) => key.len(),
        });
        // Small writes cost by their number: each is looked up.
        let bytes = bytes.sum::<usize>() + writes.len() * ENTRY_BYTES;
        off_executor(bytes, || self.write_all(&writes))
    }

    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        check_key(key)?;
        check_value(new.unwrap_or_default())?;
        // Every write of the partition holds this lock, so nothing is written between this read and
        // the write.
        let mut used = self.used.lock();
        let found = self.trees.storage.get(self.key(key)).map_err(|error| broken(&error))?;
        if found.as_deref() != expected {
            return Ok(false);
        }
        let total = changed(
            *used,
            size_of(key, expected.map(<[u8]>::len)),
            size_of(key, new.map(<[u8]>::len)),
        );
        self.limit.check(total, *used)?;
        let mut batch = Batch::default();
        match new {
            Some(value) => batch.insert(self.key(key), value),
            None => batch.remove(self.key(key)),
        }
        let bytes = new.map_or(0, <[u8]>::len);
        self.write(batch, vec![self.key(key)], SizeChange { before: *used, total, bytes })?;
        *used = total;
        Ok(true)
    }

    fn used(&self) -> StorageSize {
        *self.used.lock()
    }

    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage> {
        self
    }
}
