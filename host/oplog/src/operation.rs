//! One operation, from its opening to its end. Rule: no operation without a log entry.

mod sink;
mod state;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use uuid::Uuid;

pub use self::sink::{OperationContext, OperationSink};
pub use self::state::{Concluded, Ended, Ending, Intended, Opened};
use crate::events;
use crate::log::Oplog;
use memhost_executor::to_json;
use memhost_records::{OperationMarks, Ownership, Progress, Reader, RowChanges};
use memhost_store::{Lease, StoreError, TableWrite};
use memhost_types::{
    AttributionMode, Binding, BindingId, CallUsage, Event, ExtractionJob, HookContext, JsonObject,
    LogLine, Operation, OperationError, OperationErrorCode, OperationId, OperationKind, Outcome,
    Outgoing, PayloadSnapshot, Principal, RecordHandle, Refusal, Scope, Snapshots, SourceRef,
    Usage, Visibility, limits,
};

/// The stage of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// The intent is written where there is one. A provider may be working: it has not answered.
    Begun,
    /// The call ended without an answer: what it did is not known.
    Called,
    /// The provider answered: what it did is done.
    Answered,
    /// The completion was handed to the store.
    Completed,
}

/// What an operation has in every state. Dropping it before its end records it as interrupted, with
/// what is known by then.
pub struct OpenOperation {
    log: Arc<Oplog>,
    is_systems: bool,
    room: u64,
    /// Where the operator says that the binding's cost is counted.
    attribution: Option<AttributionMode>,
    /// Shared with the log while the log writes it. A change meanwhile changes a copy.
    operation: Arc<Operation>,
    /// The binding whose records it is about.
    records_of: Option<BindingId>,
    started: Instant,
    stage: Stage,
    /// What the host's own imports used. It is listed after what the provider reports.
    metered: CallUsage,
    /// Written in one step with the completion.
    beside: Vec<TableWrite>,
    /// The reader of the answer.
    reader: Reader,
    /// Its part of the marks of private records.
    marks: OperationMarks,
    has_new_jobs: bool,
    /// Who asks, for the events that it leaves.
    context: OperationContext,
    /// Locks that are held until the operation is on disk.
    locks: Vec<Lease>,
}

/// The answer's own report: records, usage and state.
#[derive(Debug, Default)]
pub struct Completion {
    /// The records that it wrote or returns.
    pub records: Vec<RecordHandle>,
    /// How many they are.
    pub record_count: usize,
    /// What the provider used.
    pub usage: Vec<Usage>,
}

impl Completion {
    /// These records, and what they cost.
    pub fn records(records: Vec<RecordHandle>, usage: &[Usage]) -> Self {
        Self { record_count: records.len(), records, usage: usage.to_vec() }
    }

    /// No record.
    pub fn usage(usage: &[Usage]) -> Self {
        Self { usage: usage.to_vec(), ..Self::default() }
    }
}

/// What a call of a provider leaves beside its answer.
#[derive(Debug, Default)]
pub struct CallTrace {
    /// What the guest logged.
    pub log: Vec<LogLine>,
    /// Microseconds in the provider.
    pub provider_us: u64,
    /// The usage of the host's own imports, and what was sent.
    pub metered: CallUsage,
}

impl OpenOperation {
    /// Its id.
    pub fn id(&self) -> OperationId {
        self.operation.id
    }

    /// Its entry as it is by now.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Notes where the memory comes from. What was known of it stays where `source` is absent.
    pub fn set_provenance(&mut self, source: Option<&SourceRef>, hook: Option<&HookContext>) {
        let operation = self.change();
        operation.source = source.cloned().or(operation.source.take());
        operation.hook = hook.cloned();
    }

    /// Notes who sent the event that the host works on.
    pub fn set_principal(&mut self, sender: &Principal) {
        self.change().principal = sender.clone();
    }

    /// Notes the bytes that the company had room for when it began.
    pub fn set_room(&mut self, bytes: u64) {
        self.room = bytes;
    }

    /// Notes the scope that it is bound to.
    pub fn set_scope(&mut self, scope: &Scope) {
        self.change().scope.clone_from(scope);
    }

    /// Whether the host itself exports, imports or erases a company.
    pub fn is_systems(&self) -> bool {
        self.is_systems
    }

