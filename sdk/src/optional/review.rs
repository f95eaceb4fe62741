//! The interface `review`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Decision, Error, ListPage, RecordId, Scope, Snippet};

/// Records that wait for a person. Exported by `export_review!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Review for Notes {
///     fn list_pending(
///         &mut self,
///         scope: Scope,
///         cursor: Option<String>,
///         limit: u32,
///     ) -> Result<ListPage, Error> {
///         let mut pending = self.all(&scope)?;
///         // The host's operation ids grow with time, and so do the notes' ids: oldest first.
///         pending
///             .retain(|(id, note)| note.pending && cursor.as_ref().is_none_or(|last| id > last));
///         let has_more = pending.len() > limit as usize;
///         pending.truncate(limit as usize);
///         let continuation = match pending.last() {
///             Some((last, _)) if has_more => Continuation::Next(last.clone()),
///             _ => Continuation::End,
///         };
///         let items = pending.into_iter().map(|(id, note)| Snippet::new(id, note.text)).collect();
///         Ok(ListPage { items, continuation, ..ListPage::default() })
///     }
///     fn decide(
///         &mut self,
///         id: RecordId,
///         scope: Scope,
///         decision: Decision,
///     ) -> Result<Option<Snippet>, Error> {
///         let decided = Collection::<String>::new("decided");
///         let (note, before) = (self.find(&id, &scope)?, decided.get(&id)?);
///         let name = match &decision {
///             Decision::Approve => "approve",
///             Decision::Reject => "reject",
///             Decision::Edit(_) => "edit",
///         };
///         // A decision is delivered again after a crash. A different one is an error.
///         let is_same = match (&decision, &note) {
///             (Decision::Edit(record), Some(note)) => record.text == note.text,
///             _ => true,
///         };
///         match (note, before) {
///             (_, Some(before)) if before == name && is_same => {}
///             (_, Some(before)) => {
///                 return Err(Error::invalid(
///                     "decision",
///                     format!("`{before}` was decided about {id}"),
///                 ));
///             }
///             (Some(note), None) if note.pending => {
///                 let mut batch = Batch::new();
///                 batch.put(&decided, &id, &name.to_owned())?;
///                 match decision {
///                     Decision::Approve => {
///                         batch.put(&self.notes, &id, &Note { pending: false, ..note })?
///                     }
///                     Decision::Edit(RecordWrite { text, summary, metadata, .. }) => {
///                         let edited = Note { text, summary, metadata, pending: false, ..note };
///                         batch.put(&self.notes, &id, &edited)?;
///                     }
///                     Decision::Reject => batch.delete(&self.notes, &id),
///                 }
///                 batch.apply()?;
///             }
///             _ => return Err(Error::NotFound(format!("no note {id} waits"))),
///         }
///         Ok(self.get_record(id, scope)?.snippet)
///     }
/// }
/// memhost_sdk::export_review!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Review, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let scope = testing::scope();
/// notes.notes.put("n1", &Note { pending: true, ..Note::of(&scope, "a guess") }).unwrap();
/// assert!(
///     notes.query(testing::query("guess")).unwrap().snippets.is_empty(),
///     "what waits is not found",
/// );
/// assert_eq!(notes.list_pending(scope.clone(), None, 10).unwrap().items.len(), 1);
/// for _ in 0..2 {
///     assert_eq!(
///         notes.decide("n1".into(), scope.clone(), Decision::Approve).unwrap().unwrap().text,
///         "a guess",
///     );
/// }
/// assert!(notes.decide("n1".into(), scope, Decision::Reject).is_err(), "it was approved");
/// assert_eq!(notes.query(testing::query("guess")).unwrap().snippets.len(), 1);
/// # }
/// ```
pub trait Review: Provider {
    /// The records that wait, oldest first.
    ///
    /// # Errors
    /// As the contract says of `review.list-pending`.
    fn list_pending(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<ListPage, Error>;

    /// Applies a person's decision.
    ///
    /// # Errors
    /// As the contract says of `review.decide`.
    fn decide(
        &mut self,
        id: RecordId,
        scope: Scope,
        decision: Decision,
    ) -> Result<Option<Snippet>, Error>;
}

interface! {
    ($) review, Review, { Decision },
    world "review-provider", "export_review_provider", export_review_provider,
    export export_review,
    about "records that wait for a person",
    host "shows them in its review queue, and tells the provider the decision"
}

impl<P: Review> bindings::exports::paperclip::memory::review::Guest for Adapter<P> {
    fn list_pending(scope: Scope, cursor: Option<String>, limit: u32) -> Result<ListPage, Error> {
        with_provider::<P, _>(|provider| provider.list_pending(scope, cursor, limit))
    }
    fn decide(id: RecordId, scope: Scope, decision: Decision) -> Result<Option<Snippet>, Error> {
        with_provider::<P, _>(|provider| provider.decide(id, scope, decision))
    }
}
