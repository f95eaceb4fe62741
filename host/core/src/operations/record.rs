//! One operation's record, from its opening to its end. Rule: no operation without a record.

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
use crate::work::jobs::Jobs;
use memhost_ports::Clock;
use memhost_store::{Store, StoreError, TableWrite};
use memhost_types::{
    ExtractionJob, HookContext, Job, JsonObject, LogLine, Operation, OperationError, OperationErrorCode, OperationId,
    OperationKind, Outcome, PayloadSnapshot, RecordHandle, Scope, Snapshots, SourceKind, SourceRef, Usage, limits,
};

/// Where operations are recorded.
pub(crate) struct Recorder {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) audit: Audit,
    pub(crate) metrics: Metrics,
    pub(crate) ledger: Ledger,
    pub(crate) feed: Arc<Feed>,
    /// Whoever begins what is due waits for this.
    pub(crate) wake: Arc<Notify>,
}

/// An operation that has begun. Dropping it without [`OpenOperation::close`] records that the caller went away.
pub(crate) struct OpenOperation {
    recorder: Arc<Recorder>,
    /// Shared with the log only while the log writes it: a change meanwhile is a change of a copy.
    operation: Option<Arc<Operation>>,
    started: Instant,
    /// What the host's own imports used for it.
    embedded: Vec<Usage>,
    /// Jobs that it left at the provider, or worked on.
    left: Vec<ExtractionJob>,
    /// Those of them that the host did not know, written in one step with the record.
    new_jobs: Vec<TableWrite>,
    /// Kept from others until the record is on disk.
    held: Option<OwnedMutexGuard<()>>,
}

/// What an operation leaves in its record beside its outcome.
#[derive(Default)]
pub(crate) struct Completion {
    pub(crate) records: Vec<RecordHandle>,
    pub(crate) record_count: usize,
    pub(crate) usage: Vec<Usage>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) provider_us: Option<u64>,
    /// Written in one step with the record.
    pub(crate) beside: Vec<TableWrite>,
}

impl OpenOperation {
    pub(crate) async fn begin(
        recorder: &Arc<Recorder>,
        caller: &Caller,
        kind: OperationKind,
        scope: &Scope,
    ) -> Result<Self, ServiceError> {
        let started = Instant::now();
        let sequence = memhost_store::next_sequence(&*recorder.store, &scope.company_id).await?;
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
        Ok(Self {
            recorder: Arc::clone(recorder),
            operation: Some(Arc::new(operation)),
            started,
            embedded: Vec::new(),
            left: Vec::new(),
            new_jobs: Vec::new(),
            held: None,
        })
    }

    pub(crate) fn set_provenance(&mut self, source: Option<&SourceRef>, hook: Option<&HookContext>) {
        if let Some(operation) = self.operation_mut() {
            operation.source = source.cloned().or(operation.source.take());
            operation.hook = hook.cloned();
        }
    }

    pub(crate) fn operation_mut(&mut self) -> Option<&mut Operation> {
        self.operation.as_mut().map(Arc::make_mut)
    }

    /// The version that answers.
    pub(crate) fn set_version(&mut self, version: &semver::Version) {
        if let Some(operation) = self.operation_mut() {
            operation.provider_version = Some(version.to_string());
        }
    }

