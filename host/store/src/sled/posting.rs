//! Posting chunks in a tree.

use super::tree::Tree;
use crate::StoreError;
use crate::error::failed;
use crate::posting::Posting;

impl Posting {
    /// The chunk at a key, if there is one.
    pub(super) fn read(tree: &Tree, key: &[u8]) -> Result<Option<Self>, StoreError> {
        let Some(bytes) = tree.get(key).map_err(failed("reading"))? else { return Ok(None) };
        Self::decode(&bytes).map(Some).ok_or_else(|| StoreError::Corrupt {
            what: "index chunk".to_owned(),
            message: "it is neither a list nor a bitmap; `memhost store verify` says which \
                      operations are affected"
                .to_owned(),
        })
    }
}
