//! The interface `transfer`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Chunk, Error, ImportReport, ImportRequest, Scope};

/// Export and import of all records as JSON Lines. Exported by `export_transfer!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// #[derive(Serialize, Deserialize)]
/// struct Line {
///     id: RecordId,
///     note: Note,
/// }
///
/// impl memhost_sdk::Transfer for Notes {
///     fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
///         let (mut lines, mut last) = (String::new(), cursor);
///         for (id, note) in self.all(&scope)? {
///             if last.as_ref().is_some_and(|last| id <= *last) {
///                 continue;
///             }
///             let line = serde_json::json!(Line { id: id.clone(), note }).to_string();
///             if !lines.is_empty() && lines.len() + line.len() >= 1 << 20 {
///                 return Ok(Chunk { lines, next_cursor: last });
///             }
///             lines = lines + &line + "\n";
///             last = Some(id);
///         }
///         Ok(Chunk { lines, next_cursor: None })
///     }
///     fn import_records(&mut self, request: ImportRequest) -> Result<ImportReport, Error> {
///         let (mut batch, mut imported, mut unchanged) = (Batch::new(), 0, 0);
///         for (n, line) in request.lines.lines().enumerate() {
///             let wrong = |message: String| Error::invalid(&format!("lines.{n}"), message);
///             let Line { id, note } =
///                 serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
///             // A line of another agent, subject or namespace is refused.
///             if !note.is_visible_in(&request.scope) {
///                 return Err(wrong("is of another agent, subject or namespace".to_owned()));
///             }
///             if self.notes.get(&id)?.as_ref() == Some(&note) {
///                 unchanged += 1;
///                 continue;
///             }
///             batch.put(&self.notes, id, &note)?;
///             imported += 1;
///         }
///         batch.apply()?;
///         Ok(ImportReport { imported, unchanged })
///     }
/// }
/// memhost_sdk::export_transfer!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Transfer, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// notes.upsert_records(testing::upsert("op-1", &["one", "two"])).unwrap();
/// let chunk = notes.export_records(testing::scope(), None).unwrap();
/// let mut empty = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// assert_eq!(
///     empty
///         .import_records(testing::import(testing::scope(), chunk.lines.clone()))
///         .unwrap()
///         .imported,
///     2,
/// );
/// assert_eq!(
///     empty.import_records(testing::import(testing::scope(), chunk.lines)).unwrap().unchanged,
///     2,
/// );
/// # }
/// ```
pub trait Transfer: Provider {
    /// Whole lines from the cursor on.
    ///
    /// # Errors
    /// As the contract says of `transfer.export-records`.
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error>;

    /// Imports whole lines of an export.
    ///
    /// # Errors
    /// As the contract says of `transfer.import-records`.
    fn import_records(&mut self, request: ImportRequest) -> Result<ImportReport, Error>;
}

interface! {
    ($) transfer, Transfer, { Chunk, ImportReport, ImportRequest },
    world "transfer-provider", "export_transfer_provider", export_transfer_provider,
    export export_transfer,
    about "export and import as lines of JSON",
    host "calls it for `memhost record export`, `import`, and when a company moves"
}

impl<P: Transfer> bindings::exports::paperclip::memory::transfer::Guest for Adapter<P> {
    fn export_records(scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
        with_provider::<P, _>(|provider| provider.export_records(scope, cursor))
    }
    fn import_records(request: ImportRequest) -> Result<ImportReport, Error> {
        with_provider::<P, _>(|provider| provider.import_records(request))
    }
}
