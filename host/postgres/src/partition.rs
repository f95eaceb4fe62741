//! The private storage of bindings. A write is seen by every later call of the binding at once, and
//! is committed in the order of the company's other writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::company::{Company, RowKey};
use crate::item::{self, Item};
use crate::page::Range;
use crate::place::{SIZE, STATE, STORAGE, split_company};
use crate::store::{Inner, PostgresStore};
use memhost_ports::{
    BindingStorage, StorageEntry, StorageError, StoragePage, StorageSize, StorageWrite,
};
use memhost_store::{
    Commit, Partitions, SizeLimit, StoreError, check_batch, check_key, check_value,
};
use memhost_types::CompanyId;
use memhost_types::limits::{MAX_STORAGE_PAGE, MAX_STORAGE_PAGE_BYTES};

struct Partition {
    store: Arc<Inner>,
    company: CompanyId,
    /// Its name without the company.
    name: Vec<u8>,
    limit: SizeLimit,
    /// The token under which this host served the company at the first use in this call; 0: it was
    /// not used yet.
    token: AtomicI64,
}

#[allow(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
fn broken(error: StoreError) -> StorageError {
    let message = format!("the host's store failed: {error}");
    match error {
        StoreError::Unavailable { .. } | StoreError::NotHome { .. } => {
            StorageError::Unavailable(message)
        }
        _ => StorageError::Failed(message),
    }
}

/// Why a write was not made.
enum Refused {
    Storage(StorageError),
    Store(StoreError),
}

impl From<StorageError> for Refused {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Refused> for StorageError {
    fn from(error: Refused) -> Self {
        match error {
            Refused::Storage(error) => error,
            Refused::Store(error) => broken(error),
        }
    }
}

/// A condition on the present value of a key.
struct Swap<'a> {
    key: &'a [u8],
    expected: Option<&'a [u8]>,
}

fn size_value(size: StorageSize) -> Arc<[u8]> {
    [size.bytes.to_be_bytes(), size.keys.to_be_bytes()].concat().into()
}

fn size_in(value: &[u8]) -> Option<StorageSize> {
    let (bytes, keys) = value.split_first_chunk::<8>()?;
    let keys = u64::from_be_bytes(keys.try_into().ok()?);
    Some(StorageSize { bytes: u64::from_be_bytes(*bytes), keys })
}

impl Partition {
    fn open(store: &Arc<Inner>, partition: &[u8], limit: StorageSize) -> Result<Self, StoreError> {
        let (company, name) = split_company(partition);
        let company = company.ok_or_else(|| StoreError::Corrupt {
            what: "partition".to_owned(),
            message: "its key does not begin with a company".to_owned(),
        })?;
        let limit = SizeLimit(limit);
        let (store, name) = (Arc::clone(store), name.to_vec());
        Ok(Self { store, company, name, limit, token: AtomicI64::new(0) })
    }

    fn key(&self, key: &[u8]) -> RowKey {
        (STORAGE, [&self.name[..], key].concat())
    }

    /// Its company, with the partition's size.
    async fn home(&self) -> Result<Arc<Company>, StoreError> {
        let home = self.store.home(&self.company).await?;
        let before = self.token.compare_exchange(0, home.token, Ordering::SeqCst, Ordering::SeqCst);
        if before.is_err_and(|before| before != home.token) {
            // What was written in this call before may be lost.
            return Err(StoreError::NotHome { company: self.company.clone() });
        }
        if home.state.lock().sizes.contains_key(&self.name) {
            return Ok(home);
        }
        let stored = self.store.value(&home, (SIZE, self.name.clone())).await?;
        let size = stored.and_then(|value| size_in(&value)).unwrap_or_default();
        home.state.lock().sizes.entry(self.name.clone()).or_insert(size);
        Ok(home)
    }

