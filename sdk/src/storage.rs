//! The `storage` import with types: collections of serde values, prefix iteration and atomic
//! batches.
//!
//! A [`Collection`] owns the keys that start with its name and a zero byte. Ordering, durability
//! and limits are the contract's (`wit/host.wit`): batches are atomic, an operation's writes are
//! durable before it is answered.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host::storage as raw;
use crate::types;

/// Errors of storage.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The binding has no `storage` grant.
    #[error("storage is not granted: {0}")]
    Denied(String),
    /// A key, value, batch or total is over its limit.
    #[error("storage limit: {0}")]
    LimitExceeded(String),
    /// The host could not do it. Nothing was written.
    #[error("storage failed: {0}")]
    Failed(String),
    /// A stored value does not have the expected type.
    #[error("the value at {key:?} has another form than expected: {message}")]
    Corrupt {
        /// The key without the collection's prefix.
        key: String,
        /// serde's message.
        message: String,
    },
}

impl From<raw::Error> for Error {
    fn from(error: raw::Error) -> Self {
        match error {
            raw::Error::Denied(message) => Self::Denied(message),
            raw::Error::LimitExceeded(message) => Self::LimitExceeded(message),
            raw::Error::Failed(message) => Self::Failed(message),
        }
    }
}

impl From<Error> for types::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::LimitExceeded(message) => Self::QuotaExceeded(message),
            other => Self::internal(other.to_string()),
        }
    }
}

/// A named set of values of one type, ordered by key. Making one costs nothing and touches nothing.
#[derive(Debug)]
pub struct Collection<T> {
    prefix: Vec<u8>,
    values: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> Collection<T> {
    /// The collection of this name. Two types under one name are a mistake that reading reports as
    /// [`Error::Corrupt`].
    pub fn new(name: &str) -> Self {
        Self { prefix: [name.as_bytes(), b"\0"].concat(), values: PhantomData }
    }

    fn key(&self, key: impl AsRef<[u8]>) -> Vec<u8> {
        [&self.prefix, key.as_ref()].concat()
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(value).map_err(|error| Error::Corrupt {
            key: String::from_utf8_lossy(key).into_owned(),
            message: error.to_string(),
        })
    }

    /// The value at a key.
    ///
    /// # Errors
    /// If storage fails or the value is of another type.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<T>, Error> {
        let key = key.as_ref();
        raw::get(&self.key(key))?.map(|value| Self::decode(key, &value)).transpose()
    }

    /// Sets one value, at once.
    ///
    /// # Errors
    /// If storage fails or a limit is reached.
    pub fn put(&self, key: impl AsRef<[u8]>, value: &T) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.put(self, key, value)?;
        batch.apply()
    }

    /// Deletes one value, at once. Deleting what is not there is no error.
    ///
    /// # Errors
    /// If storage fails.
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<(), Error> {
        let mut batch = Batch::new();
        batch.delete(self, key);
        batch.apply()
    }

    /// Replaces a value if it is still the expected one (`None`: absent) and answers whether it
    /// was.
    ///
    /// # Errors
    /// If storage fails or a limit is reached.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&T>,
        new: Option<&T>,
    ) -> Result<bool, Error> {
        let expected = expected.map(encode).transpose()?;
        let new = new.map(encode).transpose()?;
        Ok(raw::compare_and_swap(&self.key(key), expected.as_deref(), new.as_deref())?)
    }

    /// Every entry whose key starts with `prefix`, in key order, read page by page. Keys come
    /// without the collection's own prefix.
    pub fn iter<P: AsRef<[u8]>>(
        &self,
        prefix: P,
    ) -> impl Iterator<Item = Result<(Vec<u8>, T), Error>> + use<T, P> {
        let own = self.prefix.len();
        scan(self.key(prefix)).map(move |entry| {
            let (key, value) = entry?;
            let key = key.get(own..).unwrap_or_default().to_vec();
            let value = Self::decode(&key, &value)?;
            Ok((key, value))
        })
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::Failed(format!("the value cannot be written as JSON: {error}")))
}

/// Raw bytes at a key that no collection owns: for providers with their own encoding.
///
/// # Errors
/// If storage fails.
pub fn get(key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
    Ok(raw::get(key.as_ref())?)
}

/// Replaces raw bytes at a key that no collection owns, if they are still the expected ones
/// (`None`: absent), and answers whether they were.
///
/// # Errors
/// If storage fails or a limit is reached.
pub fn compare_and_swap(
    key: impl AsRef<[u8]>,
    expected: Option<&[u8]>,
    new: Option<&[u8]>,
) -> Result<bool, Error> {
    Ok(raw::compare_and_swap(key.as_ref(), expected, new)?)
}

