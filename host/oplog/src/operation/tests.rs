//! The states of an operation and what each leaves, on a store in memory.

mod refused;

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use crate::error::OplogError;
use crate::feed::HostEvent;
use crate::log::{Audit, OplogOptions, Told};
use crate::testing::{TestClock, acme, cents, handle};
use memhost_access::{Caller, Section};
use memhost_records::Records;
use memhost_store::{
    self as store, Coordination, LockKind, MemoryStore, OperationLog, Store, Table, TableWrite,
    Tables,
};
use memhost_types::{BudgetState, Event, NewEvent, OperationFilter, Period, Token};

struct Host {
    store: Arc<MemoryStore>,
    clock: Arc<TestClock>,
    log: Arc<Oplog>,
}

async fn host() -> Host {
    with_audit(Audit::Durable).await
}

async fn with_audit(audit: Audit) -> Host {
    let (store, clock) = (Arc::new(MemoryStore::default()), TestClock::new());
    let shared: Arc<dyn Store> = store.clone();
    let records = Records::open(Arc::clone(&shared), crate::testing::NOON).await.unwrap();
    let options = OplogOptions { audit, ..OplogOptions::default() };
    let told = Told::new(clock.clone(), false);
    let log = Oplog::open(shared, clock.clone(), Arc::new(records), told, options).await.unwrap();
    Host { store, clock, log }
}

fn scope() -> Scope {
    Scope::company(acme())
}

/// The bearer of a token with this number.
fn bearer(number: u128) -> Caller {
    let token: Token = serde_json::from_value(json!({
        "id": Uuid::from_u128(number), "name": format!("t{number}"), "role": "auditor",
        "companyId": "acme", "createdAt": crate::testing::NOON, "createdBy": "operator",
    }))
    .unwrap();
    Caller::of(&token)
}

fn forbidden() -> Refusal {
    Refusal::new(OperationErrorCode::Forbidden, "you may not")
}

impl Host {
    async fn begin(&self, kind: OperationKind) -> Opened {
        Opened::begin(&self.log, &Caller::operator(), kind, &scope()).await.unwrap()
    }

    /// A write whose provider is about to be called.
    async fn intended(&self) -> Intended {
        self.begin(OperationKind::Capture).await.write_intent(Vec::new()).await.unwrap()
    }

    /// All operations of the company, oldest first.
    async fn all(&self) -> Vec<Operation> {
        let filter = OperationFilter::default();
        let page = self.store.operations(&acme(), &filter, None, 100).await.unwrap();
        page.operations.into_iter().rev().collect()
    }

