//! Ids of items that were written without one.

use memhost_sdk::types::Error;

use super::CrossAgent;
use crate::text::hash;

/// Operation ids up to this many bytes are part of item ids as they are.
const SHORT: usize = 128;

impl CrossAgent {
    /// The id of an operation's item, the same each time, and whether the operation wrote it
    /// before.
    pub(super) fn own_id(
        &self,
        operation_id: &str,
        number: Option<usize>,
    ) -> Result<(String, bool), Error> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let base =
            if (1..=SHORT).contains(&operation_id.len()) && operation_id.chars().all(is_plain) {
                operation_id.to_owned()
            } else {
                format!(
                    "{:016x}{:016x}",
                    hash(b"id", operation_id.as_bytes()),
                    hash(b"again", operation_id.as_bytes())
                )
            };
        let base = number.map_or_else(|| base.clone(), |number| format!("{base}.{number}"));
        let mut id = base.clone();
        // The id may be taken.
        for attempt in 1_u32.. {
            match self.store.item(&id)? {
                None => return Ok((id, false)),
                Some(item) if item.operation_id.as_deref() == Some(operation_id) => {
                    return Ok((id, true));
                }
                Some(_) => id = format!("{base}~{attempt}"),
            }
        }
        Err(Error::internal("every id is taken"))
    }
}