    /// Notes the records that the request says it builds on.
    pub fn set_cited<'a>(&mut self, metadata: impl Iterator<Item = Option<&'a JsonObject>>) {
        let cited = metadata
            .filter_map(|metadata| metadata?.get("citedRecords")?.as_array())
            .flatten()
            .filter_map(|handle| serde_json::from_value(handle.clone()).ok());
        self.change().cited = cited.take(limits::MAX_RECORDED_HANDLES).collect();
    }

    /// Notes the binding that answers.
    pub fn set_binding(&mut self, binding: &Binding) {
        self.attribution = binding.policy.attribution;
        self.records_of = Some(binding.id);
        let operation = self.change();
        operation.binding_key = Some(binding.key.clone());
        operation.binding_id = Some(binding.known_as());
        operation.provider_key = Some(binding.provider_key.clone());
    }

    /// Notes the version of the provider that answers.
    pub fn set_version(&mut self, version: String) {
        self.change().provider_version = Some(version);
    }

    /// Who is answered. Until the runner says it, somebody who may read no private record.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Notes who is answered.
    pub fn set_reader(&mut self, reader: Reader) {
        self.reader = reader;
    }

    /// Notes the ownership of the records that it writes.
    pub fn set_ownership(&mut self, binding: &Binding, ownership: &Ownership) {
        self.marks.plan(&self.operation, binding, ownership);
        self.change().visibility = ownership.visibility();
    }

    /// Changes rows of records in one step with the completion.
    pub fn change_rows(&mut self, changes: RowChanges) {
        self.beside.extend(changes.writes);
        self.marks.take_from(changes.taken_from);
        self.locks.extend(changes.lock);
    }

    /// Writes these rows in one step with the completion.
    pub fn write_beside(&mut self, rows: Vec<TableWrite>) {
        self.beside.extend(rows);
    }

    /// The provider has records whose rows could not be made.
    pub fn rows_are_missing(&mut self) {
        self.marks.rows_are_missing();
    }

    /// The marks that its end changes, where it wrote private records.
    fn end_marks(&self, error: Option<OperationErrorCode>) -> Result<Vec<TableWrite>, StoreError> {
        let progress = match self.stage {
            Stage::Open | Stage::Begun => Progress::NotCalled,
            Stage::Answered => Progress::Answered,
            Stage::Called | Stage::Completed => Progress::Called(error),
        };
        self.marks.end(&self.log.records, progress, self.log.clock.now())
    }

    /// The operation is on disk. Owners who had private records and have none any more hide nothing
    /// from here on. A failure costs others a summary until the next sweep.
    async fn end_on_disk(&mut self) {
        let records = Arc::clone(&self.log.records);
        let owners = self.marks.ended(&records, &self.beside);
        let Some(binding) = self.records_of.filter(|_| !owners.is_empty()) else {
            return;
        };
        self.locks.clear();
        if let Err(error) = records.remove_stale(&self.operation.company_id, binding, owners).await
        {
            tracing::warn!(%error, "the marks of owners without private records could not be \
                                    removed");
        }
    }

    /// Keeps as much of the request as the binding's policy says. Nothing is kept where the company
    /// has no room for it.
    pub fn keep_payload(&mut self, binding: &Binding, request: &impl Serialize) {
        let most = match binding.policy.retention.snapshots {
            Snapshots::Off => return,
            Snapshots::Bounded => limits::MAX_BOUNDED_SNAPSHOT_BYTES,
            Snapshots::Full => usize::MAX,
        };
        let Some(mut text) = to_json(request).ok().and_then(|json| String::from_utf8(json).ok())
        else {
            return;
        };
        let bytes = text.len() as u64;
        text.truncate(text.floor_char_boundary(most));
        if text.len() as u64 > self.room {
            return;
        }
        self.change().payload = Some(PayloadSnapshot { text, bytes });
    }

    /// Notes that the provider answered.
    pub fn answered(&mut self, trace: CallTrace) {
        self.stage = Stage::Answered;
        self.called(trace);
    }

    /// Notes that a call gave no answer, and that there will be no other.
    pub fn failed(&mut self, trace: CallTrace) {
        self.stage = Stage::Called;
        self.called(trace);
    }

    fn called(&mut self, CallTrace { log, provider_us, metered }: CallTrace) {
        self.metered.extend(metered);
        let operation = self.change();
        operation.log = log;
        operation.provider_us = Some(provider_us);
    }

    /// Notes the records that the operation wrote or returns. The count may be larger than what is
    /// listed.
    pub fn set_records(&mut self, mut records: Vec<RecordHandle>, count: usize) {
        records.truncate(self.operation.kind.recorded_handles());
        let operation = self.change();
        operation.records = records;
        operation.record_count = u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Adds what providers report to have used.
    pub fn add_usage(&mut self, usage: Vec<Usage>) {
        self.change().usage.extend(usage);
    }

    /// Adds what a call used beside its answer.
    pub fn add_metered(&mut self, usage: CallUsage) {
        self.metered.extend(usage);
    }

    /// Its usage by now, what was used beside the answer included.
    pub fn usage(&mut self) -> &[Usage] {
        self.merge_metered();
        &self.operation.usage
    }

    /// Adds a further call of the provider that belongs to the same operation.
    pub fn add_call(&mut self, log: Vec<LogLine>, provider_us: u64) {
        let operation = self.change();
        operation.log.extend(log);
        operation.provider_us = Some(operation.provider_us.unwrap_or(0) + provider_us);
    }

    /// Notes jobs at the provider, as the entry shows them.
    pub fn set_jobs(&mut self, jobs: Vec<ExtractionJob>) {
        self.change().jobs = jobs;
    }

    /// Writes jobs that the host did not know in one step with the completion. The background work
    /// is woken then.
    pub fn add_new_jobs(&mut self, rows: Vec<TableWrite>) {
        self.has_new_jobs |= !rows.is_empty();
        self.beside.extend(rows);
    }

    /// Holds a lock until the completion is on disk.
    pub fn hold(&mut self, lock: Lease) {
        self.locks.push(lock);
    }

    /// The row that says that text is removed, where the operation removes some and nothing says so
    /// yet. It is written before the provider is asked and again after that: a compaction may go on
    /// in between.
    fn compaction_mark(&self) -> Result<Option<TableWrite>, StoreError> {
        match self.operation.kind {
            OperationKind::Forget | OperationKind::Correct | OperationKind::Review => {
                self.log.mark_removal()
            }
            _ => Ok(None),
        }
    }

    /// Names the host's own failure as what it is. After the answer to a write it undoes nothing at
    /// the provider, so it is none that passes: a key must not repeat what the provider did.
    pub fn failure(&self, mut failure: Refusal) -> Refusal {
        let error = &mut failure.error;
        if self.stage == Stage::Answered
            && self.operation.kind.is_write()
            && error.code == OperationErrorCode::StoreUnavailable
        {
            (error.code, error.retry_after_ms) = (OperationErrorCode::Host, None);
        }
        if self.stage == Stage::Answered && failure.error.code == OperationErrorCode::Host {
            let Operation { id, kind, .. } = &*self.operation;
            let advice = match kind.is_write() {
                true => format!(
                    "; `memhost operation show {id}` lists the records that the provider wrote"
                ),
                false => String::new(),
            };
            failure.outcome = Outcome::Failed;
            failure.error.message = format!(
                "the provider answered, and then the host failed: {}{advice}",
                failure.error.message
            );
        }
        failure
    }

    /// Counts what the operation cost before anybody is answered, so that the next call is checked
    /// against it.
    ///
    /// # Errors
    /// Where a cost event cannot be encoded.
    pub fn charge(&mut self) -> Result<(), StoreError> {
        self.merge_metered();
        self.attribute();
        let charged = self.log.ledger.charge(&self.operation)?;
        self.change().cost_event_ids = charged.events.into_iter().map(|event| event.id).collect();
        self.beside.extend(charged.writes);
        charged.turned.into_iter().for_each(|budget| self.log.feed.budget(budget));
        Ok(())
    }

    /// Says where the provider's cost is counted: the operator's word comes before the provider's.
    /// Without a run there is nothing that it could be included in.
    fn attribute(&mut self) {
        let (asked, has_run) = (self.attribution, self.operation.run().is_some());
        for usage in &mut self.change().usage {
            let mode = asked.unwrap_or_else(|| usage.attribution());
            let is_nowhere = mode == AttributionMode::IncludedInRun && !has_run;
            if asked.is_some() || is_nowhere {
                usage.attribution_mode =
                    Some(if is_nowhere { AttributionMode::BilledDirectly } else { mode });
            }
        }
    }

    /// Whether its entry must have something that another refusal's has not: what is written in one
    /// step with it, or what was used.
    fn has_its_own(&self) -> bool {
        let Operation { usage, outgoing, .. } = &*self.operation;
        let is_used = !self.metered.is_empty() || !usage.is_empty() || !outgoing.is_empty();
        !self.beside.is_empty() || is_used || self.stage == Stage::Answered
    }

    /// Leaves what all further refusals of its kind and code have in common.
    fn show_what_is_shared(&mut self) {
        let operation = self.change();
        operation.principal = Principal::Others;
        operation.scope = Scope::company(operation.company_id.clone());
        (operation.source, operation.hook) = (None, None);
        (operation.binding_key, operation.binding_id) = (None, None);
        (operation.provider_key, operation.provider_version) = (None, None);
        (operation.latency_us, operation.provider_us) = (None, None);
        operation.visibility = Visibility::Company;
        (operation.records, operation.record_count) = (Vec::new(), 0);
        (operation.cited, operation.log, operation.payload) = (Vec::new(), Vec::new(), None);
        if let Some(error) = &mut operation.error {
            let message = "further refusals of this minute are counted together here; each caller \
                           was told its own reason";
            error.message = message.to_owned();
            (error.field, error.retry_after_ms) = (None, None);
        }
    }

    /// Notes what the metadata of an item say of who asks.
    pub fn note_context(&mut self, metadata: Option<&JsonObject>) {
        self.context.note(metadata);
    }

    /// Notes the operation that the provider is told: the same for every attempt.
    pub fn set_told(&mut self, told: OperationId) {
        self.context.told = Some(told.uuid());
    }

    /// Adds the events that the sinks of the binding have of this operation.
    fn add_events(&mut self) {
        let operation = &self.operation;
        let sinks = self.log.sinks.at(&operation.company_id, operation.binding_key.as_ref());
        if sinks.is_empty() {
            return;
        }
        let told = sinks.iter().flat_map(|sink| sink.events(operation, &self.context));
        let (first, now) =
            (self.context.told.unwrap_or_else(|| operation.id.uuid()), self.log.clock.now());
        let mut rows = Vec::new();
        for (event, number) in told.zip(0..) {
            let event = Event {
                // Another attempt of the same operation leaves the same events.
                id: Uuid::from_u128(first.as_u128().wrapping_add(number)),
                company_id: operation.company_id.clone(),
                principal: operation.principal.clone(),
                received_at: now,
                event,
            };
            match events::changes(&event) {
                Ok(changes) => rows.extend(
                    changes
                        .into_iter()
                        .map(|change| TableWrite::new(change.table, change.key, change.new)),
                ),
                Err(error) => tracing::error!(%error, "an operation's event could not be written"),
            }
        }
        self.beside.extend(rows);
    }

    fn change(&mut self) -> &mut Operation {
        Arc::make_mut(&mut self.operation)
    }

    fn merge_metered(&mut self) {
        if self.metered.usage.is_empty() && self.metered.outgoing.is_empty() {
            return;
        }
        let CallUsage { usage, outgoing } = std::mem::take(&mut self.metered);
        let operation = self.change();
        operation.usage.extend(usage);
        if !outgoing.is_empty() {
            let mut all = Outgoing::from(std::mem::take(&mut operation.outgoing));
            all.extend(outgoing);
            operation.outgoing = all.into_vec();
        }
    }

    /// Fills in how it ended. From here on the operation is only written.
    fn end(&mut self, outcome: Outcome, error: Option<OperationError>) {
        self.stage = Stage::Completed;
        self.merge_metered();
        let now = self.log.clock.now();
        let operation = self.change();
        operation.finished_at = Some(now);
        operation.attribution_mode = operation.usage.first().map(Usage::attribution);
        operation.outcome = outcome;
        operation.error = error;
        self.log.metrics.observe(&self.operation);
        self.log.recent.note(&self.operation, now);
        log_end(&self.operation);
    }

    /// Writes without waiting: it is flushed with the next group.
    fn write_unawaited(&mut self) {
        self.log.feed.operation(&self.operation);
        let beside = std::mem::take(&mut self.beside);
        drop(self.log.store.write_operation(Arc::clone(&self.operation), beside));
    }
}