    async fn only(&self) -> Operation {
        let mut all = self.all().await;
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    async fn refuse(&self, caller: &Caller) -> OplogError {
        self.log.refuse(caller, OperationKind::Query, acme(), forbidden()).await
    }
}

fn ended(error: &OplogError) -> OperationId {
    match error {
        OplogError::Ended { operation_id, .. } => *operation_id,
        error => panic!("{error}"),
    }
}

fn trace(log: &str) -> CallTrace {
    let log = serde_json::from_value(json!([{"level": "info", "text": log}])).unwrap();
    CallTrace { log, provider_us: 7, metered: CallUsage::default() }
}

fn usage(value: Value) -> Vec<Usage> {
    vec![serde_json::from_value(value).unwrap()]
}

fn row(name: &str) -> TableWrite {
    TableWrite::new(Table::Companies, store::company_key(&acme(), name.as_bytes()), Some(vec![1]))
}

async fn has(host: &Host, name: &str) -> bool {
    let row = row(name);
    host.store.get(row.table, &row.key).await.unwrap().is_some()
}

#[tokio::test]
async fn a_read_leaves_one_entry_when_it_has_ended() {
    let host = host().await;
    let opened = host.begin(OperationKind::Query).await;
    let id = opened.id();
    let intended = opened.write_intent(Vec::new()).await.unwrap();
    assert!(host.all().await.is_empty(), "a read leaves no intent");
    let mut ending = intended.called();
    ending.answered(trace("hello"));
    ending.set_records(vec![handle("r1"), handle("r2")], 5);
    let answer = ending.complete(Ended::Succeeded(3), Vec::new()).await.into_result().unwrap();
    let operation = host.only().await;
    assert_eq!((answer, operation.id, operation.outcome), (3, id, Outcome::Succeeded));
    assert_eq!((operation.records.len(), operation.record_count), (2, 5));
    assert_eq!((operation.provider_us, operation.log[0].text.as_str()), (Some(7), "hello"));
    assert!(operation.finished_at.is_some() && operation.latency_us.is_some());
}

#[tokio::test]
async fn a_write_leaves_its_intent_before_the_provider_is_called() {
    let host = host().await;
    let opened = host.begin(OperationKind::Capture).await;
    let intended = opened.write_intent(vec![row("intent")]).await.unwrap();
    assert_eq!(host.only().await.outcome, Outcome::InProgress);
    assert!(has(&host, "intent").await);
    let mut ending = intended.called();
    ending.write_beside(vec![row("step")]);
    let concluded = ending.complete(Ended::Succeeded(()), vec![row("completion")]).await;
    concluded.into_result().unwrap();
    assert_eq!(host.only().await.outcome, Outcome::Succeeded);
    assert!(has(&host, "step").await && has(&host, "completion").await);
}

#[tokio::test]
async fn without_an_intent_on_disk_the_provider_is_not_called() {
    let host = host().await;
    let opened = host.begin(OperationKind::Capture).await;
    host.store.fail_operations(1);
    let error = opened.write_intent(vec![row("intent")]).await.err().unwrap();
    assert!(matches!(error, OplogError::NotRecorded(_)), "{error}");
    assert!(error.to_string().contains("nothing was changed"));
    assert!(!has(&host, "intent").await);
    let operation = host.only().await;
    assert_eq!(operation.outcome, Outcome::Refused);
    assert_eq!(operation.error.unwrap().code, OperationErrorCode::Host);
}

#[tokio::test]
async fn ids_carry_numbers_that_grow_and_a_withdrawn_one_is_given_again() {
    let host = host().await;
    let first = host.begin(OperationKind::Query).await;
    let second = host.begin(OperationKind::Query).await;
    assert_eq!((first.id().sequence(), second.id().sequence()), (1, 2));
    second.withdraw();
    let third = host.begin(OperationKind::Query).await;
    assert_eq!(third.id().sequence(), 2);
    third.withdraw();
    drop(first);
    assert_eq!(host.only().await.outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn whoever_goes_away_leaves_an_interrupted_operation() {
    let host = host().await;
    drop(host.begin(OperationKind::Query).await);
    drop(host.intended().await);
    let mut ending = host.intended().await.called();
    ending.answered(trace(""));
    ending.set_records(vec![handle("r")], 1);
    drop(ending);
    let all = host.all().await;
    let of = |operation: &Operation| (operation.outcome, operation.error.clone().unwrap().code);
    let interrupted = (Outcome::Interrupted, OperationErrorCode::Interrupted);
    assert!(all.len() == 3 && all.iter().all(|operation| of(operation) == interrupted));
    let said = |n: usize| all[n].error.clone().unwrap().message;
    assert!(said(0).contains("nothing was done"), "{}", said(0));
    assert!(said(1).contains("whether a write happened is not known"), "{}", said(1));
    assert!(said(2).contains("what the provider wrote is there"), "{}", said(2));
    assert_eq!(all[2].records.len(), 1, "what is known by then");
}

#[tokio::test]
async fn a_future_that_is_dropped_in_the_middle_of_its_call_leaves_an_entry() {
    let host = host().await;
    let opened = host.begin(OperationKind::Capture).await;
    let mut call = Box::pin(async {
        let intended = opened.write_intent(Vec::new()).await.unwrap();
        std::future::pending::<()>().await;
        drop(intended);
    });
    assert_eq!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    assert_eq!(host.only().await.outcome, Outcome::InProgress);
    drop(call);
    assert_eq!(host.only().await.outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn a_completion_that_fails_once_is_written_at_the_second_try() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    ending.answered(trace(""));
    host.store.fail_operations(1);
    let concluded = ending.complete(Ended::Succeeded(()), vec![row("completion")]).await;
    concluded.into_result().unwrap();
    assert_eq!(host.only().await.outcome, Outcome::Succeeded);
    assert!(has(&host, "completion").await);
}

#[tokio::test]
async fn the_caller_of_a_write_whose_completion_fails_twice_is_told_that_it_may_be_done() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    let id = ending.id();
    ending.answered(trace(""));
    host.store.fail_operations(2);
    let error = ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap_err();
    assert!(matches!(error, OplogError::Unrecorded { operation_id, .. } if operation_id == id));
    assert_eq!(host.only().await.outcome, Outcome::InProgress, "as after a crash");
}

#[tokio::test]
async fn a_read_that_cannot_be_recorded_is_not_answered_unless_the_audit_is_relaxed() {
    for (audit, is_answered) in [(Audit::Durable, false), (Audit::Relaxed, true)] {
        let host = with_audit(audit).await;
        let ending = host.begin(OperationKind::Query).await.without_a_call();
        host.store.fail_operations(1);
        let answer = ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result();
        assert_eq!(answer.is_ok(), is_answered);
        let mut write = host.intended().await.called();
        write.answered(trace(""));
        host.store.fail_operations(2);
        let answer = write.complete(Ended::Succeeded(()), Vec::new()).await.into_result();
        assert!(matches!(answer, Err(OplogError::Unrecorded { .. })), "a write always waits");
    }
}

#[tokio::test]
async fn what_an_operation_cost_is_written_with_it_and_told_if_a_budget_turns() {
    let host = host().await;
    let set = serde_json::from_value(json!({"limitCents": 5})).unwrap();
    let change = host.log.ledger.set_budget(&acme(), None, Period::Day, Some(set)).unwrap();
    host.log.ledger.apply(&acme(), change);
    host.log.ledger.budgets(&acme()).await.unwrap();
    let seat = host.log.feed.seat("ada").unwrap();
    let (mut follower, _) = host.log.feed.follower(seat, Some(&acme()), None);
    let mut ending = host.intended().await.called();
    let CallTrace { log, provider_us, .. } = trace("");
    ending.answered(CallTrace { log, provider_us, metered: usage(cents(2)).into() });
    ending.add_usage(usage(cents(3)));
    // The answer has it, and it is counted once all the same.
    assert_eq!(ending.usage().len(), 2);
    ending.charge().unwrap();
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    let operation = host.only().await;
    assert_eq!(operation.usage.len(), 2);
    assert_eq!(operation.usage[0].cost.unwrap().0, 3_000_000, "the provider's own comes first");
    let all = serde_json::from_value(json!({})).unwrap();
    let events = host.log.ledger.newest_cost_events(&acme(), &all, None, 10).await.unwrap().0;
    let ids: Vec<_> = events.iter().map(|event| event.id).collect();
    assert_eq!((ids.len(), ids), (2, operation.cost_event_ids));
    let HostEvent::Budget(budget) = follower.next().await.unwrap().happened.clone() else {
        panic!("the budget comes first: it is counted before the answer");
    };
    assert_eq!(budget.state, BudgetState::Stopped);
    assert_eq!(follower.next().await.unwrap().happened.kind(), "operation");
}

#[tokio::test]
async fn an_operation_that_goes_away_after_it_was_charged_keeps_its_events() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    ending.answered(trace(""));
    ending.add_usage(usage(cents(3)));
    ending.charge().unwrap();
    drop(ending);
    let operation = host.only().await;
    assert_eq!((operation.outcome, operation.cost_event_ids.len()), (Outcome::Interrupted, 1));
    assert!(host.log.ledger.has_cost_event(&acme(), operation.cost_event_ids[0]).await.unwrap());
}

#[tokio::test]
async fn what_is_included_in_a_run_is_billed_directly_where_there_is_none() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    let mut included = cents(3);
    included["attributionMode"] = json!("included_in_run");
    ending.add_usage(usage(included));
    ending.charge().unwrap();
    assert_eq!(ending.operation().cost_event_ids.len(), 1);
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    let mode = host.only().await.attribution_mode;
    assert_eq!(mode, Some(AttributionMode::BilledDirectly));
}

#[tokio::test]
async fn the_run_and_the_issue_of_the_source_count_for_what_it_costs() {
    let host = host().await;
    let source: SourceRef = serde_json::from_value(json!({
        "kind": "run", "companyId": "acme", "runId": "r1", "issueId": "i1"
    }))
    .unwrap();
    let used = async |mode: &str| {
        let mut opened = host.begin(OperationKind::Capture).await;
        opened.set_provenance(Some(&source), None);
        let mut ending = opened.write_intent(Vec::new()).await.unwrap().called();
        let mut used = cents(3);
        used["attributionMode"] = json!(mode);
        ending.add_usage(usage(used));
        ending.charge().unwrap();
        ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    };
    used("included_in_run").await;
    let included = host.only().await;
    assert_eq!(included.attribution_mode, Some(AttributionMode::IncludedInRun));
    assert!(included.cost_event_ids.is_empty(), "the run has it");
    used("billed_directly").await;
    for filter in [json!({"runId": "r1"}), json!({"issueId": "i1"})] {
        let filter = serde_json::from_value(filter).unwrap();
        let ledger = &host.log.ledger;
        let found = ledger.newest_cost_events(&acme(), &filter, None, 10).await.unwrap();
        assert_eq!(found.0.len(), 1, "{filter:?}");
    }
}

#[tokio::test]
async fn a_failure_of_the_host_after_the_answer_says_that_the_provider_did_it() {
    let host = host().await;
    let failure = || Refusal::host("the disk is gone");
    let mut ending = host.intended().await.called();
    assert_eq!(ending.failure(failure()).outcome, Outcome::Refused);
    ending.answered(trace(""));
    let Refusal { outcome, error } = ending.failure(failure());
    assert_eq!(outcome, Outcome::Failed);
    let shows = format!("memhost operation show {}", ending.id());
    assert!(error.message.contains("the provider answered") && error.message.contains(&shows));
    let other = ending.failure(forbidden());
    assert_eq!((other.outcome, other.error.message.as_str()), (Outcome::Refused, "you may not"));
}

/// With such a code a key would be free again.
#[tokio::test]
async fn a_store_that_is_gone_after_the_answer_is_no_failure_that_passes() {
    let host = host().await;
    let gone =
        || Refusal::from(StoreError::Unavailable { action: "writing", message: "gone".to_owned() });
    let told = |ending: &Ending| {
        let Refusal { error, .. } = ending.failure(gone());
        (error.code, error.retry_after_ms)
    };
    let mut ending = host.intended().await.called();
    assert_eq!(told(&ending), (OperationErrorCode::StoreUnavailable, Some(1_000)));
    ending.answered(trace(""));
    assert_eq!(told(&ending), (OperationErrorCode::Host, None));
}

#[tokio::test]
async fn the_first_failure_stays_the_reason() {
    let first = Ended::<()>::Failed(forbidden()).or_failed(Refusal::host("later"));
    assert!(matches!(first, Ended::Failed(refusal) if refusal.error.message == "you may not"));
    let late = Ended::Succeeded(()).or_failed(Refusal::host("later"));
    assert!(matches!(late, Ended::Failed(refusal) if refusal.error.message == "later"));
}

#[tokio::test]
async fn what_is_held_is_answered_and_its_entry_says_why() {
    let host = host().await;
    let ending = host.intended().await.called();
    let held = Ended::Held("later", forbidden());
    assert_eq!(ending.complete(held, Vec::new()).await.into_result().unwrap(), "later");
    let operation = host.only().await;
    assert_eq!(operation.outcome, Outcome::Refused);
    assert_eq!(operation.error.unwrap().code, OperationErrorCode::Forbidden);
}

#[tokio::test]
async fn a_lock_is_held_until_the_completion_is_on_disk() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    ending.hold(host.store.lock(LockKind::Job, b"a").await.unwrap());
    let mut waits = Box::pin(host.store.lock(LockKind::Job, b"a"));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(context).is_pending());
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    assert!(waits.as_mut().poll(context).is_ready());
}

