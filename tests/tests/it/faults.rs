//! The store fails after the provider's answer: the record says so, and keeps what the provider did
//! and what it cost.

use std::sync::Arc;
use std::time::Duration;

use memhost_core::ServiceError;
use memhost_store::Table;
use memhost_tests::faults::Faults;
use memhost_tests::{TestHost, caller, capture, get, list, parse, query, upsert};
use memhost_types::{Operation, OperationErrorCode, Outcome};
use serde_json::{Value, json};

use crate::support::{Api, bind};

const BINDING: &str = "/control/v1/companies/acme/bindings/extracts";

/// A host with the guest `extracts`, bound as the default of `acme`, on a store that can be made to
/// fail.
async fn host(policy: &Value) -> (TestHost, Api, Arc<Faults>) {
    let (faults, wrap) = Faults::new();
    let host = TestHost::with(&["extracts"], |options| {
        options.wrap_store = Some(wrap);
        options.retry.first = Duration::from_millis(10);
        options.retry.longest = Duration::from_millis(40);
        options.retry.attempts = 1_000;
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", policy).await;
    (host, api, faults)
}

/// The record of an operation that must have failed by the host's fault after the provider had
/// answered.
async fn failed_after_the_answer<T: std::fmt::Debug>(
    host: &TestHost,
    answer: Result<T, ServiceError>,
) -> Operation {
    let ServiceError::Operation { operation_id, outcome, error } = answer.unwrap_err() else {
        panic!("it is no operation's error");
    };
    let operation = host.service().control().operation(&parse("acme"), operation_id).await.unwrap();
    assert_eq!((outcome, error.code), (Outcome::Failed, OperationErrorCode::Host));
    assert_eq!((operation.outcome, operation.error.as_ref()), (Outcome::Failed, Some(&error)));
    assert!(
        error.message.starts_with("the provider answered, and then the host failed: "),
        "{}",
        error.message
    );
    assert!(operation.provider_us.is_some() && operation.finished_at.is_some());
    operation
}

/// How often the guest was called for one capture at most, and for all of them.
async fn calls(host: &TestHost) -> String {
    host.query("acme", "count calls/").await.unwrap()[0].text.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_cannot_be_written_leaves_usage_log_and_records() {
    let (host, _, faults) = host(&json!({"review": {"all": true}})).await;
    faults.break_table(Table::Reviews);
    let operation = failed_after_the_answer(
        &host,
        host.service().operations().capture(&caller(), capture("acme", "paid 3")).await,
    )
    .await;
    assert_eq!((operation.records.len(), operation.record_count), (1, 1));
    assert_eq!(operation.usage[0].provider, "expensive");
    assert_eq!(operation.cost_event_ids.len(), 1, "the provider bills it all the same");
    assert!(
        operation.log.iter().any(|line| line.text.contains("one record was charged")),
        "{:?}",
        operation.log
    );
    let show = format!("memhost operation show {}", operation.id);
    assert!(operation.error.unwrap().message.contains(&show));
    // Records that are written as they are need an approval in the queue.
    let operation = failed_after_the_answer(
        &host,
        host.service().operations().upsert(&caller(), upsert("acme", &["a fact"])).await,
    )
    .await;
    assert_eq!(operation.records.len(), 1);
    faults.repair();
    host.service().operations().capture(&caller(), capture("acme", "paid 3")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_cannot_be_judged_return_nothing() {
    let (host, api, faults) = host(&json!({})).await;
    let captured = host
        .service()
        .operations()
        .capture(&caller(), capture("acme", "a plain fact"))
        .await
        .unwrap();
    host.service()
        .operations()
        .capture(&caller(), capture("acme", "something else"))
        .await
        .unwrap();
    api.patch(BINDING, &json!({"policy": {"review": {"all": true}}})).await.fine();
    faults.break_table(Table::Reviews);
    let service = host.service();
    let operations = [
        failed_after_the_answer(
            &host,
            service.operations().query(&caller(), query("acme", "fact")).await,
        )
        .await,
        failed_after_the_answer(
            &host,
            service.operations().list(&caller(), list("acme", 10, None)).await,
        )
        .await,
    ];
    assert!(
        operations
            .iter()
            .all(|operation| operation.records.is_empty() && operation.record_count == 0)
    );
    // The failed writes have hidden nothing: the next read of a record queues it, once.
    failed_after_the_answer(
        &host,
        service.operations().get(&caller(), get("acme", &captured.records[0])).await,
    )
    .await;
    faults.repair();
    let reads = (0..8).map(|_| {
        let (service, request) = (Arc::clone(service), get("acme", &captured.records[0]));
        tokio::spawn(
            async move { service.operations().get(&caller(), request).await.unwrap().record },
        )
    });
    for read in reads.collect::<Vec<_>>() {
        assert!(read.await.unwrap().is_none());
    }
    let queue = api.get("/control/v1/companies/acme/reviews").await;
    let queued: Vec<&str> = queue["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["text"].as_str())
        .collect();
    assert_eq!(queued, ["a plain fact"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_spent_must_be_known_before_the_provider_is_called() {
    let (host, _, faults) = host(&json!({})).await;
    faults.break_table(Table::Sums);
    let answer = host.service().operations().capture(&caller(), capture("acme", "paid 3")).await;
    let ServiceError::Operation { operation_id, outcome, error } = answer.unwrap_err() else {
        panic!("it is no operation's error");
    };
    assert_eq!((outcome, error.code), (Outcome::Refused, OperationErrorCode::Host));
    let refused = host.service().control().operation(&parse("acme"), operation_id).await.unwrap();
    assert!(
        refused.usage.is_empty() && refused.provider_us.is_none(),
        "the provider was not called"
    );
    faults.repair();
    let charged =
        host.service().operations().capture(&caller(), capture("acme", "paid 3")).await.unwrap();
    let charged =
        host.service().control().operation(&parse("acme"), charged.operation_id).await.unwrap();
    assert_eq!(charged.cost_event_ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_cannot_be_registered_are_named() {
    let (host, _, faults) = host(&json!({})).await;
    faults.break_table(Table::JobIndex);
    let operation = failed_after_the_answer(
        &host,
        host.service().operations().capture(&caller(), capture("acme", "job x")).await,
    )
    .await;
    assert_eq!(operation.jobs.len(), 1);
    let operation = failed_after_the_answer(
        &host,
        host.service().operations().upsert(&caller(), upsert("acme", &["a fact"])).await,
    )
    .await;
    assert_eq!(operation.records.len(), 1, "the provider was asked for its jobs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_tried_again_as_the_same_capture() {
    let (host, api, faults) = host(&json!({})).await;
    faults.break_table(Table::JobIndex);
    let event = json!({
        "hookKind": "post_run_capture", "hookId": "run-1", "triggeredAt": "2026-10-17T10:00:00Z",
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "runId": "run-1"},
        "payload": {"text": "job x"},
    });
    let answer = api.post("/runtime/v1/companies/acme/hooks", &event).await.fine();
    let path = format!(
        "/control/v1/companies/acme/deliveries/{}",
        answer["deliveries"][0]["id"].as_str().unwrap()
    );
    let failing = api.until(&path, |delivery| delivery["attempts"].as_u64() > Some(1)).await;
    assert_eq!(
        (&failing["status"], &failing["error"]["code"]),
        (&json!("pending"), &json!("host")),
        "{failing}"
    );
    faults.repair();
    api.until(&path, |delivery| delivery["status"] == "delivered").await;
    let calls = calls(&host).await;
    let (most, all) = calls.split_once(' ').unwrap();
    assert_eq!(most, all, "the provider was told one id");
    let jobs = api.get("/control/v1/companies/acme/jobs").await;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_done_is_not_run_again() {
    let (host, api, faults) = host(&json!({"review": {"all": true}})).await;
    faults.break_table(Table::Reviews);
    host.service().operations().capture(&caller(), capture("acme", "job x")).await.unwrap();
    let failed = "/control/v1/companies/acme/operations?kind=extraction&outcome=failed";
    let failed = api.until(failed, |found| found["items"][0]["error"].is_object()).await;
    let first = failed["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&first["error"]["code"], first["records"].as_array().unwrap().len()),
        (&json!("host"), 1),
        "{first}"
    );
    faults.repair();
    let jobs = "/control/v1/companies/acme/jobs";
    let jobs = api.until(jobs, |found| found["items"][0]["status"] == "succeeded").await;
    let job = &jobs["items"][0];
    assert_eq!(
        (job["attempts"].as_u64(), job["records"].as_array().unwrap().len()),
        (Some(1), 1),
        "{job}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_intent_the_provider_is_not_called() {
    let (host, _, faults) = host(&json!({})).await;
    faults.break_intents(1);
    let error = host
        .service()
        .operations()
        .capture(&caller(), capture("acme", "a plain fact"))
        .await
        .unwrap_err();
    assert!(matches!(error, ServiceError::Audit(_)), "{error}");
    let operation = &host.operations("acme").await.unwrap()[0];
    let message = operation.error.as_ref().unwrap().message.as_str();
    assert_eq!(operation.outcome, Outcome::Refused);
    assert!(
        message.starts_with("the operation could not be recorded, so nothing was changed"),
        "{message}"
    );
    assert_eq!(calls(&host).await, "0 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_is_tried_twice_and_never_becomes_an_interruption() {
    let (host, _, faults) = host(&json!({})).await;
    faults.break_completions(1);
    host.service().operations().capture(&caller(), capture("acme", "a plain fact")).await.unwrap();
    assert_eq!(host.operations("acme").await.unwrap()[0].outcome, Outcome::Succeeded);
    faults.break_completions(2);
    let error = host
        .service()
        .operations()
        .capture(&caller(), capture("acme", "another fact"))
        .await
        .unwrap_err();
    let ServiceError::Unrecorded { operation_id, .. } = error else { panic!("{error}") };
    let left = host.service().control().operation(&parse("acme"), operation_id).await.unwrap();
    assert_eq!(left.outcome, Outcome::InProgress, "only a restart makes it interrupted");
}
