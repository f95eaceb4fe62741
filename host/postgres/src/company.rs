//! A company as its home knows it: its last numbers, and what is written and not committed yet.
//!
//! Every read joins the database's answer with what waits here. A reader holds
//! [`Company::retiring`] for that time, so that nothing leaves this memory between its query and
//! the moment at which it looks here: what was committed meanwhile is seen in both places, and
//! nothing is missed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::RwLock;

use crate::place::HOST;
use memhost_ports::StorageSize;
use memhost_store::StoreError;
use memhost_types::{CompanyId, Operation};

/// A company that this host serves.
pub(crate) struct Company {
    pub(crate) id: i64,
    /// None: the host itself.
    pub(crate) name: Option<CompanyId>,
    /// The token under which this host serves it.
    pub(crate) token: i64,
    /// Which lane writes it.
    pub(crate) lane: usize,
    pub(crate) state: Mutex<State>,
    pub(crate) retiring: RwLock<()>,
}

/// A row that waits for its commit. `None`: it is deleted.
pub(crate) struct WaitingRow {
    item: u64,
    /// The lane that writes it.
    pub(crate) lane: usize,
    pub(crate) value: Option<Arc<[u8]>>,
}

pub(crate) struct WaitingOperation {
    item: u64,
    pub(crate) operation: Arc<Operation>,
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
    /// The sizes of partitions, by their name without the company.
    pub(crate) sizes: HashMap<Vec<u8>, StorageSize>,
    pub(crate) rows: BTreeMap<RowKey, WaitingRow>,
    pub(crate) operations: BTreeMap<u64, WaitingOperation>,
    items: u64,
}

/// An item of a lane, as one of its companies knows it.
pub(crate) struct Part {
    pub(crate) company: Arc<Company>,
    item: u64,
    /// By how much it was thought to grow, in bytes.
    growth: i64,
}

impl Company {
    pub(crate) fn new(id: i64, name: Option<CompanyId>, token: i64, lanes: usize) -> Self {
        let lane = usize::try_from(id).unwrap_or(0) % lanes.max(1);
        let (state, retiring) = (Mutex::default(), RwLock::new(()));
        Self { id, name, token, lane, state, retiring }
    }

    /// The bytes that stand before each of its keys in the count of what it has.
    pub(crate) fn prefix_bytes(&self) -> usize {
        self.name.as_ref().map_or(0, |name| name.as_str().len() + 1)
    }

    /// What it has, in bytes, with what waits.
    pub(crate) fn held(&self) -> u64 {
        let state = self.state.lock();
        u64::try_from(state.held.saturating_add(state.growing)).unwrap_or(0)
    }

    /// Gives up: what waits is not written, and the company must be loaded again. The host's own
    /// rows are what the database has, again.
    pub(crate) fn fail(&self, error: &StoreError) {
        let mut state = self.state.lock();
        if self.id == HOST {
            return;
        }
        state.failed.get_or_insert_with(|| error.clone());
        state.rows.clear();
        state.operations.clear();
    }
}

impl State {
    /// # Errors
    /// Where the company must be loaded again.
    pub(crate) fn alive(&self) -> Result<(), StoreError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Forgets what was erased. Its numbers go on.
    pub(crate) fn erase(&mut self) {
        (self.given, self.open, self.sizes, self.held) = Default::default();
    }

    /// Begins an item that is thought to grow the company by so many bytes.
    pub(crate) fn begin(&mut self, company: &Arc<Company>, growth: i64) -> Part {
        self.items += 1;
        self.growing = self.growing.saturating_add(growth);
        Part { company: Arc::clone(company), item: self.items, growth }
    }

    /// Shows a row of an item to all readers.
    pub(crate) fn show(&mut self, part: &Part, lane: usize, key: RowKey, value: Option<Arc<[u8]>>) {
        self.rows.insert(key, WaitingRow { item: part.item, lane, value });
    }

    /// Shows an operation of an item to all readers.
    pub(crate) fn show_operation(&mut self, part: &Part, operation: Arc<Operation>) {
        let number = operation.id.sequence();
        self.operations.insert(number, WaitingOperation { item: part.item, operation });
    }
}

impl Part {
    /// Takes what was committed, or given up, out of the company's memory, unless it was
    /// overwritten since.
    pub(crate) fn retire(&self, rows: &[RowKey], operation: Option<u64>) {
        let mut state = self.company.state.lock();
        state.growing = state.growing.saturating_sub(self.growth);
        for key in rows {
            if state.rows.get(key).is_some_and(|row| row.item == self.item) {
                state.rows.remove(key);
            }
        }
        if let Some(number) = operation
            && state.operations.get(&number).is_some_and(|one| one.item == self.item)
        {
            state.operations.remove(&number);
        }
    }
}