#[tokio::test]
async fn the_first_removal_wakes_the_background_work() {
    let host = host().await;
    let woken = host.log.wake.notified();
    assert!(host.log.mark_removal().unwrap().is_some());
    woken.await;
    assert!(host.log.mark_removal().unwrap().is_none(), "the compaction is noted already");
}

#[tokio::test]
async fn new_jobs_are_written_with_the_operation_and_wake_the_background_work() {
    let host = host().await;
    let mut ending = host.intended().await.called();
    ending.add_new_jobs(vec![row("job")]);
    let woken = Arc::clone(&host.log);
    let woken = woken.wake.notified();
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    assert!(has(&host, "job").await);
    woken.await;
}

#[tokio::test]
async fn a_removal_of_text_is_marked_with_the_intent() {
    let host = host().await;
    let opened = host.begin(OperationKind::Forget).await;
    let intended = opened.write_intent(Vec::new()).await.unwrap();
    let marks = host.store.scan(Table::Host, b"forgotten", None, 1).await.unwrap();
    assert_eq!(marks.entries.len(), 1);
    let ending = intended.called();
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    drop(host.begin(OperationKind::Query).await);
}

#[tokio::test]
async fn a_request_is_kept_as_far_as_the_policy_and_the_room_allow() {
    let binding = |snapshots: &str| -> Binding {
        serde_json::from_value(json!({
            "id": Uuid::from_u128(1), "companyId": "acme", "key": "b", "providerKey": "p",
            "config": {}, "grants": {}, "limits": {}, "enabled": true, "revision": 1,
            "createdAt": crate::testing::NOON,
            "updatedAt": crate::testing::NOON, "policy": {"retention": {"snapshots": snapshots}},
        }))
        .unwrap()
    };
    let host = host().await;
    let long = "ä".repeat(limits::MAX_BOUNDED_SNAPSHOT_BYTES);
    let mut opened = host.begin(OperationKind::Query).await;
    opened.keep_payload(&binding("off"), &long);
    assert_eq!(opened.operation().payload, None);
    opened.keep_payload(&binding("bounded"), &long);
    let kept = opened.operation().payload.clone().unwrap();
    assert!(kept.text.len() <= limits::MAX_BOUNDED_SNAPSHOT_BYTES);
    assert_eq!(kept.bytes, long.len() as u64 + 2);
    opened.keep_payload(&binding("full"), &long);
    assert_eq!(opened.operation().payload.clone().unwrap().text.len(), long.len() + 2);
    let mut poor = host.begin(OperationKind::Query).await;
    poor.set_room(10);
    poor.keep_payload(&binding("full"), &long);
    assert_eq!(poor.operation().payload, None);
}

