//! The interface `review`.

use crate::Provider;
use crate::types::{Decision, Error, ListPage, RecordId, Scope, Snippet};

/// Records that wait for a person. Exported by `export_review!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Review for Notes {
///     fn list_pending(&mut self, scope: Scope, _: Option<String>, limit: u32) -> Result<ListPage, Error> {
///         let mut pending = self.all(&scope)?;
///         pending.retain(|(_, note)| note.pending);
///         pending.truncate(limit as usize);
///         let items = pending.into_iter().map(|(id, note)| Snippet::new(id, note.text)).collect();
///         Ok(ListPage { items, ..ListPage::default() })
///     }
///     fn decide(&mut self, id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error> {
///         let key = Self::key(&scope, &id);
///         let Some(note) = self.notes.get(&key)? else {
///             return Err(Error::NotFound(format!("there is no note {id}")));
///         };
///         let text = match decision {
///             Decision::Approve => note.text,
///             Decision::Edit(record) => record.text,
///             Decision::Reject => {
///                 self.notes.delete(key)?;
///                 return Ok(None);
///             }
///         };
///         self.notes.put(key, &Note { text: text.clone(), ..Note::default() })?;
///         Ok(Some(Snippet::new(id, text)))
///     }
/// }
/// memhost_sdk::export_review!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Review, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let scope = testing::scope();
/// notes.notes.put(Notes::key(&scope, "n1"), &Note { text: "a guess".into(), pending: true, ..Note::default() }).unwrap();
/// assert!(notes.query(testing::query("guess")).unwrap().snippets.is_empty(), "what waits is not found");
/// assert_eq!(notes.list_pending(scope.clone(), None, 10).unwrap().items.len(), 1);
/// notes.decide("n1".into(), scope, Decision::Approve).unwrap();
/// assert_eq!(notes.query(testing::query("guess")).unwrap().snippets.len(), 1);
/// # }
/// ```
pub trait Review: Provider {
    /// What waits, oldest first.
    ///
    /// # Errors
    /// As the contract says of `review.list-pending`.
    fn list_pending(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<ListPage, Error>;

    /// Applies a person's decision.
    ///
    /// # Errors
    /// As the contract says of `review.decide`.
    fn decide(&mut self, id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error>;
}
