//! A company as its home knows it: its last numbers, and what is written and not committed yet.
//!
//! Every read joins the database's answer with what waits here. A row stays here after its commit
//! until every reader that began before the commit has ended: a reader whose query did not see the
//! commit finds the row here. So neither readers nor the lane wait for each other.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::not_leading;
use crate::group::Term;
use crate::place::HOST;
use memhost_ports::StorageSize;
use memhost_store::StoreError;
use memhost_types::{CompanyId, Operation};

/// A company that this host serves.
pub(crate) struct Company {
    pub(crate) id: i64,
    /// None: the host itself.
    pub(crate) name: Option<CompanyId>,
    /// The token under which this host serves it. The host's own rows have none.
    pub(crate) token: i64,
    /// The term in which this host is the home of its group, if it is among others.
    pub(crate) term: Option<Term>,
    /// Which lane writes it.
    pub(crate) lane: usize,
    pub(crate) state: Mutex<State>,
}

/// A row that waits for its commit, or for readers that began before it.
pub(crate) struct WaitingRow {
    item: u64,
    /// The lane that writes it.
    pub(crate) lane: usize,
    pub(crate) is_committed: bool,
    /// `None`: it is deleted.
    pub(crate) value: Option<Arc<[u8]>>,
}

pub(crate) struct WaitingOperation {
    item: u64,
    pub(crate) is_committed: bool,
    pub(crate) operation: Arc<Operation>,
}

/// Rows of a kind below a prefix that are deleted.
struct Removed {
    item: u64,
    rows: RowKey,
}

/// The kind of a row and its key without the company.
pub(crate) type RowKey = (i16, Vec<u8>);

#[derive(Default)]
pub(crate) struct State {
    /// The last number that was given.
    pub(crate) last: u64,
    /// Numbers that were given and whose record was not written yet.
    pub(crate) given: BTreeSet<u64>,
    /// Operations in progress, with the length of their records.
    pub(crate) open: BTreeMap<u64, usize>,
    /// Operations that had been cut short when the company was loaded. Their ends are not written
    /// any more: what their providers wrote before may be lost.
    pub(crate) interrupted: BTreeSet<u64>,
    /// The bytes that were kept at the last commit.
    pub(crate) held: i64,
    /// By how much that changes with what waits.
    pub(crate) growing: i64,
    /// The last number when the company was closed.
    pub(crate) closed: Option<u64>,
    /// Why nothing is written here any more: the company must be loaded again.
    pub(crate) failed: Option<StoreError>,
    /// How often something of the host's own rows was given up. What was begun before is not
    /// written: it may be built on that.
    pub(crate) epoch: u64,
    /// The sizes of partitions, by their name without the company.
    pub(crate) sizes: HashMap<Vec<u8>, StorageSize>,
    pub(crate) rows: BTreeMap<RowKey, WaitingRow>,
    pub(crate) operations: BTreeMap<u64, WaitingOperation>,
    removed: Vec<Removed>,
    items: u64,
    /// The next reader's number, and the readers that have not ended.
    next_reader: u64,
    readers: BTreeSet<u64>,
    /// Items that are committed and stay for readers with smaller numbers.
    committed: VecDeque<(u64, Settled)>,
}

/// An item of a lane, as one of its companies knows it.
pub(crate) struct Part {
    pub(crate) company: Arc<Company>,
    item: u64,
    epoch: u64,
    /// By how much it was thought to grow, in bytes.
    growth: i64,
}

/// What leaves a company's memory when an item is committed or given up.
#[derive(Default)]
pub(crate) struct Settled {
    item: u64,
    rows: Vec<RowKey>,
    operation: Option<u64>,
}

/// A reader of a company, until this is dropped.
pub(crate) struct Reading {
    company: Arc<Company>,
    number: u64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.company.state.lock().end_reading(self.number);
    }
}

impl Company {
    pub(crate) fn new(
        id: i64,
        name: Option<CompanyId>,
        (token, term): (i64, Option<Term>),
        lanes: usize,
    ) -> Self {
        let lane = usize::try_from(id).unwrap_or(0) % lanes.max(1);
        Self { id, name, token, term, lane, state: Mutex::default() }
    }

