//! The private storage of one binding in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::partitions::{SizeLimit, check_batch, check_key, check_value};
use memhost_ports::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
use memhost_types::limits::{MAX_STORAGE_PAGE, MAX_STORAGE_PAGE_BYTES};

/// Keys and values in the order of the keys.
pub(super) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// The private storage of one binding, with its size.
#[derive(Default)]
pub(super) struct Entries {
    pub(super) rows: Rows,
    used: StorageSize,
    /// Whether its company was closed.
    pub(super) is_closed: bool,
}

/// The storage as the binding sees it.
pub(super) struct Partition {
    pub(super) entries: Arc<Mutex<Entries>>,
    pub(super) limit: SizeLimit,
}

impl Partition {
    /// All writes or none.
    pub(super) fn write(&self, writes: Vec<StorageWrite>) -> Result<(), StorageError> {
        let mut entries = self.entries.lock();
        let mut rows = entries.rows.clone();
        for write in writes {
            match write {
                StorageWrite::Put(StorageEntry { key, value }) => {
                    check_key(&key)?;
                    check_value(&value)?;
                    rows.insert(key, value);
                }
                StorageWrite::Delete(key) => {
                    check_key(&key)?;
                    rows.remove(&key);
                }
            }
        }
        self.replace(&mut entries, rows)
    }

    fn replace(&self, entries: &mut Entries, rows: Rows) -> Result<(), StorageError> {
        if entries.is_closed {
            return Err(StorageError::Failed("the company was erased meanwhile".to_owned()));
        }
        let bytes = rows.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        let used = StorageSize { bytes, keys: rows.len() as u64 };
        self.limit.check(used, entries.used)?;
        *entries = Entries { rows, used, is_closed: false };
        Ok(())
    }
}

#[async_trait]
impl BindingStorage for Partition {
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        check_key(key)?;
        Ok(self.entries.lock().rows.get(key).cloned())
    }

    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError> {
        let limit = if limit == 0 { MAX_STORAGE_PAGE } else { limit.min(MAX_STORAGE_PAGE) };
        let (mut page, mut bytes) = (StoragePage::default(), 0);
        let entries = self.entries.lock();
        let rows = entries.rows.range(cursor.unwrap_or(prefix).max(prefix).to_vec()..);
        for (key, value) in rows.take_while(|(key, _)| key.starts_with(prefix)) {
            bytes += key.len() + value.len();
            let is_full = page.entries.len() == limit
                || (bytes > MAX_STORAGE_PAGE_BYTES && !page.entries.is_empty());
            if is_full {
                page.next = Some(key.clone());
                break;
            }
            page.entries.push(StorageEntry { key: key.clone(), value: value.clone() });
        }
        Ok(page)
    }

    async fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError> {
        check_batch(&batch)?;
        self.write(batch)
    }

    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        check_key(key)?;
        check_value(new.unwrap_or_default())?;
        let mut entries = self.entries.lock();
        if entries.rows.get(key).map(Vec::as_slice) != expected {
            return Ok(false);
        }
        let mut rows = entries.rows.clone();
        match new {
            Some(new) => drop(rows.insert(key.to_vec(), new.to_vec())),
            None => drop(rows.remove(key)),
        }
        self.replace(&mut entries, rows).map(|()| true)
    }

    fn used(&self) -> StorageSize {
        self.entries.lock().used
    }

    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage> {
        self
    }
}
