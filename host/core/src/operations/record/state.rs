//! The three states of an operation that is being run, and the only way from each to the next.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use super::{OperationContext, Record, Recorder, Stage};
use crate::access::Caller;
use crate::error::ServiceError;
use crate::host::Audit;
use memhost_oplog::refusals::Taken;
use memhost_records::{OperationMarks, Reader};
use memhost_store::TableWrite;
use memhost_types::{
    Operation, OperationError, OperationErrorCode, OperationId, OperationKind, Outcome, Principal,
    Refusal, Scope, SourceKind, SourceRef, Visibility,
};

macro_rules! states {
    ($($(#[$doc:meta])* $state:ident),+) => {$(
        $(#[$doc])*
        pub(crate) struct $state(Record);

        impl Deref for $state {
            type Target = Record;

            fn deref(&self) -> &Record {
                &self.0
            }
        }

        impl DerefMut for $state {
            fn deref_mut(&mut self) -> &mut Record {
                &mut self.0
            }
        }
    )+};
}

states! {
    /// It has an id, and nothing has been asked of a provider.
    Opened,
    /// What must be on disk before the provider is called is on disk.
    Intended,
    /// The provider was called, or the host refused the operation before. Only the completion is
    /// missing.
    Ending
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
                tracing::error!(error = %failure.error.message, "the host failed while it ended an \
                    operation");
                Self::Failed(first)
            }
            Self::Succeeded(_) | Self::Held(..) => Self::Failed(failure),
        }
    }
}

/// The answer to the caller of an operation whose completion was written. Only [`Ending::complete`]
/// makes one.
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
        let sequence = memhost_store::next_sequence(&*recorder.store, &scope.company_id).await?;
        let now = recorder.clock.now();
        let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let random = u64::try_from(recorder.clock.random() & u128::from(u64::MAX)).unwrap_or(0);
        let operation = Operation {
            id: OperationId::new(unix_ms, sequence, random),
            company_id: scope.company_id.clone(),
            kind,
            outcome: Outcome::InProgress,
            principal: caller.principal().clone(),
            binding_key: None,
            binding_id: None,
            provider_key: None,
            provider_version: None,
            scope: scope.clone(),
            source: caller.via().map(|via| by_hand(caller, scope, via)),
            hook: None,
            started_at: now,
            finished_at: None,
            latency_us: None,
            provider_us: None,
            visibility: Visibility::Company,
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
            count: 1,
        };
        Ok(Self(Record {
            recorder: Arc::clone(recorder),
            token: (!caller.is_host()).then(|| caller.key().to_owned()),
            is_systems: *caller == Caller::system(),
            room: u64::MAX,
            attribution: None,
            operation: Arc::new(operation),
            started,
            stage: Stage::Open,
            metered: Vec::new(),
            beside: Vec::new(),
            reader: Reader::default(),
            marks: OperationMarks::default(),
            has_new_jobs: false,
            context: OperationContext::default(),
            locks: Vec::new(),
        }))
    }

    /// Writes the intent of a write, durably, in one step with `beside`. A read leaves none.
    pub(crate) async fn write_intent(
        mut self,
        mut beside: Vec<TableWrite>,
    ) -> Result<Intended, ServiceError> {
        beside.extend(self.0.forgetting()?);
        let Record { recorder, operation, marks, .. } = &mut self.0;
        if operation.kind.is_write() {
            beside.extend(marks.begin(&recorder.records)?);
        }
        if !operation.kind.is_write() {
            return Ok(Intended(self.0));
        }
        if let Err(error) =
            recorder.store.write_operation(Arc::clone(operation), beside.clone()).await
        {
            let error = ServiceError::Audit(error);
            let refusal = Refusal::new(OperationErrorCode::Host, error.to_string());
            self.0.end(refusal.outcome, Some(refusal.error));
            let Record { recorder, marks, .. } = &mut self.0;
            marks.abandon(&recorder.records);
            self.0.write_unawaited();
            return Err(error);
        }
        recorder.feed.jobs(&beside);
        Ok(Intended(self.0))
    }

    /// The operation does not begin after all. It leaves no record, and gives its number back.
    pub(crate) fn withdraw(mut self) {
        let Record { recorder, operation, stage, .. } = &mut self.0;
        *stage = Stage::Ended;
        recorder.store.return_sequence(&operation.company_id, operation.id.sequence());
    }

    /// No provider will be called.
    pub(crate) fn without_a_call(self) -> Ending {
        Ending(self.0)
    }

    /// Records a refusal and answers with it.
    pub(crate) async fn refuse(self, refusal: Refusal) -> ServiceError {
        let ended = Ended::<Infallible>::Failed(refusal);
        let Err(error) = self.without_a_call().complete(ended, Vec::new()).await.into_result();
        error
    }
}

impl Intended {
    /// The provider was called, and will not be called again.
    pub(crate) fn called(self) -> Ending {
        Ending(self.0)
    }
}