    /// Makes all writes or none; answers whether the condition held. With a `state`, that is the
    /// host's own record, written with them.
    async fn write(
        &self,
        writes: Vec<StorageWrite>,
        swap: Option<Swap<'_>>,
        state: Option<&[u8]>,
    ) -> Result<Option<Commit>, Refused> {
        let mut changes: BTreeMap<Vec<u8>, Option<Arc<[u8]>>> = BTreeMap::new();
        for write in writes {
            match write {
                StorageWrite::Put(StorageEntry { key, value }) => {
                    check_key(&key)?;
                    check_value(&value)?;
                    changes.insert(key, Some(value.into()));
                }
                StorageWrite::Delete(key) => {
                    check_key(&key)?;
                    changes.insert(key, None);
                }
            }
        }
        let home = self.home().await?;
        self.store.admit(&home).await;
        let _reading = home.read();
        let places: Vec<(i64, RowKey)> =
            changes.keys().map(|key| (home.id, self.key(key))).collect();
        let wanted: Vec<usize> = {
            let state = home.state.lock();
            (0..places.len()).filter(|at| !state.waits(&places[*at].1)).collect()
        };
        // The value is compared for a condition. For the others their lengths will do.
        let mut stored = None;
        let lengths: HashMap<usize, usize> = if swap.is_some() {
            stored = self.store.values(&places, &wanted).await?.remove(&0);
            stored.iter().map(|value| (0, value.len())).collect()
        } else {
            let rows = self.store.of_rows("octet_length(e.value)", &places, &wanted).await?;
            let length = |row: &Row| usize::try_from(row.get::<_, i32>(0)).unwrap_or(0);
            rows.iter().map(|(place, row)| (*place, length(row))).collect()
        };
        let mut company = home.state.lock();
        company.alive()?;
        if company.closed.is_some() {
            return Err(StoreError::Erased { company: self.company.clone() }.into());
        }
        if let Some(Swap { key, expected }) = swap {
            let place = self.key(key);
            let is_met = match company.rows.get(&place) {
                Some(row) => row.value.as_deref() == expected,
                None => stored.as_deref() == expected,
            };
            if !is_met {
                return Ok(None);
            }
        }
        let before = company.sizes.get(&self.name).copied().unwrap_or_default();
        let mut total = before;
        for (at, ((key, value), (_, place))) in changes.iter().zip(&places).enumerate() {
            let present = match company.rows.get(place) {
                Some(row) => row.value.as_ref().map(|value| value.len()),
                None => lengths.get(&at).copied(),
            };
            let size = |value: Option<usize>| value.map_or(0, |value| (key.len() + value) as u64);
            total.bytes = (total.bytes + size(value.as_ref().map(|value| value.len())))
                .saturating_sub(size(present));
            total.keys = (total.keys + u64::from(value.is_some()))
                .saturating_sub(u64::from(present.is_some()));
        }
        self.limit.check(total, before)?;
        let mut rows: Vec<(RowKey, Option<Arc<[u8]>>)> =
            changes.into_iter().map(|(key, value)| (self.key(&key), value)).collect();
        rows.push(((SIZE, self.name.clone()), Some(size_value(total))));
        if let Some(state) = state {
            rows.push(((STATE, self.name.clone()), Some(state.into())));
        }
        company.sizes.insert(self.name.clone(), total);
        let part = company.begin(&home, 0);
        for (key, value) in &rows {
            company.show(&part, home.lane, key.clone(), value.clone());
        }
        let row = |(key, value)| item::Row { company: home.id, key, value, prefix_bytes: None };
        let (reply, commit) = Commit::pair();
        self.store.lane(&home).write(Item {
            parts: vec![part],
            rows: rows.into_iter().map(row).collect(),
            record: None,
            removed: Vec::new(),
            reply,
        });
        Ok(Some(commit))
    }
}

