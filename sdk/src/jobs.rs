//! Jobs that a provider keeps in storage: the rows behind [`Extraction`](crate::Extraction).
//!
//! The provider does the work of a job. This module stores its state, its times and its records,
//! converts it into the contract's type, and lists jobs newest first. A job that has ended stays
//! stored, so that it is done once, until [`Jobs::leave_one`] or the provider removes it.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::storage::{Batch, Collection};
use crate::types::{Error, ExtractionJob, JobPage, JobResult, JobStatus, RecordId};

/// The host has stopped running a job that is this old: it runs a job for an hour unless the
/// binding says otherwise (`jobTimeoutMs`).
const GIVEN_UP: Duration = Duration::from_secs(3_600);
/// How many jobs one page reads. If few of them fit, the page is short, and the next page
/// continues.
const LOOKED_AT: usize = 512;
/// The last time that RFC 3339 can write.
const YEAR_9999: Duration = Duration::from_secs(253_402_300_799);

/// A job, with everything that its work needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Job<T> {
    /// Unique within the binding, and never used again.
    pub id: String,
    /// Its state.
    pub state: State,
    /// When it was created.
    pub submitted_at: SystemTime,
    /// When it was first worked on.
    pub started_at: Option<SystemTime>,
    /// When it ended.
    pub finished_at: Option<SystemTime>,
    /// The records that it has made so far.
    pub records: Vec<RecordId>,
    /// The data that the provider needs for it.
    pub work: T,
}

/// The states of a job; in the last three it has ended. There is no `running`: the host does not
/// run a job with that status, it only asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It waits for the next call, the first one or a further one.
    Queued,
    /// It is done.
    Succeeded,
    /// It cannot be done, with the reason for people.
    Failed(String),
    /// It was cancelled.
    Cancelled,
}

impl<T> Job<T> {
    /// A job that waits.
    pub fn new(id: impl Into<String>, submitted_at: SystemTime, work: T) -> Self {
        let (started_at, finished_at, records) = (None, None, Vec::new());
        Self {
            id: id.into(),
            state: State::Queued,
            submitted_at,
            started_at,
            finished_at,
            records,
            work,
        }
    }

    /// Whether nothing is left to do.
    pub fn has_ended(&self) -> bool {
        self.finished_at.is_some()
    }

    /// Records that a call did a part of it. It waits for the next call.
    pub fn go_on(&mut self, now: SystemTime) {
        self.started_at.get_or_insert(now);
    }

    /// Ends it as done. A job that has ended does not change.
    pub fn succeed(&mut self, now: SystemTime) {
        self.started_at.get_or_insert(now);
        self.end(State::Succeeded, now);
    }

    /// Ends it as failed, with the reason. A job that has ended does not change.
    pub fn fail(&mut self, reason: impl Into<String>, now: SystemTime) {
        self.end(State::Failed(reason.into()), now);
    }

    /// Cancels it. A job that has ended does not change.
    pub fn cancel(&mut self, now: SystemTime) {
        self.end(State::Cancelled, now);
    }

    /// Puts a job that failed or was cancelled back in line, with the records that it made. Others
    /// do not change.
    pub fn retry(&mut self) {
        if self.is_retryable() {
            (self.state, self.started_at, self.finished_at) = (State::Queued, None, None);
        }
    }

    /// Whether [`Job::retry`] changes it.
    pub fn is_retryable(&self) -> bool {
        matches!(self.state, State::Failed(_) | State::Cancelled)
    }

    fn end(&mut self, state: State, now: SystemTime) {
        if !self.has_ended() {
            (self.state, self.finished_at) = (state, Some(now));
        }
    }

    /// The job as the contract's type. The provider adds hook and source if it knows them.
    pub fn shown(&self) -> ExtractionJob {
        let time = |time: SystemTime| {
            humantime::format_rfc3339_millis(
                time.clamp(SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + YEAR_9999),
            )
            .to_string()
        };
        let count = || u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let (status, error) = match &self.state {
            State::Queued => (JobStatus::Queued, None),
            State::Succeeded => (JobStatus::Succeeded, None),
            State::Failed(reason) => (JobStatus::Failed, Some(reason.clone())),
            State::Cancelled => (JobStatus::Cancelled, None),
        };
        ExtractionJob {
            provider_job_id: self.id.clone(),
            record_count: (status == JobStatus::Succeeded).then(count),
            status,
            hook_kind: None,
            source: None,
            error,
            is_retryable: self.is_retryable(),
            submitted_at: Some(time(self.submitted_at)),
            started_at: self.started_at.map(time),
            finished_at: self.finished_at.map(time),
        }
    }

    /// The answer to a call of `run-job`.
    pub fn result(&self) -> JobResult {
        JobResult { job: self.shown(), records: self.records.clone(), usage: Vec::new() }
    }
}

/// The jobs of a binding. Creating this value does not access storage.
#[derive(Debug)]
pub struct Jobs<T> {
    rows: Collection<Job<T>>,
    /// The order of the jobs by time, so that a page need not read all of them.
    order: Collection<()>,
}

impl<T: Serialize + DeserializeOwned> Jobs<T> {
    /// The jobs in the [`Collection`]s of this name.
    pub fn new(name: &str) -> Self {
        Self { rows: Collection::new(name), order: Collection::new(&format!("{name}/order")) }
    }

    /// A job, if it is known.
    ///
    /// # Errors
    /// If storage fails.
    pub fn find(&self, id: &str) -> Result<Option<Job<T>>, Error> {
        Ok(self.rows.get(id)?)
    }

    /// A job that must exist.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist, or if storage fails.
    pub fn get(&self, id: &str) -> Result<Job<T>, Error> {
        let missing = || {
            Error::NotFound(format!("there is no job `{id}`; list the jobs to see which there are"))
        };
        self.find(id)?.ok_or_else(missing)
    }

