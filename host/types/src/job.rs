//! Extraction jobs as the host keeps them: what a capture left to be done, and how far that is.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::about::{About, Wanted};
use super::bounds::check_context_id;
use super::named::named;
use super::{
    AgentId, BindingId, BindingKey, CompanyId, FieldError, HookContext, HookKind, JobStatus,
    OperationErrorCode, OperationId, ProviderKey, RecordHandle, Replacement, Scope, SourceKind,
    SourceRef, Visibility,
};

/// A job's identity. The provider's own name for it is another one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct JobId(pub Uuid);

named!(
    /// The side that does the work.
    JobRunner, "runner" {
        /// The host gives the provider time, call by call.
        Host = "host",
        /// The provider's own system; the host asks how far it is.
        Provider = "provider",
    }
);

/// One extraction job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Orders jobs by time.
    pub id: JobId,
    /// The company.
    pub company_id: CompanyId,
    /// The binding whose provider works.
    pub binding_id: BindingId,
    /// Its key when the job was left.
    pub binding_key: BindingKey,
    /// The provider of the job.
    pub provider_key: ProviderKey,
    /// The provider's own name for it.
    pub provider_job_id: String,
    /// The capture that left it.
    pub operation_id: OperationId,
    /// The last operation that worked on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation_id: Option<OperationId>,
    /// The kind of hook that triggered the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_kind: Option<HookKind>,
    /// The event that triggered the capture, with its actor and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookContext>,
    /// Where the material came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// The scope of the job.
    pub scope: Scope,
    /// The readers of the resulting records.
    #[serde(default, skip_serializing_if = "Visibility::is_company")]
    pub visibility: Visibility,
    /// The records that its own replace when it has succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<Replacement>,
    /// The side that does the work.
    pub runner: JobRunner,
    /// How far it is.
    pub status: JobStatus,
    /// Calls that began to work on it, without those that only asked.
    pub attempts: u32,
    /// Attempts since it last got anywhere. So many as the host's retry policy allows fail it.
    pub failures: u32,
    /// When the capture left it.
    pub submitted_at: Timestamp,
    /// When the first attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When an attempt last came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_at: Option<Timestamp>,
    /// Until when the present attempt has it for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// When it is looked at next; absent once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How many records came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_count: Option<u32>,
    /// The first of them, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordHandle>,
    /// Why the last attempt did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of `error`, where the host did not call the provider or the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<OperationErrorCode>,
    /// Whether the provider says that it can be tried again; absent: not stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_retryable: Option<bool>,
    /// Whether somebody has asked for another try, and the provider was not told yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_retry: bool,
}

impl Job {
    /// What it is about.
    pub fn about(&self) -> About<'_> {
        About::of(&self.scope, self.source.as_ref(), self.hook.as_ref())
    }

    /// Whether it waits until its binding may spend again.
    pub fn is_stopped_by_budget(&self) -> bool {
        !self.status.is_end() && self.error_code == Some(OperationErrorCode::BudgetExceeded)
    }

    /// Whether it can be queued again.
    pub fn can_retry(&self) -> bool {
        matches!(self.status, JobStatus::Failed | JobStatus::Cancelled)
            && self.is_retryable != Some(false)
    }
}

impl JobStatus {
    /// Whether nothing comes after it.
    pub fn is_end(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// Which jobs to show. Every field that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs, reason = "the names are those of the job's fields")]
pub struct JobFilter {
    pub status: Option<JobStatus>,
    pub binding_key: Option<BindingKey>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub hook_kind: Option<HookKind>,
    pub source_kind: Option<SourceKind>,
    /// The agent of the scope, or else whose action triggered the capture.
    pub agent_id: Option<AgentId>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub issue_id: Option<String>,
    #[schemars(with = "Option<super::schema::OutsideId>")]
    pub run_id: Option<String>,
    /// Submitted at this moment or later.
    pub since: Option<Timestamp>,
    /// Submitted before this moment.
    pub until: Option<Timestamp>,
}

impl JobFilter {
    /// Checks the length of ids.
    ///
    /// # Errors
    /// The first field at fault.
    pub fn check(&self) -> Result<(), FieldError> {
        check_context_id("issueId", self.issue_id.as_deref())?;
        check_context_id("runId", self.run_id.as_deref())?;
        self.hook_kind.as_ref().map_or(Ok(()), |kind| super::check_id("hookKind", kind.as_str()))
    }

    /// Whether a job matches.
    pub fn matches(&self, job: &Job) -> bool {
        self.status.is_none_or(|wanted| job.status == wanted)
            && self.binding_key.as_ref().is_none_or(|wanted| job.binding_key == *wanted)
            && self.hook_kind.as_ref().is_none_or(|wanted| job.hook_kind.as_ref() == Some(wanted))
            && self.source_kind.is_none_or(|wanted| {
                job.source.as_ref().is_some_and(|source| source.kind == wanted)
            })
            && job.about().is(Wanted {
                agent: self.agent_id.as_ref().map(AgentId::as_str),
                issue: self.issue_id.as_deref(),
                run: self.run_id.as_deref(),
                project: None,
            })
            && self.since.is_none_or(|since| job.submitted_at >= since)
            && self.until.is_none_or(|until| job.submitted_at < until)
    }
}
