//! Optional interfaces. Only `reference`, `complete` and `wrong` use them; in the other guests the
//! linker drops them.

use memhost_sdk::storage::Batch;
use memhost_sdk::types::*;
use memhost_sdk::{Browse, Correction, Erasure, Explain, Extraction, Health, Profile};
use serde_json::json;

use crate::Reference;
use crate::job::{Job, State};
use crate::record::{Record, Standing, name, now};
use crate::reference::{Answered, operation_key, terms};

impl Correction for Reference {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        let Patch::Replacement(write) = request.patch else {
            return Err(Error::unsupported(
                "reference accepts replacements only, not instructions",
            ));
        };
        let operation = operation_key(&request.operation_id);
        // A text that begins with `instead` takes the place of the record, which stays as history.
        let supersedes = write.text.starts_with("instead ");
        let record_id = if supersedes { name('r', &[&operation]) } else { request.id.clone() };
        if self.answered.get(&operation)?.is_none() {
            let Some(old) = self.find(&request.id, &request.scope)? else {
                return Err(Error::NotFound(format!("there is no record {}", request.id)));
            };
            let mut batch = Batch::new();
            if supersedes {
                let before = Record { standing: Standing::Rejected, ..old.clone() };
                batch.put(&self.records, &request.id, &before)?;
            }
            let new = Record {
                text: write.text,
                summary: write.summary,
                metadata: write.metadata,
                updated_at: now(),
                ..old
            };
            batch.put(&self.records, &record_id, &new)?;
            let answered = Answered { records: vec![record_id.clone()], job: None };
            batch.put(&self.answered, &operation, &answered)?;
            batch.apply()?;
        }
        let superseded = supersedes.then_some(request.id);
        Ok(CorrectResponse { record_id, superseded, usage: Vec::new() })
    }
}

impl Profile for Reference {
    fn get_profile(&mut self, scope: Scope) -> Result<ProfileResponse, Error> {
        let mut count = 0;
        for entry in self.visible(&scope) {
            entry?;
            count += 1;
        }
        let summary = (count > 0).then(|| format!("Number of records: {count}"));
        Ok(ProfileResponse { summary, usage: Vec::new() })
    }
}

impl Explain for Reference {
    fn explain_query(&mut self, request: QueryRequest) -> Result<Explanation, Error> {
        let traces = self.hits(&request)?.into_iter().map(|(value, id, _)| {
            let contributions = vec![Contribution { name: "terms".to_owned(), value }];
            HitTrace { id, contributions }
        });
        Ok(Explanation {
            query: json!({ "terms": terms(&request.query) }).to_string(),
            hits: traces.collect(),
        })
    }
}