    /// Records that the request says it builds on.
    pub(crate) fn set_cited<'a>(&mut self, metadata: impl Iterator<Item = Option<&'a JsonObject>>) {
        let cited: Vec<RecordHandle> = metadata
            .filter_map(|metadata| metadata?.get("citedRecords")?.as_array())
            .flatten()
            .filter_map(|handle| serde_json::from_value(handle.clone()).ok())
            .take(limits::MAX_RECORDED_HANDLES)
            .collect();
        if let Some(operation) = self.operation_mut() {
            operation.cited = cited;
        }
    }

    /// As much of the request as the binding keeps.
    pub(crate) fn keep_payload(&mut self, snapshots: Snapshots, request: &impl Serialize) {
        let most = match snapshots {
            Snapshots::Off => return,
            Snapshots::Bounded => limits::MAX_BOUNDED_SNAPSHOT_BYTES,
            Snapshots::Full => usize::MAX,
        };
        let Some(operation) = self.operation_mut() else { return };
        let Ok(mut text) = serde_json::to_string(request) else { return };
        let bytes = text.len() as u64;
        text.truncate(text.floor_char_boundary(most));
        operation.payload = Some(PayloadSnapshot { text, bytes });
    }

    /// What the host's own imports used for it, beside what its provider reports.
    pub(crate) fn used(&mut self, usage: Vec<Usage>) {
        self.embedded.extend(usage);
    }

    /// It left jobs; those that are `new` to the host are written with its record, and begun then.
    pub(crate) fn leaves(&mut self, left: Vec<ExtractionJob>, new: &[Job]) -> Result<(), StoreError> {
        for job in new {
            self.new_jobs.extend(Jobs::writes(None, job)?);
        }
        self.left.extend(left);
        Ok(())
    }

    /// Nobody else gets this before the operation is closed.
    pub(crate) fn hold(&mut self, guard: OwnedMutexGuard<()>) {
        self.held = Some(guard);
    }

    /// The record as it is so far.
    pub(crate) fn operation(&self) -> Option<&Operation> {
        self.operation.as_deref()
    }

    /// Writes the intent of a write, durably, in one step with `beside`. Nothing else may happen before.
    pub(crate) async fn write_intent(&self, beside: Vec<TableWrite>) -> Result<(), StoreError> {
        match &self.operation {
            Some(operation) if operation.kind.is_write() => {
                self.recorder.store.write_operation(Arc::clone(operation), beside.clone()).await?;
                self.recorder.feed.jobs(&beside);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn id(&self) -> Result<OperationId, Refusal> {
        self.operation
            .as_ref()
            .map(|operation| operation.id)
            .ok_or_else(|| Refusal::new(OperationErrorCode::Host, "the operation is closed"))
    }

    /// Ends the operation. With durable audit, and always for a write, its record is on disk when this returns.
    pub(crate) async fn close(mut self, trace: Completion, refusal: Option<Refusal>) -> Result<(), ServiceError> {
        let Some(mut operation) = self.operation.take() else { return Ok(()) };
        let beside = self.complete(Arc::make_mut(&mut operation), trace, refusal)?;
        let commit = self.recorder.store.write_operation(Arc::clone(&operation), beside.clone());
        let answer = || match operation.error.clone() {
            None => Ok(()),
            // What is held was taken: nothing failed.
            Some(_) if operation.outcome == Outcome::Held => Ok(()),
            Some(error) => {
                Err(ServiceError::Operation { operation_id: operation.id, outcome: operation.outcome, error })
            }
        };
        // Only an answer is not waited for: whoever floods the host with calls that are refused is slowed down by the
        // disk, and not the neighbours by the flood.
        let may_go_on =
            self.recorder.audit == Audit::Relaxed && !operation.kind.is_write() && operation.error.is_none();
        if may_go_on && !self.recorder.store.is_behind(&operation.company_id) {
            self.recorder.feed.operation(&operation);
            return answer();
        }
        let begin_jobs = || {
            if !self.new_jobs.is_empty() {
                self.recorder.wake.notify_one();
            }
        };
        let committed = commit.await;
        if committed.is_ok() {
            self.recorder.feed.operation(&operation);
            self.recorder.feed.jobs(&beside);
        }
        match committed {
            Ok(()) => {
                begin_jobs();
                answer()
            }
            // The provider has done the write and its intent is on disk: failing the request at once would make the
            // caller repeat it. What is not on disk after a second try may be lost with the next crash, and the
            // record will say `interrupted`: the caller must know.
            Err(error) if operation.kind.is_write() && operation.outcome == Outcome::Succeeded => {
                tracing::error!(%error, operation = %operation.id, "a completion could not be recorded; trying again");
                match self.recorder.store.write_operation(Arc::clone(&operation), beside).await {
                    Ok(()) => {
                        begin_jobs();
                        answer()
                    }
                    Err(error) => Err(ServiceError::Unrecorded { operation_id: operation.id, error }),
                }
            }
            Err(error) => Err(ServiceError::Audit(error)),
        }
    }

    /// Fills the record in; answers what is to be written with it.
    fn complete(
        &self,
        operation: &mut Operation,
        mut trace: Completion,
        refusal: Option<Refusal>,
    ) -> Result<Vec<TableWrite>, ServiceError> {
        operation.finished_at = Some(self.recorder.clock.now());
        operation.latency_us = Some(u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX));
        operation.provider_us = trace.provider_us;
        operation.record_count = u32::try_from(trace.record_count).unwrap_or(u32::MAX);
        trace.records.truncate(limits::MAX_RECORDED_HANDLES);
        operation.records = trace.records;
        operation.jobs.clone_from(&self.left);
        trace.beside.extend_from_slice(&self.new_jobs);
        trace.usage.extend_from_slice(&self.embedded);
        operation.attribution_mode = trace.usage.first().map(Usage::attribution);
        operation.usage = trace.usage;
        operation.log = trace.log;
        match refusal {
            None => operation.outcome = Outcome::Succeeded,
            Some(refusal) => {
                operation.outcome = refusal.outcome;
                operation.error = Some(refusal.error);
            }
        }
        // What it cost is counted before anybody is answered, so that the next call is looked at with it.
        let charged = self.recorder.ledger.charge(operation)?;
        operation.cost_event_ids = charged.events.into_iter().map(|event| event.id).collect();
        trace.beside.extend(charged.writes);
        charged.turned.into_iter().for_each(|budget| self.recorder.feed.budget(budget));
        self.recorder.metrics.observe(operation);
        log_end(operation);
        Ok(trace.beside)
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

impl Drop for OpenOperation {
    fn drop(&mut self) {
        let Some(mut shared) = self.operation.take() else { return };
        let operation = Arc::make_mut(&mut shared);
        operation.outcome = Outcome::Interrupted;
        operation.finished_at = Some(self.recorder.clock.now());
        operation.error = Some(OperationError {
            code: OperationErrorCode::Interrupted,
            message: "the caller went away before the provider answered; whether a write happened is not known"
                .to_owned(),
            field: None,
            retry_after_ms: None,
        });
        self.recorder.metrics.observe(operation);
        self.recorder.feed.operation(&shared);
        // Nobody waits for it any more; it is flushed with the next group.
        drop(self.recorder.store.write_operation(shared, Vec::new()));
    }
}
