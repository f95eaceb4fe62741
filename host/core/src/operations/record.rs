//! One operation's record, from its opening to its end. Rule: no operation without a record.
//!
//! An operation is in one of three states, and each state is a type:
//!
//! - [`Opened`]: it has an id, and nothing has been asked of a provider.
//! - [`Intended`]: what must be on disk before the provider is called is on disk.
//! - [`Ending`]: the provider was called, or the host refused the operation before. Only the completion is missing.
//!
//! Dropping any of them records the operation as interrupted, with everything that is known by then.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::access::Caller;
use crate::error::Refusal;
use crate::error::ServiceError;
use crate::host::Audit;
use crate::host::feed::Feed;
use crate::host::metrics::Metrics;
use crate::money::Ledger;
use crate::versions::serving::Serving;
use crate::work::jobs::Jobs;
use memhost_ports::Clock;
use memhost_sandbox::{Answer, Failure};
use memhost_store::{Store, StoreError, TableWrite};
use memhost_types::{
    Binding, ExtractionJob, HookContext, Job, JsonObject, LogLine, Operation, OperationError, OperationErrorCode,
    OperationId, OperationKind, Outcome, PayloadSnapshot, RecordHandle, Scope, Snapshots, SourceKind, SourceRef, Usage,
    limits,
};

/// Where operations are recorded.
pub(crate) struct Recorder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audit: Audit,
    pub(crate) metrics: Metrics,
    pub(crate) ledger: Ledger,
    pub(crate) feed: Arc<Feed>,
    /// The background work waits for this, and begins what is due.
    pub(crate) wake: Arc<Notify>,
}

/// How far an operation has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The provider answered: what it did is done.
    Answered,
    /// The completion was handed to the store.
    Ended,
}

/// What an operation has in every state.
struct Record {
    recorder: Arc<Recorder>,
    /// Shared with the log only while the log writes it: a change meanwhile changes a copy.
    operation: Arc<Operation>,
    started: Instant,
    stage: Stage,
    /// What the host's own imports used. It stands behind what the provider reports.
    embedded: Vec<Usage>,
    /// Written in one step with the completion.
    beside: Vec<TableWrite>,
    has_new_jobs: bool,
    /// Nobody else writes down jobs of the binding until the record is on disk.
    leaving: Option<OwnedMutexGuard<()>>,
}

/// An operation that has begun.
pub(crate) struct Opened(Record);

/// An operation whose provider may be called.
pub(crate) struct Intended(Record);

/// An operation that has nothing left but its completion.
pub(crate) struct Ending(Record);

/// What a provider's answer says about itself.
#[derive(Default)]
pub(crate) struct Completion {
    pub(crate) records: Vec<RecordHandle>,
    pub(crate) record_count: usize,
    pub(crate) usage: Vec<Usage>,
}

impl Completion {
    pub(crate) fn records(records: Vec<RecordHandle>, usage: &[Usage]) -> Self {
        Self { record_count: records.len(), records, usage: usage.to_vec() }
    }

    pub(crate) fn usage(usage: &[Usage]) -> Self {
        Self { usage: usage.to_vec(), ..Self::default() }
    }
}

/// How an operation ends.
pub(crate) enum Ended<R> {
    Succeeded(R),
    /// The host keeps the request. The record says why, and the caller gets an answer.
    Held(R, Refusal),
    Failed(Refusal),
}

impl<R> Ended<R> {
    /// The same after the host failed. The first failure stays the reason.
    pub(crate) fn or_failed(self, failure: Refusal) -> Self {
        match self {
            Self::Failed(first) => {
                tracing::error!(error = %failure.error.message, "the host failed while it ended an operation");
                Self::Failed(first)
            }
            Self::Succeeded(_) | Self::Held(..) => Self::Failed(failure),
        }
    }
}

/// The answer to the caller of an operation whose completion was written. Only [`Ending::complete`] makes one.
#[must_use]
pub(crate) struct Concluded<R>(Result<R, ServiceError>);

impl<R> Concluded<R> {
    pub(crate) fn into_result(self) -> Result<R, ServiceError> {
        self.0
    }
}

