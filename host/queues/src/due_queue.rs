//! A queue of records that are due at a time: jobs and deliveries. A record is a row of its own
//! table. While it is due, an entry in the table `Due`, which is in the order of time, names it. A
//! mark makes sure that a record is accepted once.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use uuid::Uuid;

use crate::BackgroundError;
use memhost_ports::Clock;
use memhost_store::{
    self as store, Change, DueKind, Expected, Found, Lease, Leases, Scan, Store, StoreError, Table,
    TableWrite, Transacted,
};
use memhost_types::{BindingId, CompanyId};

/// Due entries that one round reads at most. A long row of records that cannot begin does not hide
/// those behind it: the next round continues where this one stopped.
const MOST_READ: usize = 10_000;
/// Due entries behind a record that are read for the next one of its binding.
const MOST_BEHIND: usize = 64;
/// How long until the next round where one stopped early.
const PAUSE: SignedDuration = SignedDuration::from_millis(50);

/// A record that can be due.
pub trait Due: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The filter of a list.
    type Filter: Sync;
    /// Which queue it belongs to.
    const KIND: DueKind;
    /// Where its records are.
    const TABLE: Table;
    /// The part of its keys after the company.
    const PREFIX: &'static [u8];
    /// Its name in errors.
    const NAME: &'static str;

    /// The company that it belongs to.
    fn company_id(&self) -> &CompanyId;
    /// Its own id, in the order of time.
    fn id(&self) -> Uuid;
    /// The binding whose limit it counts against.
    fn binding_id(&self) -> BindingId;
    /// When it is due. `None` if it waits for nothing, or for a person.
    fn due_at(&self) -> Option<Timestamp>;
    /// The row that marks it as known. It is the same for every record of the same event or
    /// provider's job.
    fn mark(&self) -> (Table, Vec<u8>);
    /// Whether a list with this filter has it.
    fn matches(&self, filter: &Self::Filter) -> bool;
    /// The error for an id that a company does not have.
    fn not_found(id: Uuid) -> BackgroundError;
}

/// A record that this process works on. No other process or task takes it before this is dropped.
#[derive(Debug)]
pub struct Taken<T> {
    /// As it was when it was taken.
    pub item: T,
    _lease: Lease,
    /// The count of additions when the queue was read for it.
    added: u64,
}

/// Where a record stood in the queue, kept until it has ended: the next one is looked for behind
/// it.
#[derive(Debug)]
pub struct Place {
    due: Vec<u8>,
    binding: BindingId,
    added: u64,
}

impl<T: Due> Taken<T> {
    /// Where it stands in the queue. `None` if it is not due at any time.
    pub fn place(&self) -> Option<Place> {
        let key = key::<T>(self.item.company_id(), self.item.id());
        let due = store::due_key(T::KIND, self.item.due_at()?, &key);
        Some(Place { due, binding: self.item.binding_id(), added: self.added })
    }
}

/// The records that a round has taken, and when the next record is due. Without that time, the
/// queue is empty or full: look again when a record ends or is added.
pub type Round<T> = (Vec<Taken<T>>, Option<Timestamp>);

/// All records of a company, due or not, newest first.
pub struct All<'a, T> {
    rows: Scan<'a>,
    records: PhantomData<fn() -> T>,
}

impl<T: Due> All<'_, T> {
    /// The next one.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(&mut self) -> Result<Option<T>, StoreError> {
        Ok(self.rows.next_row(T::NAME).await?.map(|(_, record)| record))
    }
}

/// A queue of due records.
pub struct DueQueue<T> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    leases: Arc<dyn Leases>,
    /// The due entry at which the next round begins, where the last one stopped early.
    resume: Mutex<Option<Vec<u8>>>,
    /// Counts changes of records. A company's records change in its home only.
    moved: watch::Sender<u64>,
    /// Increased before and after records are added. They can be due before the ones in progress,
    /// so [`DueQueue::take_next`] stops when this has changed.
    added: AtomicU64,
    records: PhantomData<fn() -> T>,
}

fn prefix<T: Due>(company: &CompanyId) -> Vec<u8> {
    store::company_key(company, T::PREFIX)
}

/// The key of a record, newest first.
pub fn key<T: Due>(company: &CompanyId, id: Uuid) -> Vec<u8> {
    [prefix::<T>(company), id.into_bytes().map(|byte| !byte).to_vec()].concat()
}

