//! Tables of small records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::MutexGuard;

use crate::company::{Company, Part, RowKey, State};
use crate::item::{Item, Row};
use crate::page::Range;
use crate::place::{HOST, join, kind, kind_of, split};
use crate::store::{Inner, PostgresStore};
use memhost_store::{
    Change, Commit, DiskLevel, Expected, Held, StoreError, Table, TablePage, Tables, Transacted,
};
use memhost_types::limits::MAX_PAGE_BYTES;

#[async_trait]
impl Tables for PostgresStore {
    async fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let (name, rest) = split(table, key);
        match self.0.find_of(name.as_ref()).await? {
            Some(company) => {
                self.0.value(&company, (kind_of(table, name.as_ref()), rest.to_vec())).await
            }
            None => Ok(None),
        }
    }

    async fn scan(
        &self,
        table: Table,
        prefix: &[u8],
        cursor: Option<&[u8]>,
        limit: usize,
    ) -> Result<TablePage, StoreError> {
        if table == Table::Due {
            return self.0.page_of_due(prefix, cursor, limit).await;
        }
        if table.is_of_company() && prefix.is_empty() {
            return self.0.page_of_all(kind(table), cursor, limit).await;
        }
        let (name, rest) = split(table, prefix);
        let Some(company) = self.0.find_of(name.as_ref()).await? else {
            return Ok(TablePage::default());
        };
        let from = cursor.map_or(rest, |cursor| split(table, cursor).1);
        let whole = |rest: Vec<u8>| join(kind(table), name.as_ref(), &rest);
        let rows = match (table, &name, rest) {
            (Table::Sums, Some(name), []) => {
                self.0.page_of_sums(&company, name, from, limit).await?
            }
            _ => {
                let range = Range { kind: kind(table), prefix: rest, from: from.max(rest) };
                self.0.page(&company, range, limit, MAX_PAGE_BYTES).await?
            }
        };
        Ok(TablePage {
            entries: rows.entries.into_iter().map(|(key, value)| (whole(key), value)).collect(),
            next: rows.next.map(whole),
        })
    }

    async fn transact(&self, changes: &[Change]) -> Result<Transacted, StoreError> {
        let mut places = Vec::with_capacity(changes.len());
        let mut homes: BTreeMap<i64, Arc<Company>> = BTreeMap::new();
        for change in changes {
            let (name, rest) = split(change.table, &change.key);
            check_length(rest)?;
            let company = match &name {
                Some(name) => self.0.home(name).await?,
                None => Arc::clone(&self.0.own),
            };
            places.push((company.id, (kind_of(change.table, name.as_ref()), rest.to_vec())));
            homes.entry(company.id).or_insert(company);
        }
        let Some(writer) = homes.values().next_back().map(Arc::clone) else {
            return Ok(Transacted::Done(Commit::done()));
        };
        self.0.admit(&writer).await;
        loop {
            let reading: Vec<_> = homes.values().map(Company::read).collect();
            let epoch = self.0.own.state.lock().epoch;
            let wanted = not_waiting(&homes, &places);
            let stored = self.0.values(&places, &wanted).await?;
            let present = Present { places: &places, stored: &stored, epoch };
            let queued = queue(&self.0, &homes, &writer, changes, present)?;
            drop(reading);
            match queued {
                Queued::Done(commit) => return Ok(Transacted::Done(commit)),
                Queued::Conflict(place) => return Ok(Transacted::Conflict(place)),
                // A row waits in another lane. Once it is committed, this one can follow it.
                Queued::Behind(lane) => drop(self.0.database.lanes[lane].reach(None).await),
                // A row that waited was given up meanwhile.
                Queued::Again => {}
            }
        }
    }
}

impl Inner {
    /// The values of rows that do not wait for their commit, by their place in `keys`.
    pub(crate) async fn values(
        &self,
        keys: &[(i64, RowKey)],
        wanted: &[usize],
    ) -> Result<BTreeMap<usize, Vec<u8>>, StoreError> {
        let rows = self.of_rows("e.value", keys, wanted).await?;
        Ok(rows.into_iter().map(|(place, row)| (place, row.get(0))).collect())
    }

    /// The present value of a row.
    pub(crate) async fn value(
        &self,
        company: &Arc<Company>,
        key: RowKey,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let _reading = company.read();
        {
            let state = company.state.lock();
            state.alive()?;
            if let Some(row) = state.rows.get(&key) {
                return Ok(row.value.as_ref().map(|value| value.to_vec()));
            }
        }
        let mut stored = self.values(&[(company.id, key.clone())], &[0]).await?;
        let state = company.state.lock();
        state.alive()?;
        // It may have been written meanwhile.
        Ok(match state.rows.get(&key) {
            Some(row) => row.value.as_ref().map(|value| value.to_vec()),
            None if state.is_hidden(&key) => None,
            None => stored.remove(&0),
        })
    }
}

/// The longest key, in bytes: an entry of an index has to fit a third of a page of PostgreSQL.
const LONGEST_KEY: usize = 2_600;

/// Refuses a key that PostgreSQL would refuse with everything that is written beside it.
pub(crate) fn check_length(key: &[u8]) -> Result<(), StoreError> {
    match key.len() {
        0..=LONGEST_KEY => Ok(()),
        length => Err(StoreError::Refused {
            action: "writing",
            message: format!("a key has {length} bytes, and at most {LONGEST_KEY} are kept"),
        }),
    }
}