impl Opened {
    pub(crate) async fn begin(
        recorder: &Arc<Recorder>,
        caller: &Caller,
        kind: OperationKind,
        scope: &Scope,
    ) -> Result<Self, ServiceError> {
        let started = Instant::now();
        let sequence = recorder.store.next_sequence(&scope.company_id)?;
        let now = recorder.clock.now();
        let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let random = u64::try_from(recorder.clock.random() & u128::from(u64::MAX)).unwrap_or(0);
        let operation = Operation {
            id: OperationId::new(unix_ms, sequence, random),
            company_id: scope.company_id.clone(),
            kind,
            outcome: Outcome::InProgress,
            principal: caller.principal().to_owned(),
            binding_key: None,
            provider_key: None,
            provider_version: None,
            scope: scope.clone(),
            source: caller.via().map(|via| by_hand(scope, via)),
            hook: None,
            started_at: now,
            finished_at: None,
            latency_us: None,
            provider_us: None,
            record_count: 0,
            records: Vec::new(),
            jobs: Vec::new(),
            usage: Vec::new(),
            attribution_mode: None,
            cost_event_ids: Vec::new(),
            error: None,
            log: Vec::new(),
            cited: Vec::new(),
            payload: None,
        };
        Ok(Self(Record {
            recorder: Arc::clone(recorder),
            operation: Arc::new(operation),
            started,
            stage: Stage::Open,
            embedded: Vec::new(),
            beside: Vec::new(),
            has_new_jobs: false,
            leaving: None,
        }))
    }

    pub(crate) fn operation(&self) -> &Operation {
        &self.0.operation
    }

    pub(crate) fn set_provenance(&mut self, source: Option<&SourceRef>, hook: Option<&HookContext>) {
        let operation = self.0.change();
        operation.source = source.cloned().or(operation.source.take());
        operation.hook = hook.cloned();
    }

    /// Records that the request says it builds on.
    pub(crate) fn set_cited<'a>(&mut self, metadata: impl Iterator<Item = Option<&'a JsonObject>>) {
        let cited = metadata
            .filter_map(|metadata| metadata?.get("citedRecords")?.as_array())
            .flatten()
            .filter_map(|handle| serde_json::from_value(handle.clone()).ok());
        self.0.change().cited = cited.take(limits::MAX_RECORDED_HANDLES).collect();
    }

    pub(crate) fn set_binding(&mut self, binding: &Binding) {
        let operation = self.0.change();
        operation.binding_key = Some(binding.key.clone());
        operation.provider_key = Some(binding.provider_key.clone());
    }

    pub(crate) fn set_version(&mut self, serving: &Serving) {
        self.0.set_version(serving);
    }

    /// Jobs at the provider, as the record shows them.
    pub(crate) fn set_jobs(&mut self, jobs: Vec<ExtractionJob>) {
        self.0.change().jobs = jobs;
    }

    /// Keeps as much of the request as the binding's policy says.
    pub(crate) fn keep_payload(&mut self, serving: &Serving, request: &impl Serialize) {
        let most = match serving.binding.policy.retention.snapshots {
            Snapshots::Off => return,
            Snapshots::Bounded => limits::MAX_BOUNDED_SNAPSHOT_BYTES,
            Snapshots::Full => usize::MAX,
        };
        let Ok(mut text) = serde_json::to_string(request) else { return };
        let bytes = text.len() as u64;
        text.truncate(text.floor_char_boundary(most));
        self.0.change().payload = Some(PayloadSnapshot { text, bytes });
    }

    /// Writes the intent of a write, durably, in one step with `beside`. A read leaves none.
    pub(crate) async fn write_intent(mut self, beside: Vec<TableWrite>) -> Result<Intended, ServiceError> {
        let record = &mut self.0;
        if !record.operation.kind.is_write() {
            return Ok(Intended(self.0));
        }
        let recorder = Arc::clone(&record.recorder);
        match recorder.store.write_operation(Arc::clone(&record.operation), beside.clone()).await {
            Ok(()) => {
                recorder.feed.jobs(&beside);
                Ok(Intended(self.0))
            }
            Err(error) => {
                let error = ServiceError::Audit(error);
                let refusal = Refusal::new(OperationErrorCode::Host, error.to_string());
                record.end(refusal.outcome, Some(refusal.error));
                record.write_unawaited();
                Err(error)
            }
        }
    }

    /// Nothing will be asked of a provider.
    pub(crate) fn without_a_call(self) -> Ending {
        Ending(self.0)
    }

    /// Records a refusal and answers with it.
    pub(crate) async fn refuse(self, refusal: Refusal) -> ServiceError {
        let Err(error) = Ending(self.0).complete(Ended::<Infallible>::Failed(refusal), Vec::new()).await.into_result();
        error
    }
}

impl Intended {
    pub(crate) fn id(&self) -> OperationId {
        self.0.operation.id
    }

    pub(crate) fn set_version(&mut self, serving: &Serving) {
        self.0.set_version(serving);
    }