impl<T: Due> DueQueue<T> {
    /// The queue in a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let (leases, moved) = (store.leases(T::KIND), watch::Sender::new(0));
        let (resume, added) = (Mutex::default(), AtomicU64::default());
        Self { store, clock, leases, resume, moved, added, records: PhantomData }
    }

    /// The writes that make a record what it is in `after`, with its due entry. A new record gets
    /// its mark.
    ///
    /// # Errors
    /// Where a record cannot be encoded.
    pub fn writes(before: Option<&T>, after: &T) -> Result<Vec<TableWrite>, StoreError> {
        let key = key::<T>(after.company_id(), after.id());
        let due = |record: &T| record.due_at().map(|at| store::due_key(T::KIND, at, &key));
        let (old, new) = (before.and_then(due), due(after));
        let mut writes = Vec::with_capacity(3);
        if before.is_none() {
            let (table, mark) = after.mark();
            writes.push(TableWrite::new(table, mark, Some(after.id().as_bytes().to_vec())));
        }
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            writes.push(TableWrite::new(Table::Due, old, None));
        }
        if let Some(new) = new {
            // A round skips those of a binding that has all that it may have without reading them.
            writes.push(TableWrite::new(
                Table::Due,
                new,
                Some(after.binding_id().0.as_bytes().to_vec()),
            ));
        }
        let value = Some(store::encode(T::NAME, after)?);
        writes.push(TableWrite::new(T::TABLE, key, value));
        Ok(writes)
    }

    /// The same as conditional changes: they are made only if the record is still as it was in
    /// `before`.
    ///
    /// # Errors
    /// Where the record cannot be read or encoded.
    pub async fn changes(&self, before: &T, after: &T) -> Result<Vec<Change>, StoreError> {
        let mut changes: Vec<Change> =
            Self::writes(Some(before), after)?.into_iter().map(Change::from).collect();
        let key = key::<T>(before.company_id(), before.id());
        let expected = store::unchanged(&*self.store, T::TABLE, &key, T::NAME, before).await?;
        for change in changes.iter_mut().filter(|change| change.table == T::TABLE) {
            change.expected = expected.clone();
        }
        Ok(changes)
    }

    /// Writes a record outside of an operation, if it is still as it was in `before`; durable when
    /// this returns.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn write(&self, before: &T, after: &T) -> Result<(), StoreError> {
        if store::write(&*self.store, &self.changes(before, after).await?).await? {
            self.moved();
        }
        Ok(())
    }

    /// Accepts new records, durably, all or none. Where the store has a record with the same mark
    /// already, that one is answered, with false.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn accept(&self, records: Vec<T>) -> Result<Vec<(T, bool)>, StoreError> {
        Ok(self.accept_if(records, |_| true).await?.unwrap_or_default())
    }

    /// The same, if every record that the store has already may be answered. Otherwise nothing is
    /// accepted, and nothing is answered.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn accept_if(
        &self,
        records: Vec<T>,
        may_answer: impl Fn(&T) -> bool + Send,
    ) -> Result<Option<Vec<(T, bool)>>, StoreError> {
        let mut answer: Vec<(T, bool)> = records.into_iter().map(|record| (record, true)).collect();
        loop {
            let (mut changes, mut owners) = (Vec::new(), Vec::new());
            for (index, (record, _)) in answer.iter().enumerate().filter(|(_, (_, is_new))| *is_new)
            {
                let mark = record.mark();
                for write in Self::writes(None, record)? {
                    let is_mark = (write.table, &write.key) == (mark.0, &mark.1);
                    let expected = if is_mark { Expected::Absent } else { Expected::Anything };
                    changes.push(Change { expected, ..write.into() });
                    owners.push(index);
                }
            }
            if changes.is_empty() {
                return Ok(Some(answer));
            }
            self.added.fetch_add(1, Ordering::SeqCst);
            let transacted = self.store.transact(&changes).await;
            self.added.fetch_add(1, Ordering::SeqCst);
            match transacted? {
                Transacted::Done(commit) => return commit.await.map(|()| Some(answer)),
                Transacted::Conflict(at) => {
                    let (record, is_new) = &mut answer[owners[at]];
                    if let Some(known) = self.known(record).await? {
                        if !may_answer(&known) {
                            return Ok(None);
                        }
                        (*record, *is_new) = (known, false);
                    }
                }
            }
        }
    }

    /// The record with the same mark, if there is one.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn known(&self, same: &T) -> Result<Option<T>, StoreError> {
        let (table, mark) = same.mark();
        let Some(id) = self.store.get(table, &mark).await? else { return Ok(None) };
        if let Ok(uuid) = Uuid::from_slice(&id)
            && let Some(known) = self.read(&key::<T>(same.company_id(), uuid)).await?
        {
            return Ok(Some(known));
        }
        // A mark without its record would refuse the event or job for ever.
        let change = Change { table, key: mark, expected: Expected::Value(id), new: None };
        drop(self.store.transact(&[change]).await?);
        Ok(None)
    }

    /// Wakes everybody who waits for a record.
    pub fn moved(&self) {
        self.moved.send_modify(|count| *count += 1);
    }

    /// A receiver that [`DueQueue::moved`] wakes.
    pub fn moves(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }

    pub(crate) async fn read(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.store.get(T::TABLE, key).await?.map(|value| store::decode(T::NAME, &value)).transpose()
    }

    /// One record of a company.
    ///
    /// # Errors
    /// Where the company has none of this id.
    pub async fn get(&self, company: &CompanyId, id: Uuid) -> Result<T, BackgroundError> {
        self.read(&key::<T>(company, id)).await?.ok_or_else(|| T::not_found(id))
    }

    /// One page of a company's records, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(
        &self,
        company: &CompanyId,
        filter: &T::Filter,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<T>, StoreError> {
        self.list_where(company, |record: &T| record.matches(filter), from, limit).await
    }

    /// One page of those of a company's records that are wanted, newest first.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list_where(
        &self,
        company: &CompanyId,
        is_wanted: impl Fn(&T) -> bool + Send + Sync,
        from: Option<&[u8]>,
        limit: usize,
    ) -> Result<Found<T>, StoreError> {
        store::matching(
            &*self.store,
            (T::TABLE, T::NAME),
            &prefix::<T>(company),
            from,
            limit,
            is_wanted,
        )
        .await
    }

    /// All records of a company, newest first.
    pub fn all(&self, company: &CompanyId) -> All<'_, T> {
        All {
            rows: store::scan_all(&*self.store, T::TABLE, &prefix::<T>(company)),
            records: PhantomData,
        }
    }

    /// How many records this process works on.
    pub fn in_flight(&self) -> usize {
        self.leases.held()
    }

    /// Takes records that are due and that nobody works on, until this process works on `most`
    /// records in all and on `most_of_binding` records of each binding.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn take_due(
        &self,
        most: usize,
        most_of_binding: impl Fn(&T) -> usize,
    ) -> Result<Round<T>, StoreError> {
        let (mut taken, mut read, now) = (Vec::new(), 0, self.clock.now());
        let added = self.added.load(Ordering::SeqCst);
        // For each binding how many of its entries nobody could take. Those that are worked on are
        // at most as many as its limit, so with one more the limit is reached.
        let mut left: HashMap<Vec<u8>, usize> = HashMap::new();
        let from = self.resume.lock().take();
        let mut scan = store::scan_all(&*self.store, Table::Due, &store::due_prefix(T::KIND))
            .from(from.as_deref());
        while let Some((due, of_binding)) = scan.next().await? {
            let Some((at, key)) = store::due_at(&due) else { continue };
            read += 1;
            if at > now {
                return Ok((taken, Some(at)));
            }
            if self.in_flight() >= most {
                return Ok((taken, None));
            }
            if read > MOST_READ {
                *self.resume.lock() = Some(due);
                return Ok((taken, Some(now.checked_add(PAUSE).unwrap_or(now))));
            }
            if left.get(&of_binding).is_some_and(|left| *left == usize::MAX) {
                continue;
            }
            let Some(record) = self.due_record(&due, key).await? else { continue };
            let (binding, limit) = (record.binding_id().0, most_of_binding(&record));
            let Some(lease) = self.leases.take(key, binding, limit).await? else {
                let left = left.entry(binding.as_bytes().to_vec()).or_default();
                *left = if *left >= limit { usize::MAX } else { *left + 1 };
                continue;
            };
            // The owner of the lease before may have ended the record after it was read above.
            if let Some(item) = self.due_record(&due, key).await? {
                taken.push(Taken { item, _lease: lease, added });
            }
        }
        Ok((taken, None))
    }

    /// Takes the next due record of the binding whose record at `place` has ended. It reads the
    /// few entries behind that place, where [`DueQueue::take_due`] reads the whole backlog. `None`
    /// means that `take_due` has to look: none of these can be taken, records were added since
    /// `place` was read, or this process has no more than one of its `most` places left, which the
    /// oldest record of any binding gets.
    ///
    /// # Errors
    /// Where the store fails.
    pub async fn take_next(
        &self,
        place: &Place,
        most: usize,
        most_of_binding: usize,
    ) -> Result<Option<Taken<T>>, StoreError> {
        if self.in_flight() + 1 >= most {
            return Ok(None);
        }
        let Place { due: ended, binding, added } = place;
        let (prefix, now) = (store::due_prefix(T::KIND), self.clock.now());
        let page = self.store.scan(Table::Due, &prefix, Some(ended), MOST_BEHIND).await?;
        if self.added.load(Ordering::SeqCst) != *added {
            return Ok(None);
        }
        for (due, of_binding) in page.entries {
            let Some((at, key)) = store::due_at(&due) else { continue };
            if at > now {
                break;
            }
            if of_binding != binding.0.as_bytes() || due == *ended {
                continue;
            }
            // A record that somebody else works on is not read.
            let Some(lease) = self.leases.take(key, binding.0, most_of_binding).await? else {
                continue;
            };
            if let Some(item) = self.due_record(&due, key).await? {
                return Ok(Some(Taken { item, _lease: lease, added: *added }));
            }
        }
        Ok(None)
    }

    /// The record that a due entry names. An entry whose record is not due at that time is out of
    /// date and is removed.
    async fn due_record(&self, due: &[u8], key: &[u8]) -> Result<Option<T>, StoreError> {
        let record = self.read(key).await?;
        let is_due =
            |record: &T| record.due_at().is_some_and(|at| store::due_key(T::KIND, at, key) == due);
        if let Some(record) = record.filter(is_due) {
            return Ok(Some(record));
        }
        drop(self.store.transact(&[Change::always(Table::Due, due.to_vec(), None)]).await?);
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