/// Raw entries whose key starts with `prefix`, in key order, read page by page.
pub fn scan(prefix: impl Into<Vec<u8>>) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>), Error>> {
    let prefix = prefix.into();
    let mut page = Vec::new().into_iter();
    let mut cursor: Option<Vec<u8>> = None;
    let mut ended = false;
    std::iter::from_fn(move || {
        loop {
            if let Some(entry) = page.next() {
                let raw::Entry { key, value } = entry;
                return Some(Ok((key, value)));
            }
            if ended {
                return None;
            }
            match raw::scan(&prefix, cursor.as_deref(), 0) {
                Ok(next) => {
                    page = next.entries.into_iter();
                    ended = next.next.is_none();
                    cursor = next.next;
                }
                Err(error) => {
                    ended = true;
                    return Some(Err(error.into()));
                }
            }
        }
    })
}

/// Writes that happen together or not at all: at most 4,096 writes and 16 MiB.
#[derive(Debug, Default)]
pub struct Batch {
    writes: Vec<raw::Write>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value of a collection.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn put<T: Serialize + DeserializeOwned>(
        &mut self,
        collection: &Collection<T>,
        key: impl AsRef<[u8]>,
        value: &T,
    ) -> Result<(), Error> {
        self.put_raw(collection.key(key), encode(value)?);
        Ok(())
    }

    /// Deletes a value of a collection.
    pub fn delete<T: Serialize + DeserializeOwned>(
        &mut self,
        collection: &Collection<T>,
        key: impl AsRef<[u8]>,
    ) {
        self.delete_raw(collection.key(key));
    }

    /// Sets raw bytes at a key that no collection owns.
    pub fn put_raw(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.writes.push(raw::Write::Put(raw::Entry { key, value }));
    }

    /// Deletes a key that no collection owns.
    pub fn delete_raw(&mut self, key: Vec<u8>) {
        self.writes.push(raw::Write::Delete(key));
    }

    /// How many writes it holds.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Does all of it or nothing.
    ///
    /// # Errors
    /// If storage fails or a limit is reached.
    pub fn apply(self) -> Result<(), Error> {
        Ok(raw::apply(&self.writes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_collection_round_trips_iterates_and_swaps() {
        testing::reset(serde_json::json!({}));
        let numbers = Collection::<u32>::new("numbers");
        let others = Collection::<u32>::new("numbers2");
        let mut batch = Batch::new();
        for n in 0..2_500_u32 {
            batch.put(&numbers, n.to_be_bytes(), &n).unwrap();
        }
        others.put("x", &1).unwrap();
        batch.apply().unwrap();
        let all: Vec<u32> = numbers.iter("").map(|entry| entry.unwrap().1).collect();
        assert_eq!(all, (0..2_500).collect::<Vec<_>>());
        assert!(numbers.compare_and_swap(7_u32.to_be_bytes(), Some(&7), Some(&70)).unwrap());
        assert!(!numbers.compare_and_swap(7_u32.to_be_bytes(), Some(&7), None).unwrap());
        assert_eq!(numbers.get(7_u32.to_be_bytes()).unwrap(), Some(70));
        numbers.delete(7_u32.to_be_bytes()).unwrap();
        assert_eq!(numbers.get(7_u32.to_be_bytes()).unwrap(), None);
    }

    #[test]
    fn raw_bytes_are_swapped_if_they_are_as_expected() {
        testing::reset(serde_json::json!({}));
        assert!(compare_and_swap("key", None, Some(b"one")).unwrap());
        assert!(!compare_and_swap("key", None, Some(b"two")).unwrap());
        assert!(compare_and_swap("key", Some(b"one"), Some(b"two")).unwrap());
        assert_eq!(get("key").unwrap().as_deref(), Some(b"two".as_slice()));
        assert!(compare_and_swap("key", Some(b"two"), None).unwrap());
        assert_eq!(get("key").unwrap(), None);
    }

    #[test]
    fn a_value_of_another_type_is_reported_with_its_key() {
        testing::reset(serde_json::json!({}));
        Collection::<String>::new("c").put("k", &"text".to_owned()).unwrap();
        let error = Collection::<u32>::new("c").get("k").unwrap_err();
        assert!(matches!(error, Error::Corrupt { ref key, .. } if key == "k"), "{error}");
    }
}
