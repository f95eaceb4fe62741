//! One trait for each optional interface. Implement it and write its export line; without the line the component does
//! not have the interface.

use crate::Provider;
use crate::types::{
    Chunk, CorrectRequest, CorrectResponse, Decision, Error, Explanation, ExtractionJob, ImportReport, JobPage,
    JobResult, ListPage, NodePage, ProfileResponse, QueryRequest, RecordId, Scope, Snippet,
};

/// Changing a record because somebody said that it is wrong. Exported by `export_correction!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Correction for Notes {
///     fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
///         let Patch::Replacement(record) = request.patch else {
///             return Err(Error::unsupported("notes cannot read instructions; send the record as it should be"));
///         };
///         let key = Self::key(&request.scope, &request.id);
///         if self.notes.get(&key)?.is_none() {
///             return Err(Error::NotFound(format!("there is no note {}", request.id)));
///         }
///         self.notes.put(key, &Note { text: record.text, pending: false })?;
///         Ok(CorrectResponse { record_id: request.id, superseded: None, usage: Vec::new() })
///     }
/// }
/// memhost_sdk::export_correction!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Correction, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let id = notes.capture(testing::capture("op-1", "the gate code is 17")).unwrap().records.remove(0);
/// let right = RecordWrite { id: None, text: "the gate code is 18".into(), summary: None, metadata: None };
/// let patch = Patch::Replacement(right);
/// let request = CorrectRequest { operation_id: "op-2".into(), id, scope: testing::scope(), patch };
/// notes.correct(request).unwrap();
/// assert_eq!(notes.query(testing::query("gate")).unwrap().snippets[0].text, "the gate code is 18");
/// # }
/// ```
pub trait Correction: Provider {
    /// Applies a correction, in place or by a superseding record.
    ///
    /// # Errors
    /// As the contract says of `correction.correct`.
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error>;
}

/// A summary of what is known about a scope. Exported by `export_profile!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Profile for Notes {
///     fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
///         let likes: Vec<String> =
///             self.all(&scope)?.into_iter().map(|(_, note)| note.text).filter(|text| text.contains("likes")).collect();
///         let summary = (!likes.is_empty()).then(|| likes.join("; "));
///         Ok(ProfileResponse { summary, usage: Vec::new() })
///     }
/// }
/// memhost_sdk::export_profile!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Profile, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// assert_eq!(notes.get_profile(testing::scope()).unwrap().summary, None);
/// notes.capture(testing::capture("op-1", "she likes short answers")).unwrap();
/// assert_eq!(notes.get_profile(testing::scope()).unwrap().summary.unwrap(), "she likes short answers");
/// # }
/// ```
pub trait Profile: Provider {
    /// The summary, if anything is known.
    ///
    /// # Errors
    /// As the contract says of `profile.get-profile`.
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error>;
}

/// Jobs that the host gives time to. Exported by `export_extraction!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// use memhost_sdk::storage;
///
/// /// Where the notes go, and the text that is still to be taken apart. Stored, so that a job outlives the instance.
/// fn jobs() -> Collection<(String, String)> {
///     Collection::new("jobs")
/// }
///
/// fn job(id: &str, status: JobStatus, record_count: Option<u32>) -> ExtractionJob {
///     ExtractionJob {
///         provider_job_id: id.to_owned(),
///         status,
///         record_count,
///         hook_kind: None,
///         source: None,
///         error: None,
///         submitted_at: None,
///         started_at: None,
///         finished_at: None,
///     }
/// }
///
/// impl memhost_sdk::Extraction for Notes {
///     fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
///         let Some((place, text)) = jobs().get(&id)? else {
///             return Err(Error::NotFound(format!("there is no job {id}; it has run or was cancelled")));
///         };
///         let (mut batch, mut records) = (Batch::new(), Vec::new());
///         for (n, sentence) in text.split(". ").enumerate() {
///             // The ids come from the job: running it again after a crash makes the same notes.
///             let record = format!("{id}-{n}");
///             let note = Note { text: sentence.to_owned(), pending: false };
///             batch.put(&self.notes, format!("{place}{record}"), &note)?;
///             records.push(record);
///         }
///         batch.delete(&jobs(), &id);
///         batch.apply()?;
///         let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
///         Ok(JobResult { job: job(&id, JobStatus::Succeeded, Some(count)), records, usage: Vec::new() })
///     }
///     fn get_job(&mut self, id: String) -> Result<Option<ExtractionJob>, Error> {
///         Ok(jobs().get(&id)?.map(|_| job(&id, JobStatus::Queued, None)))
///     }
///     fn list_jobs(&mut self, _: Scope, _: Option<String>, limit: u32) -> Result<JobPage, Error> {
///         let ids = jobs().iter("").take(limit as usize).collect::<Result<Vec<_>, storage::Error>>()?;
///         let queued = |(id, _): (Vec<u8>, _)| job(&String::from_utf8_lossy(&id), JobStatus::Queued, None);
///         Ok(JobPage { jobs: ids.into_iter().map(queued).collect(), next_cursor: None })
///     }
///     fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
///         jobs().delete(&id)?;
///         Ok(job(&id, JobStatus::Cancelled, None))
///     }
/// }
/// memhost_sdk::export_extraction!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Extraction, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let text = "The gate is green. The key is in the drawer".to_owned();
/// jobs().put("job-1", &(Notes::key(&testing::scope(), ""), text)).unwrap();
/// assert_eq!(notes.run_job("job-1".into()).unwrap().records.len(), 2);
/// assert!(notes.get_job("job-1".into()).unwrap().is_none());
/// assert_eq!(notes.query(testing::query("drawer")).unwrap().snippets.len(), 1);
/// # }
/// ```
pub trait Extraction: Provider {
    /// Runs a job to its end, or as far as the call's deadline allows.
    ///
    /// # Errors
    /// As the contract says of `extraction.run-job`.
    fn run_job(&mut self, provider_job_id: String) -> Result<JobResult, Error>;

