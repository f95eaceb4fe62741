//! Scans that go from page to page by themselves. Memory stays bounded by one page.

use std::vec::IntoIter;

use serde::de::DeserializeOwned;

use crate::{Store, StoreError, Table, decode};
use memhost_types::limits::MAX_PAGE_BYTES;
use memhost_types::{CompanyId, Operation, OperationFilter};

/// Records of one page. Between two pages other tasks run: sled reads a page without waiting.
const PAGE: usize = 256;
/// Records that are read for one page of matching ones. Such a page may have fewer records than
/// asked for, or none, and still have a next page.
const MOST_READ: usize = 10_000;

/// One page of records, and where the next one begins.
pub type Found<T> = (Vec<T>, Option<Vec<u8>>);

/// All records of a table under a prefix, in key order.
pub struct Scan<'a> {
    store: &'a dyn Store,
    table: Table,
    prefix: Vec<u8>,
    page: IntoIter<(Vec<u8>, Vec<u8>)>,
    /// Where the next page begins.
    next: Next,
}

enum Next {
    Start,
    At(Vec<u8>),
    End,
}

/// All records of a table under a prefix, in key order.
pub fn scan_all<'a>(store: &'a dyn Store, table: Table, prefix: &[u8]) -> Scan<'a> {
    Scan { store, table, prefix: prefix.to_vec(), page: IntoIter::default(), next: Next::Start }
}

impl Scan<'_> {
    /// Begins at a key instead.
    #[must_use]
    pub fn from(mut self, key: Option<&[u8]>) -> Self {
        self.next = key.map_or(Next::Start, |key| Next::At(key.to_vec()));
        self
    }

    /// The next key and its value as it is stored.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(&mut self) -> Result<Option<(Vec<u8>, Vec<u8>)>, StoreError> {
        loop {
            if let Some(entry) = self.page.next() {
                return Ok(Some(entry));
            }
            let from = match &self.next {
                Next::Start => None,
                Next::At(key) => Some(key.as_slice()),
                Next::End => return Ok(None),
            };
            let page = self.store.scan(self.table, &self.prefix, from, PAGE).await?;
            if page.next.is_some() {
                tokio::task::yield_now().await;
            }
            self.next = page.next.map_or(Next::End, Next::At);
            self.page = page.entries.into_iter();
        }
    }

    /// The next key and its record; `what` names the record in errors.
    ///
    /// # Errors
    /// Where it cannot be read or decoded.
    pub async fn next_row<T: DeserializeOwned>(
        &mut self,
        what: &str,
    ) -> Result<Option<(Vec<u8>, T)>, StoreError> {
        match self.next().await? {
            Some((key, value)) => Ok(Some((key, decode(what, &value)?))),
            None => Ok(None),
        }
    }
}

/// Records under a prefix that match, in key order.
///
/// # Errors
/// Where they cannot be read.
pub async fn matching<T: DeserializeOwned>(
    store: &dyn Store,
    (table, what): (Table, &str),
    prefix: &[u8],
    from: Option<&[u8]>,
    limit: usize,
    is_wanted: impl Fn(&T) -> bool,
) -> Result<Found<T>, StoreError> {
    let (mut scan, mut page) = (scan_all(store, table, prefix).from(from), FoundPage::new(limit));
    while let Some((key, value)) = scan.next().await? {
        if page.is_full() {
            return Ok(page.before(key));
        }
        let record = decode(what, &value)?;
        page.add(is_wanted(&record).then_some(record), value.len());
    }
    Ok(page.last())
}

/// One page of matching records while it is filled.
#[derive(Debug)]
pub struct FoundPage<T> {
    found: Vec<T>,
    limit: usize,
    /// The bytes found for it, as they are stored.
    bytes: usize,
    /// Records that were read for it, matching or not.
    read: usize,
}

impl<T> FoundPage<T> {
    /// A page of at most `limit` records.
    pub fn new(limit: usize) -> Self {
        Self { found: Vec::new(), limit, bytes: 0, read: 0 }
    }

    /// Whether the page ends here: it has all its records, they are large together, or enough were
    /// read for it.
    pub fn is_full(&self) -> bool {
        self.found.len() == self.limit || self.bytes >= MAX_PAGE_BYTES || self.read == MOST_READ
    }

