//! Extraction jobs: giving providers time for what captures left, and asking how far their own systems are. Each time is
//! an operation, and the job changes in one step with its record.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::Service;
use crate::access::Caller;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::operations::call::CallFailed;
use crate::operations::record::Completion;
use crate::operations::record::OpenOperation;
use crate::versions::serving::Serving;
use crate::work::due_queue::Taken;
use crate::work::jobs::Jobs;

use memhost_sandbox::{Answer, JobAnswer};
use memhost_types::{
    ExtractionJob, HookContext, Job, JobRunner, JobStatus, OperationErrorCode, OperationKind, Outcome, limits,
};

/// How long a job is leased beyond the longest call of its binding.
const LEASE_MARGIN_MS: u64 = 5_000;
/// A provider's own system is asked again after a quarter of the time that the job has taken so far, within these.
const FIRST_POLL: SignedDuration = SignedDuration::from_secs(1);
const LONGEST_POLL: SignedDuration = SignedDuration::from_mins(1);

/// What a call about a job gave.
type Called = Result<Answer<JobAnswer>, CallFailed>;

impl Service {
    /// Works on a job once: as far as one call gets.
    pub(crate) async fn work_on(self: Arc<Self>, taken: Taken<Job>) {
        if let Err(error) = self.work(&taken.item).await {
            // Nothing was recorded: it is still due, and the disk should get a moment.
            tracing::error!(%error, job = %taken.item.id.0, "a job could not be worked on");
            tokio::time::sleep(self.retry.first).await;
        }
        drop(taken);
        self.wake.notify_one();
    }

    async fn work(&self, before: &Job) -> Result<(), ServiceError> {
        let mut open = self.begin_work(before).await?;
        let serving = match self.admit_work(&mut open, before).await {
            Ok(serving) => serving,
            Err(refusal) => return self.end_work(open, before, before, Err(refusal.into()), None).await,
        };
        // A job that somebody was at when the host ended may have been done: the provider knows.
        let asks = before.runner == JobRunner::Provider || before.lease_until.is_some();
        let now = self.clock.now();
        let lease = i64::try_from(serving.binding.limits.call_timeout_ms + LEASE_MARGIN_MS).unwrap_or(i64::MAX);
        let during = Job {
            status: JobStatus::Running,
            attempts: before.attempts + u32::from(!asks),
            started_at: before.started_at.or(Some(now)),
            lease_until: now.checked_add(SignedDuration::from_millis(lease)).ok(),
            last_operation_id: open.operation().map(|operation| operation.id),
            ..before.clone()
        };
        {
            let _decided = self.jobs.decide(before.id).await;
            // Somebody cancelled it a moment ago, or it was erased.
            if self.jobs.get(&before.company_id, before.id).await.ok().as_ref() != Some(before) {
                let refusal = Refusal::new(OperationErrorCode::Busy, "the job was changed by somebody else meanwhile");
                return meant(open.close(Completion::default(), Some(refusal)).await);
            }
            open.write_intent(Jobs::writes(Some(before), &during)?).await.map_err(ServiceError::Audit)?;
        }
        let (id, instances) = (before.provider_job_id.as_str(), Arc::clone(&serving));
        let called = match asks {
            true => self.run(&mut open, instances, |serving| async move { serving.instances.get_job(id).await }).await,
            false => self.run(&mut open, instances, |serving| async move { serving.instances.run_job(id).await }).await,
        };
        self.end_work(open, before, &during, called, Some(&serving)).await
    }

    async fn begin_work(&self, job: &Job) -> Result<OpenOperation, ServiceError> {
        let mut scope = job.scope.clone();
        let mut open = self.begin(&Caller::worker(), OperationKind::Extraction, &mut scope).await?;
        let hook = job.hook_kind.as_ref().map(|kind| HookContext {
            hook_kind: kind.clone(),
            hook_id: job.operation_id.to_string(),
            triggered_at: job.submitted_at,
            actor_agent_id: None,
            heartbeat_run_id: job.scope.run_id.clone(),
        });
        open.set_provenance(job.source.as_ref(), hook.as_ref());
        Ok(open)
    }