    /// The job as it stands.
    ///
    /// # Errors
    /// As the contract says of `extraction.get-job`.
    fn get_job(&mut self, provider_job_id: String) -> Result<Option<ExtractionJob>, Error>;

    /// Jobs of the scope, newest first.
    ///
    /// # Errors
    /// As the contract says of `extraction.list-jobs`.
    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error>;

    /// Stops a job that has not ended.
    ///
    /// # Errors
    /// As the contract says of `extraction.cancel-job`.
    fn cancel_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error>;
}

/// Why a query answers what it answers. Exported by `export_explain!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Explain for Notes {
///     fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
///         let query = serde_json::json!({ "words": request.query.to_lowercase().split_whitespace().collect::<Vec<_>>() });
///         let hits = self.query(request)?.snippets.into_iter().map(|hit| {
///             let value = match hit.score {
///                 Score::Rank(share) => share,
///                 _ => 0.0,
///             };
///             HitTrace { id: hit.id, contributions: vec![Contribution { name: "words.share".into(), value }] }
///         });
///         Ok(Explanation { query: query.to_string(), hits: hits.collect() })
///     }
/// }
/// memhost_sdk::export_explain!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Explain, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// notes.capture(testing::capture("op-1", "the gate is green")).unwrap();
/// let told = notes.explain_query(testing::query("green door")).unwrap();
/// assert_eq!(told.hits[0].contributions[0].value, 0.5);
/// # }
/// ```
pub trait Explain: Provider {
    /// Runs the query again and tells how.
    ///
    /// # Errors
    /// As the contract says of `explain.explain-query`.
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error>;
}

/// The provider's own tree. Exported by `export_browse!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// impl memhost_sdk::Browse for Notes {
///     fn list_children(&mut self, path: String, scope: Scope, cursor: Option<String>, limit: u32) -> Result<NodePage, Error> {
///         if !path.is_empty() {
///             return Err(Error::NotFound(format!("there is nothing below {path}; notes lie flat")));
///         }
///         let mut all = self.all(&scope)?;
///         all.retain(|(id, _)| cursor.as_ref().is_none_or(|last| id > last));
///         let next_cursor = all.get(limit as usize).and(all.get(limit as usize - 1)).map(|(id, _)| id.clone());
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
///         self.notes.put(key, &Note { text: text.clone(), pending: false })?;
///         Ok(Some(Snippet::new(id, text)))
///     }
/// }
/// memhost_sdk::export_review!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Review, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let scope = testing::scope();
/// notes.notes.put(Notes::key(&scope, "n1"), &Note { text: "a guess".into(), pending: true }).unwrap();
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

/// Everything out and in as JSON Lines. Exported by `export_transfer!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// #[derive(Serialize, Deserialize)]
/// struct Line {
///     id: RecordId,
///     text: String,
/// }
///
/// impl memhost_sdk::Transfer for Notes {
///     fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error> {
///         let (mut lines, mut last) = (String::new(), cursor);
///         for (id, note) in self.all(&scope)? {
///             if last.as_ref().is_some_and(|last| id <= *last) {
///                 continue;
///             }
///             let line = serde_json::json!(Line { id: id.clone(), text: note.text }).to_string();
///             if !lines.is_empty() && lines.len() + line.len() >= 1 << 20 {
///                 return Ok(Chunk { lines, next_cursor: last });
///             }
///             lines = lines + &line + "\n";
///             last = Some(id);
///         }
///         Ok(Chunk { lines, next_cursor: None })
///     }
///     fn import_records(&mut self, scope: Scope, lines: String) -> Result<ImportReport, Error> {
///         let (mut batch, mut imported, mut unchanged) = (Batch::new(), 0, 0);
///         for (n, line) in lines.lines().enumerate() {
///             let Line { id, text } =
///                 serde_json::from_str(line).map_err(|error| Error::invalid(&format!("lines.{n}"), error.to_string()))?;
///             let key = Self::key(&scope, &id);
///             if self.notes.get(&key)?.is_some_and(|note| note.text == text) {
///                 unchanged += 1;
///                 continue;
///             }
///             batch.put(&self.notes, key, &Note { text, pending: false })?;
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
/// assert_eq!(empty.import_records(testing::scope(), chunk.lines.clone()).unwrap().imported, 2);
/// assert_eq!(empty.import_records(testing::scope(), chunk.lines).unwrap().unchanged, 2);
/// # }
/// ```
pub trait Transfer: Provider {
    /// Whole lines from the cursor on.
    ///
    /// # Errors
    /// As the contract says of `transfer.export-records`.
    fn export_records(&mut self, scope: Scope, cursor: Option<String>) -> Result<Chunk, Error>;

    /// Takes whole lines of an export.
    ///
    /// # Errors
    /// As the contract says of `transfer.import-records`.
    fn import_records(&mut self, scope: Scope, lines: String) -> Result<ImportReport, Error>;
}

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
///             batch.put(&self.notes, &key, &Note { text, pending: false })?;
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
/// Collection::<String>::new("texts").put("agent/1", &"from before".to_owned()).unwrap();
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
