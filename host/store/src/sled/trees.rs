//! The trees of the database, and transactions over several of them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use sled::Transactional;
use sled::transaction::{
    ConflictableTransactionError, TransactionError, TransactionalTree, UnabortableTransactionError,
};

use super::disk::Disk;
use super::gate::{Gate, HELD, INDEX, OPERATIONS, Place, STORAGE, Writing};
use super::row_cache::RowCache;
use super::tree::{KeyChange, Tree};
use crate::error::failed;
use crate::quota::{self, Growth};
use crate::reserve::Need;
use crate::{Change, DiskLevel, DiskStep, Expected, Held, StoreError, Table, TableWrite};

/// What a write takes besides its values, in bytes: keys, and the parts of a page that are written
/// with them.
const OVERHEAD: u64 = 256;

/// Every tree. Derived data is in `index` and `held` only.
#[derive(Clone)]
pub(super) struct Trees {
    pub(super) disk: Arc<Disk>,
    pub(super) records: Tree,
    pub(super) index: Tree,
    pub(super) storage: Tree,
    /// How many bytes each company has, by its prefix.
    pub(super) held: Tree,
    /// A copy of `held` in memory: reading the tree waits for other transactions. Less than 0 while
    /// two transactions are added in another order than they were made in.
    pub(super) numbers: Arc<Mutex<HashMap<Vec<u8>, i64>>>,
    /// The bytes at which new data of a company is refused; 0: never.
    quota: u64,
    tables: Arc<[Tree]>,
    /// Rows of [`Table::Records`] that were read lately.
    pub(super) rows: Arc<RowCache>,
    pub(super) gate: Arc<Gate>,
    /// Held for writing while operations move from memory into the sums.
    pub(super) sums: Arc<RwLock<()>>,
    /// Held while operations are added to the index.
    pub(super) indexing: Arc<Mutex<()>>,
    /// How many rows of sums a company has of a day, by what their keys begin with: of days that
    /// had new rows lately.
    pub(super) sum_rows: Arc<Mutex<HashMap<Vec<u8>, usize>>>,
    /// Held by reads that take long. A compaction keeps the database before until they have ended.
    pub(super) long_reads: Arc<RwLock<()>>,
}

impl Trees {
    /// `quota`: the bytes at which new data of a company is refused; 0: never.
    pub(super) fn open(disk: Disk, quota: u64) -> Result<Self, StoreError> {
        let tree = |name: &str| {
            disk.db().open_tree(name).map(Tree::from).map_err(failed("opening the store"))
        };
        let tables = Table::ALL.iter().map(|table| tree(table.name())).collect::<Result<_, _>>()?;
        let (records, index, storage, held) =
            (tree(OPERATIONS)?, tree(INDEX)?, tree(STORAGE)?, tree(HELD)?);
        Ok(Self {
            disk: Arc::new(disk),
            records,
            index,
            storage,
            held,
            numbers: Arc::default(),
            quota,
            tables,
            rows: Arc::default(),
            gate: Arc::default(),
            sums: Arc::default(),
            indexing: Arc::default(),
            sum_rows: Arc::default(),
            long_reads: Arc::default(),
        })
    }

    pub(super) fn table(&self, table: Table) -> &Tree {
        // The trees were opened in the order of the enumeration.
        &self.tables[table as usize]
    }

