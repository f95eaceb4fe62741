//! Extraction jobs: a text is stored, read in parts, and deleted when its items are written.

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

/// How many sentences one call reads: far within its deadline, and their items fit into one batch.
const SLICE: usize = 400;
/// How many records a job names at most, because of the contract's limit on lists. Further records
/// exist but are not named.
const MOST_NAMED: usize = 1_000;
/// How many days an expired item stays stored, so that people can find out why it is not returned.
const KEPT_DAYS: i64 = 30;

/// The text to read, and its source. A job stays when it has ended, and a repeated capture returns
/// it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reading {
    place: Place,
    /// Whether its items are of the project of the place only.
    #[serde(default)]
    pub(super) is_bound: bool,
    source: Source,
    pub(super) hook_kind: Option<String>,
    pub(super) said_at: Timestamp,
    /// Whether a hook told `said_at`.
    #[serde(default)]
    pub(super) is_told_when: bool,
    /// The next sentence.
    next: usize,
}

/// A job of this provider.
pub(super) type Job = memhost_sdk::jobs::Job<Reading>;

/// The jobs of the binding, and the texts of those that have not ended.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: memhost_sdk::jobs::Jobs<Reading>,
    texts: Collection<String>,
}

impl Reading {
    pub(super) fn new(place: Place, source: Source, said_at: Timestamp) -> Self {
        let (is_bound, hook_kind, is_told_when, next) = (false, None, false, 0);
        Self { place, is_bound, source, hook_kind, said_at, is_told_when, next }
    }
}

impl Reading {
    /// When it was said, if a hook told. A clock that goes ahead must not make an item younger than
    /// new.
    fn triggered_at(&self, now: Timestamp) -> Option<Timestamp> {
        self.is_told_when.then(|| self.said_at.min(now))
    }
}

/// A job with its hook and source.
pub(super) fn shown(job: &Job, company: &str) -> ExtractionJob {
    ExtractionJob {
        hook_kind: job.work.hook_kind.as_deref().map(hook_kind),
        source: (!company.is_empty()).then(|| job.work.source.shown(company)),
        // The text of a job that has ended is deleted.
        is_retryable: false,
        ..job.shown()
    }
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { jobs: memhost_sdk::jobs::Jobs::new("extraction"), texts: Collection::new("sources") }
    }

    pub(super) fn find(&self, id: &str) -> Result<Option<Job>, Error> {
        self.jobs.find(id)
    }

    /// Writes a job with its text; without one its text is deleted.
    pub(super) fn write(
        &self,
        batch: &mut Batch,
        job: &Job,
        text: Option<&str>,
    ) -> Result<(), Error> {
        self.jobs.write(batch, job)?;
        match text {
            Some(text) => batch.put(&self.texts, &job.id, &text.to_owned())?,
            None => batch.delete(&self.texts, &job.id),
        }
        Ok(())
    }
}

impl Extraction for Taxonomy {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        self.store.refresh()?;
        let mut job = self.jobs.jobs.get(&id)?;
        if !job.has_ended() {
            let text = self.jobs.texts.get(&id)?.unwrap_or_default();
            let all = sentences(&text);
            let until = all.len().min(job.work.next + SLICE);
            let now = now();
            let found = candidates(all.get(job.work.next..until).unwrap_or_default());
            let items = self.items(&mut job, &found, now);
            job.work.next = until;
            let is_done = until == all.len();
            if is_done {
                job.succeed(now.into());
            } else {
                job.go_on(now.into());
            }
            let mut batch = Batch::new();
            self.jobs.write(&mut batch, &job, (!is_done).then_some(text.as_str()))?;
            // The items and the state of the job are one batch, so that it happens once.
            let gone = self.long_expired(now);
            self.store.write(batch, items, &gone)?;
        }
        Ok(JobResult { job: shown(&job, ""), ..job.result() })
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        Ok(self.jobs.find(&id)?.map(|job| JobResult { job: shown(&job, ""), ..job.result() }))
    }

    fn list_jobs(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        let is_visible = |job: &Job| job.work.place.is_visible(&scope);
        self.jobs
            .jobs
            .page(cursor.as_deref(), limit, is_visible, |job| shown(job, &scope.company_id))
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let mut job = self.jobs.jobs.get(&id)?;
        job.cancel(now().into());
        let mut batch = Batch::new();
        self.jobs.write(&mut batch, &job, None)?;
        batch.apply()?;
        Ok(shown(&job, ""))
    }

    /// Refuses: the text of a job that has ended is deleted.
    fn retry_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let job = self.jobs.jobs.get(&id)?;
        match job.is_retryable() {
            true => Err(Error::unsupported(format!(
                "the text of `{id}` was deleted when it ended; send the capture again"
            ))),
            false => Ok(shown(&job, "")),
        }
    }
}