    /// Writes a job at once. If it made records, write both in one [`batch`](Self::write).
    ///
    /// # Errors
    /// If storage fails.
    pub fn put(&self, job: &Job<T>) -> Result<(), Error> {
        let mut batch = Batch::new();
        self.write(&mut batch, job)?;
        Ok(batch.apply()?)
    }

    /// Cancels a job at once, and answers it. A job that has ended does not change.
    ///
    /// # Errors
    /// As [`Jobs::get`].
    pub fn cancel(&self, id: &str, now: SystemTime) -> Result<Job<T>, Error> {
        let mut job = self.get(id)?;
        job.cancel(now);
        self.put(&job)?;
        Ok(job)
    }

    /// Puts a job that failed or was cancelled back in line at once, and answers it. Others do not
    /// change.
    ///
    /// # Errors
    /// As [`Jobs::get`].
    pub fn retry(&self, id: &str) -> Result<Job<T>, Error> {
        let mut job = self.get(id)?;
        job.retry();
        self.put(&job)?;
        Ok(job)
    }

    /// Writes a job with a batch. The time at which it was submitted does not change.
    ///
    /// # Errors
    /// If the job cannot be written as JSON.
    pub fn write(&self, batch: &mut Batch, job: &Job<T>) -> Result<(), Error> {
        batch.put(&self.rows, &job.id, job)?;
        Ok(batch.put(&self.order, place_of(job), &())?)
    }

    /// Deletes a job with a batch.
    pub fn delete(&self, batch: &mut Batch, job: &Job<T>) {
        batch.delete(&self.rows, &job.id);
        batch.delete(&self.order, place_of(job));
    }

    /// All jobs, newest first.
    fn newest_first(&self) -> impl Iterator<Item = Result<Job<T>, Error>> {
        self.order.iter("").filter_map(|entry| match entry {
            Ok((place, ())) => self.find(&read_place(&place).1).transpose(),
            Err(error) => Some(Err(error.into())),
        })
    }

    /// Creates a job for everything that waits to be done, or answers the one that waits already.
    /// If the host has stopped running that one, it is cancelled and replaced. The `most` newest of
    /// the older jobs stay.
    ///
    /// # Errors
    /// If storage fails.
    pub fn leave_one(&self, now: SystemTime, work: T, most: usize) -> Result<Job<T>, Error> {
        let mut batch = Batch::new();
        let mut submitted = now;
        for (number, job) in self.newest_first().enumerate() {
            let mut job = job?;
            // The clock advances in steps, and an id must not be used twice.
            submitted = submitted.max(job.submitted_at + Duration::from_micros(1));
            if !job.has_ended() {
                let since = job.started_at.unwrap_or(job.submitted_at);
                if now.duration_since(since).is_ok_and(|waited| waited < GIVEN_UP) || since > now {
                    return Ok(job);
                }
                job.cancel(now);
                self.write(&mut batch, &job)?;
            }
            if number >= most {
                self.delete(&mut batch, &job);
            }
        }
        let since = submitted.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let job = Job::new(format!("job-{:020}", since.as_micros()), submitted, work);
        self.write(&mut batch, &job)?;
        batch.apply()?;
        Ok(job)
    }

    /// One page of the jobs that `fits` accepts, newest first, each converted by `shown` (mostly
    /// [`Job::shown`]). A page may be short, even empty, although another page follows.
    ///
    /// # Errors
    /// An invalid request at `cursor` if it is not a cursor of this list, or if storage fails.
    pub fn page(
        &self,
        cursor: Option<&str>,
        limit: u32,
        fits: impl Fn(&Job<T>) -> bool,
        shown: impl Fn(&Job<T>) -> ExtractionJob,
    ) -> Result<JobPage, Error> {
        // The job of a cursor may have been removed meanwhile: its time says where to continue.
        let read = |cursor: &str| {
            let (age, id) = cursor.split_once(' ')?;
            Some(place(age.parse().ok()?, id))
        };
        let invalid = |cursor| {
            Error::invalid(
                "cursor",
                format!("`{cursor}` is not a cursor of this list; begin again without a cursor"),
            )
        };
        let behind =
            cursor.map(|cursor| read(cursor).ok_or_else(|| invalid(cursor))).transpose()?;
        let (mut page, mut last) = (JobPage { jobs: Vec::new(), next_cursor: None }, None);
        let mut looked_at = 0;
        for entry in self.order.iter("") {
            let (place, ()) = entry?;
            if behind.as_ref().is_some_and(|behind| place <= *behind) {
                continue;
            }
            if page.jobs.len() >= limit as usize || looked_at >= LOOKED_AT.max(limit as usize) {
                page.next_cursor = last;
                break;
            }
            looked_at += 1;
            let (age, id) = read_place(&place);
            page.jobs.extend(self.find(&id)?.filter(&fits).as_ref().map(&shown));
            last = Some(format!("{age} {id}"));
        }
        Ok(page)
    }
}

/// The place of a job in the order: newest first, and at the same time the smaller id first.
fn place_of<T>(job: &Job<T>) -> Vec<u8> {
    let since = job.submitted_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    place(u128::MAX - since.as_nanos(), &job.id)
}

fn place(age: u128, id: &str) -> Vec<u8> {
    [age.to_be_bytes().as_slice(), id.as_bytes()].concat()
}

/// The inverse of [`place`].
fn read_place(place: &[u8]) -> (u128, Cow<'_, str>) {
    let (age, id) = place.split_first_chunk().unwrap_or((&[0; 16], place));
    (u128::from_be_bytes(*age), String::from_utf8_lossy(id))
}

#[cfg(test)]
mod tests;
