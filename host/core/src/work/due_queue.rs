//! A queue of records that are due at a time: jobs and deliveries. A record stands in its own table; while it is due, an
//! entry in the table `Due` stands in the order of time and names it.

use std::marker::PhantomData;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use memhost_ports::Clock;
use memhost_store::{
    self as store, Change, DueKind, Expected, Found, Lease, Leases, Scan, Store, StoreError, Table, TableWrite,
};
use memhost_types::BindingId;

/// Due entries that one round reads at most. A long row of records that cannot begin does not hide those behind it: the
/// next round continues where this one stopped.
const MOST_READ: usize = 10_000;
/// How long until the next round where one stopped early.
const PAUSE: SignedDuration = SignedDuration::from_millis(50);

/// A record that can be due.
pub trait Due: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Which queue it belongs to.
    const KIND: DueKind;
    /// Where its records are.
    const TABLE: Table;
    /// What errors call it.
    const NAME: &'static str;

    /// The key of its record.
    fn key(&self) -> Vec<u8>;
    /// When it is due; none where it waits for nothing, or for a person.
    fn due_at(&self) -> Option<Timestamp>;
    /// The binding whose limit it counts against.
    fn binding_id(&self) -> BindingId;
}

/// A record that this process works on. Nobody else takes it before this is dropped.
#[derive(Debug)]
pub struct Taken<T> {
    /// As it was when it was taken.
    pub item: T,
    _lease: Lease,
}

/// The records that a round has taken, and when the next record is due. Without that time, the queue is empty or full:
/// look again when a record ends or is added.
pub type Round<T> = (Vec<Taken<T>>, Option<Timestamp>);

/// All records of a queue under a prefix, due or not.
pub struct All<'a, T> {
    rows: Scan<'a>,
    records: PhantomData<fn() -> T>,
}

impl<T: Due> All<'_, T> {
    /// The next record.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(&mut self) -> Result<Option<T>, StoreError> {
        Ok(self.rows.next_row(T::NAME).await?.map(|(_, record)| record))
    }
}

/// A queue of due records.
pub struct DueQueue<T> {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    leases: Arc<dyn Leases>,
    /// The due entry at which the next round begins, where the last one stopped early.
    resume: Mutex<Option<Vec<u8>>>,
    records: PhantomData<fn() -> T>,
}

