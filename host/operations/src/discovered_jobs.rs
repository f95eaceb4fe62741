//! Jobs that an operation left at its provider. The answer to a capture names them; after other
//! writes the host asks.

use crate::runner::Answered;
use memhost_queues::Jobs;
use memhost_sandbox::OptionalInterface;
use memhost_store::StoreError;
use memhost_types::{ExtractionJob, Job, Replacement, Scope};

/// Jobs of one page.
const PAGE: u32 = 64;
/// Pages that are read at most: a write has at most 1,000 records.
const MOST_PAGES: usize = 16;

impl Answered<'_> {
    /// Registers the jobs that the provider has and the host does not know; they are due once the
    /// operation has ended. A provider that cannot say is asked again after the next write.
    pub(crate) async fn discover_jobs(&mut self, scope: &Scope) -> Result<(), StoreError> {
        let serving = self.serving;
        if !serving.plugin.component.exports(OptionalInterface::Extraction) {
            return Ok(());
        }
        let (mut waiting, mut cursor) = (Vec::<ExtractionJob>::new(), None);
        for _ in 0..MOST_PAGES {
            let (jobs, next) = match serving
                .instances
                .list_jobs(scope, cursor.as_deref(), PAGE)
                .await
            {
                Ok(answer) => {
                    self.ending.add_metered(answer.metered);
                    answer.value
                }
                Err(failure) => {
                    self.ending.add_metered(failure.metered);
                    tracing::warn!(error = %failure.error, binding = %serving.binding.key, "the \
                        provider could not list its jobs");
                    break;
                }
            };
            let before = waiting.len();
            waiting.extend(jobs.into_iter().filter(|job| !job.status.is_end()));
            // They come newest first: behind a page on which all have ended, all have.
            match next.filter(|next| waiting.len() > before && Some(next) != cursor.as_ref()) {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let new = self.register_jobs(&waiting, None).await?;
        let is_new =
            |job: &ExtractionJob| new.iter().any(|new| new.provider_job_id == job.provider_job_id);
        self.ending.set_jobs(waiting.into_iter().filter(is_new).collect());
        Ok(())
    }

    /// Registers those of a provider's jobs that the host does not know, in one step with the
    /// completion. No other operation registers jobs of this binding until that is on disk.
    /// `replaces`: what their records take the place of.
    pub(crate) async fn register_jobs(
        &mut self,
        discovered: &[ExtractionJob],
        replaces: Option<&Replacement>,
    ) -> Result<Vec<Job>, StoreError> {
        let (jobs, binding) = (&self.host.jobs, &self.serving.binding);
        if discovered.is_empty()
            || jobs
                .undiscovered(self.ending.operation(), binding, discovered, replaces)
                .await?
                .is_empty()
        {
            return Ok(Vec::new());
        }
        let lock = jobs.lock_new(binding.id).await?;
        // Another operation may have written them meanwhile.
        let new = jobs.undiscovered(self.ending.operation(), binding, discovered, replaces).await?;
        self.ending.hold(lock);
        for job in &new {
            self.ending.add_new_jobs(Jobs::writes(None, job)?);
        }
        Ok(new)
    }
}