    /// Begins a write of about so many bytes; it ends when the answer is dropped.
    ///
    /// # Errors
    /// Where the disk has too little room, or the store takes no more calls. Nothing was written
    /// then.
    pub(super) fn enter(&self, need: Need, bytes: usize) -> Result<Writing<'_>, StoreError> {
        self.disk.alive()?;
        self.disk.reserve.check(need, bytes as u64)?;
        if self.disk.count(bytes as u64 + OVERHEAD)? {
            // A flush takes milliseconds. Another process may have filled the disk meanwhile.
            self.disk.reserve.check(need, bytes as u64)?;
        }
        self.disk.step(DiskStep::Write)?;
        Ok(self.gate.enter())
    }

    /// What a transaction needs: new data is a new row, except in the tables that deletions write
    /// to as well.
    fn need(&self, changes: &[Change]) -> Result<Need, StoreError> {
        if self.disk.reserve.state().level == DiskLevel::Plenty {
            return Ok(Need::New);
        }
        for change in
            changes.iter().filter(|change| change.new.is_some() && change.table.is_new_data())
        {
            if !self.table(change.table).contains_key(&change.key).map_err(failed("reading"))? {
                return Ok(Need::New);
            }
        }
        Ok(Need::Present)
    }

    /// How much a company has, whose keys begin with this prefix.
    pub(super) fn held(&self, company: &[u8]) -> Held {
        let bytes = self.numbers.lock().get(company).copied().unwrap_or(0);
        Held { bytes: u64::try_from(bytes).unwrap_or(0), quota: self.quota }
    }

    /// Adds a committed transaction's growth to `numbers`.
    fn grown(&self, growth: &Growth) {
        let mut numbers = self.numbers.lock();
        for (company, by) in growth.changes() {
            match numbers.get_mut(company) {
                Some(number) => *number = number.saturating_add(by),
                None => drop(numbers.insert(company.to_vec(), by)),
            }
        }
    }

    /// Refuses new rows of a company that has as much as it may have. What changes or removes
    /// something is not refused, nor what a deletion adds.
    fn check_quota(&self, changes: &[Change]) -> Result<(), StoreError> {
        if self.quota == 0 {
            return Ok(());
        }
        let mut known: Option<(&[u8], Held)> = None;
        for change in
            changes.iter().filter(|change| change.new.is_some() && change.table.is_new_data())
        {
            let Some(company) = quota::company_in(&change.key) else { continue };
            let held = match known {
                Some((same, held)) if same == company => held,
                _ => self.held(company),
            };
            known = Some((company, held));
            if held.level() != DiskLevel::Plenty
                && !self.table(change.table).contains_key(&change.key).map_err(failed("reading"))?
            {
                return Err(StoreError::CompanyFull { held: held.bytes, quota: held.quota });
            }
        }
        Ok(())
    }

    /// The trees that a backup contains, by name: all but the derived ones.
    pub(super) fn kept(&self) -> impl Iterator<Item = (&'static str, &Tree)> {
        let tables = Table::ALL.iter().map(|table| (table.name(), self.table(*table)));
        [(OPERATIONS, &self.records), (STORAGE, &self.storage)].into_iter().chain(tables)
    }

    /// The trees whose keys begin with a company, by name, but for those of the host itself and the
    /// derived ones.
    pub(super) fn of_companies(&self) -> impl Iterator<Item = (&'static str, &Tree)> {
        let tables = Table::ALL.iter().filter(|table| table.is_of_company());
        [(OPERATIONS, &self.records)]
            .into_iter()
            .chain(tables.map(|table| (table.name(), self.table(*table))))
    }

    /// All trees, by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &Tree)> {
        self.kept().chain([(INDEX, &self.index), (HELD, &self.held)])
    }

    /// Makes all changes or none. Answers the position of the first change whose condition does not
    /// hold.
    pub(super) fn change(&self, changes: &[Change]) -> Result<Option<usize>, StoreError> {
        let bytes = changes.iter().map(|change| change.new.as_ref().map_or(0, Vec::len)).sum();
        self.check_quota(changes)?;
        let writing = self.enter(self.need(changes)?, bytes)?;
        let rows =
            changes.iter().filter(|change| change.new.is_some() && change.table.is_of_company());
        writing.admit(rows.map(|change| change.key.as_slice()))?;
        writing.note(|| {
            let written = changes.iter().map(|change| (change.table.name(), change.key.clone()));
            written
                .chain(places_of_numbers(changes.iter().map(|change| change.key.as_slice())))
                .collect::<Vec<_>>()
        });
        let trees = changes.iter().map(|change| self.table(change.table)).chain([&self.held]);
        let (distinct, places) = distinct(trees.collect());
        let done = distinct.iter().collect::<Vec<_>>().as_slice().transaction(
            |views: &Vec<TransactionalTree>| {
                for (number, (change, place)) in changes.iter().zip(&places).enumerate() {
                    if matches!(change.expected, Expected::Anything) {
                        continue;
                    }
                    let found = views[*place].get(&change.key)?;
                    let fits = match &change.expected {
                        Expected::Anything => true,
                        Expected::Absent => found.is_none(),
                        Expected::Value(value) => found.as_deref() == Some(value.as_slice()),
                    };
                    if !fits {
                        return Err(ConflictableTransactionError::Abort(number));
                    }
                }
                let mut growth = Growth::default();
                for (change, place) in changes.iter().zip(&places) {
                    let before = put(&views[*place], &change.key, change.new.as_deref())?;
                    if change.table.counts() {
                        growth.add(&change.key, before, change.new.as_ref().map(Vec::len));
                    }
                }
                add_to_numbers(&growth, &views[places[changes.len()]])?;
                Ok(growth)
            },
        );
        match done {
            Ok(growth) => {
                self.grown(&growth);
                let written = changes.iter().map(|change| (change.table, change.key.as_slice()));
                self.forget_rows(written);
                Ok(None)
            }
            Err(TransactionError::Abort(number)) => Ok(Some(number)),
            Err(TransactionError::Storage(error)) => Err(self.disk.fatal("writing", &error)),
        }
    }

    /// Writes operations' records together with table writes. The caller has entered the gate and
    /// noted all keys, and the numbers of their companies.
    pub(super) fn transact(
        &self,
        records: &[KeyChange],
        beside: &[TableWrite],
    ) -> Result<(), StoreError> {
        let trees = std::iter::once(&self.records)
            .chain(beside.iter().map(|write| self.table(write.table)));
        let (distinct, places) = distinct(trees.chain([&self.held]).collect());
        let done = distinct.iter().collect::<Vec<_>>().as_slice().transaction(
            |views: &Vec<TransactionalTree>| {
                let mut growth = Growth::default();
                for (key, value) in records {
                    let before = match value {
                        Some(value) => views[0].insert(key.clone(), value.clone())?,
                        None => views[0].remove(key.clone())?,
                    };
                    growth.add(
                        key,
                        before.map(|value| value.len()),
                        value.as_ref().map(|value| value.len()),
                    );
                }
                for (write, place) in beside.iter().zip(&places[1..]) {
                    let before = put(&views[*place], &write.key, write.new.as_deref())?;
                    if write.table.counts() {
                        growth.add(&write.key, before, write.new.as_ref().map(Vec::len));
                    }
                }
                add_to_numbers(&growth, &views[places[beside.len() + 1]])?;
                Ok::<Growth, ConflictableTransactionError<()>>(growth)
            },
        );
        let growth = done.map_err(|error| match error {
            TransactionError::Storage(error) => self.disk.fatal("writing", &error),
            TransactionError::Abort(()) => failed("writing")("the transaction was given up"),
        })?;
        self.grown(&growth);
        self.forget_rows(beside.iter().map(|write| (write.table, write.key.as_slice())));
        Ok(())
    }

    fn forget_rows<'a>(&self, written: impl Iterator<Item = (Table, &'a [u8])>) {
        let rows = written.filter(|(table, _)| *table == Table::Records);
        self.rows.forget(rows.map(|(_, key)| key));
    }
}