impl Taxonomy {
    /// Writes candidates as items: new ones, and those that were said again. Their ids are added to
    /// the job.
    fn items(&self, job: &mut Job, found: &[Candidate], now: Timestamp) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        let mut below = 0_u32;
        for candidate in found {
            if candidate.confidence < self.config.reject_below {
                below += 1;
                continue;
            }
            let name =
                id::statement(candidate.kind, &candidate.text, &job.work.place, job.work.is_bound);
            if items.iter().any(|item| item.id == name) {
                continue;
            }
            match self.store.get(&name) {
                // A person has rejected it.
                Some(item) if item.status == Status::Rejected => continue,
                Some(item) => items.push(self.said_again(item, candidate, job, now)),
                None => items.push(self.new_item(name.clone(), candidate, job, now)),
            }
            if job.records.len() < MOST_NAMED && !job.records.contains(&name) {
                job.records.push(name);
            }
        }
        if below > 0 {
            log::info!(
                "{below} candidates were below {} and were dropped",
                self.config.reject_below
            );
        }
        items
    }

    /// A repeated statement starts to age again. A person's changes stay.
    fn said_again(&self, item: &Item, candidate: &Candidate, job: &Job, now: Timestamp) -> Item {
        let expires_at = expires(&self.config, item.kind, &candidate.text, job.work.said_at);
        let triggered_at = job.work.triggered_at(now).max(item.triggered_at);
        Item {
            updated_at: now,
            triggered_at,
            expires_at: expires_at.max(item.expires_at),
            ..item.clone()
        }
    }

    fn new_item(&self, name: String, candidate: &Candidate, job: &Job, now: Timestamp) -> Item {
        let evidence = Item::evidence(&candidate.evidence);
        // Personal data in other parts of the sentence does not make the statement wait.
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
                adjustments: candidate
                    .adjustments
                    .iter()
                    .map(|(name, by)| ((*name).to_owned(), *by))
                    .collect(),
                subject: candidate.subject.to_owned(),
                evidence: if is_clean { pii::redact(&evidence) } else { evidence },
            }),
            place: job.work.place.clone(),
            is_bound: job.work.is_bound,
            source: Some(job.work.source.clone()),
            metadata: None,
            operation: job.id.clone(),
            created_at: now,
            updated_at: now,
            triggered_at: job.work.triggered_at(now),
            expires_at: expires(&self.config, candidate.kind, &candidate.text, job.work.said_at),
            decision: None,
        };
        judge(&self.config, &mut item);
        item
    }

    /// The items that expired long ago.
    fn long_expired(&self, now: Timestamp) -> Vec<String> {
        let end =
            now.checked_sub(SignedDuration::from_hours(24 * KEPT_DAYS)).unwrap_or(Timestamp::MIN);
        let is_over = |item: &Item| item.expires_at.is_some_and(|expired| expired < end);
        self.store
            .behind(None)
            .filter(|held| is_over(&held.item))
            .map(|held| held.item.id.clone())
            .take(1_000)
            .collect()
    }
}
