//! The three states of an operation that is being run, and the only way from each to the next.

use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Instant;

use super::{OpenOperation, OperationContext, Stage};
use crate::error::OplogError;
use crate::log::{Audit, Oplog};
use crate::refusals::{Countable, Taken};
use jiff::Timestamp;
use memhost_access::Caller;
use memhost_records::{OperationMarks, Reader};
use memhost_store::TableWrite;
use memhost_types::{
    CallUsage, CompanyId, Operation, OperationError, OperationErrorCode, OperationId,
    OperationKind, Outcome, Principal, Refusal, Scope, SourceKind, SourceRef, Visibility,
};

macro_rules! states {
    ($($(#[$doc:meta])* $state:ident),+) => {$(
        $(#[$doc])*
        // Boxed: otherwise each future that it goes through has room for it. What makes its
        // refusal countable is beside it and not in it: writing an intent takes that away.
        pub struct $state(Box<OpenOperation>, Option<Countable>);

        impl Deref for $state {
            type Target = OpenOperation;

            fn deref(&self) -> &OpenOperation {
                &self.0
            }
        }

        impl DerefMut for $state {
            fn deref_mut(&mut self) -> &mut OpenOperation {
                &mut self.0
            }
        }
    )+};
}

states! {
    /// It has an id, and nothing has been asked of a provider.
    Opened,
    /// Everything that must be on disk before the call is on disk.
    Intended,
    /// The provider was called, or the host refused the operation before. Only the completion is
    /// missing.
    Ending
}

/// How an operation ends.
pub enum Ended<R> {
    /// With this answer.
    Succeeded(R),
    /// The host keeps the request. The entry says why, and the caller gets an answer.
    Held(R, Refusal),
    /// For this reason.
    Failed(Refusal),
}

impl<R> Ended<R> {
    /// The same after the host failed. The first failure stays the reason.
    #[must_use]
    pub fn or_failed(self, failure: Refusal) -> Self {
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
pub struct Concluded<R>(Result<R, OplogError>);

impl<R> Concluded<R> {
    /// The answer.
    ///
    /// # Errors
    /// Where the operation did not succeed, or could not be recorded.
    pub fn into_result(self) -> Result<R, OplogError> {
        self.0
    }
}

impl Opened {
    /// Gives the operation its id. From here on it leaves an entry whatever happens.
    ///
    /// # Errors
    /// Where no numbers can be reserved.
    pub async fn begin(
        log: &Arc<Oplog>,
        caller: &Caller,
        kind: OperationKind,
        scope: &Scope,
    ) -> Result<Self, OplogError> {
        let started = Instant::now();
        let sequence = memhost_store::next_sequence(&*log.store, &scope.company_id).await?;
        let now = log.clock.now();
        let unix_ms = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let random = u64::try_from(log.clock.random() & u128::from(u64::MAX)).unwrap_or(0);
        let id = OperationId::new(unix_ms, sequence, random);
        let operation = new(caller, kind, scope, (id, now));
        let open = OpenOperation {
            log: Arc::clone(log),
            is_systems: *caller.principal() == Principal::System,
            room: u64::MAX,
            attribution: None,
            records_of: None,
            operation: Arc::new(operation),
            started,
            stage: Stage::Open,
            metered: CallUsage::default(),
            beside: Vec::new(),
            reader: Reader::default(),
            marks: OperationMarks::default(),
            has_new_jobs: false,
            context: OperationContext::default(),
            locks: Vec::new(),
        };
        Ok(Self(Box::new(open), Countable::of(caller)))
    }

    /// Writes the intent of a write, durably, in one step with `beside`. A read leaves none.
    ///
    /// # Errors
    /// Where it could not be written: the provider must not be called.
    pub async fn write_intent(
        mut self,
        mut beside: Vec<TableWrite>,
    ) -> Result<Intended, OplogError> {
        beside.extend(self.0.compaction_mark()?);
        let OpenOperation { log, operation, marks, stage, .. } = &mut *self.0;
        if !operation.kind.is_write() {
            *stage = Stage::Begun;
            return Ok(Intended(self.0, self.1));
        }
        beside.extend(marks.begin(&log.records)?);
        if let Err(error) = log.store.write_operation(Arc::clone(operation), beside.clone()).await {
            let error = OplogError::NotRecorded(error);
            let refusal = Refusal::new(OperationErrorCode::Host, error.to_string());
            self.0.end(refusal.outcome, Some(refusal.error));
            let OpenOperation { log, marks, .. } = &mut *self.0;
            marks.abandon(&log.records);
            self.0.write_unawaited();
            return Err(error);
        }
        log.feed.jobs(&beside);
        *stage = Stage::Begun;
        Ok(Intended(self.0, None))
    }

    /// The operation does not begin after all. It leaves no entry, and gives its number back.
    pub fn withdraw(mut self) {
        let OpenOperation { log, operation, stage, .. } = &mut *self.0;
        *stage = Stage::Completed;
        log.store.return_sequence(&operation.company_id, operation.id.sequence());
    }

    /// No provider will be called.
    pub fn without_a_call(self) -> Ending {
        Ending(self.0, self.1)
    }

    /// Records a refusal and answers with it.
    pub async fn refuse(self, refusal: Refusal) -> OplogError {
        let ended = Ended::<Infallible>::Failed(refusal);
        let Err(error) = self.without_a_call().complete(ended, Vec::new()).await.into_result();
        error
    }
}

impl Intended {
    /// The provider was called, and will not be called again.
    pub fn called(self) -> Ending {
        Ending(self.0, self.1)
    }
}

/// What became of an operation's entry.
enum Recorded {
    /// It is written, and on disk where that is waited for.
    Written,
    /// It is counted in an earlier refusal.
    Counted(OperationId),
    /// The caller must know that it is not on disk.
    Not(OplogError),
}

impl Ending {
    /// Ends the operation. With durable audit, and always for a write, it is on disk when this
    /// returns.
    pub async fn complete<R>(self, ended: Ended<R>, beside: Vec<TableWrite>) -> Concluded<R> {
        let operation_id = self.id();
        let (answer, outcome, error) = match ended {
            Ended::Succeeded(answer) => (Ok(answer), Outcome::Succeeded, None),
            // What is held was taken: nothing failed.
            Ended::Held(answer, Refusal { outcome, error }) => (Ok(answer), outcome, Some(error)),
            Ended::Failed(Refusal { outcome, error }) => (
                Err(OplogError::Ended { operation_id, outcome, error: error.clone() }),
                outcome,
                Some(error),
            ),
        };
        Concluded(match self.record(answer.is_err(), outcome, error, beside).await {
            Recorded::Written => answer,
            Recorded::Counted(first) => answer.map_err(|error| error.counted_in(first)),
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
        let Self(mut open, countable) = self;
        open.beside.extend(beside);
        let has_intent = open.stage != Stage::Open && open.operation.kind.is_write();
        let was_called = matches!(open.stage, Stage::Called | Stage::Answered);
        // Where no provider was asked, nothing was removed.
        if was_called {
            match open.compaction_mark() {
                Ok(row) => open.beside.extend(row),
                Err(error) => {
                    tracing::error!(%error, "it could not be noted that something was removed");
                }
            }
        }
        match open.end_marks(error.as_ref().filter(|_| is_failure).map(|error| error.code)) {
            Ok(rows) => open.beside.extend(rows),
            Err(error) => tracing::error!(%error, "the end of a private write could not be noted"),
        }
        let latency = u64::try_from(open.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        open.change().latency_us = Some(latency);
        let operation_id = open.id();
        let is_counted = is_failure && outcome == Outcome::Refused && !open.has_its_own();
        open.end(outcome, error);
        open.add_events();
        let log = Arc::clone(&open.log);
        if let Some(countable) = countable.filter(|_| is_counted) {
            match log.refusals.take(countable, &open.operation, log.clock.now()) {
                Taken::Again(first) => {
                    log.store.return_sequence(&open.operation.company_id, operation_id.sequence());
                    return Recorded::Counted(first);
                }
                Taken::First { is_of_others, ended } => {
                    if is_of_others {
                        open.show_what_is_shared();
                    }
                    if let Err(error) = log.write_displaced(ended).await {
                        tracing::error!(%error, "the number of earlier refusals could not be \
                            written");
                    }
                }
            }
        }
        let operation = Arc::clone(&open.operation);
        let is_write = operation.kind.is_write();
        // A refusal that is written always waits for the disk, also with relaxed audit.
        let may_go_on = log.audit == Audit::Relaxed && !is_write && operation.error.is_none();
        if may_go_on && !log.store.is_behind(&operation.company_id) {
            let beside = std::mem::take(&mut open.beside);
            log.store.write_operation_later(Arc::clone(&operation), beside);
            log.feed.operation(&operation);
            return Recorded::Written;
        }
        let write = || log.store.write_operation(Arc::clone(&operation), open.beside.clone());
        let mut committed = write().await;
        // Its intent is on disk, and the provider may have done the write: failing the request at
        // once would make the caller repeat it. What is not on disk after a second try may be lost
        // with the next crash, and the entry will say `interrupted`: the caller must know.
        let may_be_done = is_write && was_called;
        if let (Err(error), true) = (&committed, has_intent) {
            tracing::error!(%error, operation = %operation_id, "a completion could not be \
                recorded; trying again");
            committed = write().await;
        }
        match committed {
            Ok(()) => {
                open.end_on_disk().await;
                log.feed.operation(&operation);
                log.feed.jobs(&open.beside);
                if open.has_new_jobs {
                    log.wake.notify_one();
                }
                Recorded::Written
            }
            Err(error) if may_be_done => {
                Recorded::Not(OplogError::Unrecorded { operation_id, error })
            }
            Err(error) => {
                log.refusals.not_written(&operation.company_id, operation_id);
                Recorded::Not(OplogError::NotRecorded(error))
            }
        }
    }
}

impl Oplog {
    /// Records a refusal whose scope is a company, or counts it in an earlier one of this minute.
    /// Answers the refusal as an error, or why it could not be recorded.
    pub async fn refuse(
        self: &Arc<Self>,
        caller: &Caller,
        kind: OperationKind,
        company: CompanyId,
        refusal: Refusal,
    ) -> OplogError {
        let again = Countable::of(caller).and_then(|countable| {
            let now = self.clock.now();
            // It is compared and not written.
            let unwritten = OperationId::new(0, 0, 0);
            let refused = Operation {
                outcome: refusal.outcome,
                error: Some(refusal.error.clone()),
                ..new(caller, kind, &Scope::company(company.clone()), (unwritten, now))
            };
            self.refusals.again(&countable, &refused, now)
        });
        if let Some(operation_id) = again {
            self.metrics.refused(kind, &company);
            let Refusal { outcome, error } = refusal;
            return OplogError::Ended { operation_id, outcome, error };
        }
        match Opened::begin(self, caller, kind, &Scope::company(company)).await {
            Ok(opened) => opened.refuse(refusal).await,
            Err(error) => error,
        }
    }
}

/// The entry of an operation that begins.
fn new(
    caller: &Caller,
    kind: OperationKind,
    scope: &Scope,
    (id, now): (OperationId, Timestamp),
) -> Operation {
    Operation {
        id,
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
        outgoing: Vec::new(),
        attribution_mode: None,
        cost_event_ids: Vec::new(),
        error: None,
        log: Vec::new(),
        cited: Vec::new(),
        payload: None,
        count: 1,
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
