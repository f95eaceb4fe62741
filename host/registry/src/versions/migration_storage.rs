//! A migration's view of a binding's storage. It reads what is stored and its own writes, which are
//! kept in memory until all of them are made in one step.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::Mutex;

use memhost_ports::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
use memhost_types::limits;

/// The most that a migration may write, in bytes: it is held in memory.
const MAX_BYTES: usize = 64 << 20;

#[derive(Default)]
struct Writes {
    /// None: deleted.
    by_key: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
}

impl Writes {
    fn set(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let size = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, Vec::len);
        self.bytes += key.len() + size(&value);
        let length = key.len();
        if let Some(before) = self.by_key.insert(key, value) {
            self.bytes -= length + size(&before);
        }
    }

    fn check_room(&self, bytes: usize) -> Result<(), StorageError> {
        let total = self.bytes + bytes;
        if total > MAX_BYTES {
            let message =
                format!("the migration wrote {total} bytes; at most {MAX_BYTES} are allowed");
            return Err(StorageError::LimitExceeded(message));
        }
        Ok(())
    }
}

/// Storage, and writes that are not made yet.
pub(super) struct MigrationStorage {
    below: Arc<dyn BindingStorage>,
    writes: Mutex<Writes>,
}

impl MigrationStorage {
    pub(super) fn new(below: Arc<dyn BindingStorage>) -> Self {
        Self { below, writes: Mutex::default() }
    }

    /// Everything that was written, each key once.
    pub(super) async fn take_writes(&self) -> Vec<StorageWrite> {
        let writes = std::mem::take(&mut *self.writes.lock().await);
        let write = |(key, value)| match value {
            Some(value) => StorageWrite::Put(StorageEntry { key, value }),
            None => StorageWrite::Delete(key),
        };
        writes.by_key.into_iter().map(write).collect()
    }

    async fn read(&self, writes: &Writes, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        match writes.by_key.get(key) {
            Some(value) => Ok(value.clone()),
            None => self.below.get(key).await,
        }
    }
}

