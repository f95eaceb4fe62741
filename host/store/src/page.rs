//! One page of records that match, without an index: a page ends after so many looks, found or not.

use serde::de::DeserializeOwned;

use super::{Store, StoreError, Table, decode};

/// As many records as are looked at for one page. A page may have fewer than asked for, or none, and still lead on.
const LOOKS: usize = 10_000;

/// One page of records, and where the next one begins.
pub type Found<T> = (Vec<T>, Option<Vec<u8>>);

/// Records under a prefix that are wanted, in key order.
///
/// # Errors
/// Where they cannot be read.
pub fn matching<T: DeserializeOwned>(
    store: &dyn Store,
    (table, what): (Table, &str),
    prefix: &[u8],
    from: Option<&[u8]>,
    limit: usize,
    is_wanted: impl Fn(&T) -> bool,
) -> Result<Found<T>, StoreError> {
    let (mut found, mut looks, mut from) = (Vec::new(), 0, from.map(<[u8]>::to_vec));
    loop {
        let page = store.scan(table, prefix, from.as_deref(), 256)?;
        for (key, value) in page.entries {
            if found.len() == limit || looks == LOOKS {
                return Ok((found, Some(key)));
            }
            looks += 1;
            let record = decode(what, &value)?;
            if is_wanted(&record) {
                found.push(record);
            }
        }
        match page.next {
            Some(next) => from = Some(next),
            None => return Ok((found, None)),
        }
    }
}