impl Browse for Reference {
    fn list_children(
        &mut self,
        path: String,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<NodePage, Error> {
        if path.is_empty() {
            let all = Node {
                path: "all".to_owned(),
                label: "Records".to_owned(),
                has_children: true,
                record_id: None,
            };
            return Ok(NodePage { nodes: vec![all], next_cursor: None });
        }
        if path != "all" {
            return Err(Error::NotFound(format!("there is no node {path}")));
        }
        let mut nodes = Vec::new();
        for entry in self.visible(&scope) {
            let (id, record) = entry?;
            if cursor.as_ref().is_none_or(|cursor| id > *cursor) {
                let label = record.text.chars().take(40).collect();
                nodes.push(Node {
                    path: id.clone(),
                    label,
                    has_children: false,
                    record_id: Some(id),
                });
            }
        }
        let more = nodes.len() > limit as usize;
        nodes.truncate(limit as usize);
        let next_cursor = nodes.last().filter(|_| more).map(|node| node.path.clone());
        Ok(NodePage { nodes, next_cursor })
    }
}

impl Reference {
    fn job(&self, id: &str) -> Result<Job, Error> {
        self.jobs.get(id)?.ok_or_else(|| Error::NotFound(format!("there is no job {id}")))
    }
}

fn result(job: Job, id: String) -> JobResult {
    let records =
        if let State::Succeeded(records) = &job.state { records.clone() } else { Vec::new() };
    JobResult { job: job.shown(id), records, usage: Vec::new() }
}

impl Health for Reference {
    fn check_health(&mut self) -> Result<Report, Error> {
        let count = self.records.iter("").count();
        Ok(Report { summary: format!("the storage answers, {count} records") })
    }
}

impl Erasure for Reference {
    /// What was written with the agent, the subject and the namespace that the scope names.
    fn forget_scope(&mut self, request: ForgetScopeRequest) -> Result<ForgetScopeResponse, Error> {
        let (mut batch, mut count) = (Batch::new(), 0);
        for entry in self.records.iter("") {
            let (id, record) = entry?;
            if record.partition.is_in(&request.scope) {
                batch.delete(&self.records, &id);
                count += 1;
            }
        }
        for entry in self.jobs.iter("") {
            let (id, job) = entry?;
            if job.partition.is_in(&request.scope) {
                batch.delete(&self.jobs, &id);
            }
        }
        if !batch.is_empty() {
            batch.apply()?;
        }
        Ok(ForgetScopeResponse { extent: Extent::Hard, count: Some(count), usage: Vec::new() })
    }
}

impl Extraction for Reference {
    fn run_job(&mut self, provider_job_id: String) -> Result<JobResult, Error> {
        let mut job = self.job(&provider_job_id)?;
        if let State::Queued(draft) = &job.state {
            let mut batch = Batch::new();
            let mut records = Vec::new();
            // A job may make no record.
            if !draft.text.trim().is_empty() {
                let id = name('r', &[&provider_job_id]);
                batch.put(&self.records, &id, draft)?;
                records.push(id);
            }
            job.finished_at = Some(now());
            job.state = State::Succeeded(records);
            batch.put(&self.jobs, &provider_job_id, &job)?;
            batch.apply()?;
        }
        Ok(result(job, provider_job_id))
    }

    fn get_job(&mut self, provider_job_id: String) -> Result<Option<JobResult>, Error> {
        Ok(self.jobs.get(&provider_job_id)?.map(|job| result(job, provider_job_id)))
    }

    fn list_jobs(
        &mut self,
        scope: Scope,
        cursor: Option<String>,
        limit: u32,
    ) -> Result<JobPage, Error> {
        let mut jobs = Vec::new();
        for entry in self.jobs.iter("") {
            let (key, job) = entry?;
            let id = String::from_utf8_lossy(&key).into_owned();
            let place = format!("{} {id}", job.submitted_at);
            if job.partition.is_visible_in(&scope)
                && cursor.as_ref().is_none_or(|cursor| place < *cursor)
            {
                jobs.push((place, job.shown(id)));
            }
        }
        jobs.sort_by(|a, b| b.0.cmp(&a.0));
        let more = jobs.len() > limit as usize;
        jobs.truncate(limit as usize);
        let next_cursor = jobs.last().filter(|_| more).map(|(place, _)| place.clone());
        Ok(JobPage { jobs: jobs.into_iter().map(|(_, job)| job).collect(), next_cursor })
    }

    fn cancel_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error> {
        let mut job = self.job(&provider_job_id)?;
        if let State::Queued(draft) = job.state {
            job.state = State::Cancelled(draft);
            job.finished_at = Some(now());
            self.jobs.put(&provider_job_id, &job)?;
        }
        Ok(job.shown(provider_job_id))
    }

    fn retry_job(&mut self, provider_job_id: String) -> Result<ExtractionJob, Error> {
        let mut job = self.job(&provider_job_id)?;
        if let State::Cancelled(draft) = job.state {
            job.state = State::Queued(draft);
            job.finished_at = None;
            self.jobs.put(&provider_job_id, &job)?;
        }
        Ok(job.shown(provider_job_id))
    }
}

/// Makes the component export every optional interface of [`Reference`], `migration` apart.
#[macro_export]
macro_rules! export_optional {
    () => {
        $crate::sdk::export_correction!($crate::Reference);
        $crate::sdk::export_profile!($crate::Reference);
        $crate::sdk::export_explain!($crate::Reference);
        $crate::sdk::export_browse!($crate::Reference);
        $crate::sdk::export_extraction!($crate::Reference);
        $crate::sdk::export_review!($crate::Reference);
        $crate::sdk::export_transfer!($crate::Reference);
        $crate::sdk::export_health!($crate::Reference);
        $crate::sdk::export_erasure!($crate::Reference);
    };
}