/// The places of rows that only the database has.
fn not_waiting(homes: &BTreeMap<i64, Arc<Company>>, places: &[(i64, RowKey)]) -> Vec<usize> {
    let waits = |(company, key): &(i64, RowKey)| {
        homes.get(company).is_some_and(|home| home.state.lock().waits(key))
    };
    places.iter().enumerate().filter(|(_, place)| !waits(place)).map(|(at, _)| at).collect()
}

/// What was read for changes.
struct Present<'a> {
    /// The place of each change.
    places: &'a [(i64, RowKey)],
    /// The database's rows, by the number of their change.
    stored: &'a BTreeMap<usize, Vec<u8>>,
    /// The epoch of the host's own rows when they were read.
    epoch: u64,
}

enum Queued {
    Done(Commit),
    Conflict(usize),
    Behind(usize),
    Again,
}

/// Whether rows of a kind count as what a company has.
pub(crate) fn prefix_bytes(table: Table, company: &Company) -> Option<usize> {
    (table.counts() && company.id != HOST).then(|| company.prefix_bytes())
}

/// Checks the conditions against what is present, and gives the changes to the lane.
fn queue(
    store: &Inner,
    homes: &BTreeMap<i64, Arc<Company>>,
    writer: &Arc<Company>,
    changes: &[Change],
    Present { places, stored, epoch }: Present<'_>,
) -> Result<Queued, StoreError> {
    // In the order of their numbers, as everywhere.
    let mut states: BTreeMap<i64, MutexGuard<'_, State>> =
        homes.iter().map(|(id, company)| (*id, company.state.lock())).collect();
    if states.get(&HOST).is_some_and(|state| state.epoch != epoch) {
        return Ok(Queued::Again);
    }
    for (id, state) in &states {
        state.alive()?;
        let writes = |(place, change): (&(i64, RowKey), &Change)| {
            place.0 == *id && change.new.is_some() && change.table.is_of_company()
        };
        if state.closed.is_some()
            && places.iter().zip(changes).any(writes)
            && let Some(company) = homes.get(id).and_then(|home| home.name.clone())
        {
            return Err(StoreError::Erased { company });
        }
    }
    let length = |at: usize| -> Option<usize> {
        let (company, key) = &places[at];
        match states.get(company).and_then(|state| state.rows.get(key)) {
            Some(row) => row.value.as_ref().map(|value| value.len()),
            None => stored.get(&at).map(Vec::len),
        }
    };
    let is_same = |at: usize, wanted: &[u8]| {
        let (company, key) = &places[at];
        match states.get(company).and_then(|state| state.rows.get(key)) {
            Some(row) => row.value.as_deref() == Some(wanted),
            None => stored.get(&at).map(Vec::as_slice) == Some(wanted),
        }
    };
    for (at, change) in changes.iter().enumerate() {
        let is_met = match &change.expected {
            Expected::Anything => true,
            Expected::Absent => length(at).is_none(),
            Expected::Value(value) => is_same(at, value),
        };
        if !is_met {
            return Ok(Queued::Conflict(at));
        }
        let (company, key) = &places[at];
        let other = states.get(company).and_then(|state| state.rows.get(key));
        if let Some(row) = other.filter(|row| row.lane != writer.lane && !row.is_committed) {
            return Ok(Queued::Behind(row.lane));
        }
    }
    let mut growth: HashMap<i64, i64> = HashMap::new();
    let mut last: HashMap<&(i64, RowKey), usize> = HashMap::new();
    for (at, place) in places.iter().enumerate() {
        last.insert(place, at);
    }
    for (at, (change, place)) in changes.iter().zip(places).enumerate() {
        let Some(home) = homes.get(&place.0) else { continue };
        let is_new = change.new.is_some() && change.table.is_new_data() && length(at).is_none();
        if is_new && home.id != HOST {
            let bytes = states.get(&home.id).map_or(0, |state| state.held + state.growing);
            let held = Held { bytes: u64::try_from(bytes).unwrap_or(0), quota: store.quota };
            if held.level() != DiskLevel::Plenty {
                return Err(StoreError::CompanyFull { held: held.bytes, quota: held.quota });
            }
        }
        // Where a key is written twice, the last value stays.
        if let Some(prefix) =
            prefix_bytes(change.table, home).filter(|_| last.get(place) == Some(&at))
        {
            let size = |value: Option<usize>| {
                value.map_or(0, |value| {
                    i64::try_from(prefix + place.1.1.len() + value).unwrap_or(i64::MAX)
                })
            };
            *growth.entry(home.id).or_default() +=
                size(change.new.as_ref().map(Vec::len)) - size(length(at));
        }
    }
    let parts: Vec<Part> = homes
        .iter()
        .filter_map(|(id, home)| {
            let more = growth.get(id).copied().unwrap_or(0);
            Some(states.get_mut(id)?.begin(home, more))
        })
        .collect();
    let mut rows = Vec::with_capacity(changes.len());
    let mut seen = HashSet::new();
    for (change, (company, key)) in changes.iter().zip(places).rev() {
        if !seen.insert((company, key)) {
            continue;
        }
        let value: Option<Arc<[u8]>> = change.new.as_deref().map(Arc::from);
        let Some(home) = homes.get(company) else { continue };
        if let Some(part) = parts.iter().find(|part| part.company.id == *company)
            && let Some(state) = states.get_mut(company)
        {
            state.show(part, writer.lane, key.clone(), value.clone());
        }
        let prefix_bytes = prefix_bytes(change.table, home);
        rows.push(Row { company: *company, key: key.clone(), value, prefix_bytes });
    }
    let (reply, commit) = Commit::pair();
    let item = Item { parts, rows, record: None, removed: Vec::new(), reply };
    store.lane(writer).write(item);
    Ok(Queued::Done(commit))
}
