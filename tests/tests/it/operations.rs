//! The operation log through the whole host: every operation leaves a record, whatever its outcome.

use memhost_core::ServiceError;
use memhost_tests::{
    TestHost, agent_scope, caller, capture, eventually, forget, get, list, parse, query,
};
use memhost_types::{BindingLimits, OperationErrorCode, OperationFilter, OperationKind, Outcome};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_is_recorded_with_its_provenance() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    host.bind("acme", "reference", BindingLimits::default()).await.unwrap();
    let service = host.service();
    let mut request = capture("acme", "the launch is on friday");
    request.scope = agent_scope("acme", "ada");
    request.scope.issue_id = Some("issue-7".to_owned());
    let captured = service.operations().capture(&caller(), request).await.unwrap();
    host.query("acme", "launch").await.unwrap();
    service.operations().list(&caller(), list("acme", 10, None)).await.unwrap();
    service.operations().get(&caller(), get("acme", &captured.records[0])).await.unwrap();
    service.operations().forget(&caller(), forget("acme", &captured.records)).await.unwrap();
    let log = host.operations("acme").await.unwrap();
    let kinds: Vec<_> = log.iter().rev().map(|operation| operation.kind).collect();
    use OperationKind::{Capture, Forget, Get, Health, List, Query};
    assert_eq!(kinds, [Health, Capture, Query, List, Get, Forget]);
    let first = log.iter().find(|operation| operation.kind == Capture).unwrap();
    assert_eq!(first.id, captured.operation_id);
    assert_eq!(first.outcome, Outcome::Succeeded);
    assert_eq!(first.records, captured.records);
    assert_eq!(first.scope.issue_id.as_deref(), Some("issue-7"));
    assert_eq!(first.provider_key.as_ref().unwrap().as_str(), "reference");
    assert!(first.latency_us.is_some() && first.finished_at.is_some());
    let found = service.control().operation(&parse("acme"), captured.operation_id).await.unwrap();
    assert_eq!(&found, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_and_failures_are_recorded() {
    let host = TestHost::with(&["traps"], |options| options.zero_config = false).await.unwrap();
    let none = host.query("acme", "x").await.unwrap_err();
    assert!(
        matches!(
            &none,
            ServiceError::Operation { error, .. } if error.code == OperationErrorCode::NoBinding,
        ),
        "{none}"
    );
    host.bind("acme", "traps", BindingLimits::default()).await.unwrap();
    host.query("acme", "trap").await.unwrap_err();
    let mut bad = query("acme", "x");
    bad.top_k = Some(0);
    host.service().operations().query(&caller(), bad).await.unwrap_err();
    let outcomes: Vec<_> = host
        .operations("acme")
        .await
        .unwrap()
        .iter()
        .rev()
        .map(|operation| operation.outcome)
        .collect();
    assert_eq!(outcomes, [Outcome::Refused, Outcome::Trapped, Outcome::Refused]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_filtered_paged_and_kept_over_a_restart() {
    let mut host = TestHost::new(&["echo"]).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    for n in 0..25 {
        let mut request = query("acme", "q");
        request.scope = agent_scope("acme", if n % 5 == 0 { "ada" } else { "bob" });
        host.service().operations().query(&caller(), request).await.unwrap();
    }
    host.stop().await;
    host.start().await.unwrap();
    let company = parse("acme");
    let filter = OperationFilter { agent_id: Some("ada".to_owned()), ..OperationFilter::default() };
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = host
            .service()
            .control()
            .operations(&company, &filter, cursor.as_deref(), 2)
            .await
            .unwrap();
        seen.extend(page.items.iter().map(|operation| operation.id));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 5);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first: {seen:?}");
    let other = OperationFilter { agent_id: Some("bob".to_owned()), ..OperationFilter::default() };
    let page = host.service().control().operations(&company, &filter, None, 2).await.unwrap();
    let foreign = host
        .service()
        .control()
        .operations(&company, &other, page.next_cursor.as_deref(), 2)
        .await
        .unwrap_err();
    assert!(foreign.to_string().contains("cursor"), "{foreign}");
    assert!(
        host.service()
            .control()
            .operations(&parse("other"), &filter, page.next_cursor.as_deref(), 2)
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_caller_goes_away_is_recorded() {
    let host = TestHost::new(&["sleeps"]).await.unwrap();
    host.bind("acme", "sleeps", BindingLimits::default()).await.unwrap();
    let service = std::sync::Arc::clone(host.service());
    let call =
        tokio::spawn(
            async move { service.operations().query(&caller(), query("acme", "x")).await },
        );
    let is_called =
        async || host.usage("acme", "sleeps").await.is_some_and(|usage| usage.calls_in_flight == 1);
    eventually("the provider is called", is_called).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let log = host.operations("acme").await.unwrap();
    assert_eq!(log[0].outcome, Outcome::Interrupted);
    assert!(log[0].error.as_ref().unwrap().message.contains("caller went away"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_without_bindings_gets_the_builtin_provider() {
    let host = TestHost::new(&[]).await.unwrap();
    let handle = host.write("fresh", "the printer is on the second floor").await.unwrap();
    assert_eq!(handle.provider_key.as_str(), "local-markdown");
    let found = host.query("fresh", "where is the printer").await.unwrap();
    assert_eq!(found[0].handle, handle);
}
