//! Refusals: which share an entry, and which must have one of their own.

use super::*;
use crate::billing::SumsQuery;

#[tokio::test]
async fn refusals_of_one_token_and_minute_share_an_entry_that_has_their_number() {
    let host = host().await;
    let first = ended(&host.refuse(&bearer(1)).await);
    for _ in 0..9 {
        assert_eq!(ended(&host.refuse(&bearer(1)).await), first);
    }
    let other = ended(&host.refuse(&bearer(2)).await);
    assert_ne!(other, first);
    let count = |all: &[Operation], id| all.iter().find(|one| one.id == id).unwrap().count;
    let mut shown = host.all().await;
    assert_eq!(shown.len(), 2);
    host.log.refusals.show(&acme(), &mut shown);
    assert_eq!((count(&shown, first), count(&shown, other)), (10, 1), "before it is written");
    host.log.write_refusals(false).await.unwrap();
    assert_eq!(count(&host.all().await, first), 1, "the minute goes on");
    host.clock.advance(SignedDuration::from_mins(1));
    host.log.write_refusals(false).await.unwrap();
    assert_eq!(count(&host.all().await, first), 10);
    let next = ended(&host.refuse(&bearer(1)).await);
    assert_ne!(next, first, "a minute later");
}

#[tokio::test]
async fn a_refusal_in_the_runner_is_counted_like_one_before_it() {
    let host = host().await;
    let refused = async || {
        let opened = Opened::begin(&host.log, &bearer(1), OperationKind::Query, &scope()).await;
        ended(&opened.unwrap().refuse(forbidden()).await)
    };
    let first = refused().await;
    assert_eq!((refused().await, ended(&host.refuse(&bearer(1)).await)), (first, first));
    host.log.write_refusals(true).await.unwrap();
    assert_eq!(host.only().await.count, 3);
    assert_eq!(host.begin(OperationKind::Query).await.id().sequence(), 2, "numbers came back");
}

#[tokio::test]
async fn a_refusal_with_rows_of_its_own_is_not_counted_in_another() {
    let host = host().await;
    for _ in 0..2 {
        let opened = Opened::begin(&host.log, &bearer(1), OperationKind::Query, &scope()).await;
        let ending = opened.unwrap().without_a_call();
        let refused = Ended::<()>::Failed(forbidden());
        ending.complete(refused, vec![row("delivery")]).await.into_result().unwrap_err();
    }
    assert_eq!(host.all().await.len(), 2);
}

#[tokio::test]
async fn what_is_refused_after_its_intent_ends_in_an_entry_of_its_own() {
    let host = host().await;
    let begin = async || {
        let scope = scope();
        Opened::begin(&host.log, &bearer(1), OperationKind::Capture, &scope).await.unwrap()
    };
    // One that is refused before its intent, in which others could be counted.
    begin().await.refuse(forbidden()).await;
    for _ in 0..3 {
        let ending = begin().await.write_intent(Vec::new()).await.unwrap().called();
        let id = ending.id();
        let refused = ending.complete(Ended::<()>::Failed(forbidden()), Vec::new()).await;
        assert_eq!(ended(&refused.into_result().unwrap_err()), id);
    }
    let all = host.all().await;
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|one| one.outcome == Outcome::Refused && one.count == 1));
}

#[tokio::test]
async fn a_refusal_after_its_intent_is_written_at_the_second_try() {
    let host = host().await;
    let ending = host.intended().await.called();
    host.store.fail_operations(1);
    let refused = ending.complete(Ended::<()>::Failed(forbidden()), Vec::new()).await;
    ended(&refused.into_result().unwrap_err());
    assert_eq!(host.only().await.outcome, Outcome::Refused);
}

fn about(value: &Value) -> (Scope, Option<SourceRef>, Option<HookContext>) {
    let scope = match value.get("scope") {
        Some(scope) => serde_json::from_value(scope.clone()).unwrap(),
        None => scope(),
    };
    let read = |name: &str| value.get(name).cloned();
    (
        scope,
        read("source").map(|source| serde_json::from_value(source).unwrap()),
        read("hook").map(|hook| serde_json::from_value(hook).unwrap()),
    )
}

