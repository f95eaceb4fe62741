//! The interface `browse`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, NodePage, Scope};

/// The provider's own tree. Exported by `export_browse!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Browse for Notes {
///     fn list_children(
///         &mut self,
///         path: String,
///         scope: Scope,
///         cursor: Option<String>,
///         limit: u32,
///     ) -> Result<NodePage, Error> {
///         if !path.is_empty() {
///             return Err(Error::NotFound(format!(
///                 "there is nothing below {path}; notes lie flat"
///             )));
///         }
///         let mut all = self.all(&scope)?;
///         all.retain(|(id, _)| cursor.as_ref().is_none_or(|last| id > last));
///         let next_cursor =
///             all.get(limit as usize).and(all.get(limit as usize - 1)).map(|(id, _)| id.clone());
///         all.truncate(limit as usize);
///         let node = |(id, note): (RecordId, Note)| Node {
///             path: id.clone(),
///             label: note.text.chars().take(40).collect(),
///             has_children: false,
///             record_id: Some(id),
///         };
///         Ok(NodePage { nodes: all.into_iter().map(node).collect(), next_cursor })
///     }
/// }
/// memhost_sdk::export_browse!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Browse, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// notes.upsert_records(testing::upsert("op-1", &["one", "two", "three"])).unwrap();
/// let page = notes.list_children(String::new(), testing::scope(), None, 2).unwrap();
/// let rest = notes.list_children(String::new(), testing::scope(), page.next_cursor, 2).unwrap();
/// assert_eq!((page.nodes.len(), rest.nodes.len(), rest.next_cursor), (2, 1, None));
/// # }
/// ```
pub trait Browse: Provider {
    /// The children of a node; the root is the empty path.
    ///
    /// # Errors
    /// As the contract says of `browse.list-children`.
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error>;
}

interface! {
    ($) browse, Browse, { Node, NodePage },
    world "browse-provider", "export_browse_provider", export_browse_provider,
    export export_browse,
    about "the provider's own tree", host "shows it in the explorer"
}

impl<P: Browse> bindings::exports::paperclip::memory::browse::Guest for Adapter<P> {
    fn list_children(
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        with_provider::<P, _>(|provider| provider.list_children(path, scope, cursor, limit))
    }
}