    /// Begins to read: what waits in memory now stays there, at least until this reader has ended.
    /// What is there and committed may go with the readers before, and is in the database.
    pub(crate) fn read(self: &Arc<Self>) -> Reading {
        let mut state = self.state.lock();
        let number = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(number);
        Reading { company: Arc::clone(self), number }
    }

    /// The bytes that stand before each of its keys in the count of what it has.
    pub(crate) fn prefix_bytes(&self) -> usize {
        self.name.as_ref().map_or(0, |name| name.as_str().len() + 1)
    }

    /// The same in front of an operation's record: a number with a letter is its key.
    pub(crate) fn record_prefix(&self) -> usize {
        self.prefix_bytes() + 9
    }

    /// What it has, in bytes, with what waits.
    pub(crate) fn held(&self) -> u64 {
        let state = self.state.lock();
        u64::try_from(state.held.saturating_add(state.growing)).unwrap_or(0)
    }

    /// The rows of `homes` that must have these tokens when something of it is written: its own,
    /// and that of its group, which is the only one that changes when another host takes over.
    pub(crate) fn fence(&self) -> impl Iterator<Item = (i64, i64)> {
        let own = (self.id != HOST).then_some((self.id, self.token));
        own.into_iter().chain(self.term.map(|term| (term.group.row(), term.token)))
    }

    /// Another host is its home.
    pub(crate) fn is_elsewhere(&self, action: &'static str) -> StoreError {
        match self.name.clone() {
            Some(company) => StoreError::NotHome { company },
            None => not_leading(action),
        }
    }

    /// Gives up: what waits is not written, and the company must be loaded again. The host's own
    /// rows are what the database has, again.
    pub(crate) fn fail(&self, error: &StoreError) {
        let mut state = self.state.lock();
        match self.id == HOST {
            true => state.epoch += 1,
            false => {
                state.failed.get_or_insert_with(|| error.clone());
            }
        }
        state.rows.retain(|_, row| self.id == HOST && row.is_committed);
        state.operations.clear();
        state.removed.clear();
    }
}

impl State {
    /// # Errors
    /// Where the company must be loaded again.
    pub(crate) fn alive(&self) -> Result<(), StoreError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Whether the database has all of it. A company that is loaded again is then as it was.
    pub(crate) fn is_idle(&self) -> bool {
        let is_written = self.rows.is_empty() && self.operations.is_empty();
        let is_done = self.given.is_empty() && self.open.is_empty() && self.readers.is_empty();
        is_written && is_done && self.removed.is_empty() && self.growing == 0
            // What was closed stays closed.
            && self.closed.is_none()
    }

    /// Forgets what was erased, so many bytes. Its numbers go on.
    pub(crate) fn erase(&mut self, bytes: i64) {
        (self.given, self.open, self.sizes) = Default::default();
        // Operations that an import brings may have their numbers.
        self.interrupted.clear();
        self.held = self.held.saturating_sub(bytes);
        while let Some((_, settled)) = self.committed.pop_front() {
            self.forget(&settled);
        }
    }

    /// Begins an item that is thought to grow the company by so many bytes.
    pub(crate) fn begin(&mut self, company: &Arc<Company>, growth: i64) -> Part {
        self.items += 1;
        self.growing = self.growing.saturating_add(growth);
        Part { company: Arc::clone(company), item: self.items, epoch: self.epoch, growth }
    }

    /// Shows a row of an item to all readers.
    pub(crate) fn show(&mut self, part: &Part, lane: usize, key: RowKey, value: Option<Arc<[u8]>>) {
        self.rows.insert(key, WaitingRow { item: part.item, lane, is_committed: false, value });
    }

    /// Shows an operation of an item to all readers.
    pub(crate) fn show_operation(&mut self, part: &Part, operation: Arc<Operation>) {
        let (number, item) = (operation.id.sequence(), part.item);
        let waiting = WaitingOperation { item, is_committed: false, operation };
        self.operations.insert(number, waiting);
    }

    /// Whether a row waits for its commit. Every other one must be asked for in the database.
    pub(crate) fn waits(&self, key: &RowKey) -> bool {
        self.rows.get(key).is_some_and(|row| !row.is_committed)
    }

