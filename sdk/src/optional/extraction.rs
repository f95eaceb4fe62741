//! The interface `extraction`.

use crate::Provider;
use crate::exports::{Adapter, with_provider};
use crate::types::{Error, ExtractionJob, JobPage, JobResult, Scope};

/// Jobs that the host runs. Exported by `export_extraction!`.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/notes/provider.rs"));
/// use memhost_sdk::jobs::{Job, Jobs};
/// use std::time::SystemTime;
///
/// /// The work of a job: a note whose sentences become notes of their own.
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Reading(Note);
///
/// /// They are stored, so that they outlive the instance, and stay when they have ended, so that
/// /// nothing is done twice.
/// fn jobs() -> Jobs<Reading> {
///     Jobs::new("jobs")
/// }
///
/// impl memhost_sdk::Extraction for Notes {
///     fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
///         let mut job = jobs().get(&id)?;
///         if !job.has_ended() {
///             let mut batch = Batch::new();
///             for (number, sentence) in job.work.0.text.split(". ").enumerate() {
///                 // Ids come from the job: running it again after a crash makes the same notes.
///                 job.records.push(format!("{id}-{number}"));
///                 let note = Note { text: sentence.to_owned(), ..job.work.0.clone() };
///                 batch.put(&self.notes, format!("{id}-{number}"), &note)?;
///             }
///             job.succeed(SystemTime::now());
///             // Its notes and its end, in one batch.
///             jobs().write(&mut batch, &job)?;
///             batch.apply()?;
///         }
///         Ok(job.result())
///     }
///     fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
///         Ok(jobs().find(&id)?.map(|job| job.result()))
///     }
///     fn list_jobs(
///         &mut self,
///         scope: Scope,
///         cursor: Option<String>,
///         limit: u32,
///     ) -> Result<JobPage, Error> {
///         jobs().page(
///             cursor.as_deref(),
///             limit,
///             |job| job.work.0.is_visible_in(&scope),
///             Job::shown,
///         )
///     }
///     fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
///         Ok(jobs().cancel(&id, SystemTime::now())?.shown())
///     }
///     fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
///         Ok(jobs().retry(&id)?.shown())
///     }
/// }
/// memhost_sdk::export_extraction!(Notes);
///
/// # fn main() {
/// use memhost_sdk::{Extraction, testing};
/// let mut notes = testing::open::<Notes>(serde_json::json!({})).unwrap();
/// let reading =
///     Reading(Note::of(&testing::scope(), "The gate is green. The key is in the drawer"));
/// jobs().put(&Job::new("job-1", SystemTime::now(), reading)).unwrap();
/// let first = notes.run_job("job-1".into()).unwrap().records;
/// assert_eq!(first, ["job-1-0", "job-1-1"]);
/// assert_eq!(notes.run_job("job-1".into()).unwrap().records, first, "done once");
/// assert_eq!(
///     notes.cancel_job("job-1".into()).unwrap().status,
///     JobStatus::Succeeded,
///     "it has ended",
/// );
/// assert_eq!(notes.query(testing::query("drawer")).unwrap().snippets.len(), 1);
/// # }
/// ```
pub trait Extraction: Provider {
    /// Runs a job to its end, or as far as the call's deadline allows.
    ///
    /// # Errors
    /// As the contract says of `extraction.run-job`.
    fn run_job(&mut self, provider_job_id: String) -> Result<JobResult, Error>;

    /// The job as it stands; once it has ended, with its records and what it used.
    ///
    /// # Errors
    /// As the contract says of `extraction.get-job`.
    fn get_job(&mut self, provider_job_id: String) -> Result<Option<JobResult>, Error>;

    /// Jobs of the scope, newest first.
    ///
    /// # Errors
    /// As the contract says of `extraction.list-jobs`. What is queued here after an upsert, an
    /// import or a correction is run by the host as if a capture had answered with it.
    fn list_jobs(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error>;

    /// Stops a job that has not ended.
    ///
    /// # Errors
    /// As the contract says of `extraction.cancel-job`.
    fn cancel_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error>;

    /// Lets a job that failed or was cancelled be run again, under the same id.
    ///
    /// # Errors
    /// As the contract says of `extraction.retry-job`.
    fn retry_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error>;
}

interface! {
    ($) extraction, Extraction, { JobPage, JobResult },
    world "extraction-provider", "export_extraction_provider", export_extraction_provider,
    export export_extraction,
    about "work that a write leaves for later; [`jobs`](src/jobs.rs) stores it",
    host "gives it time, retries and cancels"
}

impl<P: Extraction> bindings::exports::paperclip::memory::extraction::Guest for Adapter<P> {
    fn run_job(provider_job_id: String) -> Result<JobResult, Error> {
        with_provider::<P, _>(|provider| provider.run_job(provider_job_id))
    }
    fn get_job(provider_job_id: String) -> Result<Option<JobResult>, Error> {
        with_provider::<P, _>(|provider| provider.get_job(provider_job_id))
    }
    fn list_jobs(scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        with_provider::<P, _>(|provider| provider.list_jobs(scope, cursor, limit))
    }
    fn cancel_job(provider_job_id: String) -> Result<ExtractionJob, Error> {
        with_provider::<P, _>(|provider| provider.cancel_job(provider_job_id))
    }
    fn retry_job(provider_job_id: String) -> Result<ExtractionJob, Error> {
        with_provider::<P, _>(|provider| provider.retry_job(provider_job_id))
    }
}
