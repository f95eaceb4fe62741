//! The facts of one user or workspace. They are one value of the storage, which is replaced only if
//! it is still what was read. So the limit on their number holds for concurrent writers, too.

use memhost_sdk::storage::{Batch, compare_and_swap, get, scan};
use memhost_sdk::types::Error;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::place::Place;

/// The first byte of every value: the version of the encoding.
const FORMAT: u8 = 2;
/// The prefix of the storage keys that say in which list an id is.
const IDS: &[u8] = b"id\0";
/// How often a write is tried again after another one was faster. Each time one write has
/// succeeded.
const TRIES: usize = 100;

/// A list.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct List {
    pub(crate) place: Place,
    /// The number of the next fact.
    next: u64,
    /// In the order of their numbers.
    pub(crate) facts: Vec<Fact>,
}

impl List {
    fn new(place: Place) -> Self {
        Self { place, next: 0, facts: Vec::new() }
    }

    fn decode(key: &[u8], value: &[u8]) -> Result<Self, Error> {
        let list = match value {
            [FORMAT, list @ ..] => postcard::from_bytes(list).map_err(|error| error.to_string()),
            _ => Err("it is of another format".to_owned()),
        };
        list.map_err(|error| {
            Error::internal(format!(
                "the list {} cannot be read: {error}; reset the binding",
                key.escape_ascii()
            ))
        })
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        let kept = postcard::to_extend(self, vec![FORMAT]);
        kept.map_err(|error| Error::internal(format!("the list cannot be written: {error}")))
    }

    /// Adds a fact at the end.
    pub(crate) fn push(&mut self, mut fact: Fact) {
        fact.number = self.next;
        self.next += 1;
        self.facts.push(fact);
    }

    /// The fact of this id.
    pub(crate) fn fact(&self, id: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.id == id)
    }

    /// The fact of this id, to change it.
    pub(crate) fn fact_mut(&mut self, id: &str) -> Option<&mut Fact> {
        self.facts.iter_mut().find(|fact| fact.id == id)
    }
}

/// The list at a key.
///
/// # Errors
/// If storage fails.
fn load(key: &[u8]) -> Result<Option<List>, Error> {
    get(key)?.map(|value| List::decode(key, &value)).transpose()
}

/// The lists whose keys have this prefix, in the order of their keys.
pub(crate) fn below(prefix: Vec<u8>) -> impl Iterator<Item = Result<(Vec<u8>, List), Error>> {
    scan(prefix).map(|entry| {
        let (key, value) = entry?;
        let list = List::decode(&key, &value)?;
        Ok((key, list))
    })
}

/// Changes the list at a key, or creates it. `change` may run more than once; if it fails, nothing
/// is written.
///
/// # Errors
/// The error of `change`, or of storage.
pub(crate) fn update<T>(
    key: &[u8],
    place: &Place,
    mut change: impl FnMut(&mut List) -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..TRIES {
        let before = get(key)?;
        let mut list = match &before {
            Some(value) => List::decode(key, value)?,
            None => List::new(place.clone()),
        };
        let answer = change(&mut list)?;
        let after = if list.facts.is_empty() { None } else { Some(list.encode()?) };
        if before == after || compare_and_swap(key, before.as_deref(), after.as_deref())? {
            return Ok(answer);
        }
    }
    Err(Error::unavailable("too many calls write to this list at once; try again", Some(100)))
}

/// In which list an id is, or was.
///
/// # Errors
/// If storage fails.
pub(crate) fn list_of(id: &str) -> Result<Option<Vec<u8>>, Error> {
    Ok(get(id_key(id))?)
}

/// The list that a fact of this id is in.
///
/// # Errors
/// If storage fails.
pub(crate) fn holder(id: &str) -> Result<Option<(Vec<u8>, List)>, Error> {
    let Some(key) = list_of(id)? else { return Ok(None) };
    let list = load(&key)?.filter(|list| list.fact(id).is_some());
    Ok(list.map(|list| (key, list)))
}

/// Reserves an id for a list, and answers whether it was free. `None`: another list has it.
///
/// # Errors
/// If storage fails.
pub(crate) fn claim(id: &str, list: &[u8]) -> Result<Option<bool>, Error> {
    if compare_and_swap(id_key(id), None, Some(list))? {
        return Ok(Some(true));
    }
    Ok((list_of(id)?.as_deref() == Some(list)).then_some(false))
}

/// Releases ids.
///
/// # Errors
/// If storage fails.
pub(crate) fn release<'a>(ids: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    let mut batch = Batch::new();
    for id in ids {
        batch.delete_raw(id_key(id));
    }
    if batch.is_empty() { Ok(()) } else { Ok(batch.apply()?) }
}

fn id_key(id: &str) -> Vec<u8> {
    [IDS, id.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use memhost_sdk::testing;
    use memhost_sdk::types::Scope;

    use super::*;
    use crate::fact::By;

    fn fact(text: &str) -> Fact {
        Fact {
            id: text.to_owned(),
            number: 0,
            text: text.to_owned(),
            summary: None,
            metadata: None,
            source: None,
            by: By::Ai,
            created: 0,
            updated: 0,
            has_own_id: true,
            expires: None,
            place: None,
        }
    }

    #[test]
    fn a_concurrent_write_is_retried_on_the_new_value() {
        testing::reset(serde_json::json!({}));
        let scope = Scope { subject_id: Some("u".to_owned()), ..Scope::company("acme") };
        let place = Place::of_write(&scope, None).unwrap();
        let key = place.key();
        let mut tries = 0;
        update(&key, &place, |list| {
            tries += 1;
            if tries == 1 {
                // Another instance, between the reading and the writing of this one.
                update(&key, &place, |list| {
                    list.push(fact("theirs"));
                    Ok(())
                })
                .unwrap();
            }
            list.push(fact("mine"));
            Ok(())
        })
        .unwrap();
        assert_eq!(tries, 2);
        let list = load(&key).unwrap().unwrap();
        let facts: Vec<(&str, u64)> =
            list.facts.iter().map(|fact| (fact.text.as_str(), fact.number)).collect();
        assert_eq!(facts, [("theirs", 0), ("mine", 1)]);
    }

    #[test]
    fn an_id_belongs_to_one_list() {
        testing::reset(serde_json::json!({}));
        assert_eq!(claim("x", b"one").unwrap(), Some(true));
        assert_eq!(claim("x", b"one").unwrap(), Some(false));
        assert_eq!(claim("x", b"two").unwrap(), None);
        release(["x"]).unwrap();
        assert_eq!(claim("x", b"two").unwrap(), Some(true));
    }

    #[test]
    fn a_value_in_another_format_is_reported() {
        let error = List::decode(b"list", &[9, 9]).unwrap_err();
        assert!(
            matches!(&error, Error::Internal(message) if message.contains("another format")),
            "{error:?}"
        );
    }
}
