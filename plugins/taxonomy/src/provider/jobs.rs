//! Extraction as jobs of the host: a text waits, is read in slices, and is gone when its items are there.

use jiff::{SignedDuration, Timestamp};
use memhost_sdk::Extraction;
use memhost_sdk::storage::{Batch, Collection};
use memhost_sdk::types::*;
use serde::{Deserialize, Serialize};

use super::Taxonomy;
use crate::clock::now;
use crate::extract::{Candidate, candidates, sentences};
use crate::id;
use crate::item::{Extracted, Item, Status};
use crate::lifetime::expires;
use crate::pii;
use crate::place::{Place, Source, hook_kind};
use crate::workflow::judge;

/// So many sentences are read in one call: far within a call's deadline, and a batch holds what they make.
const SLICE: usize = 400;
/// A job names at most so many records, as a list of the contract does. Further ones are there and not named.
const MOST_NAMED: usize = 1_000;
/// What expired is still there for so many days, for whoever looks at why it is no longer answered.
const KEPT_DAYS: i64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Progress {
    Queued,
    Running,
    Succeeded,
    Cancelled,
}

/// A job as it is stored. It stays when it has ended: the same capture again is answered with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    progress: Progress,
    place: Place,
    source: Source,
    pub(super) hook_kind: Option<String>,
    pub(super) said_at: Timestamp,
    submitted_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    /// The sentence that is next.
    next: usize,
    records: Vec<RecordId>,
}

/// The jobs of the binding, and the texts of those that have not ended.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: Collection<Job>,
    texts: Collection<String>,
}

impl Job {
    pub(super) fn new(place: Place, source: Source, now: Timestamp) -> Self {
        Self {
            progress: Progress::Queued,
            place,
            source,
            hook_kind: None,
            said_at: now,
            submitted_at: now,
            started_at: None,
            finished_at: None,
            next: 0,
            records: Vec::new(),
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.progress, Progress::Succeeded | Progress::Cancelled)
    }

    pub(super) fn shown(&self, id: &str, company: &str) -> ExtractionJob {
        let is_done = self.progress == Progress::Succeeded;
        ExtractionJob {
            provider_job_id: id.to_owned(),
            status: match self.progress {
                Progress::Queued => JobStatus::Queued,
                Progress::Running => JobStatus::Running,
                Progress::Succeeded => JobStatus::Succeeded,
                Progress::Cancelled => JobStatus::Cancelled,
            },
            hook_kind: self.hook_kind.as_deref().map(hook_kind),
            source: (!company.is_empty()).then(|| self.source.shown(company)),
            record_count: is_done.then(|| u32::try_from(self.records.len()).unwrap_or(u32::MAX)),
            error: None,
            submitted_at: Some(self.submitted_at.to_string()),
            started_at: self.started_at.map(|time| time.to_string()),
            finished_at: self.finished_at.map(|time| time.to_string()),
        }
    }
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { jobs: Collection::new("jobs"), texts: Collection::new("sources") }
    }

    pub(super) fn get(&self, id: &str) -> Result<Option<Job>, Error> {
        Ok(self.jobs.get(id)?)
    }

    /// Writes a job with its text; without one its text is deleted.
    pub(super) fn put(&self, batch: &mut Batch, id: &str, job: &Job, text: Option<&str>) -> Result<(), Error> {
        batch.put(&self.jobs, id, job)?;
        match text {
            Some(text) => batch.put(&self.texts, id, &text.to_owned())?,
            None => batch.delete(&self.texts, id),
        }
        Ok(())
    }

    fn all(&self) -> Result<Vec<(String, Job)>, Error> {
        let entry = |entry: Result<(Vec<u8>, Job), _>| {
            let (key, job) = entry?;
            Ok((String::from_utf8_lossy(&key).into_owned(), job))
        };
        self.jobs.iter("").map(entry).collect()
    }
}

