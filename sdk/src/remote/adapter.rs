//! A provider made of a service's routes: what every adapter has in common.

use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Records, Service, Tag, without_recall};
use crate::jobs::{Job, Jobs};
use crate::types::{
    CaptureMode, CaptureRequest, CaptureResponse, ContextBundle, CorrectRequest, CorrectResponse, Description, Error,
    ExtractionJob, ForgetRequest, ForgetResponse, GetResponse, JobPage, JobResult, JobStatus, ListPage, ListRequest,
    QueryRequest, RecordId, Scope, UpsertRequest, UpsertResponse, Usage,
};
use crate::{Correction, Extraction, Provider};

/// What a service extracts from, for a configuration: `residue`, `always` or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Infer {
    /// Captures of raw material.
    #[default]
    Residue,
    /// Every capture.
    Always,
    /// Nothing: every capture is a record.
    Never,
}

impl Infer {
    /// Whether it extracts from a capture of this mode.
    pub fn is_for(self, mode: CaptureMode) -> bool {
        match self {
            Self::Residue => mode == CaptureMode::CaptureResidue,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// A provider whose records are at a service. It is a [`Provider`] with [`Correction`]; what it exports beside them it
/// implements itself.
pub trait Adapter: Sized + 'static {
    /// The configuration of a binding.
    type Config: DeserializeOwned + 'static;
    /// The routes.
    type Service: Service;

    /// What this component is.
    fn describe() -> Description;

    /// A provider for one binding. No requests here.
    ///
    /// # Errors
    /// If the configuration cannot work.
    fn open(config: Self::Config) -> Result<Self, Error>;

    /// The records of the company that a call is about; every call of an instance is about the same one.
    fn records(&self, scope: &Scope) -> &Records<Self::Service>;

    /// Whether the service extracts from a capture of this mode. Otherwise the capture is a record.
    fn learns(&self, mode: CaptureMode) -> bool;

    /// Lets the service extract. The text is without what was recalled, and not empty.
    ///
    /// # Errors
    /// What the service answers, or if storage fails.
    fn learn(&self, request: &CaptureRequest, text: &str, tag: &Tag) -> Result<CaptureResponse, Error>;
}

impl<A: Adapter> Provider for A {
    type Config = A::Config;

    fn describe() -> Description {
        A::describe()
    }

    fn open(config: A::Config) -> Result<Self, Error> {
        A::open(config)
    }

    fn capture(&mut self, request: CaptureRequest) -> Result<CaptureResponse, Error> {
        let tag = Tag::captured(&request)?;
        let text = request.payload.text_or_turns().or_else(|| request.payload.object.clone()).unwrap_or_default();
        let text = without_recall(&text);
        if text.trim().is_empty() {
            return Ok(CaptureResponse::default());
        }
        if self.learns(request.mode) {
            return self.learn(&request, &text, &tag);
        }
        let records = self.records(&request.scope);
        Ok(vec![records.add(&request.operation_id, request.hook.is_some(), &text, &tag)?].into())
    }

    fn upsert_records(&mut self, request: UpsertRequest) -> Result<UpsertResponse, Error> {
        self.records(&request.scope).upsert(&request)
    }

    fn query(&mut self, request: QueryRequest) -> Result<ContextBundle, Error> {
        self.records(&request.scope).query(&request)
    }

    fn list_records(&mut self, request: ListRequest) -> Result<ListPage, Error> {
        self.records(&request.scope).list(&request)
    }

    fn get_record(&mut self, id: RecordId, scope: Scope) -> Result<GetResponse, Error> {
        self.records(&scope).get(&id, &scope)
    }

    fn forget(&mut self, request: ForgetRequest) -> Result<ForgetResponse, Error> {
        self.records(&request.scope).forget(request)
    }
}

impl<A: Adapter> Correction for A {
    fn correct(&mut self, request: CorrectRequest) -> Result<CorrectResponse, Error> {
        self.records(&request.scope).correct(request)
    }
}

/// What is noted of a job that a service works on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The scope of the capture that began it.
    pub scope: Scope,
    /// What it used, once it has ended and the service tells.
    pub usage: Vec<Usage>,
}

fn jobs() -> Jobs<Work> {
    Jobs::new("elsewhere")
}

/// A provider whose service works on captures for a while: it is [`Extraction`].
pub trait Elsewhere: Provider {
    /// Asks the service how a job stands: ends the job if the service has, with its records and usage.
    ///
    /// # Errors
    /// What the service answers.
    fn ask(&self, job: &mut Job<Work>) -> Result<(), Error>;