/// Where the numbers of bytes are that writes of these keys change.
pub(super) fn places_of_numbers<'a>(
    keys: impl Iterator<Item = &'a [u8]>,
) -> impl Iterator<Item = Place> {
    keys.filter_map(quota::company_in).map(|company| (HELD, company.to_vec()))
}

/// A stored number.
pub(super) fn decode_number(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Adds what a transaction changes to the numbers of its companies, within the transaction.
fn add_to_numbers(
    growth: &Growth,
    numbers: &TransactionalTree,
) -> Result<(), UnabortableTransactionError> {
    for (company, by) in growth.changes() {
        let before = numbers.get(company)?.map_or(0, |value| decode_number(&value));
        numbers.insert(company, &before.saturating_add_signed(by).to_le_bytes())?;
    }
    Ok(())
}

/// Answers the length of the value before.
fn put(
    view: &TransactionalTree,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<Option<usize>, UnabortableTransactionError> {
    let before = match value {
        Some(value) => view.insert(key, value)?,
        None => view.remove(key)?,
    };
    Ok(before.map(|value| value.len()))
}

/// Each tree once, because a transaction locks the trees that it names, and the position of each
/// given tree in that list.
fn distinct(trees: Vec<&Tree>) -> (Vec<sled::Tree>, Vec<usize>) {
    let mut once: Vec<sled::Tree> = Vec::new();
    let mut places = Vec::with_capacity(trees.len());
    for tree in trees.into_iter().map(Tree::now) {
        let known = once.iter().position(|known| known.name() == tree.name());
        places.push(known.unwrap_or_else(|| {
            once.push(tree);
            once.len() - 1
        }));
    }
    (once, places)
}
