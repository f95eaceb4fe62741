//! Extraction jobs: run, asked about, tried again, cancelled, queued again.

use std::sync::Arc;
use std::time::Duration;

use memhost_tests::faults::Faults;
use memhost_tests::{TestHost, caller, eventually, parse, query};
use memhost_types::QueryRequest;
use serde_json::{Value, json};

use super::mcp_http::{self, Client};
use super::support::{Api, bind, extracting, extracting_with};

const JOBS: &str = "/control/v1/companies/acme/jobs";

/// Captures what leaves a job, and answers the job's address.
async fn left(api: &Api, text: &str) -> String {
    let captured = api.capture("acme", text).await.fine();
    assert_eq!(captured["jobs"].as_array().unwrap().len(), 1, "{captured}");
    let jobs = api.get(JOBS).await;
    let job = &jobs["items"][0];
    assert_eq!(job["operationId"], captured["operationId"]);
    format!("{JOBS}/{}", job["id"].as_str().unwrap())
}

async fn ended(api: &Api, path: &str) -> Value {
    api.until(path, |job| {
        ["succeeded", "failed", "cancelled"].contains(&job["status"].as_str().unwrap())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_run_to_its_end_and_every_call_is_an_operation() {
    let (_host, api) = extracting().await;
    let path = left(&api, "job slices 3").await;
    let job = ended(&api, &path).await;
    assert_eq!((&job["status"], job["attempts"].as_u64()), (&json!("succeeded"), Some(3)), "{job}");
    assert_eq!(job["recordCount"], 1);
    for field in ["submittedAt", "startedAt", "heartbeatAt", "finishedAt"] {
        assert!(job[field].is_string(), "{field} of {job}");
    }
    assert!(job.get("leaseUntil").is_none() && job.get("dueAt").is_none());
    assert_eq!(api.query("acme", "slices").await, ["job slices 3"]);
    let operations = api.get("/control/v1/companies/acme/operations?kind=extraction").await;
    let operations = operations["items"].as_array().unwrap();
    assert_eq!(operations.len(), 3);
    assert_eq!(operations[0]["id"], job["lastOperationId"]);
    assert_eq!(operations[0]["source"]["runId"], "r1", "the source of the capture");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_are_tried_again_and_end() {
    let (_host, api) = extracting().await;
    let path = left(&api, "job unavailable 2").await;
    let job = ended(&api, &path).await;
    assert_eq!((&job["status"], job["attempts"].as_u64()), (&json!("succeeded"), Some(3)), "{job}");
    let path = left(&api, "job unavailable 99").await;
    let job = ended(&api, &path).await;
    assert_eq!((&job["status"], job["failures"].as_u64()), (&json!("failed"), Some(5)), "{job}");
    assert!(job["error"].as_str().unwrap().contains("the model rests"));
    // The provider says that it is hopeless: nobody tries again by himself.
    let path = left(&api, "job fails").await;
    let job = ended(&api, &path).await;
    assert_eq!((&job["status"], job["attempts"].as_u64()), (&json!("failed"), Some(1)), "{job}");
    assert_eq!(job["error"], "the material makes no sense");
    let retried = api.post(&format!("{path}/retry"), &json!({})).await.fine();
    assert_eq!(retried["status"], "queued");
    assert_eq!(ended(&api, &path).await["attempts"].as_u64(), Some(2));
    let failed = api.get(&format!("{JOBS}?status=failed&bindingKey=extracts&sourceKind=run")).await;
    assert_eq!(failed["items"].as_array().unwrap().len(), 2);
    let page = api.get(&format!("{JOBS}?limit=1")).await;
    let next =
        api.get(&format!("{JOBS}?limit=1&cursor={}", page["nextCursor"].as_str().unwrap())).await;
    assert_ne!(page["items"][0]["id"], next["items"][0]["id"]);
    let report = api.get("/control/v1/companies/acme/evaluation").await;
    assert!(report["total"]["extractionFailures"].as_u64().unwrap() >= 7, "{report}");
}

/// Only a capture's answer has room for jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_another_write_left_is_found_and_run_once() {
    let (_host, api) = extracting().await;
    let write = |text: &str| json!({"scope": {"companyId": "acme"}, "records": [{"text": text}]});
    let path = "/runtime/v1/companies/acme/records";
    let written = api.post(path, &write("job later")).await.fine();
    let jobs = api.until(JOBS, |jobs| jobs["items"][0]["status"] == "succeeded").await;
    assert_eq!(jobs["items"].as_array().unwrap().len(), 1, "{jobs}");
    assert_eq!(jobs["items"][0]["operationId"], written["operationId"]);
    let operations = api.get("/control/v1/companies/acme/operations?kind=record_upsert").await;
    assert_eq!(
        operations["items"][0]["jobs"].as_array().unwrap().len(),
        1,
        "the write's record says what it left"
    );
    api.post(path, &write("no job")).await.fine();
    assert_eq!(
        api.get(JOBS).await["items"].as_array().unwrap().len(),
        1,
        "what has ended is not begun again"
    );
    let operations = api.get("/control/v1/companies/acme/operations?kind=record_upsert").await;
    assert!(operations["items"][0].get("jobs").is_none(), "{operations}");
}

/// A page of a provider's list has 64 jobs; the host reads on until it has all that have not ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_that_a_write_left_is_found_however_many_there_are() {
    const COUNT: usize = 130;
    let (_host, api) = extracting().await;
    let records: Vec<Value> =
        (0..COUNT).map(|n| json!({"text": format!("job later {n}")})).collect();
    let body = json!({"scope": {"companyId": "acme"}, "records": records});
    api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    let jobs = api.get(&format!("{JOBS}?limit=1000")).await;
    assert_eq!(jobs["items"].as_array().unwrap().len(), COUNT);
    let all_done = |page: &Value| page["items"].as_array().unwrap().len() == COUNT;
    let done = api.until(&format!("{JOBS}?limit=1000&status=succeeded"), all_done).await;
    let names =
        done["items"].as_array().unwrap().iter().map(|job| job["providerJobId"].as_str().unwrap());
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), COUNT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_job_is_retried_where_its_provider_can_try_it_again() {
    let (_host, api) = extracting().await;
    let state =
        |job: &Value| [&job["status"], &job["isRetryable"], &job["canRetry"]].map(Value::clone);
    let path = left(&api, "job stumbles 1").await;
    let job = ended(&api, &path).await;
    assert_eq!(state(&job), [json!("failed"), json!(true), json!(true)], "{job}");
    api.post(&format!("{path}/retry"), &json!({})).await.fine();
    let job = ended(&api, &path).await;
    assert_eq!((&job["status"], job["attempts"].as_u64()), (&json!("succeeded"), Some(2)), "{job}");
    assert_eq!(job["recordCount"], 1);
    assert_eq!(api.query("acme", "stumbles").await, ["job stumbles 1"]);
    let path = left(&api, "job hopeless").await;
    let job = ended(&api, &path).await;
    assert_eq!(state(&job), [json!("failed"), json!(false), json!(false)], "{job}");
    let refused = api.post(&format!("{path}/retry"), &json!({})).await;
    assert_eq!(refused.problem(), (409, "job_status"), "{}", refused.text);
    let detail = refused.json["detail"].as_str().unwrap();
    for told in [
        job["id"].as_str().unwrap(),
        "is failed",
        "its provider cannot try it again",
        "capture its material anew",
    ] {
        assert!(detail.contains(told), "{told}: {detail}");
    }
    let done = api.post(&format!("{JOBS}/retry"), &json!({"every": true})).await.fine();
    assert_eq!(done, json!({"changed": 0, "more": false}), "and is no candidate");
    assert_eq!(api.get(&path).await["attempts"], 1);
}

/// `memory.jobs` shows an agent its own jobs, and those of no agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sees_over_mcp_how_far_jobs_are() {
    let (host, address) = mcp_http::host(&["extracts"]).await;
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    let token = async |name: &str| {
        mcp_http::token(&host, "acme", json!({"name": name, "role": "agent", "agentId": name}))
            .await
    };
    let (of_ada, of_bob) = (token("ada").await, token("bob").await);
    let (ada, bob) = (Client::new(address, &of_ada), Client::new(address, &of_bob));
    api.with(&of_ada).capture("acme", "job hopeless").await.fine();
    let failed = api.until(JOBS, |jobs| jobs["items"][0]["status"] == "failed").await;
    let seen = ada.does("memory.jobs", json!({"status": "failed"})).await;
    let job = &seen["jobs"][0];
    assert_eq!(
        (&job["id"], &job["canRetry"]),
        (&failed["items"][0]["id"], &json!(false)),
        "{seen}"
    );
    assert_eq!(
        (&job["status"], &job["error"]),
        (&json!("failed"), &json!("the material makes no sense")),
        "{seen}"
    );
    assert_eq!(ada.does("memory.jobs", json!({"status": "succeeded"})).await["jobs"], json!([]));
    assert_eq!(bob.does("memory.jobs", json!({})).await["jobs"], json!([]), "it is ada's");
    // A job of no agent is retried by an administrator, and every agent sees how it ends.
    api.capture("acme", "job stumbles 1").await.fine();
    api.until(JOBS, |jobs| jobs["items"][0]["status"] == "failed").await;
    let seen = bob.does("memory.jobs", json!({})).await;
    assert_eq!(seen["jobs"][0]["canRetry"], true, "{seen}");
    let path = format!("{JOBS}/{}", seen["jobs"][0]["id"].as_str().unwrap());
    api.post(&format!("{path}/retry"), &json!({})).await.fine();
    api.until(&path, |job| job["status"] == "succeeded").await;
    let seen = bob.does("memory.jobs", json!({})).await;
    assert_eq!(
        (&seen["jobs"][0]["status"], &seen["jobs"][0]["recordCount"]),
        (&json!("succeeded"), &json!(1)),
        "{seen}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_elsewhere_is_asked_about() {
    let (_host, api) = extracting().await;
    let path = left(&api, "elsewhere it is done").await;
    let job = ended(&api, &path).await;
    assert_eq!(
        (&job["status"], &job["runner"]),
        (&json!("succeeded"), &json!("provider")),
        "{job}"
    );
    assert_eq!(job["attempts"], 0, "it was asked about, not run");
    // What it made and used is told with its end, and recorded once.
    assert_eq!(job["recordCount"], 1, "{job}");
    let operations = api.get("/control/v1/companies/acme/operations?kind=extraction").await;
    let operations = operations["items"].as_array().unwrap();
    assert!(operations.len() >= 2, "it was asked while it went on: {operations:?}");
    let used: Vec<&Value> =
        operations.iter().filter_map(|one| one["usage"].as_array()).flatten().collect();
    assert_eq!(used.len(), 1, "{operations:?}");
    let made: Vec<&Value> =
        operations.iter().filter_map(|one| one["records"].as_array()).flatten().collect();
    assert_eq!(made.len(), 1, "{operations:?}");
    assert_eq!(api.query("acme", "elsewhere").await, ["elsewhere it is done"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_of_a_binding_at_a_time_and_a_cancelled_one_stays_so() {
    let (_host, api) = extracting().await;
    let first = left(&api, "job await release").await;
    api.until(&first, |job| job["status"] == "running").await;
    let second = left(&api, "job slices 1").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(api.get(&second).await["status"], "queued", "`concurrentJobs` is 1");
    // While it runs.
    let cancelled = api.post(&format!("{first}/cancel"), &json!({})).await.fine();
    assert_eq!(cancelled["status"], "cancelled");
    api.capture("acme", "release").await.fine();
    assert_eq!(ended(&api, &second).await["status"], "succeeded");
    assert_eq!(api.get(&first).await["status"], "cancelled", "what came back late changes nothing");
    assert_eq!(
        api.post(&format!("{second}/cancel"), &json!({})).await.problem(),
        (409, "job_status")
    );
    assert_eq!(
        api.post(&format!("{second}/retry"), &json!({})).await.problem(),
        (409, "job_status")
    );
    assert_eq!(
        api.post(&format!("{JOBS}/{}/retry", uuid_of_nobody()), &json!({})).await.problem(),
        (404, "no_job")
    );
}

/// A job that was cancelled during a call may be done all the same. The host asks about it before
/// it runs it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_was_done_is_not_run_again() {
    let (_host, api) = extracting().await;
    let path = left(&api, "job await release").await;
    api.until(&path, |job| job["status"] == "running").await;
    api.post(&format!("{path}/cancel"), &json!({})).await.fine();
    // The call still runs. The next one waits until it has ended.
    api.post(&format!("{path}/retry"), &json!({})).await.fine();
    api.capture("acme", "release").await.fine();
    ended(&api, &path).await;
    let counted = api.query("acme", "count successes/").await;
    assert_eq!(counted, ["1 1"]);
}

/// The provider hears of a cancellation before it hears of the retry that came after it, however
/// long it takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_does_not_end_the_retry_after_it() {
    let (_host, api) = extracting().await;
    let path = left(&api, "elsewhere cancel late").await;
    assert_eq!(api.post(&format!("{path}/cancel"), &json!({})).await.fine()["status"], "cancelled");
    assert_eq!(api.post(&format!("{path}/retry"), &json!({})).await.fine()["status"], "queued");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        api.get(&path).await["status"],
        "queued",
        "the provider has not heard of the cancellation"
    );
    api.capture("acme", "late").await.fine();
    let job = ended(&api, &path).await;
    assert_eq!(job["status"], "succeeded", "{job}");
}

fn uuid_of_nobody() -> &'static str {
    "0199f0a0-0000-7000-8000-000000000000"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_of_a_deleted_binding_fails_and_says_why() {
    // It must not end before the binding does.
    let (_host, api) = extracting_with(100_000).await;
    let path = left(&api, "job unavailable 100000").await;
    api.send(
        memhost_server::Method::Delete,
        "/control/v1/companies/acme/bindings/extracts",
        None,
        &[],
    )
    .await
    .fine();
    let job = ended(&api, &path).await;
    assert!(job["error"].as_str().unwrap().contains("was deleted"), "{job}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_waits_for_the_calls_that_run() {
    let (host, api) = extracting().await;
    api.capture("acme", "a fact").await.fine();
    let (company, key) = (parse("acme"), parse("extracts"));
    // Each caller asks again until it is refused, so that some call runs at the moment of the
    // deletion.
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let service = Arc::clone(host.service());
        let request =
            QueryRequest { binding_key: Some(parse("extracts")), ..query("acme", "slowly fact") };
        callers.spawn(async move {
            loop {
                match service.operations().query(&caller(), request.clone()).await {
                    Ok(answer) => assert_eq!(
                        answer.snippets.len(),
                        1,
                        "the storage was removed under the call"
                    ),
                    Err(error) => return error.to_string(),
                }
            }
        });
    }
    let works = async || {
        host.usage("acme", "extracts").await.is_some_and(|usage| usage.calls_in_flight > 0)
    };
    eventually("a call runs", works).await;
    host.service().control().delete_binding(&caller(), &company, &key, None).await.unwrap();
    for refusal in callers.join_all().await {
        assert!(refusal.contains("extracts"), "only the missing binding ends the calls: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_admitted_before_the_deletion_of_its_binding_is_refused() {
    let (faults, wrap) = Faults::new();
    let host =
        TestHost::with(&["extracts"], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    faults.hold_jobs(true);
    let path = left(&api, "job slices 1").await;
    eventually("the job was admitted", async || faults.held() == 1).await;
    // Another revision serves: the job has the instances of the first one.
    let binding = "/control/v1/companies/acme/bindings/extracts";
    api.patch(binding, &json!({"policy": {"onBudget": "queue"}})).await.fine();
    api.query("acme", "x").await;
    api.send(memhost_server::Method::Delete, binding, None, &[]).await.fine();
    faults.hold_jobs(false);
    let job = ended(&api, &path).await;
    assert!(job["error"].as_str().unwrap().contains("was deleted"), "{job}");
}