    /// Asks the service to stop a job that has not ended.
    ///
    /// # Errors
    /// What the service answers, or `unsupported`, as without this method.
    fn stop(&self, _job: &Job<Work>) -> Result<(), Error> {
        Err(Error::unsupported("the service does not stop what it extracts"))
    }

    /// Called once a job's end is noted, to remove what the service needs no more. An error is logged.
    ///
    /// # Errors
    /// What the service answers.
    fn ended(&self, _job: &Job<Work>) -> Result<(), Error> {
        Ok(())
    }
}

/// The answer to a capture that the service works on as this job, which is noted.
///
/// # Errors
/// If storage fails.
pub fn begun(id: String, scope: &Scope) -> Result<CaptureResponse, Error> {
    let work = || Work { scope: scope.clone(), usage: Vec::new() };
    let job = jobs().find(&id)?.unwrap_or_else(|| Job::new(id, SystemTime::now(), work()));
    jobs().put(&job)?;
    Ok(CaptureResponse { jobs: vec![shown(&job)], ..CaptureResponse::default() })
}

/// The scope of the capture that began a job, if there is such a job: what the service makes later is of that scope.
///
/// # Errors
/// If storage fails.
pub fn scope_of(id: &str) -> Result<Option<Scope>, Error> {
    Ok(jobs().find(id)?.map(|job| job.work.scope))
}

/// A job as the contract has it: the service works on it until it has ended, and does not take it up again.
fn shown(job: &Job<Work>) -> ExtractionJob {
    let shown = job.shown();
    let status = if job.has_ended() { shown.status } else { JobStatus::Running };
    ExtractionJob { status, is_retryable: false, ..shown }
}

impl<E: Elsewhere> Extraction for E {
    fn run_job(&mut self, id: String) -> Result<JobResult, Error> {
        let missing = || Error::NotFound(format!("no capture of this binding began the job {id}"));
        self.get_job(id.clone())?.ok_or_else(missing)
    }

    fn get_job(&mut self, id: String) -> Result<Option<JobResult>, Error> {
        let Some(mut job) = jobs().find(&id)? else { return Ok(None) };
        if !job.has_ended() {
            self.ask(&mut job)?;
            jobs().put(&job)?;
            if job.has_ended()
                && let Err(error) = self.ended(&job)
            {
                log::warn!("what was made for the job {} stays at the service: {error}", job.id);
            }
        }
        Ok(Some(JobResult { job: shown(&job), usage: job.work.usage.clone(), ..job.result() }))
    }

    fn list_jobs(&mut self, scope: Scope, cursor: Option<String>, limit: u32) -> Result<JobPage, Error> {
        jobs().page(cursor.as_deref(), limit, |job| Tag::of(&job.work.scope).is_visible_in(&scope), shown)
    }

    fn cancel_job(&mut self, id: String) -> Result<ExtractionJob, Error> {
        let job = jobs().get(&id)?;
        if job.has_ended() {
            return Ok(shown(&job));
        }
        self.stop(&job)?;
        Ok(self.run_job(id)?.job)
    }

    fn retry_job(&mut self, _: String) -> Result<ExtractionJob, Error> {
        Err(Error::unsupported("the service does not take up a job again; capture it once more"))
    }
}
