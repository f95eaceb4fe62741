//! The provider `taxonomy` through the real host, as a component.

use std::time::Duration;

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const JOBS: &str = "/control/v1/companies/acme/jobs";

async fn ready(config: Value) -> (TestHost, Api) {
    let host = TestHost::with(&["taxonomy"], |options| {
        options.retry.first = Duration::from_millis(10);
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    let body = json!({
        "key": "memory", "providerKey": "taxonomy", "grants": {"storageBytes": 256 << 20},
        "config": config, "default": true,
    });
    api.post("/control/v1/companies/acme/bindings", &body).await.fine();
    (host, api)
}

/// Captures a text and waits until its job has ended.
async fn learn(api: &Api, text: &str) -> Value {
    let captured = api.capture("acme", text).await.fine();
    assert_eq!(captured["jobs"].as_array().unwrap().len(), 1, "{captured}");
    assert!(
        captured["records"].as_array().unwrap().is_empty(),
        "nothing is read before the job runs: {captured}"
    );
    let job = api.get(JOBS).await["items"][0]["id"].as_str().unwrap().to_owned();
    let ended = |job: &Value| {
        ["succeeded", "failed", "cancelled"].contains(&job["status"].as_str().unwrap())
    };
    api.until(&format!("{JOBS}/{job}"), ended).await
}

async fn records(api: &Api) -> Vec<Value> {
    let request = json!({"scope": {"companyId": "acme"}});
    let page = api.post("/runtime/v1/companies/acme/list", &request).await.fine();
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_becomes_items_in_the_background() {
    let (_host, api) = ready(json!({})).await;
    let job = learn(&api, "I prefer concise answers. We chose SQLite over Postgres. Thanks!").await;
    assert_eq!((&job["status"], &job["recordCount"]), (&json!("succeeded"), &json!(2)), "{job}");
    assert_eq!(api.query("acme", "which answers").await, ["I prefer concise answers."]);
    let all = records(&api).await;
    let decision = all.iter().find(|item| item["metadata"]["kind"] == "decision").unwrap();
    assert_eq!(decision["metadata"]["rule"], "decision.chose");
    assert_eq!(decision["metadata"]["evidence"], "We chose SQLite over Postgres.");
    assert_eq!(decision["source"]["runId"], "r1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_items_are_not_returned() {
    let (_host, api) = ready(json!({})).await;
    learn(&api, "Maybe I prefer tea. I prefer mail to jerry@mit.edu.").await;
    assert!(api.query("acme", "tea mail prefer").await.is_empty());
    assert!(records(&api).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_data_is_redacted_if_configured() {
    let (_host, api) = ready(json!({"pii": "redact"})).await;
    learn(&api, "I prefer mail to jerry@mit.edu.").await;
    assert_eq!(api.query("acme", "mail").await, ["I prefer mail to [EMAIL]."]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_configuration_and_what_is_not_memory_are_refused() {
    let (_host, api) = ready(json!({})).await;
    let body = json!({
        "key": "other", "providerKey": "taxonomy", "grants": {"storageBytes": 1 << 20},
        "config": {"thresholds": {"todo": 2}},
    });
    let refused = api.post("/control/v1/companies/acme/bindings", &body).await;
    assert!(
        (400..500).contains(&refused.status) && refused.text.contains("todo"),
        "{}",
        refused.text
    );
    let record = json!({"text": "x", "metadata": {"kind": "embedding"}});
    let body = json!({"scope": {"companyId": "acme"}, "records": [record]});
    let refused = api.post("/runtime/v1/companies/acme/records", &body).await;
    assert!(refused.text.contains("memory_embeddings"), "{} {}", refused.status, refused.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_loses_nothing() {
    let (mut host, api) = ready(json!({})).await;
    learn(&api, "Always cite sources.").await;
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.query("acme", "cite").await, ["Always cite sources."]);
}