    async fn admit_work(&self, open: &mut OpenOperation, job: &Job) -> Result<Arc<Serving>, Refusal> {
        let binding = self.bindings.get(&job.company_id, &job.binding_key);
        if !binding.is_ok_and(|binding| binding.id == job.binding_id) {
            let message = format!("the binding `{}` was deleted", job.binding_key);
            return Err(Refusal::new(OperationErrorCode::NoBinding, message));
        }
        self.admit(open, Ok(()), &job.scope, Some(&job.binding_key)).await
    }

    /// Tells the provider that nobody wants a job any more.
    pub(crate) async fn send_cancellation(&self, job: &Job) -> Result<(), ServiceError> {
        let mut open = self.begin_work(job).await?;
        let (id, called) = (job.provider_job_id.as_str(), self.admit_work(&mut open, job).await);
        let called: Called = match called {
            Err(refusal) => Err(refusal.into()),
            Ok(serving) => {
                open.write_intent(Vec::new()).await.map_err(ServiceError::Audit)?;
                self.run(&mut open, serving, |serving| async move { serving.instances.cancel_job(id).await }).await
            }
        };
        let (trace, refusal) = match called {
            Ok(answer) => {
                (Completion { log: answer.log, provider_us: Some(answer.provider_us), ..Completion::default() }, None)
            }
            Err(CallFailed { refusal, log, provider_us }) => {
                (Completion { log, provider_us, ..Completion::default() }, Some(refusal))
            }
        };
        open.leaves(vec![shown(job)], &[])?;
        meant(open.close(trace, refusal).await)
    }

    /// Records what a call about a job gave, and the job with it. Where somebody cancelled the job meanwhile, it stays so.
    async fn end_work(
        &self,
        mut open: OpenOperation,
        before: &Job,
        during: &Job,
        called: Called,
        serving: Option<&Arc<Serving>>,
    ) -> Result<(), ServiceError> {
        let (mut after, refusal, mut trace) = match called {
            Ok(answer) => {
                let (after, refusal) = self.moved_on(before, during, &answer.value, serving);
                let JobAnswer { records, usage, .. } = answer.value;
                let (log, provider_us, record_count) = (answer.log, Some(answer.provider_us), records.len());
                (after, refusal, Completion { records, record_count, usage, log, provider_us, ..Completion::default() })
            }
            Err(CallFailed { refusal, log, provider_us }) => (
                self.failed(before, during, &refusal, serving),
                Some(refusal),
                Completion { log, provider_us, ..Completion::default() },
            ),
        };
        after.last_operation_id = open.operation().map(|operation| operation.id).or(after.last_operation_id);
        if let (Some(serving), Some(id)) = (serving, after.last_operation_id) {
            trace.usage.extend(self.judge_new(serving, &during.scope, id, &trace.records).await?);
        }
        open.leaves(vec![shown(&after)], &[])?;
        let _decided = self.jobs.decide(during.id).await;
        if self.jobs.get(&during.company_id, during.id).await.ok().as_ref() == Some(during) {
            trace.beside = Jobs::writes(Some(during), &after)?;
        }
        meant(open.close(trace, refusal).await)
    }