#[tokio::test]
async fn refusals_that_a_filter_tells_apart_are_told_apart_in_the_log() {
    let hook = |kind: &str, run: &str| {
        json!({"hook": {"hookKind": kind, "hookId": "h", "heartbeatRunId": run,
                        "triggeredAt": "2026-11-20T00:00:00Z"}})
    };
    let cases = [
        (hook("post_run_capture", "r1"), json!({"hookKind": "post_run_capture", "runId": "r1"})),
        (hook("issue_comment_capture", "r1"), json!({"hookKind": "issue_comment_capture"})),
        (hook("post_run_capture", "r2"), json!({"runId": "r2"})),
        (
            json!({"source": {"kind": "issue", "companyId": "acme", "issueId": "i9"}}),
            json!({"issueId": "i9", "sourceKind": "issue"}),
        ),
        (json!({"scope": {"companyId": "acme", "agentId": "bob"}}), json!({"agentId": "bob"})),
        (json!({"scope": {"companyId": "acme", "projectId": "p1"}}), json!({"projectId": "p1"})),
        (json!({"scope": {"companyId": "acme", "sessionKey": "s1"}}), json!({"sessionKey": "s1"})),
    ];
    let host = host().await;
    for (asked, _) in cases.iter().chain(&cases) {
        let (scope, source, hook) = about(asked);
        let opened = Opened::begin(&host.log, &bearer(1), OperationKind::Capture, &scope).await;
        let mut opened = opened.unwrap();
        opened.set_provenance(source.as_ref(), hook.as_ref());
        ended(&opened.refuse(forbidden()).await);
    }
    host.log.write_refusals(true).await.unwrap();
    assert_eq!(host.all().await.len(), cases.len());
    for (_, filter) in cases {
        let filter: OperationFilter = serde_json::from_value(filter).unwrap();
        let found = host.store.operations(&acme(), &filter, None, 10).await.unwrap().operations;
        assert!(matches!(found.as_slice(), [one] if one.count == 2), "{filter:?}: {found:?}");
    }
}

#[tokio::test]
async fn further_refusals_share_an_entry_that_shows_only_what_they_share() {
    let host = host().await;
    for number in 0..300 {
        let mut scope = scope();
        scope.issue_id = Some(format!("i{number}"));
        let opened = Opened::begin(&host.log, &bearer(1), OperationKind::Query, &scope).await;
        let refusal = Refusal::new(OperationErrorCode::Forbidden, format!("not issue {number}"));
        let error = opened.unwrap().refuse(refusal).await;
        assert_eq!(error.to_string(), format!("not issue {number}"), "to the caller");
    }
    host.log.write_refusals(true).await.unwrap();
    let filter = OperationFilter::default();
    let all = host.store.operations(&acme(), &filter, None, 1_000).await.unwrap().operations;
    assert_eq!(all.len(), 257);
    let shared: Vec<_> = all.iter().filter(|one| one.principal == Principal::Others).collect();
    let [shared] = shared.as_slice() else { panic!("{shared:?}") };
    assert_eq!((shared.count, &shared.scope, shared.kind), (44, &scope(), OperationKind::Query));
    let error = shared.error.as_ref().unwrap();
    assert!(error.code == OperationErrorCode::Forbidden && !error.message.contains("issue"));
}

#[tokio::test]
async fn sums_count_each_refusal() {
    let host = host().await;
    for _ in 0..5 {
        host.refuse(&bearer(1)).await;
    }
    let sums = async || host.log.sums(&acme(), &SumsQuery::default()).await.unwrap().total;
    assert_eq!(sums().await.counts.refused, 5, "before it is written");
    host.log.write_refusals(true).await.unwrap();
    assert_eq!(sums().await.counts.refused, 5);
    let day = crate::testing::NOON.to_zoned(jiff::tz::TimeZone::UTC).date();
    let sums = host.store.rollups(&acme(), day, day).await.unwrap();
    let counts: Vec<_> = sums.iter().map(|(_, row)| row.counts.clone()).collect();
    assert!(matches!(counts.as_slice(), [one] if one.refused == 5 && one.reads == 5), "{counts:?}");
}

#[tokio::test]
async fn each_refusal_of_the_host_itself_has_an_entry() {
    let host = host().await;
    for _ in 0..3 {
        host.refuse(&Caller::system()).await;
    }
    assert_eq!(host.all().await.len(), 3);
}

#[tokio::test]
async fn a_refusal_that_could_not_be_written_is_not_counted_and_the_next_one_is_written() {
    let host = host().await;
    host.store.fail_operations(1);
    let error = host.refuse(&bearer(1)).await;
    assert!(matches!(error, OplogError::NotRecorded(_)), "{error}");
    ended(&host.refuse(&bearer(1)).await);
    assert_eq!(host.only().await.outcome, Outcome::Refused);
}

#[tokio::test]
async fn a_number_that_the_store_does_not_take_is_written_later() {
    let host = host().await;
    host.refuse(&bearer(1)).await;
    host.refuse(&bearer(1)).await;
    host.store.fail_operations(1);
    host.log.write_refusals(true).await.unwrap_err();
    assert_eq!(host.only().await.count, 1);
    host.log.write_refusals(false).await.unwrap();
    assert_eq!(host.only().await.count, 2);
}
