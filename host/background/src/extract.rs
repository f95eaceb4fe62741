//! Extraction jobs: running them at their providers, and asking for the status of those that
//! providers run themselves. Each call is an operation, and the job changes in one step with the
//! operation's record.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Background;
use memhost_access::Caller;
use memhost_operations::{Answered, Operations, Step, Target, Writes};
use memhost_oplog::operation::{Completion, Ended, Ending, Opened};
use memhost_queues::Jobs;
use memhost_queues::due_queue::Taken;
use memhost_records::{Ownership, Since};
use memhost_registry::versions::{Serving, binding_deleted};
use memhost_sandbox::{Answer, Failure, JobAnswer};
use memhost_store::StoreError;
use memhost_tenancy::ServiceError;
use memhost_types::{
    ExtractionJob, Job, JobRunner, JobStatus, OperationErrorCode, OperationId, OperationKind,
    Outcome, Refusal, Scope, limits,
};

/// How long a job is leased beyond the longest call of its binding.
const LEASE_MARGIN_MS: u64 = 5_000;
/// A provider's own system is asked again after a quarter of the time that the job has taken so
/// far, within these.
const FIRST_POLL: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_POLL: SignedDuration = SignedDuration::from_mins(1);

impl Background {
    /// Works on a job with one call.
    pub(crate) async fn work_on(self: Arc<Self>, taken: Taken<Job>) {
        let job = &taken.item;
        let waits = match self.must_wait(&job.company_id, &job.binding_key, job.binding_id).await {
            Some(wait) => Some(wait),
            None => self.waits_for_budget(job).await,
        };
        if let Some((refusal, wait)) = waits {
            self.postpone_job(job, &refusal, wait).await;
            drop(taken);
            self.wake.notify_one();
            return;
        }
        if job.is_retry
            && let Err(error) = self.jobs.lock_cancellation(job.id).await
        {
            tracing::error!(%error, job = %job.id.0, "a retry could not wait for the cancellation \
                before it");
        }
        // A run that a crash ended may have been completed: the provider knows.
        let asks = match job {
            _ if job.is_retry => Asks::ForRetry,
            _ if job.runner == JobRunner::Provider || job.lease_until.is_some() => Asks::HowFar,
            _ => Asks::ForRun,
        };
        let mut step = Work {
            background: &self,
            before: job,
            scope: job.scope.clone(),
            asks,
            serving: None,
            during: None,
            after: None,
            ownership: None,
        };
        if let Err(error) = recorded(self.operations.operate(&Caller::worker(), &mut step).await) {
            // Nothing was recorded, so it is still due. The disk may need a moment.
            tracing::error!(%error, job = %job.id.0, "a job could not be worked on");
            tokio::time::sleep(self.retry.first).await;
        }
        drop(taken);
        self.wake.notify_one();
    }

