//! The calls of `profile`, `review` and `transfer`.

use super::calls::{all_pages, plain};
use super::{Subject, answered};
use crate::verdict::{Stop, skipped};
use memhost_sandbox::{CallError, ImportAnswer, OptionalInterface};
use memhost_types::{
    Decision, ExtractionJob, JobStatus, RecordHandle, RecordWrite, Scope, Snippet,
};

/// The most runs of a job that stays unfinished.
const MOST_RUNS: usize = 20;

impl Subject {
    pub(crate) async fn summary(&self, scope: &Scope) -> Result<Option<String>, Stop> {
        answered("get-profile", plain(self.instances().profile(scope).await))
            .map(|answer| answer.summary)
    }

    /// One page of pending records and its next cursor.
    pub(crate) async fn pending_page(
        &self,
        scope: &Scope,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<(Vec<Snippet>, Option<String>), Stop> {
        let page =
            answered("list-pending", plain(self.instances().pending(scope, cursor, limit).await))?;
        if page.truncated {
            return skipped("`list-pending` answers that it cannot continue");
        }
        Ok((page.items, page.next))
    }

    /// All pending records, in pages of this size.
    pub(crate) async fn pending_by(&self, scope: &Scope, limit: u32) -> Result<Vec<Snippet>, Stop> {
        let page = |cursor: Option<String>| async move {
            self.pending_page(scope, cursor.as_deref(), limit).await
        };
        all_pages("list-pending", page).await
    }

    /// All pending records.
    pub(crate) async fn pending(&self, scope: &Scope) -> Result<Vec<Snippet>, Stop> {
        self.pending_by(scope, 100).await
    }

    /// Decides, with the provider's own answer.
    pub(crate) async fn try_decide(
        &self,
        scope: &Scope,
        handle: &RecordHandle,
        decision: Decision,
        edited: Option<&RecordWrite>,
    ) -> Result<Option<Snippet>, CallError> {
        plain(self.instances().decide(scope, &handle.provider_record_id, decision, edited).await)
    }

    /// The parts of an export, from the first to the last.
    pub(crate) async fn export(&self, scope: &Scope) -> Result<Vec<String>, Stop> {
        let page = |cursor: Option<String>| async move {
            let chunk = plain(self.instances().export(scope, cursor.as_deref()).await);
            let chunk = answered("export-records", chunk)?;
            let lines = (!chunk.lines.is_empty()).then_some(chunk.lines);
            Ok((lines.into_iter().collect(), chunk.next))
        };
        all_pages("export-records", page).await
    }

    /// Imports, with the provider's own answer.
    pub(crate) async fn try_import(
        &self,
        scope: &Scope,
        lines: &str,
    ) -> Result<ImportAnswer, CallError> {
        plain(self.instances().import(self.operation(), scope, lines).await)
    }

    /// Runs the provider's jobs until they finish or fail.
    pub(crate) async fn work_off(&self, jobs: &[ExtractionJob]) -> Result<(), Stop> {
        let can_run = self.interfaces.contains(&OptionalInterface::Extraction);
        for job in jobs.iter().filter(|job| can_run && job.status == JobStatus::Queued) {
            for _ in 0..MOST_RUNS {
                let ran = self.run_job(&job.provider_job_id).await?.job;
                if !ran
                    .is_some_and(|job| matches!(job.status, JobStatus::Queued | JobStatus::Running))
                {
                    break;
                }
            }
        }
        Ok(())
    }
}