/// What became of an operation's record.
enum Recorded {
    /// It is written, and on disk where that is waited for.
    Written,
    /// It is counted in the record of an earlier refusal.
    Counted(OperationId),
    /// The caller must know that it is not on disk.
    Not(ServiceError),
}

impl Ending {
    /// Ends the operation. With durable audit, and always for a write, its record is on disk when
    /// this returns.
    pub(crate) async fn complete<R>(
        self,
        ended: Ended<R>,
        beside: Vec<TableWrite>,
    ) -> Concluded<R> {
        let operation_id = self.id();
        let (answer, outcome, error) = match ended {
            Ended::Succeeded(answer) => (Ok(answer), Outcome::Succeeded, None),
            // What is held was taken: nothing failed.
            Ended::Held(answer, Refusal { outcome, error }) => (Ok(answer), outcome, Some(error)),
            Ended::Failed(Refusal { outcome, error }) => (
                Err(ServiceError::Operation { operation_id, outcome, error: error.clone() }),
                outcome,
                Some(error),
            ),
        };
        Concluded(match self.record(answer.is_err(), outcome, error, beside).await {
            Recorded::Written => answer,
            Recorded::Counted(first) => answer.map_err(|error| error.recorded_as(first)),
            Recorded::Not(error) => Err(error),
        })
    }

    /// Writes the operation. It knows no type of an answer, so it is compiled once and not for
    /// each step.
    async fn record(
        self,
        is_failure: bool,
        outcome: Outcome,
        error: Option<OperationError>,
        beside: Vec<TableWrite>,
    ) -> Recorded {
        let mut record = self.0;
        record.beside.extend(beside);
        // Where no provider was asked, nothing was removed.
        if record.stage != Stage::Open {
            match record.forgetting() {
                Ok(row) => record.beside.extend(row),
                Err(error) => {
                    tracing::error!(%error, "it could not be noted that something was removed");
                }
            }
        }
        match record.end_marks(error.as_ref().filter(|_| is_failure).map(|error| error.code)) {
            Ok(rows) => record.beside.extend(rows),
            Err(error) => tracing::error!(%error, "the end of a private write could not be noted"),
        }
        let may_be_done = record.stage != Stage::Open;
        let latency = u64::try_from(record.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        record.change().latency_us = Some(latency);
        let operation_id = record.id();
        let reason = record.countable(outcome, error.as_ref()).filter(|_| is_failure);
        record.end(outcome, error);
        record.add_events();
        let recorder = Arc::clone(&record.recorder);
        if let Some(reason) = reason {
            match recorder.refusals.take(
                &record.operation.company_id,
                reason,
                operation_id,
                recorder.clock.now(),
            ) {
                Taken::Again(first) => {
                    recorder
                        .store
                        .return_sequence(&record.operation.company_id, operation_id.sequence());
                    return Recorded::Counted(first);
                }
                Taken::First { is_of_others, ended } => {
                    if is_of_others {
                        record.change().principal = Principal::Others;
                    }
                    if let Err(error) = recorder.write_displaced(ended).await {
                        tracing::error!(%error, "the number of earlier refusals could not be \
                            written");
                    }
                }
            }
        }
        let operation = Arc::clone(&record.operation);
        let is_write = operation.kind.is_write();
        let write =
            || recorder.store.write_operation(Arc::clone(&operation), record.beside.clone());
        let commit = write();
        // A refusal that is written always waits for the disk, also with relaxed audit.
        let may_go_on = recorder.audit == Audit::Relaxed && !is_write && operation.error.is_none();
        if may_go_on && !recorder.store.is_behind(&operation.company_id) {
            recorder.feed.operation(&operation);
            return Recorded::Written;
        }
        let mut committed = commit.await;
        // The provider may have done the write and its intent is on disk: failing the request at
        // once would make the caller repeat it. What is not on disk after a second try may be lost
        // with the next crash, and the record will say `interrupted`: the caller must know.
        let may_be_done = is_write && may_be_done;
        if let (Err(error), true) = (&committed, may_be_done) {
            tracing::error!(%error, operation = %operation_id, "a completion could not be \
                recorded; trying again");
            committed = write().await;
        }
        match committed {
            Ok(()) => {
                record.end_on_disk().await;
                recorder.feed.operation(&operation);
                recorder.feed.jobs(&record.beside);
                if record.has_new_jobs {
                    recorder.wake.notify_one();
                }
                Recorded::Written
            }
            Err(error) if may_be_done => {
                Recorded::Not(ServiceError::Unrecorded { operation_id, error })
            }
            Err(error) => {
                recorder.refusals.not_written(&operation.company_id, operation_id);
                Recorded::Not(ServiceError::Audit(error))
            }
        }
    }
}

/// The provenance of what a person asked for with a client: it comes from no event.
fn by_hand(caller: &Caller, scope: &Scope, via: &str) -> SourceRef {
    SourceRef {
        asserted_by: Some(caller.principal().to_string()),
        issue_id: scope.issue_id.clone(),
        run_id: scope.run_id.clone(),
        external_ref: Some(via.to_owned()),
        ..SourceRef::new(SourceKind::ManualNote, scope.company_id.clone())
    }
}