    /// Looks at a job later, because its provider would not be asked now: that is no attempt, and
    /// leaves no operation.
    async fn postpone_job(&self, job: &Job, refusal: &Refusal, wait: Duration) {
        let due_at = self
            .clock
            .now()
            .checked_add(SignedDuration::try_from(wait).unwrap_or(LONGEST_POLL))
            .ok();
        let after = Job {
            due_at,
            error: Some(refusal.error.message.clone()),
            error_code: Some(refusal.error.code),
            ..job.clone()
        };
        let written = async {
            let _lock = self.jobs.lock(job.id).await?;
            self.jobs.write(job, &after).await?;
            // The budget may have been raised before the job could be found waiting for it.
            if after.is_stopped_by_budget() && self.waits_for_budget(&after).await.is_none() {
                let now = Job { due_at: Some(self.clock.now()), ..after.clone() };
                self.jobs.write(&after, &now).await?;
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = written.await {
            tracing::error!(%error, job = %job.id.0, "a job that waits could not be written");
            tokio::time::sleep(self.retry.first).await;
        }
    }

    /// Tells the provider that a job was cancelled.
    pub(crate) async fn send_cancellation(&self, job: &Job) -> Result<(), ServiceError> {
        let mut step = Cancel { background: self, job, scope: job.scope.clone() };
        recorded(self.operations.operate(&Caller::worker(), &mut step).await)
    }

    /// Refuses a job whose binding was deleted, even where another one has its key now.
    fn check_binding(&self, job: &Job) -> Result<(), Refusal> {
        let binding = self.bindings.get(&job.company_id, &job.binding_key);
        if binding.is_ok_and(|binding| binding.id == job.binding_id) {
            return Ok(());
        }
        Err(binding_deleted(&job.binding_key))
    }

    /// The job after the provider has answered.
    fn moved_on(
        &self,
        before: &Job,
        during: &Job,
        answer: &JobAnswer,
        serving: &Serving,
    ) -> (Job, Option<Refusal>) {
        let now = self.clock.now();
        let came_back = Job {
            heartbeat_at: Some(now),
            lease_until: None,
            failures: 0,
            error: None,
            error_code: None,
            ..during.clone()
        };
        let came_back = Job { is_retry: false, ..came_back };
        let asked =
            before.runner == JobRunner::Host && before.lease_until.is_some() && !before.is_retry;
        let Some(found) = &answer.job else {
            // A run that a crash ended is run again. A job that runs elsewhere is lost.
            let message =
                format!("the provider does not know its job `{}`", during.provider_job_id);
            let refusal = Refusal {
                outcome: Outcome::Failed,
                ..Refusal::new(OperationErrorCode::NotFound, message)
            };
            return match asked {
                true => (Job { status: JobStatus::Queued, due_at: Some(now), ..came_back }, None),
                false => (
                    ended(came_back, JobStatus::Failed, now, Some(refusal.error.message.clone())),
                    Some(refusal),
                ),
            };
        };
        let mut after =
            Job { record_count: found.record_count.or(came_back.record_count), ..came_back };
        after.is_retryable = found.status.is_end().then_some(found.is_retryable);
        if before.is_retry && found.status == JobStatus::Running {
            // It runs in the provider's own system.
            after.runner = JobRunner::Provider;
        }
        if !answer.records.is_empty() {
            after.records =
                answer.records.iter().take(limits::MAX_RECORDED_HANDLES).cloned().collect();
            after.record_count = after.record_count.or(u32::try_from(answer.records.len()).ok());
        }
        match found.status {
            // A crash ended its run: what did not succeed is run again.
            status if asked && status != JobStatus::Succeeded => {
                (Job { status: JobStatus::Queued, due_at: Some(now), ..after }, None)
            }
            JobStatus::Failed => {
                let why = found
                    .error
                    .clone()
                    .unwrap_or_else(|| "the provider gives no reason".to_owned());
                let next = match found.is_retryable {
                    true => "`memhost job retry` runs it again",
                    false => "its provider cannot try it again",
                };
                let message = format!("the job failed: {why}; {next}");
                let refusal = Refusal {
                    outcome: Outcome::Failed,
                    ..Refusal::new(OperationErrorCode::Internal, message)
                };
                (ended(after, JobStatus::Failed, now, Some(why)), Some(refusal))
            }
            status @ (JobStatus::Succeeded | JobStatus::Cancelled) => {
                (ended(after, status, now, None), None)
            }
            JobStatus::Queued | JobStatus::Running => {
                if let Some(late) = too_late(&after, now, serving.binding.limits.job_timeout_ms) {
                    let refusal = Refusal {
                        outcome: Outcome::TimedOut,
                        ..Refusal::new(OperationErrorCode::TimedOut, late)
                    };
                    return (
                        ended(after, JobStatus::Failed, now, Some(refusal.error.message.clone())),
                        Some(refusal),
                    );
                }
                let taken = now.duration_since(after.started_at.unwrap_or(now));
                let wait = match after.runner {
                    JobRunner::Host => SignedDuration::ZERO,
                    JobRunner::Provider => (taken / 4).clamp(FIRST_POLL, LONGEST_POLL),
                };
                after.due_at = now.checked_add(wait).ok();
                (Job { status: JobStatus::Running, ..after }, None)
            }
        }
    }

    /// The job after a call that gave no answer.
    fn failed(
        &self,
        before: &Job,
        during: &Job,
        refusal: &Refusal,
        serving: Option<&Arc<Serving>>,
    ) -> Job {
        let now = self.clock.now();
        let code = refusal.error.code;
        let asked = refusal.error.retry_after_ms.map(Duration::from_millis);
        // Nothing was tried: that counts as no failure of the job.
        let waits = code.puts_off();
        let failures = if waits { during.failures } else { during.failures + 1 };
        let error = Some(refusal.error.message.clone());
        // Until the host has written down what the provider says of the job, it asks before it runs
        // the job again.
        let is_unwritten = refusal.outcome != Outcome::Failed || code == OperationErrorCode::Host;
        let is_unknown = before.lease_until.is_some() || is_unwritten && serving.is_some();
        let lease_until = during.lease_until.filter(|_| is_unknown);
        let came_back = Job { heartbeat_at: Some(now), lease_until, failures, ..during.clone() };
        let late = serving
            .and_then(|serving| too_late(during, now, serving.binding.limits.job_timeout_ms));
        let next = match code.is_worth_another_try() && late.is_none() {
            true => self.retry.next(&*self.clock, failures.max(1), asked),
            false => None,
        };
        match next {
            Some(at) => Job {
                status: JobStatus::Queued,
                due_at: Some(at),
                error,
                error_code: Some(code),
                ..came_back
            },
            None => {
                let ended = ended(came_back, JobStatus::Failed, now, late.or(error));
                Job { error_code: Some(code), ..ended }
            }
        }
    }
}

/// The question to the provider about a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// To run it.
    ForRun,
    /// How far it is.
    HowFar,
    /// To put it back to where it can be run: somebody wants another try.
    ForRetry,
}

/// Works on a job: runs it, or asks the provider for its status.
struct Work<'a> {
    background: &'a Background,
    before: &'a Job,
    scope: Scope,
    asks: Asks,
    /// Set once the operation was admitted.
    serving: Option<Arc<Serving>>,
    /// The job as the intent describes it.
    during: Option<Job>,
    /// The job as the provider's answer describes it.
    after: Option<Job>,
    ownership: Option<Ownership>,
}