    /// The job after the provider has answered.
    fn moved_on(
        &self,
        before: &Job,
        during: &Job,
        answer: &JobAnswer,
        serving: Option<&Arc<Serving>>,
    ) -> (Job, Option<Refusal>) {
        let now = self.clock.now();
        let came_back = Job { heartbeat_at: Some(now), lease_until: None, failures: 0, error: None, ..during.clone() };
        let asked = before.runner == JobRunner::Host && before.lease_until.is_some();
        let Some(found) = &answer.job else {
            // It has never heard of it, or no longer knows: what was cut off is run, what runs elsewhere is lost.
            let message = format!("the provider does not know its job `{}`", during.provider_job_id);
            let refusal = Refusal { outcome: Outcome::Failed, ..Refusal::new(OperationErrorCode::NotFound, message) };
            return match asked {
                true => (Job { status: JobStatus::Queued, due_at: Some(now), ..came_back }, None),
                false => (ended(came_back, JobStatus::Failed, now, Some(refusal.error.message.clone())), Some(refusal)),
            };
        };
        let mut after = Job { record_count: found.record_count.or(came_back.record_count), ..came_back };
        if !answer.records.is_empty() {
            after.records = answer.records.iter().take(limits::MAX_RECORDED_HANDLES).cloned().collect();
            after.record_count = after.record_count.or(u32::try_from(answer.records.len()).ok());
        }
        match found.status {
            // Nobody is at it any more: what did not succeed is run again.
            status if asked && status != JobStatus::Succeeded => {
                (Job { status: JobStatus::Queued, due_at: Some(now), ..after }, None)
            }
            JobStatus::Failed => {
                let why = found.error.clone().unwrap_or_else(|| "the provider gives no reason".to_owned());
                let message = format!("the job failed: {why}; `memhost job retry` runs it again");
                let refusal =
                    Refusal { outcome: Outcome::Failed, ..Refusal::new(OperationErrorCode::Internal, message) };
                (ended(after, JobStatus::Failed, now, Some(why)), Some(refusal))
            }
            status @ (JobStatus::Succeeded | JobStatus::Cancelled) => (ended(after, status, now, None), None),
            JobStatus::Queued | JobStatus::Running => {
                if let Some(late) =
                    serving.and_then(|serving| too_late(&after, now, serving.binding.limits.job_timeout_ms))
                {
                    let refusal =
                        Refusal { outcome: Outcome::TimedOut, ..Refusal::new(OperationErrorCode::TimedOut, late) };
                    return (ended(after, JobStatus::Failed, now, Some(refusal.error.message.clone())), Some(refusal));
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
    fn failed(&self, before: &Job, during: &Job, refusal: &Refusal, serving: Option<&Arc<Serving>>) -> Job {
        let now = self.clock.now();
        let code = refusal.error.code;
        let asked = refusal.error.retry_after_ms.map(Duration::from_millis);
        // Nothing was tried: that is no failure of the job's.
        let waits = code.is_a_wait() || code == OperationErrorCode::BudgetExceeded;
        let failures = if waits { during.failures } else { during.failures + 1 };
        let error = Some(refusal.error.message.clone());
        // As long as the provider has not said how the job stands, it is asked before the job is run again.
        let is_unknown = before.lease_until.is_some() || refusal.outcome != Outcome::Failed && serving.is_some();
        let lease_until = during.lease_until.filter(|_| is_unknown);
        let came_back = Job { heartbeat_at: Some(now), lease_until, failures, ..during.clone() };
        let late = serving.and_then(|serving| too_late(during, now, serving.binding.limits.job_timeout_ms));
        let next = match code.is_worth_another_try() && late.is_none() {
            true => self.retry.next(&*self.clock, failures.max(1), asked),
            false => None,
        };
        match next {
            Some(at) => Job { status: JobStatus::Queued, due_at: Some(at), error, ..came_back },
            None => ended(came_back, JobStatus::Failed, now, late.or(error)),
        }
    }
}

fn too_late(job: &Job, now: Timestamp, most_ms: u64) -> Option<String> {
    let taken = now.duration_since(job.started_at?).as_millis();
    (taken > i128::from(most_ms)).then(|| format!("the job went on for longer than its `jobTimeoutMs` of {most_ms}"))
}

fn ended(job: Job, status: JobStatus, now: Timestamp, error: Option<String>) -> Job {
    Job { status, due_at: None, lease_until: None, finished_at: Some(now), error, ..job }
}

/// A job as it stands in an operation's record.
pub(crate) fn shown(job: &Job) -> ExtractionJob {
    ExtractionJob {
        provider_job_id: job.provider_job_id.clone(),
        status: job.status,
        hook_kind: job.hook_kind.clone(),
        source: None,
        record_count: job.record_count,
        error: job.error.clone(),
        submitted_at: Some(job.submitted_at),
        started_at: job.started_at,
        finished_at: job.finished_at,
    }
}

/// What was refused is recorded as that, and nobody waits for an answer.
pub(crate) fn meant(closed: Result<(), ServiceError>) -> Result<(), ServiceError> {
    match closed {
        Err(ServiceError::Operation { .. }) => Ok(()),
        closed => closed,
    }
}
