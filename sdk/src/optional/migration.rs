//! The interface `migration`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::Error;

/// Bringing what another version stored into the form that this version reads. Exported by
/// `export_migration!`.
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
/// Collection::<String>::new("texts").put("1", &"from before".to_owned()).unwrap();
/// notes.migrate("0.9.0").unwrap();
/// assert_eq!(notes.query(testing::query("before")).unwrap().snippets[0].id, "1");
/// # }
/// ```
pub trait Migration: Provider {
    /// Reads what `from_version` wrote and writes it in the form of this version. All of it is
    /// applied when this answers ok, otherwise nothing.
    ///
    /// # Errors
    /// As the contract says of `migration.migrate`: the binding stays on the other version.
    fn migrate(&mut self, from_version: &str) -> Result<(), Error>;
}

interface! {
    ($) migration, Migration, {},
    world "migration-provider", "export_migration_provider", export_migration_provider,
    export export_migration,
    about "convert what another version stored, in one step with the switch",
    host "calls it when a version takes over"
}

impl<P: Migration> bindings::exports::paperclip::memory::migration::Guest for Adapter<P> {
    fn migrate(from_version: String) -> Result<(), Error> {
        with_provider::<P, _>(|provider| provider.migrate(&from_version))
    }
}