    /// Takes what is known about a call out of the provider's answer.
    pub(crate) fn answered<T>(&mut self, answer: Answer<T>) -> T {
        self.0.stage = Stage::Answered;
        self.0.embedded.extend(answer.embedded);
        self.0.called(answer.log, answer.provider_us);
        answer.value
    }

    /// A call gave no answer, and is not the last one.
    pub(crate) fn tried(&mut self, failure: &mut Failure) {
        self.0.embedded.append(&mut failure.embedded);
    }

    /// A call gave no answer, and there will be no other.
    pub(crate) fn failed(&mut self, failure: Failure) -> Refusal {
        let refusal = Refusal::from(&failure.error);
        self.0.embedded.extend(failure.embedded);
        self.0.called(failure.log, failure.provider_us);
        refusal
    }

    pub(crate) fn called(self) -> Ending {
        Ending(self.0)
    }
}

impl Ending {
    pub(crate) fn operation(&self) -> &Operation {
        &self.0.operation
    }

    /// The records that the operation wrote or returns. The count may be larger than what is listed.
    pub(crate) fn set_records(&mut self, mut records: Vec<RecordHandle>, count: usize) {
        records.truncate(limits::MAX_RECORDED_HANDLES);
        let operation = self.0.change();
        operation.records = records;
        operation.record_count = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// What providers report to have used.
    pub(crate) fn add_usage(&mut self, usage: Vec<Usage>) {
        self.0.change().usage.extend(usage);
    }

    /// What the host's own imports used.
    pub(crate) fn add_embedded(&mut self, usage: Vec<Usage>) {
        self.0.embedded.extend(usage);
    }

    /// A further call of the provider belongs to the same operation.
    pub(crate) fn add_call(&mut self, log: Vec<LogLine>, provider_us: u64) {
        let operation = self.0.change();
        operation.log.extend(log);
        operation.provider_us = Some(operation.provider_us.unwrap_or(0) + provider_us);
    }

    /// Jobs at the provider, as the record shows them.
    pub(crate) fn set_jobs(&mut self, jobs: Vec<ExtractionJob>) {
        self.0.change().jobs = jobs;
    }

    /// Jobs that the host did not know. They are due once the operation has ended.
    pub(crate) fn add_new_jobs(&mut self, new: &[Job]) -> Result<(), StoreError> {
        for job in new {
            self.0.beside.extend(Jobs::writes(None, job)?);
            self.0.has_new_jobs = true;
        }
        Ok(())
    }

    /// Nobody else gets this before the completion is on disk.
    pub(crate) fn hold(&mut self, leaving: OwnedMutexGuard<()>) {
        self.0.leaving = Some(leaving);
    }

    /// A failure that is named as what it is: after the answer, the host's own failure undoes nothing at the provider.
    pub(crate) fn failure(&self, mut failure: Refusal) -> Refusal {
        if self.0.stage == Stage::Answered && failure.error.code == OperationErrorCode::Host {
            let Operation { id, kind, .. } = &*self.0.operation;
            let advice = match kind.is_write() {
                true => format!("; `memhost operation show {id}` lists the records that the provider wrote"),
                false => String::new(),
            };
            failure.outcome = Outcome::Failed;
            failure.error.message =
                format!("the provider answered, and then the host failed: {}{advice}", failure.error.message);
        }
        failure
    }

    /// Counts what the operation cost before anybody is answered, so that the next call is checked against it.
    pub(crate) async fn charge(&mut self) -> Result<(), StoreError> {
        let record = &mut self.0;
        record.merge_embedded();
        let charged = record.recorder.ledger.charge(&record.operation)?;
        record.change().cost_event_ids = charged.events.into_iter().map(|event| event.id).collect();
        record.beside.extend(charged.writes);
        charged.turned.into_iter().for_each(|budget| record.recorder.feed.budget(budget));
        Ok(())
    }

    /// Ends the operation. With durable audit, and always for a write, its record is on disk when this returns.
    pub(crate) async fn complete<R>(self, ended: Ended<R>, beside: Vec<TableWrite>) -> Concluded<R> {
        let mut record = self.0;
        record.beside.extend(beside);
        let has_answered = record.stage == Stage::Answered;
        let latency = u64::try_from(record.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        record.change().latency_us = Some(latency);
        let answer = match ended {
            Ended::Succeeded(answer) => {
                record.end(Outcome::Succeeded, None);
                Ok(answer)
            }
            // What is held was taken: nothing failed.
            Ended::Held(answer, refusal) => {
                record.end(refusal.outcome, Some(refusal.error));
                Ok(answer)
            }
            Ended::Failed(Refusal { outcome, error }) => {
                record.end(outcome, Some(error.clone()));
                Err(ServiceError::Operation { operation_id: record.operation.id, outcome, error })
            }
        };
        let recorder = Arc::clone(&record.recorder);
        let operation = Arc::clone(&record.operation);
        let is_write = operation.kind.is_write();
        let write = || recorder.store.write_operation(Arc::clone(&operation), record.beside.clone());
        let commit = write();
        // Only an answer is not waited for: whoever floods the host with calls that are refused is slowed down by the
        // disk, and not the neighbours by the flood.
        let may_go_on = recorder.audit == Audit::Relaxed && !is_write && operation.error.is_none();
        if may_go_on && !recorder.store.is_behind(&operation.company_id) {
            recorder.feed.operation(&operation);
            return Concluded(answer);
        }
        let mut committed = commit.await;
        // The provider has done the write and its intent is on disk: failing the request at once would make the caller
        // repeat it. What is not on disk after a second try may be lost with the next crash, and the record will say
        // `interrupted`: the caller must know.
        let is_done = is_write && has_answered;
        if let (Err(error), true) = (&committed, is_done) {
            tracing::error!(%error, operation = %operation.id, "a completion could not be recorded; trying again");
            committed = write().await;
        }
        Concluded(match committed {
            Ok(()) => {
                recorder.feed.operation(&operation);
                recorder.feed.jobs(&record.beside);
                if record.has_new_jobs {
                    recorder.wake.notify_one();
                }
                answer
            }
            Err(error) if is_done => Err(ServiceError::Unrecorded { operation_id: operation.id, error }),
            Err(error) => Err(ServiceError::Audit(error)),
        })
    }
}

impl Record {
    fn change(&mut self) -> &mut Operation {
        Arc::make_mut(&mut self.operation)
    }

    fn set_version(&mut self, serving: &Serving) {
        self.change().provider_version = Some(serving.plugin.component.description().version.to_string());
    }

    fn called(&mut self, log: Vec<LogLine>, provider_us: u64) {
        let operation = self.change();
        operation.log = log;
        operation.provider_us = Some(provider_us);
    }

    fn merge_embedded(&mut self) {
        let embedded = std::mem::take(&mut self.embedded);
        self.change().usage.extend(embedded);
    }

    /// Fills in how it ended. From here on the record is only written.
    fn end(&mut self, outcome: Outcome, error: Option<OperationError>) {
        self.stage = Stage::Ended;
        self.merge_embedded();
        let now = self.recorder.clock.now();
        let operation = self.change();
        operation.finished_at = Some(now);
        operation.attribution_mode = operation.usage.first().map(Usage::attribution);
        operation.outcome = outcome;
        operation.error = error;
        self.recorder.metrics.observe(&self.operation);
        log_end(&self.operation);
    }

    /// Nobody waits for it any more: it is flushed with the next group.
    fn write_unawaited(&self) {
        self.recorder.feed.operation(&self.operation);
        drop(self.recorder.store.write_operation(Arc::clone(&self.operation), Vec::new()));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let message = match self.stage {
            Stage::Ended => return,
            Stage::Open => "the caller went away before the provider answered; whether a write happened is not known",
            Stage::Answered => {
                "the caller went away after the provider answered; what the provider wrote is there, and the host did \
                 not finish the steps that follow"
            }
        };
        let error = OperationErrorCode::Interrupted;
        self.end(Outcome::Interrupted, Some(Refusal::new(error, message).error));
        self.write_unawaited();
    }
}

/// The provenance of what somebody asked for with a tool of theirs: nothing happened that it would come from.
fn by_hand(scope: &Scope, via: &str) -> SourceRef {
    SourceRef {
        issue_id: scope.issue_id.clone(),
        run_id: scope.run_id.clone(),
        external_ref: Some(via.to_owned()),
        ..SourceRef::new(SourceKind::ManualNote, scope.company_id.clone())
    }
}

/// Within the span of the request that the operation belongs to.
fn log_end(operation: &Operation) {
    for line in &operation.log {
        tracing::debug!(target: "memhost::guest", operation = %operation.id, level = line.level, "{}", line.text);
    }
    tracing::debug!(
        operation = %operation.id, company = %operation.company_id, kind = operation.kind.as_str(),
        outcome = operation.outcome.as_str(), latency_us = operation.latency_us, "an operation ended"
    );
}

/// The store failed: the operation is refused before its provider is called, and failed after that.
impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::new(OperationErrorCode::Host, error.to_string())
    }
}
