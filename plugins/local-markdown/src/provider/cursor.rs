//! Cursors of lists: the place of the last record that was returned.

use memhost_sdk::types::Error;

use crate::hash::hash;
use crate::index::Key;

/// A place as text.
pub(super) fn encode(key: Key) -> String {
    let place = format!("{:016x}{:016x}", key.created, key.id_hash);
    format!("1.{place}{:016x}", hash(b"cursor", place.as_bytes()))
}

/// The inverse of [`encode`].
pub(super) fn decode(cursor: &str) -> Result<Key, Error> {
    read(cursor).filter(|key| encode(*key) == cursor).ok_or_else(|| {
        Error::invalid(
            "cursor",
            format!("`{cursor}` is not a cursor of local-markdown; start again without one"),
        )
    })
}

fn read(cursor: &str) -> Option<Key> {
    let place = cursor.strip_prefix("1.")?;
    let number = |from: usize| u64::from_str_radix(place.get(from..from + 16)?, 16).ok();
    Some(Key { created: number(0)?.cast_signed(), id_hash: number(16)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_decoded_and_other_texts_are_refused() {
        for created in [0, 1, -1, i64::MIN, i64::MAX] {
            let key = Key { created, id_hash: u64::MAX - 5 };
            assert_eq!(decode(&encode(key)).unwrap(), key);
        }
        let good = encode(Key { created: 5, id_hash: 6 });
        for junk in [
            "",
            "1.",
            "x",
            "1.é",
            &good[..good.len() - 1],
            &good.replace('5', "4"),
            &format!("{good}0"),
        ] {
            assert!(matches!(decode(junk), Err(Error::InvalidRequest(_))), "{junk}");
        }
    }
}