    /// Adds what was read for one key, of so many bytes. `None` if it does not match.
    pub fn add(&mut self, record: Option<T>, bytes: usize) {
        self.read += 1;
        if let Some(record) = record {
            self.bytes += bytes;
            self.found.push(record);
        }
    }

    /// The page, where the next one begins at `key`.
    pub fn before(self, key: Vec<u8>) -> Found<T> {
        (self.found, Some(key))
    }

    /// The page, where it is the last one.
    pub fn last(self) -> Found<T> {
        (self.found, None)
    }
}

/// All operations of a company that match, newest first.
pub struct OperationScan<'a> {
    store: &'a dyn Store,
    company: &'a CompanyId,
    filter: &'a OperationFilter,
    page: IntoIter<Operation>,
    before: Option<u64>,
    is_over: bool,
}

/// All operations of a company that match, newest first.
pub fn scan_operations<'a>(
    store: &'a dyn Store,
    company: &'a CompanyId,
    filter: &'a OperationFilter,
) -> OperationScan<'a> {
    OperationScan {
        store,
        company,
        filter,
        page: IntoIter::default(),
        before: None,
        is_over: false,
    }
}

impl OperationScan<'_> {
    /// The next operation.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub async fn next(&mut self) -> Result<Option<Operation>, StoreError> {
        loop {
            if let Some(operation) = self.page.next() {
                return Ok(Some(operation));
            }
            if self.is_over {
                return Ok(None);
            }
            let page = self.store.operations(self.company, self.filter, self.before, PAGE).await?;
            if page.next_before.is_some() {
                tokio::task::yield_now().await;
            }
            (self.before, self.is_over) = (page.next_before, page.next_before.is_none());
            self.page = page.operations.into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{Change, Expected, SledOptions, SledStore, Tables, encode};

    /// A store with records 0 to `count` of one company, and one record each before and behind
    /// them.
    async fn filled(count: u32) -> (TempDir, SledStore) {
        let directory = TempDir::new().unwrap();
        let store = SledStore::open(directory.path(), SledOptions::default()).unwrap();
        let keys = (0..count).map(|n| [b"acme\0".as_slice(), &n.to_be_bytes()].concat());
        for (n, key) in keys.chain([b"acm\0z".to_vec(), b"acme2\0a".to_vec()]).enumerate() {
            let new = Some(encode("number", &n).unwrap());
            let change = Change { table: Table::Events, key, expected: Expected::Absent, new };
            drop(store.transact(&[change]).await.unwrap());
        }
        (directory, store)
    }

    #[tokio::test]
    async fn a_scan_answers_every_record_of_its_prefix_once_and_in_order() {
        for count in [0, 1, 255, 256, 257, 600] {
            let (_directory, store) = filled(count).await;
            let (mut scan, mut all) = (scan_all(&store, Table::Events, b"acme\0"), Vec::new());
            while let Some((_, number)) = scan.next_row::<u32>("number").await.unwrap() {
                all.push(number);
            }
            assert_eq!(all, (0..count).collect::<Vec<_>>());
            assert!(scan.next().await.unwrap().is_none());
        }
    }

    #[tokio::test]
    async fn pages_of_matching_records_join_without_gaps_and_reading_is_bounded() {
        let count = u32::try_from(MOST_READ).unwrap() + 500;
        let (_directory, store) = filled(count).await;
        let table = (Table::Events, "number");
        let is_rare = |number: &u32| number.is_multiple_of(100);
        let (mut all, mut from, mut pages) = (Vec::new(), None::<Vec<u8>>, 0);
        loop {
            let page =
                matching(&store, table, b"acme\0", from.as_deref(), 40, is_rare).await.unwrap();
            assert!(page.0.len() <= 40);
            all.extend(page.0);
            pages += 1;
            match page.1 {
                Some(next) => from = Some(next),
                None => break,
            }
        }
        assert_eq!(all, (0..count).step_by(100).collect::<Vec<_>>());
        assert_eq!(pages, 3);
        // Nothing matches: the page ends after so many records, and leads on.
        let (found, next) =
            matching(&store, table, b"acme\0", None, 40, |_: &u32| false).await.unwrap();
        assert!(found.is_empty() && next.is_some());
    }
}