impl<T: Due> DueQueue<T> {
    /// The queue of this kind in a store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let leases = store.leases(T::KIND);
        Self { store, clock, leases, resume: Mutex::default(), records: PhantomData }
    }

    /// The writes that make a record what it is in `after`, with its due entry.
    ///
    /// # Errors
    /// Where it cannot be encoded.
    pub fn writes(before: Option<&T>, after: &T) -> Result<Vec<TableWrite>, StoreError> {
        let key = after.key();
        let due = |record: &T| record.due_at().map(|at| store::due_key(T::KIND, at, &key));
        let (old, new) = (before.and_then(due), due(after));
        let mut writes = Vec::with_capacity(3);
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            writes.push(TableWrite { table: Table::Due, key: old, new: None });
        }
        if let Some(new) = new {
            writes.push(TableWrite { table: Table::Due, key: new, new: Some(Vec::new()) });
        }
        let value = Some(store::encode(T::NAME, after)?);
        writes.push(TableWrite { table: T::TABLE, key, new: value });
        Ok(writes)
    }

    /// The same as conditional changes: they are made only if the record is still as it was in `before`.
    ///
    /// # Errors
    /// Where it cannot be read or encoded.
    pub async fn changes(&self, before: &T, after: &T) -> Result<Vec<Change>, StoreError> {
        let mut changes: Vec<Change> = Self::writes(Some(before), after)?.into_iter().map(Change::from).collect();
        let expected = store::unchanged(&*self.store, T::TABLE, &before.key(), T::NAME, before).await?;
        for change in changes.iter_mut().filter(|change| change.table == T::TABLE) {
            change.expected = expected.clone();
        }
        Ok(changes)
    }

    /// One record.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn get(&self, key: &[u8]) -> Result<Option<T>, StoreError> {
        self.store.get(T::TABLE, key).await?.map(|value| store::decode(T::NAME, &value)).transpose()
    }

    /// One page of the records under a prefix that match, in key order.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn list(
        &self,
        prefix: &[u8],
        from: Option<&[u8]>,
        limit: usize,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Found<T>, StoreError> {
        store::matching(&*self.store, (T::TABLE, T::NAME), prefix, from, limit, is_wanted).await
    }

    /// All records under a prefix, in key order.
    pub fn all(&self, prefix: &[u8]) -> All<'_, T> {
        All { rows: store::scan_all(&*self.store, T::TABLE, prefix), records: PhantomData }
    }

    /// How many records this process works on.
    pub fn in_flight(&self) -> usize {
        self.leases.held()
    }

    /// Takes records that are due and that nobody works on, until this process works on `most` records in all and on
    /// `most_of_binding` records of each binding.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub async fn take_due(&self, most: usize, most_of_binding: impl Fn(&T) -> usize) -> Result<Round<T>, StoreError> {
        let (mut taken, mut read, now) = (Vec::new(), 0, self.clock.now());
        let from = self.resume.lock().take();
        let mut scan = store::scan_all(&*self.store, Table::Due, &store::due_prefix(T::KIND)).from(from.as_deref());
        while let Some((due, _)) = scan.next().await? {
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
            let Some(record) = self.due_record(&due, key).await? else { continue };
            let (binding, limit) = (record.binding_id().0, most_of_binding(&record));
            let Some(lease) = self.leases.take(key, binding, limit).await? else { continue };
            // Whoever had the lease may have ended the record after it was read above.
            if let Some(item) = self.due_record(&due, key).await? {
                taken.push(Taken { item, _lease: lease });
            }
        }
        Ok((taken, None))
    }

    /// The record that a due entry names. An entry whose record is not due at that time is out of date and is removed.
    async fn due_record(&self, due: &[u8], key: &[u8]) -> Result<Option<T>, StoreError> {
        let record = self.get(key).await?;
        let is_due = |record: &T| record.due_at().is_some_and(|at| store::due_key(T::KIND, at, key) == due);
        if let Some(record) = record.filter(is_due) {
            return Ok(Some(record));
        }
        let (table, expected) = (Table::Due, Expected::Anything);
        drop(self.store.transact(&[Change { table, key: due.to_vec(), expected, new: None }]).await?);
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use tempfile::TempDir;

    use super::*;
    use memhost_ports::SystemClock;
    use memhost_store::{SledOptions, SledStore};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Chore {
        number: u32,
        binding: u128,
        due_at: Option<Timestamp>,
    }

    impl Due for Chore {
        const KIND: DueKind = DueKind::Job;
        const TABLE: Table = Table::Jobs;
        const NAME: &'static str = "chore";

        fn key(&self) -> Vec<u8> {
            [b"acme\0".as_slice(), &self.number.to_be_bytes()].concat()
        }

        fn due_at(&self) -> Option<Timestamp> {
            self.due_at
        }

        fn binding_id(&self) -> BindingId {
            BindingId(uuid::Uuid::from_u128(self.binding))
        }
    }

    fn queue() -> (TempDir, DueQueue<Chore>) {
        let directory = TempDir::new().unwrap();
        let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
        (directory, DueQueue::new(Arc::new(store), Arc::new(SystemClock)))
    }

    fn chore(number: u32, binding: u128, second: i64) -> Chore {
        Chore { number, binding, due_at: Some(Timestamp::from_second(second).unwrap()) }
    }

    async fn write(queue: &DueQueue<Chore>, before: Option<&Chore>, after: &Chore) {
        let changes: Vec<Change> = DueQueue::writes(before, after).unwrap().into_iter().map(Change::from).collect();
        drop(queue.store.transact(&changes).await.unwrap());
    }

    fn numbers(round: &Round<Chore>) -> Vec<u32> {
        round.0.iter().map(|taken| taken.item.number).collect()
    }

    #[tokio::test]
    async fn due_records_are_taken_once_in_the_order_of_time() {
        let (_directory, queue) = queue();
        let later = Timestamp::now().as_second() + 3_600;
        for (number, second) in [(1, 30), (2, 10), (3, later), (4, 20)] {
            write(&queue, None, &chore(number, 1, second)).await;
        }
        let first = queue.take_due(10, |_| 10).await.unwrap();
        assert_eq!((numbers(&first), first.1.map(Timestamp::as_second)), (vec![2, 4, 1], Some(later)));
        assert_eq!(queue.in_flight(), 3);
        assert!(numbers(&queue.take_due(10, |_| 10).await.unwrap()).is_empty());
        drop(first);
        assert_eq!(queue.in_flight(), 0);
        assert_eq!(numbers(&queue.take_due(10, |_| 10).await.unwrap()), [2, 4, 1]);
    }

    #[tokio::test]
    async fn limits_hold_in_all_and_for_each_binding() {
        let (_directory, queue) = queue();
        for (number, binding) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)] {
            write(&queue, None, &chore(number, binding, i64::from(number))).await;
        }
        let of_each = queue.take_due(10, |chore| if chore.binding == 1 { 2 } else { 1 }).await.unwrap();
        assert_eq!(numbers(&of_each), [1, 2, 4]);
        let in_all = queue.take_due(4, |_| 10).await.unwrap();
        assert_eq!((numbers(&in_all), in_all.1), (vec![3], None));
    }

    #[tokio::test]
    async fn a_record_that_moved_is_due_at_its_new_time_only() {
        let (_directory, queue) = queue();
        let (before, after) = (chore(1, 1, 10), chore(1, 1, 20));
        write(&queue, None, &before).await;
        write(&queue, Some(&before), &after).await;
        // An entry that a crash left behind.
        write(&queue, None, &chore(2, 1, 5)).await;
        write(&queue, None, &Chore { due_at: None, ..chore(2, 1, 5) }).await;
        let round = queue.take_due(10, |_| 10).await.unwrap();
        assert_eq!(round.0.iter().map(|taken| taken.item.clone()).collect::<Vec<_>>(), [after]);
        let left = queue.store.scan(Table::Due, b"", None, 10).await.unwrap();
        assert_eq!(left.entries.len(), 1, "the entry of what is not due is removed");
    }

    #[tokio::test]
    async fn a_change_is_refused_where_the_record_has_changed() {
        let (_directory, queue) = queue();
        let (first, second, third) = (chore(1, 1, 10), chore(1, 1, 20), chore(1, 1, 30));
        write(&queue, None, &first).await;
        write(&queue, Some(&first), &second).await;
        let changes = queue.changes(&first, &third).await.unwrap();
        assert!(matches!(queue.store.transact(&changes).await.unwrap(), store::Transacted::Conflict(_)));
        let changes = queue.changes(&second, &third).await.unwrap();
        assert!(matches!(queue.store.transact(&changes).await.unwrap(), store::Transacted::Done(_)));
        assert_eq!(queue.get(&first.key()).await.unwrap(), Some(third));
    }

    #[tokio::test]
    async fn a_round_that_stops_early_is_continued_by_the_next_one() {
        let (_directory, queue) = queue();
        let count = u32::try_from(MOST_READ).unwrap() + 1;
        for number in 0..count {
            write(&queue, None, &chore(number, 1, i64::from(number))).await;
        }
        write(&queue, None, &chore(count, 2, i64::from(count))).await;
        let first = queue.take_due(10, |_| 1).await.unwrap();
        assert_eq!(numbers(&first), [0]);
        assert!(first.1.is_some());
        assert_eq!(numbers(&queue.take_due(10, |_| 1).await.unwrap()), [count]);
    }
}