#[async_trait]
impl BindingStorage for Partition {
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        check_key(key)?;
        let home = self.home().await.map_err(broken)?;
        self.store.value(&home, self.key(key)).await.map_err(broken)
    }

    async fn scan(
        &self,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<StoragePage, StorageError> {
        let limit = if limit == 0 { MAX_STORAGE_PAGE } else { limit.min(MAX_STORAGE_PAGE) };
        let home = self.home().await.map_err(broken)?;
        let (_, first) = self.key(prefix);
        let (_, from) = self.key(cursor.unwrap_or(prefix).max(prefix));
        let range = Range { kind: STORAGE, prefix: &first, from: &from };
        let rows =
            self.store.page(&home, range, limit, MAX_STORAGE_PAGE_BYTES).await.map_err(broken)?;
        let own = |key: Vec<u8>| key[self.name.len()..].to_vec();
        let mut page = StoragePage { entries: Vec::new(), next: rows.next.map(own) };
        let mut bytes = 0;
        for (key, value) in rows.entries {
            let key = own(key);
            bytes += key.len() + value.len();
            if bytes > MAX_STORAGE_PAGE_BYTES && !page.entries.is_empty() {
                page.next = Some(key);
                break;
            }
            page.entries.push(StorageEntry { key, value });
        }
        Ok(page)
    }

    async fn apply(&self, batch: Vec<StorageWrite>) -> Result<(), StorageError> {
        check_batch(&batch)?;
        Ok(self.write(batch, None, None).await.map(drop)?)
    }

    async fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, StorageError> {
        let write = match new {
            Some(value) => {
                StorageWrite::Put(StorageEntry { key: key.to_vec(), value: value.to_vec() })
            }
            None => StorageWrite::Delete(key.to_vec()),
        };
        let written = self.write(vec![write], Some(Swap { key, expected }), None).await?;
        Ok(written.is_some())
    }

    fn used(&self) -> StorageSize {
        let home = self.store.loaded(&self.company);
        home.and_then(|home| home.state.lock().sizes.get(&self.name).copied()).unwrap_or_default()
    }

    fn for_instance(self: Arc<Self>) -> Arc<dyn BindingStorage> {
        Arc::new(Self {
            store: Arc::clone(&self.store),
            company: self.company.clone(),
            name: self.name.clone(),
            limit: self.limit,
            token: AtomicI64::new(0),
        })
    }

    fn begin_call(&self) {
        self.token.store(0, Ordering::SeqCst);
    }
}

#[async_trait]
impl Partitions for PostgresStore {
    async fn binding_storage(
        &self,
        partition: &[u8],
        limit: StorageSize,
    ) -> Result<Arc<dyn BindingStorage>, StoreError> {
        let partition = Partition::open(&self.0, partition, limit)?;
        partition.home().await?;
        Ok(Arc::new(partition))
    }

    async fn partition_state(&self, partition: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let partition = Partition::open(&self.0, partition, StorageSize::default())?;
        if let Some(home) = self.0.loaded(&partition.company) {
            return self.0.value(&home, (STATE, partition.name)).await;
        }
        // Nothing waits in the memory of a company that is not loaded. Who looks at all of them
        // does not load them.
        let sql = "SELECT e.value FROM companies c JOIN entries e ON e.company = c.id \
                   WHERE c.name = $1 AND e.kind = $2 AND e.key = $3";
        let values: [&(dyn ToSql + Sync); 3] =
            [&partition.company.as_str(), &STATE, &partition.name];
        let row = self.0.ask_one("reading", sql, &values).await?;
        Ok(row.map(|row| row.get(0)))
    }

    async fn write_partition_state(
        &self,
        partition: &[u8],
        limit: StorageSize,
        state: &[u8],
        writes: Vec<StorageWrite>,
    ) -> Result<Commit, StoreError> {
        let partition = Partition::open(&self.0, partition, limit)?;
        match partition.write(writes, None, Some(state)).await {
            Ok(commit) => Ok(commit.unwrap_or_else(Commit::done)),
            Err(Refused::Store(error)) => Err(error),
            Err(Refused::Storage(error)) => {
                Err(StoreError::Refused { action: "writing", message: error.to_string() })
            }
        }
    }

    async fn remove_partition(&self, partition: &[u8]) -> Result<Commit, StoreError> {
        let partition = Partition::open(&self.0, partition, StorageSize::default())?;
        let Some(home) = self.0.find(&partition.company).await? else { return Ok(Commit::done()) };
        // Nothing uses it, so nothing of it waits afterwards.
        self.0.reach(&home).await?;
        let name = partition.name;
        let mut state = home.state.lock();
        state.alive()?;
        state.sizes.remove(&name);
        let part = state.begin(&home, 0);
        let (reply, commit) = Commit::pair();
        let removed = [STORAGE, SIZE, STATE].map(|kind| (home.id, (kind, name.clone())));
        for (_, rows) in &removed {
            state.hide(&part, rows.clone());
        }
        self.0.lane(&home).write(Item {
            parts: vec![part],
            rows: Vec::new(),
            record: None,
            removed: removed.into(),
            reply,
        });
        Ok(commit)
    }
}