impl Step for Work<'_> {
    const KIND: OperationKind = OperationKind::Extraction;
    type Answer = JobAnswer;
    type Response = ();

    fn target(&mut self) -> Target<'_> {
        (&mut self.scope, Some(&self.before.binding_key))
    }

    fn describe(&self, opened: &mut Opened) {
        describe(self.before, opened);
    }

    fn check(&self, _: &Operations) -> Result<(), Refusal> {
        self.background.check_binding(self.before)
    }

    async fn prepare(
        &mut self,
        _: &Operations,
        _: &mut Opened,
        serving: &Arc<Serving>,
    ) -> Result<(), Refusal> {
        self.serving = Some(Arc::clone(serving));
        let asked = Some(self.before.visibility);
        let ownership = Ownership::of(&serving.binding, &self.scope, asked)?.unasked();
        let replaces = self.before.replaces.clone();
        let submitted = self.before.submitted_at;
        let happened_at = match (&replaces, &self.before.hook) {
            (Some(by), _) => by.happened_at,
            (None, Some(hook)) => hook.triggered_at.min(submitted),
            (None, None) => submitted,
        };
        // The records are of whoever captured: a policy may protect them.
        let capture = self.before.operation_id;
        let capture = self.background.store.operation(&self.before.company_id, capture).await?;
        let writer = capture.map(|operation| operation.principal);
        let ownership = ownership.of_material(Some(happened_at), replaces);
        self.ownership = Some(ownership.brought_by(writer));
        Ok(())
    }

    fn ownership(&self) -> Option<&Ownership> {
        self.ownership.as_ref()
    }

    /// Its material came with the capture.
    fn since(&self) -> Option<Since> {
        Some(Since::Operation(self.before.operation_id))
    }

    async fn intent(&mut self, _: &Operations, id: OperationId) -> Result<Writes, Refusal> {
        let (host, before) = (self.background, self.before);
        let now = host.clock.now();
        let call_ms =
            self.serving.as_ref().map_or(0, |serving| serving.binding.limits.call_timeout_ms);
        let lease = i64::try_from(call_ms + LEASE_MARGIN_MS).unwrap_or(i64::MAX);
        let during = Job {
            status: JobStatus::Running,
            attempts: before.attempts + u32::from(self.asks == Asks::ForRun),
            started_at: before.started_at.or(Some(now)),
            lease_until: now.checked_add(SignedDuration::from_millis(lease)).ok(),
            last_operation_id: Some(id),
            error_code: None,
            ..before.clone()
        };
        let lock = host.jobs.lock(before.id).await?;
        // Somebody cancelled it a moment ago, or it was erased.
        if host.jobs.get(&before.company_id, before.id.0).await.ok().as_ref() != Some(before) {
            return Err(Refusal::new(
                OperationErrorCode::Busy,
                "the job was changed by somebody else meanwhile",
            ));
        }
        let rows = Jobs::writes(Some(before), &during)?;
        self.during = Some(during);
        Ok(Writes { rows, lock: Some(lock) })
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<JobAnswer>, Failure> {
        let id = &self.before.provider_job_id;
        match self.asks {
            Asks::ForRun => serving.instances.run_job(id).await,
            Asks::HowFar => serving.instances.get_job(id).await,
            Asks::ForRetry => serving.instances.retry_job(id).await,
        }
    }

    fn completion(&self, answer: &JobAnswer) -> Completion {
        Completion::records(answer.records.clone(), &answer.usage)
    }

    async fn finish(
        &mut self,
        answered: &mut Answered<'_>,
        answer: JobAnswer,
    ) -> Result<(), Refusal> {
        answered.judge(&self.scope, &answer.records).await?;
        let during = self.during.as_ref().unwrap_or(self.before);
        let (after, refusal) =
            self.background.moved_on(self.before, during, &answer, answered.serving);
        if let (JobStatus::Succeeded, Some(by), Some(source)) =
            (after.status, &self.before.replaces, &self.before.source)
        {
            let (host, binding) = (answered.host, &answered.serving.binding);
            host.replace_if_any_counts(binding, source, &self.scope, by, &after.records).await?;
        }
        self.after = Some(after);
        refusal.map_or(Ok(()), Err)
    }

    /// Writes the job with the record. A job that was cancelled meanwhile stays cancelled.
    async fn writes(
        &mut self,
        _: &Operations,
        ending: &mut Ending,
        ended: &Ended<()>,
    ) -> Result<Writes, Refusal> {
        let host = self.background;
        let now_is = self.during.as_ref().unwrap_or(self.before);
        let after = match (&self.after, ended) {
            (Some(after), _) => after.clone(),
            (None, Ended::Failed(refusal)) => {
                let failed = host.failed(self.before, now_is, refusal, self.serving.as_ref());
                // The provider may have answered before the host failed, and it names its records
                // only once.
                match ending.operation().records.as_slice() {
                    [] => failed,
                    records => Job { records: records.to_vec(), ..failed },
                }
            }
            (None, Ended::Succeeded(()) | Ended::Held((), _)) => now_is.clone(),
        };
        let after = Job { last_operation_id: Some(ending.id()), ..after };
        let lock = host.jobs.lock(after.id).await?;
        let is_unchanged =
            host.jobs.get(&after.company_id, after.id.0).await.ok().as_ref() == Some(now_is);
        if is_unchanged || self.during.is_some() {
            ending.set_jobs(vec![shown(&after)]);
        }
        let rows = if is_unchanged { Jobs::writes(Some(now_is), &after)? } else { Vec::new() };
        Ok(Writes { rows, lock: Some(lock) })
    }
}

