//! Cursors are opaque, signed and bound to the query that made them: one that was forged, changed,
//! or taken from another company, binding or filter is refused before anything is read.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const MAC_BYTES: usize = 16;
const VERSION: u8 = 1;

/// Why a cursor is not accepted. It says nothing about where the cursor came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a cursor of this list; begin again without a cursor, and pass cursors on unchanged"
)]
pub struct CursorError;

/// The list that a cursor belongs to: a digest over company, binding, operation and filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryDigest([u8; 32]);

impl QueryDigest {
    /// The digest of these parts, in this order. Parts do not run into each other.
    pub fn new<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// The host's secret for cursors.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(…)")
    }
}

impl CursorKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A cursor that leads to `position` in the list of `query`.
    pub fn seal(&self, query: &QueryDigest, position: &[u8]) -> String {
        let mut bytes = Vec::with_capacity(1 + position.len() + MAC_BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(position);
        bytes.extend_from_slice(&self.mac(query, &bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position that a cursor leads to.
    ///
    /// # Errors
    /// Where the cursor was not made by [`Self::seal`] with this key for this query.
    pub fn open(&self, query: &QueryDigest, cursor: &str) -> Result<Vec<u8>, CursorError> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| CursorError)?;
        let body_len = bytes.len().checked_sub(MAC_BYTES).ok_or(CursorError)?;
        let (body, mac) = bytes.split_at(body_len);
        // Comparing `blake3::Hash` values takes the same time wherever they differ.
        let mut padded = [0; 32];
        padded[..MAC_BYTES].copy_from_slice(mac);
        let mut expected = [0; 32];
        expected[..MAC_BYTES].copy_from_slice(&self.mac(query, body));
        if blake3::Hash::from(padded) != blake3::Hash::from(expected) {
            return Err(CursorError);
        }
        match body.split_first() {
            Some((&VERSION, position)) => Ok(position.to_vec()),
            _ => Err(CursorError),
        }
    }

    fn mac(&self, query: &QueryDigest, body: &[u8]) -> [u8; MAC_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&query.0);
        hasher.update(body);
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&hasher.finalize().as_bytes()[..MAC_BYTES]);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_leads_back(position: Vec<u8>, a: Vec<u8>, b: Vec<u8>) {
            let key = CursorKey::new([7; 32]);
            let query = QueryDigest::new([a.as_slice(), &b]);
            prop_assert_eq!(key.open(&query, &key.seal(&query, &position)), Ok(position));
        }

        #[test]
        fn a_changed_cursor_is_refused(
            position: Vec<u8>, at: prop::sample::Index, flip in 1..=255_u8,
        ) {
            let key = CursorKey::new([7; 32]);
            let query = QueryDigest::new([b"q".as_slice()]);
            let mut bytes = URL_SAFE_NO_PAD.decode(key.seal(&query, &position)).unwrap();
            let index = at.index(bytes.len());
            bytes[index] ^= flip;
            prop_assert_eq!(key.open(&query, &URL_SAFE_NO_PAD.encode(bytes)), Err(CursorError));
        }

        #[test]
        fn junk_is_refused(text: String) {
            prop_assert_eq!(
                CursorKey::new([7; 32]).open(&QueryDigest::new([]), &text), Err(CursorError),
            );
        }
    }

    #[test]
    fn a_cursor_of_another_query_or_host_is_refused() {
        let key = CursorKey::new([7; 32]);
        let query = QueryDigest::new([b"ab".as_slice(), b"c"]);
        let cursor = key.seal(&query, b"position");
        assert_eq!(
            key.open(&QueryDigest::new([b"a".as_slice(), b"bc"]), &cursor),
            Err(CursorError)
        );
        assert_eq!(CursorKey::new([8; 32]).open(&query, &cursor), Err(CursorError));
    }
}