    /// Hides the rows of a kind below a prefix.
    pub(crate) fn hide(&mut self, part: &Part, rows: RowKey) {
        self.rows.retain(|(kind, key), _| *kind != rows.0 || !key.starts_with(&rows.1));
        self.removed.push(Removed { item: part.item, rows });
    }

    /// Whether the database's row of this key is hidden.
    pub(crate) fn is_hidden(&self, (kind, key): &RowKey) -> bool {
        self.removed.iter().any(|one| one.rows.0 == *kind && key.starts_with(&one.rows.1))
    }

    /// Takes what an item has shown out of memory: what was committed once no reader may miss it,
    /// what was given up at once. What was overwritten since stays.
    fn settle(&mut self, settled: Settled, is_committed: bool) {
        if !is_committed || self.readers.is_empty() {
            self.forget(&settled);
            return;
        }
        for key in &settled.rows {
            if let Some(row) = self.rows.get_mut(key).filter(|row| row.item == settled.item) {
                row.is_committed = true;
            }
        }
        let number = settled.operation;
        if let Some(one) = number.and_then(|number| self.operations.get_mut(&number))
            && one.item == settled.item
        {
            one.is_committed = true;
        }
        self.committed.push_back((self.next_reader, settled));
    }

    fn forget(&mut self, settled: &Settled) {
        for key in &settled.rows {
            if self.rows.get(key).is_some_and(|row| row.item == settled.item) {
                self.rows.remove(key);
            }
        }
        if let Some(number) = settled.operation
            && self.operations.get(&number).is_some_and(|one| one.item == settled.item)
        {
            self.operations.remove(&number);
        }
        self.removed.retain(|one| one.item != settled.item);
    }

    fn end_reading(&mut self, number: u64) {
        self.readers.remove(&number);
        let oldest = self.readers.first().copied().unwrap_or(u64::MAX);
        while self.committed.front().is_some_and(|(before, _)| *before <= oldest) {
            if let Some((_, settled)) = self.committed.pop_front() {
                self.forget(&settled);
            }
        }
    }
}

impl Part {
    /// Why the item must not be written: its company was given up after it was made.
    pub(crate) fn refused(&self) -> Option<StoreError> {
        let state = self.company.state.lock();
        let is_old = self.epoch != state.epoch;
        state.failed.clone().or_else(|| is_old.then(built_on_a_lost_write))
    }

    /// The item was committed or given up. With `held`, that is what the company has now.
    pub(crate) fn settle(
        &self,
        rows: Vec<RowKey>,
        operation: Option<u64>,
        (is_committed, held): (bool, Option<i64>),
    ) {
        let mut state = self.company.state.lock();
        state.growing = state.growing.saturating_sub(self.growth);
        if let Some(held) = held {
            state.held = held;
        }
        state.settle(Settled { item: self.item, rows, operation }, is_committed);
    }
}

fn built_on_a_lost_write() -> StoreError {
    StoreError::Unavailable {
        action: "writing",
        message: "what it was built on could not be written".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_committed_row_stays_for_readers_that_began_before_and_for_no_others() {
        let company = Arc::new(Company::new(1, "acme".parse().ok(), (1, None), 1));
        let key: RowKey = (1, b"k".to_vec());
        let write = |value: &[u8]| {
            let mut state = company.state.lock();
            let part = state.begin(&company, 0);
            state.show(&part, 0, key.clone(), Some(value.into()));
            part
        };
        let seen = || company.state.lock().rows.get(&key).map(|row| row.value.clone().unwrap());
        let first = write(b"1");
        let early = company.read();
        first.settle(vec![key.clone()], None, (true, None));
        let late = company.read();
        assert_eq!(seen().as_deref(), Some(&b"1"[..]));
        assert!(!company.state.lock().waits(&key), "the late reader must ask the database");
        drop(early);
        assert!(seen().is_none(), "the late reader finds it in the database");
        drop(late);
        // What was overwritten meanwhile stays until it is committed itself.
        let (older, newer) = (write(b"2"), write(b"3"));
        assert!(company.state.lock().waits(&key));
        older.settle(vec![key.clone()], None, (true, None));
        assert_eq!(seen().as_deref(), Some(&b"3"[..]));
        newer.settle(vec![key.clone()], None, (false, None));
        assert!(seen().is_none(), "it was given up");
    }
}
