//! Captured residue that waits to become a record.

use memhost_sdk::types::*;
use serde::{Deserialize, Serialize};

use crate::record::{Partition, Record, Source};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) partition: Partition,
    pub(crate) hook: Option<Hook>,
    pub(crate) source: Option<Source>,
    pub(crate) submitted_at: String,
    pub(crate) finished_at: Option<String>,
    pub(crate) state: State,
}

/// The captured record is stored here only while the job waits or may be tried again, so that a
/// forgotten record leaves nothing behind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum State {
    Queued(Box<Record>),
    Succeeded(Vec<RecordId>),
    Cancelled(Box<Record>),
}

impl Job {
    pub(crate) fn shown(self, id: RecordId) -> ExtractionJob {
        let (status, record_count) = match &self.state {
            State::Queued(_) => (JobStatus::Queued, None),
            State::Succeeded(records) => (JobStatus::Succeeded, u32::try_from(records.len()).ok()),
            State::Cancelled(_) => (JobStatus::Cancelled, None),
        };
        ExtractionJob {
            provider_job_id: id,
            status,
            hook_kind: self.hook.map(|hook| hook.0),
            source: self.source.map(|source| source.0),
            record_count,
            error: None,
            is_retryable: status == JobStatus::Cancelled,
            submitted_at: Some(self.submitted_at),
            started_at: if status == JobStatus::Succeeded {
                self.finished_at.clone()
            } else {
                None
            },
            finished_at: self.finished_at,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hook(#[serde(with = "HookKindJson")] pub(crate) HookKind);

#[derive(Serialize, Deserialize)]
#[serde(remote = "HookKind")]
enum HookKindJson {
    PreRunHydrate,
    PostRunCapture,
    IssueCommentCapture,
    IssueDocumentCapture,
    ManualCapture,
    Other(String),
}
