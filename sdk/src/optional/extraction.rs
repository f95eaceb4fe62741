//! The interface `extraction`.

use crate::Provider;
use crate::types::{Error, ExtractionJob, JobPage, JobResult, Scope};

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
///             let note = Note { text: sentence.to_owned(), ..Note::default() };
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
