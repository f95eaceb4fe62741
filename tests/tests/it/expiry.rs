//! What has expired: it is in no answer from its time on, with every provider that ships, across a
//! restart, and it is still found by whoever forgets it. The host has its provider forget it.

use std::sync::Arc;

use jiff::SignedDuration;
use memhost_server::Method;
use memhost_tests::TestHost;
use memhost_tests::clock::TestClock;
use serde_json::{Value, json};

use super::by_scope::{forget, of};
use super::support::Api;
use super::whose::{PROVIDERS, ask, bind, written};

async fn host(provider: &str) -> (TestHost, Api, Arc<TestClock>) {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock) as _;
    let guests = ["cross-agent", "facts", "taxonomy", "extracts", "complete"];
    let host = TestHost::with(&guests, |options| options.clock = shared).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "memory", provider, &json!({})).await;
    (host, api, clock)
}

/// Two records, of which one expires in an hour; the answer is its handle.
async fn write(api: &Api, clock: &TestClock, scope: Value) -> Value {
    written(api, "acme", "The launch is in May", &of(&scope)).await;
    let at = memhost_ports::Clock::now(clock) + SignedDuration::from_hours(1);
    let records = json!([{
        "text": "The launch party is at the pier", "expiresAt": at.to_string(),
        "metadata": {"kind": "fact", "confidence": 0.99},
    }]);
    let mut body = of(&scope);
    body["records"] = records;
    let answer = api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    answer["records"][0].clone()
}

/// What each surface answers of the record with a handle: a query with and without a filter, the
/// list, and the record itself.
async fn seen(api: &Api, handle: &Value) -> Vec<&'static str> {
    let mut seen = Vec::new();
    let has = |page: &Value, list: &str| {
        page[list].as_array().unwrap().iter().any(|one| one["handle"] == *handle)
    };
    for (name, filter) in [("query", json!({})), ("filtered", json!({"text": "launch"}))] {
        let body = json!({"query": "launch party pier", "topK": 10, "filter": filter});
        if has(&ask(api, "acme", "query", body).await.fine(), "snippets") {
            seen.push(name);
        }
    }
    if has(&ask(api, "acme", "list", json!({"limit": 100})).await.fine(), "items") {
        seen.push("list");
    }
    if !ask(api, "acme", "get", json!({"handle": handle})).await.fine()["record"].is_null() {
        seen.push("get");
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_is_in_no_answer_and_is_forgotten_by_its_provider() {
    for provider in PROVIDERS {
        let (mut host, mut api, clock) = host(provider).await;
        let handle = write(&api, &clock, json!({})).await;
        assert_eq!(seen(&api, &handle).await, ["query", "filtered", "list", "get"], "{provider}");
        clock.advance(SignedDuration::from_hours(2));
        assert_eq!(seen(&api, &handle).await, [""; 0], "{provider}");
        drop(api);
        host.stop().await;
        host.start().await.unwrap();
        api = Api::new(&host);
        assert_eq!(seen(&api, &handle).await, [""; 0], "{provider} after a restart");
        let kept = ask(&api, "acme", "list", json!({"limit": 100})).await.fine();
        assert_eq!(kept["items"].as_array().unwrap().len(), 1, "{provider}: the other stays");
        host.service().operations().forget_expired(&|| true).await;
        let operations = host.operations("acme").await.unwrap();
        let forgetting = operations.iter().find(|one| one.kind.to_string() == "forget").unwrap();
        assert_eq!(forgetting.record_count, 1, "{provider}: {forgetting:?}");
        // The clock is set back: the provider does not have it any more.
        clock.advance(SignedDuration::from_hours(-2));
        assert_eq!(seen(&api, &handle).await, [""; 0], "{provider} has forgotten it");
        let count = host.operations("acme").await.unwrap().len();
        host.service().operations().forget_expired(&|| true).await;
        assert_eq!(host.operations("acme").await.unwrap().len(), count, "once is enough");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_forgets_a_source_or_a_scope_finds_what_has_expired() {
    for provider in PROVIDERS {
        let (host, api, clock) = host(provider).await;
        let handle = write(&api, &clock, json!({"projectId": "p1"})).await;
        clock.advance(SignedDuration::from_hours(2));
        // The regular removal of what is old.
        let kept = json!({"operationsMaxAgeDays": 30});
        api.put("/control/v1/companies/acme/retention", &kept).await.fine();
        let answer = forget(&api, json!({"projectId": "p1"})).await.fine();
        assert_eq!(answer["bindings"][0]["forgotten"], 2, "{provider}: {answer}");
        clock.advance(SignedDuration::from_hours(-2));
        assert_eq!(seen(&api, &handle).await, [""; 0], "{provider}");
        drop(host);
    }
}

/// Also in the lines of a provider's own, which the host cannot read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_expired_is_in_no_export() {
    for provider in PROVIDERS {
        let (_host, api, clock) = host(provider).await;
        write(&api, &clock, json!({})).await;
        clock.advance(SignedDuration::from_hours(2));
        let path = "/control/v1/companies/acme/export";
        let company = api.send(Method::Get, path, None, &[]).await.text;
        assert!(company.contains("in May") && !company.contains("pier"), "{provider}: {company}");
        let binding = ask(&api, "acme", "export", json!({})).await;
        assert!(!binding.text.contains("pier"), "{provider}: {}", binding.text);
    }
}