struct Saved;

impl OperationSink for Saved {
    fn events(&self, operation: &Operation, context: &OperationContext) -> Vec<NewEvent> {
        if operation.outcome != Outcome::Succeeded {
            return Vec::new();
        }
        let session = context.session.clone().unwrap_or_else(|| "none".to_owned());
        let event = json!({
            "type": "memory.saved", "projectId": "p", "sessionId": session, "agentKind": "x",
        });
        vec![serde_json::from_value(event).unwrap()]
    }
}

#[tokio::test]
async fn the_events_of_a_sink_are_written_with_the_operation() {
    let host = host().await;
    let section = |company: &str| Section {
        name: "events",
        company: company.parse().unwrap(),
        binding: None,
    };
    host.log.sinks.attach(section("acme"), Arc::new(Saved));
    host.log.sinks.attach(section("zeta"), Arc::new(Saved));
    let metadata = json!({"sessionId": "s1"});
    let mut ending = host.intended().await.called();
    let id = ending.id();
    ending.note_context(metadata.as_object());
    ending.complete(Ended::Succeeded(()), Vec::new()).await.into_result().unwrap();
    drop(host.intended().await);
    let prefix = store::company_key(&acme(), b"");
    let mut rows = store::scan_all(&*host.store, Table::Events, &prefix);
    let (_, event) = rows.next_row::<Event>("event").await.unwrap().unwrap();
    assert_eq!((event.id, event.event.session_id.as_str()), (id.uuid(), "s1"));
    assert!(rows.next().await.unwrap().is_none(), "one that was interrupted leaves none");
}