impl Drop for OpenOperation {
    fn drop(&mut self) {
        let message = match self.stage {
            Stage::Completed => return,
            Stage::Open => "the caller went away before the provider was asked; nothing was done",
            Stage::Begun | Stage::Called => {
                "the caller went away before the provider answered; whether a write happened is \
                 not known"
            }
            Stage::Answered => {
                "the caller went away after the provider answered; what the provider wrote is \
                 there, and the host did \
                 not finish the steps that follow"
            }
        };
        self.end(
            Outcome::Interrupted,
            Some(Refusal::new(OperationErrorCode::Interrupted, message).error),
        );
        self.write_unawaited();
    }
}

/// Within the span of the request that the operation belongs to.
fn log_end(operation: &Operation) {
    for line in &operation.log {
        tracing::debug!(
            target: "memhost::guest", operation = %operation.id, level = line.level,
            "{}", line.text
        );
    }
    for to in &operation.outgoing {
        let counts = to.counts;
        tracing::debug!(
            operation = %operation.id, company = %operation.company_id, origin = to.origin,
            binding = operation.binding_key.as_ref().map(|key| key.as_str()), host = to.by_host,
            requests = counts.requests, failed = counts.failed, refused = counts.refused,
            sent = counts.bytes_sent, received = counts.bytes_received, "an operation sent requests"
        );
    }
    tracing::debug!(
        operation = %operation.id, company = %operation.company_id, kind = operation.kind.as_str(),
        outcome = operation.outcome.as_str(), latency_us = operation.latency_us, "an operation \
            ended"
    );
}