/// Tells the provider that a job was cancelled.
struct Cancel<'a> {
    background: &'a Background,
    job: &'a Job,
    scope: Scope,
}

impl Step for Cancel<'_> {
    const KIND: OperationKind = OperationKind::Extraction;
    type Answer = JobAnswer;
    type Response = ();

    fn target(&mut self) -> Target<'_> {
        (&mut self.scope, Some(&self.job.binding_key))
    }

    fn describe(&self, opened: &mut Opened) {
        describe(self.job, opened);
        opened.set_jobs(vec![shown(self.job)]);
    }

    fn check(&self, _: &Operations) -> Result<(), Refusal> {
        self.background.check_binding(self.job)
    }

    async fn call(&self, serving: &Serving, _: OperationId) -> Result<Answer<JobAnswer>, Failure> {
        serving.instances.cancel_job(&self.job.provider_job_id).await
    }

    fn completion(&self, answer: &JobAnswer) -> Completion {
        Completion::usage(&answer.usage)
    }

    async fn finish(&mut self, _: &mut Answered<'_>, _: JobAnswer) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Notes in an operation about a job where the job comes from.
fn describe(job: &Job, opened: &mut Opened) {
    opened.set_provenance(job.source.as_ref(), job.hook.as_ref());
}

fn too_late(job: &Job, now: Timestamp, most_ms: u64) -> Option<String> {
    let taken = now.duration_since(job.started_at?).as_millis();
    (taken > i128::from(most_ms))
        .then(|| format!("the job went on for longer than its `jobTimeoutMs` of {most_ms}"))
}

fn ended(job: Job, status: JobStatus, now: Timestamp, error: Option<String>) -> Job {
    Job {
        status,
        due_at: None,
        lease_until: None,
        finished_at: Some(now),
        error,
        error_code: None,
        is_retry: false,
        ..job
    }
}

/// A job as an operation's record shows it.
pub(crate) fn shown(job: &Job) -> ExtractionJob {
    ExtractionJob {
        provider_job_id: job.provider_job_id.clone(),
        status: job.status,
        hook_kind: job.hook_kind.clone(),
        source: None,
        record_count: job.record_count,
        error: job.error.clone(),
        is_retryable: job.can_retry(),
        submitted_at: Some(job.submitted_at),
        started_at: job.started_at,
        finished_at: job.finished_at,
    }
}

/// The operation's record says how it ended: an error is only what left no record.
fn recorded(ended: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match ended {
        Err(ServiceError::Operation { .. }) => Ok(()),
        ended => ended,
    }
}
