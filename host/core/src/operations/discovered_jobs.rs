//! Jobs that an operation left at its provider: a capture's answer says which, and after other writes the provider is asked.

use std::sync::Arc;

use crate::Service;
use crate::error::ServiceError;
use crate::operations::record::OpenOperation;
use crate::versions::serving::Serving;
use memhost_sandbox::OptionalInterface;
use memhost_types::{ExtractionJob, Job, Scope};

/// Jobs that are looked at, the newest ones: so many can a write leave, as the contract says.
const NEWEST: u32 = 64;

impl Service {
    /// Takes in the jobs that the provider has and the host does not know, as a part of the operation after which there may
    /// be some; they are due once the operation is closed. A provider that cannot say is asked again after the next write.
    pub(crate) async fn discover_jobs(
        &self,
        open: &mut OpenOperation,
        serving: &Arc<Serving>,
        scope: &Scope,
    ) -> Result<(), ServiceError> {
        if !serving.plugin.component.exports(OptionalInterface::Extraction) {
            return Ok(());
        }
        let found = match serving.instances.list_jobs(scope, NEWEST).await {
            Ok(answer) => {
                open.used(answer.embedded);
                answer.value
            }
            Err(failure) => {
                open.used(failure.embedded);
                tracing::warn!(error = %failure.error, binding = %serving.binding.key, "jobs may wait unseen");
                return Ok(());
            }
        };
        let waiting: Vec<ExtractionJob> = found.into_iter().filter(|job| !job.status.is_end()).collect();
        let jobs = self.new_jobs(open, serving, &waiting).await?;
        let is_new = |job: &ExtractionJob| jobs.iter().any(|new| new.provider_job_id == job.provider_job_id);
        open.leaves(waiting.into_iter().filter(is_new).collect(), &jobs).map_err(ServiceError::Audit)
    }

    /// The jobs that the host does not know yet. Where there are some, nobody else writes any of this binding's down until
    /// the operation is closed.
    pub(crate) async fn new_jobs(
        &self,
        open: &mut OpenOperation,
        serving: &Serving,
        left: &[ExtractionJob],
    ) -> Result<Vec<Job>, ServiceError> {
        let Some(operation) = open.operation().filter(|_| !left.is_empty()) else { return Ok(Vec::new()) };
        let unknown =
            async || self.jobs.undiscovered(operation, &serving.binding, left).await.map_err(ServiceError::Audit);
        if unknown().await?.is_empty() {
            return Ok(Vec::new());
        }
        let leaving = self.jobs.leave(serving.binding.id).await;
        // Somebody may have written them down meanwhile.
        let new = unknown().await?;
        open.hold(leaving);
        Ok(new)
    }
}
