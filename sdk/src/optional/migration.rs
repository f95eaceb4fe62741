//! The interface `migration`.

use crate::Provider;
use crate::types::Error;

/// Bringing what another version stored into the form that this version reads. Exported by `export_migration!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Migration for Notes {
///     fn migrate(&mut self, from_version: &str) -> Result<(), Error> {
///         // Until 1.0.0 a note was its bare text, under another name.
///         if !from_version.starts_with("0.") {
///             return Ok(());
///         }
///         let (old, mut batch) = (Collection::<String>::new("texts"), Batch::new());
///         for entry in old.iter("") {
///             let (key, text) = entry?;
///             batch.put(&self.notes, &key, &Note { text, ..Note::default() })?;
///             batch.delete(&old, key);
///         }
///         Ok(batch.apply()?)
///     }
/// }
/// memhost_sdk::export_migration!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Migration, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// Collection::<String>::new("texts").put(Notes::key(&testing::scope(), "1"), &"from before".to_owned()).unwrap();
/// notes.migrate("0.9.0").unwrap();
/// assert_eq!(notes.query(testing::query("before")).unwrap().snippets[0].id, "1");
/// # }
/// ```
pub trait Migration: Provider {
    /// Reads what `from_version` wrote and writes it anew; all of it counts at once when this answers ok, or nothing.
    ///
    /// # Errors
    /// As the contract says of `migration.migrate`: the binding stays on the other version.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error>;
}
