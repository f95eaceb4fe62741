//! Writes that happen once, at a service that does not know whether it did one before.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::http;
use crate::storage::Collection;
use crate::types::Error;

/// What writes made, by a key of the provider's own: of an operation, or of a record whose id the
/// host gave. It is the map from that key to the service's ids, too.
///
/// Each write is first noted as begun. If it is not known how it ended, the next one with the key
/// looks at the service before it writes. So the record at the service must show the key, for
/// example in its metadata.
#[derive(Debug)]
pub struct Writes<T> {
    rows: Collection<Row<T>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row<T> {
    /// None: begun.
    made: Option<T>,
}

impl<T: Serialize + DeserializeOwned + Clone> Writes<T> {
    /// The writes in the [`Collection`] of this name.
    pub fn new(name: &str) -> Self {
        Self { rows: Collection::new(name) }
    }

    /// What the write of a key made, if it is known.
    ///
    /// # Errors
    /// If storage fails.
    pub fn find(&self, key: &str) -> Result<Option<T>, Error> {
        Ok(self.rows.get(key)?.and_then(|row| row.made))
    }

    /// Forgets a key: the next write with it makes something new.
    ///
    /// # Errors
    /// If storage fails.
    pub fn forget(&self, key: &str) -> Result<(), Error> {
        Ok(self.rows.delete(key)?)
    }

    /// Notes what a key stands for, for what was made elsewhere.
    ///
    /// # Errors
    /// If storage fails.
    pub fn note(&self, key: &str, made: &T) -> Result<(), Error> {
        Ok(self.rows.put(key, &Row { made: Some(made.clone()) })?)
    }

    /// Writes once: answers what an earlier write with this key made, or else writes. `look` finds
    /// at the service what a write of this key made. It is asked if an earlier write may have ended
    /// there, and if `may_repeat`: say so where the host may come again after a crash, which can
    /// take the note with it, as with a capture that has a hook.
    ///
    /// A write that broke on the way is looked for at once. If it is not there, the error says that
    /// it may have been done, and the next write with the key looks again.
    ///
    /// # Errors
    /// The errors of `look` and `write`, or of storage.
    pub fn once(
        &self,
        key: &str,
        may_repeat: bool,
        look: impl Fn() -> Result<Option<T>, http::Error>,
        write: impl FnOnce() -> Result<T, http::Error>,
    ) -> Result<T, Error> {
        let begun = Row { made: None };
        let is_new = self.rows.compare_and_swap(key, None, Some(&begun))?;
        if !is_new && let Some(made) = self.find(key)? {
            return Ok(made);
        }
        let found = if is_new && !may_repeat { None } else { look()? };
        let made = match found {
            Some(made) => made,
            None => match write() {
                Ok(made) => made,
                Err(error) if error.may_have_acted() => match look() {
                    Ok(Some(made)) => made,
                    _ => return Err(error.into()),
                },
                Err(error) => {
                    if is_new {
                        self.forget(key)?;
                    }
                    return Err(error.into());
                }
            },
        };
        self.note(key, &made)?;
        Ok(made)
    }
}
