//! Rows of records in memory. A query reads the row of each record that it answers, and a read of
//! sled waits for the transaction in progress, whichever trees that one changes.

use std::collections::HashMap;

use parking_lot::Mutex;
use sled::IVec;

/// When the newer half has so many bytes it becomes the older one, and the older one goes. This is
/// the most; a store with a small page cache has less.
const HALF_BYTES: usize = 8 << 20;
/// What an entry takes besides its key and its value, in bytes.
const OVERHEAD: usize = 96;

type Rows = HashMap<Vec<u8>, Option<IVec>>;

struct Kept {
    most: usize,
    newer: Rows,
    older: Rows,
    /// How large the newer half is.
    bytes: usize,
    /// How often something was forgotten.
    changes: u64,
}

impl Kept {
    fn new(most: usize) -> Self {
        Self { most, newer: Rows::new(), older: Rows::new(), bytes: 0, changes: 0 }
    }

    fn put(&mut self, key: &[u8], row: Option<IVec>) {
        self.bytes += key.len() + row.as_ref().map_or(0, |row| row.len()) + OVERHEAD;
        self.newer.insert(key.to_vec(), row);
        if self.bytes >= self.most {
            self.older = std::mem::take(&mut self.newer);
            self.bytes = 0;
        }
    }
}

/// The rows that were read lately, those that are not there included.
pub(super) struct RowCache(Mutex<Kept>);

impl Default for RowCache {
    fn default() -> Self {
        Self(Mutex::new(Kept::new(HALF_BYTES)))
    }
}

impl RowCache {
    /// A cache in proportion to the store's page cache.
    pub(super) fn beside(cache_bytes: u64) -> Self {
        let half =
            usize::try_from(cache_bytes / 16).map_or(HALF_BYTES, |half| half.min(HALF_BYTES));
        Self(Mutex::new(Kept::new(half)))
    }

    /// A row from memory, or as `read` answers it.
    pub(super) fn get<E>(
        &self,
        key: &[u8],
        read: impl FnOnce() -> Result<Option<IVec>, E>,
    ) -> Result<Option<IVec>, E> {
        let mut kept = self.0.lock();
        if let Some(row) = kept.newer.get(key) {
            return Ok(row.clone());
        }
        if let Some(row) = kept.older.remove(key) {
            kept.put(key, row.clone());
            return Ok(row);
        }
        let changes = kept.changes;
        drop(kept);
        let row = read()?;
        let mut kept = self.0.lock();
        // A row that was changed meanwhile may be the one before.
        if kept.changes == changes {
            kept.put(key, row.clone());
        }
        Ok(row)
    }

    /// Forgets rows that were written. Whoever wrote them calls this before anybody is told so.
    pub(super) fn forget<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let mut keys = keys.peekable();
        if keys.peek().is_none() {
            return;
        }
        let mut kept = self.0.lock();
        kept.changes += 1;
        for key in keys {
            // The bytes of a half only grow: it is replaced a little earlier.
            kept.newer.remove(key);
            kept.older.remove(key);
        }
    }

    /// Forgets all rows.
    pub(super) fn clear(&self) {
        let mut kept = self.0.lock();
        *kept = Kept { changes: kept.changes + 1, ..Kept::new(kept.most) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(cache: &RowCache, key: &str, value: &str) -> String {
        let row = cache.get(key.as_bytes(), || Ok::<_, ()>(Some(IVec::from(value))));
        String::from_utf8(row.unwrap().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_row_is_read_once_until_it_is_written() {
        let cache = RowCache::default();
        assert_eq!([read(&cache, "a", "1"), read(&cache, "a", "2")], ["1", "1"]);
        cache.forget([b"a".as_slice()].into_iter());
        assert_eq!([read(&cache, "a", "2"), read(&cache, "b", "1")], ["2", "1"]);
        cache.clear();
        assert_eq!([read(&cache, "a", "3"), read(&cache, "b", "3")], ["3", "3"]);
        let absent = || cache.get(b"c", || Ok::<_, ()>(None)).unwrap();
        assert_eq!((absent(), cache.get(b"c", || Err("read again"))), (None, Ok(None)));
    }

    #[test]
    fn a_row_that_is_written_while_it_is_read_is_not_kept() {
        for is_cleared in [false, true] {
            let cache = RowCache::default();
            let before = cache.get(b"a", || {
                match is_cleared {
                    true => cache.clear(),
                    false => cache.forget([b"a".as_slice()].into_iter()),
                }
                Ok::<_, ()>(Some(IVec::from("before")))
            });
            assert_eq!(before.unwrap().as_deref(), Some(b"before".as_slice()));
            assert_eq!(read(&cache, "a", "after"), "after");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_read_stays() {
        let cache = RowCache::default();
        let large = "x".repeat(1 << 10);
        for n in 0..4 * HALF_BYTES / large.len() {
            read(&cache, &n.to_string(), &large);
            assert_eq!(read(&cache, "hot", if n == 0 { "1" } else { "2" }), "1");
        }
        let kept = cache.0.lock();
        assert!((kept.newer.len() + kept.older.len()) * large.len() <= 2 * HALF_BYTES);
    }
}