#[async_trait]
impl BindingStorage for MigrationStorage {
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        self.read(&*self.writes.lock().await, key).await
    }

    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError> {
        let max =
            if limit == 0 { limits::MAX_STORAGE_PAGE } else { limit.min(limits::MAX_STORAGE_PAGE) };
        let below = self.below.scan(prefix, cursor, max).await?;
        let writes = self.writes.lock().await;
        let start = cursor.unwrap_or(prefix).max(prefix).to_vec();
        let mut merged: BTreeMap<Vec<u8>, Option<Vec<u8>>> =
            below.entries.into_iter().map(|entry| (entry.key, Some(entry.value))).collect();
        // Writes behind the page below belong to later pages: other stored keys may come before
        // them.
        let end = below.next.as_deref();
        let ours = writes.by_key.range(start..).take_while(|(key, _)| {
            key.starts_with(prefix) && end.is_none_or(|end| key.as_slice() < end)
        });
        merged.extend(ours.map(|(key, value)| (key.clone(), value.clone())));
        let mut page = StoragePage { next: below.next.clone(), ..StoragePage::default() };
        for (key, value) in merged {
            let Some(value) = value else { continue };
            if page.entries.len() == max {
                page.next = Some(key);
                break;
            }
            page.entries.push(StorageEntry { key, value });
        }
        Ok(page)
    }

    async fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError> {
        let mut writes = self.writes.lock().await;
        let size = |write: &StorageWrite| match write {
            StorageWrite::Put(entry) => entry.key.len() + entry.value.len(),
            StorageWrite::Delete(key) => key.len(),
        };
        writes.check_room(batch.iter().map(size).sum())?;
        for write in batch {
            match write {
                StorageWrite::Put(StorageEntry { key, value }) => writes.set(key, Some(value)),
                StorageWrite::Delete(key) => writes.set(key, None),
            }
        }
        Ok(())
    }

    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        let mut writes = self.writes.lock().await;
        if self.read(&writes, key).await?.as_deref() != expected {
            return Ok(false);
        }
        writes.check_room(key.len() + new.map_or(0, <[u8]>::len))?;
        writes.set(key.to_vec(), new.map(<[u8]>::to_vec));
        Ok(true)
    }

    fn used(&self) -> StorageSize {
        self.below.used()
    }

    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memhost_store::{MemoryStore, Partitions};

    fn put(key: &[u8], value: &[u8]) -> StorageWrite {
        StorageWrite::Put(StorageEntry { key: key.to_vec(), value: value.to_vec() })
    }

    #[tokio::test]
    async fn it_reads_its_own_writes_and_changes_nothing_below() {
        let store = MemoryStore::default();
        let below = store
            .binding_storage(b"acme\0x", StorageSize { bytes: 1 << 20, keys: 1_000 })
            .await
            .unwrap();
        below.apply((0..50_u8).map(|n| put(&[b'k', n], &[n])).collect()).await.unwrap();
        let storage = MigrationStorage::new(Arc::clone(&below));
        storage
            .apply(vec![
                put(b"k\x05", b"new"),
                StorageWrite::Delete(b"k\x06".to_vec()),
                put(b"k\xff", b"last"),
            ])
            .await
            .unwrap();
        assert!(storage.compare_and_swap(b"k\x07", Some(&[7]), Some(b"swapped")).await.unwrap());
        assert!(!storage.compare_and_swap(b"k\x05", Some(&[5]), None).await.unwrap());
        for limit in [1, 7, 0] {
            let (mut all, mut cursor) = (Vec::new(), None);
            loop {
                let page = storage.scan(b"k", cursor.as_deref(), limit).await.unwrap();
                all.extend(page.entries);
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            assert_eq!(all.len(), 50, "with pages of {limit}");
            assert!(all.is_sorted_by_key(|entry| entry.key.clone()));
            assert_eq!(all[5].value, b"new");
            assert_eq!(all[49].value, b"last");
        }
        assert_eq!(below.get(b"k\x05").await.unwrap(), Some(vec![5]));
        assert_eq!(storage.take_writes().await.len(), 4);
    }

    async fn migration() -> MigrationStorage {
        let store = MemoryStore::default();
        let size = StorageSize { bytes: 1 << 20, keys: 1_000 };
        let below = store.binding_storage(b"acme\0x", size).await.unwrap();
        below.apply(vec![put(b"a", b"1"), put(b"b", b"2")]).await.unwrap();
        MigrationStorage::new(below)
    }

    #[tokio::test]
    async fn more_than_is_held_in_memory_is_refused_and_the_rest_stays() {
        let storage = migration().await;
        storage.apply(vec![put(b"a", &vec![0; MAX_BYTES - 10])]).await.unwrap();
        let error = storage.apply(vec![put(b"c", &[3; 20])]).await.unwrap_err();
        assert!(matches!(&error, StorageError::LimitExceeded(_)), "{error}");
        assert!(storage.compare_and_swap(b"d", None, Some(&[3; 20])).await.is_err());
        // What is written over counts once.
        storage.apply(vec![put(b"a", b"1")]).await.unwrap();
        storage.apply(vec![put(b"c", &[3; 20])]).await.unwrap();
        assert_eq!(storage.take_writes().await.len(), 2);
    }

    #[tokio::test]
    async fn a_deleted_key_is_gone_for_the_migration_and_can_come_back() {
        let storage = migration().await;
        storage.apply(vec![StorageWrite::Delete(b"a".to_vec())]).await.unwrap();
        assert_eq!(storage.get(b"a").await.unwrap(), None);
        assert!(storage.compare_and_swap(b"a", None, Some(b"new")).await.unwrap());
        assert_eq!(storage.get(b"a").await.unwrap().as_deref(), Some(&b"new"[..]));
        let keys = storage.scan(b"", None, 0).await.unwrap().entries;
        assert_eq!(keys.iter().map(|entry| entry.key.as_slice()).collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(storage.scan(b"b", None, 0).await.unwrap().entries.len(), 1, "only the prefix");
    }

    #[tokio::test]
    async fn a_migration_that_writes_nothing_leaves_nothing_to_write() {
        let storage = migration().await;
        assert_eq!(storage.get(b"b").await.unwrap().as_deref(), Some(&b"2"[..]));
        assert!(!storage.compare_and_swap(b"b", Some(b"other"), None).await.unwrap());
        assert!(storage.take_writes().await.is_empty());
    }
}