impl Extraction for Taxonomy {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        self.store.refresh()?;
        let Some(mut job) = self.jobs.get(&id)? else {
            return Err(Error::NotFound(format!("there is no job {id}")));
        };
        if !job.has_ended() {
            let text = self.jobs.texts.get(&id)?.unwrap_or_default();
            let all = sentences(&text);
            let until = all.len().min(job.next + SLICE);
            let now = now();
            job.started_at.get_or_insert(now);
            let found = candidates(all.get(job.next..until).unwrap_or_default());
            let items = self.items(&id, &mut job, &found, now);
            job.next = until;
            let is_done = until == all.len();
            job.progress = if is_done { Progress::Succeeded } else { Progress::Running };
            job.finished_at = is_done.then_some(now);
            let mut batch = Batch::new();
            self.jobs.put(&mut batch, &id, &job, (!is_done).then_some(text.as_str()))?;
            // What was made and how far the job is are one batch: it happens once.
            let gone = self.long_expired(now);
            self.store.write(batch, items, &gone)?;
        }
        Ok(JobResult { records: job.records.clone(), job: job.shown(&id, ""), usage: Vec::new() })
    }

    fn get_job(&mut self, id: String) -> Result<Option<ExtractionJob>, Error> {
        Ok(self.jobs.get(&id)?.map(|job| job.shown(&id, "")))
    }

    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        let mut all = self.jobs.all()?;
        all.retain(|(_, job)| job.place.is_visible(&scope));
        let place = |id: &str, job: &Job| (std::cmp::Reverse(job.submitted_at), id.to_owned());
        all.sort_by_key(|(id, job)| place(id, job));
        if let Some(cursor) = cursor {
            let read = cursor.split_once(' ').and_then(|(time, id)| Some((time.parse().ok()?, id.to_owned())));
            let Some((time, id)) = read else {
                return Err(Error::invalid("cursor", format!("`{cursor}` is not a cursor of taxonomy's jobs")));
            };
            let last = (std::cmp::Reverse(time), id);
            all.retain(|(id, job)| place(id, job) > last);
        }
        let has_more = all.len() > limit as usize;
        all.truncate(limit as usize);
        let next_cursor = all.last().filter(|_| has_more).map(|(id, job)| format!("{} {id}", job.submitted_at));
        let jobs = all.iter().map(|(id, job)| job.shown(id, &scope.company_id)).collect();
        Ok(JobPage { jobs, next_cursor })
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let Some(mut job) = self.jobs.get(&id)? else {
            return Err(Error::NotFound(format!("there is no job {id}")));
        };
        if !job.has_ended() {
            job.progress = Progress::Cancelled;
            job.finished_at = Some(now());
            let mut batch = Batch::new();
            self.jobs.put(&mut batch, &id, &job, None)?;
            batch.apply()?;
        }
        Ok(job.shown(&id, ""))
    }
}

impl Taxonomy {
    /// Items out of candidates: new ones, and those that were said again. The job learns their names.
    fn items(&self, id: &str, job: &mut Job, found: &[Candidate], now: Timestamp) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        let mut below = 0_u32;
        for candidate in found {
            if candidate.confidence < self.config.reject_below {
                below += 1;
                continue;
            }
            let name = id::statement(candidate.kind, &candidate.text, &job.place);
            if items.iter().any(|item| item.id == name) {
                continue;
            }
            match self.store.get(&name) {
                // A person said no, and need not say it again.
                Some(item) if item.status == Status::Rejected => continue,
                Some(item) => items.push(self.said_again(item, candidate, job, now)),
                None => items.push(self.new_item(name.clone(), id, candidate, job, now)),
            }
            if job.records.len() < MOST_NAMED && !job.records.contains(&name) {
                job.records.push(name);
            }
        }
        if below > 0 {
            log::info!("{below} candidates were below {} and are not kept", self.config.reject_below);
        }
        items
    }

    /// What is said again begins to age anew; what a person made of it stays.
    fn said_again(&self, item: &Item, candidate: &Candidate, job: &Job, now: Timestamp) -> Item {
        let expires_at = expires(&self.config, item.kind, &candidate.text, job.said_at);
        Item { updated_at: now, expires_at: expires_at.max(item.expires_at), ..item.clone() }
    }

    fn new_item(&self, name: String, operation: &str, candidate: &Candidate, job: &Job, now: Timestamp) -> Item {
        let evidence = Item::evidence(&candidate.evidence);
        // What the sentence says beside the statement does not make the statement wait.
        let is_clean = pii::level(&candidate.text) < 2;
        let mut item = Item {
            id: name,
            kind: candidate.kind,
            text: candidate.text.clone(),
            summary: None,
            confidence: candidate.confidence,
            status: Status::Pending,
            pii_risk: 0,
            tags: candidate.tags.clone(),
            extracted: Some(Extracted {
                rule: candidate.rule.to_owned(),
                confidence: candidate.confidence,
                adjustments: candidate.adjustments.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect(),
                subject: candidate.subject.to_owned(),
                evidence: if is_clean { pii::redact(&evidence) } else { evidence },
            }),
            place: job.place.clone(),
            source: Some(job.source.clone()),
            metadata: None,
            operation: operation.to_owned(),
            created_at: now,
            updated_at: now,
            expires_at: expires(&self.config, candidate.kind, &candidate.text, job.said_at),
            decision: None,
        };
        judge(&self.config, &mut item);
        item
    }

    /// What expired so long ago that nobody asks any more.
    fn long_expired(&self, now: Timestamp) -> Vec<String> {
        let end = now.checked_sub(SignedDuration::from_hours(24 * KEPT_DAYS)).unwrap_or(Timestamp::MIN);
        let is_over = |item: &Item| item.expires_at.is_some_and(|expired| expired < end);
        self.store
            .behind(None)
            .filter(|held| is_over(&held.item))
            .map(|held| held.item.id.clone())
            .take(1_000)
            .collect()
    }
}
