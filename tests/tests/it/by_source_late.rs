//! Forgetting by source what comes late, what comes with an import, and what is more than one
//! operation forgets.

use std::sync::Arc;

use jiff::SignedDuration;
use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::by_source::{
    CAPTURE, FORGET, comment, document, material, of, revision, settled, texts,
};
use super::hooks::{DELIVERIES, HOOKS};
use super::support::{Api, bind, extracting};

const RECORDS: &str = "/runtime/v1/companies/acme/records";
const BINDING: &str = "/control/v1/companies/acme/bindings/extracts";

/// The delivery of an event.
async fn delivery(api: &Api, id: &str) -> Value {
    let all = api.get(&format!("{DELIVERIES}?limit=1000")).await;
    all["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["hook"]["hookId"] == id)
        .expect("it is there")
        .clone()
}

/// A host with a clock of the test and a disabled binding: deliveries to it stay pending.
async fn disabled() -> (Arc<TestClock>, TestHost, Api) {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock);
    let host = TestHost::with(&["extracts"], |options| options.clock = shared).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "extracts", &json!({})).await;
    api.patch(BINDING, &json!({"enabled": false})).await.fine();
    (clock, host, api)
}

/// A revision that waits while a newer one is captured is given up: the provider is not asked to
/// capture it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revision_that_a_newer_one_overtakes_is_never_captured() {
    let (_host, api) = extracting().await;
    // As many as are tried at a time at one binding. One of them is, and the others wait for it.
    for number in 0..8 {
        let slow = revision(&format!("slow-{number}"), &document("slow"), "metered 1 after go");
        assert_eq!(api.post(HOOKS, &slow).await.fine()["deliveries"][0]["status"], "pending");
    }
    api.post(HOOKS, &revision("old", &document("i1"), "an old word")).await.fine();
    let mut newer = material(&document("i1"), "a newer word");
    newer["replacesSource"] = json!(true);
    api.post(CAPTURE, &newer).await.fine();
    assert_eq!(delivery(&api, "old").await["status"], "pending");
    api.post(CAPTURE, &material(&comment("c1"), "go")).await.fine();
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["a newer word", "go"]);
    let old = delivery(&api, "old").await;
    assert_eq!(old["status"], "discarded", "{old}");
    assert!(!old.to_string().contains("an old word"), "its material stays: {old}");
}

/// A delivery that comes after the request is not part of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_the_request_is_not_given_up() {
    let (clock, _host, api) = disabled().await;
    clock.advance(SignedDuration::from_hours(1));
    let mut event = revision("r", &comment("c1"), "said later");
    event["bindingKey"] = json!("extracts");
    api.post(HOOKS, &event).await.fine();
    clock.advance(SignedDuration::from_hours(-1));
    let earlier = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
    assert!(earlier.get("discarded").is_none(), "{earlier}");
    assert_eq!(delivery(&api, "r").await["status"], "pending");
    clock.advance(SignedDuration::from_hours(1));
    let later = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
    assert_eq!(later["discarded"].as_array().unwrap().len(), 1, "{later}");
}

/// Deliveries that are tried while their source is forgotten are given up all the same: the request
/// does not fail because an attempt has changed one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_that_are_tried_meanwhile_are_given_up() {
    let (clock, _host, api) = disabled().await;
    for round in 0..5 {
        for number in 0..40 {
            let mut event = revision(&format!("r{round}-{number}"), &comment("c1"), "said");
            event["bindingKey"] = json!("extracts");
            api.post(HOOKS, &event).await.fine();
        }
        // All are due now, and are postponed one after another.
        clock.advance(SignedDuration::from_hours(1));
        let gone = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
        assert_eq!(gone["discarded"].as_array().unwrap().len(), 40, "{gone}");
    }
}

/// One operation forgets at most 1,000 records. What a provider only hides stays, and is not asked
/// for a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_records_than_one_operation_forgets_are_forgotten_or_hidden_once_each() {
    let (_host, api) = extracting().await;
    for (source, word) in [("c1", "plain"), ("c2", "indelible")] {
        for count in [1_000, 1] {
            let records: Vec<Value> =
                (0..count).map(|number| json!({"text": format!("{word} {number}")})).collect();
            let body = json!({
                "scope": {"companyId": "acme"}, "source": comment(source), "records": records,
            });
            api.post(RECORDS, &body).await.fine();
        }
        let gone = api.post(FORGET, &of(&json!([{"commentId": source}]))).await.fine();
        let at = &gone["bindings"][0];
        let counts = ["forgotten", "hidden"].map(|name| at[name].as_u64().unwrap());
        assert_eq!(counts, if word == "plain" { [1_001, 0] } else { [0, 1_001] }, "{gone}");
        assert_eq!(
            (at["operationIds"].as_array().unwrap().len(), &gone["isComplete"]),
            (2, &json!(true)),
            "{gone}"
        );
    }
    // A replacement asks once, too.
    let mut newer = material(&comment("c2"), "newer");
    newer["replacesSource"] = json!(true);
    api.post(CAPTURE, &newer).await.fine();
    assert!(api.query("acme", "newer").await.contains(&"newer".to_owned()));
}

/// Records of an import wait until somebody has decided about its grants: at a provider that has
/// nothing until then, and at one that serves with less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_of_an_import_goes_with_its_source() {
    for (key, provider) in [("extracts", "extracts"), ("default", "local-markdown")] {
        let (_host, api) = extracting().await;
        let grants = json!({"storageBytes": 64 << 20, "directoryBytes": 64 << 20});
        if key == "default" {
            let body =
                json!({"key": key, "providerKey": provider, "grants": grants, "default": true});
            api.post("/control/v1/companies/acme/bindings", &body).await.fine();
            api.send(Method::Delete, BINDING, None, &[]).await.fine();
        }
        for id in ["c1", "c2"] {
            api.post(CAPTURE, &material(&comment(id), &format!("said in {id}"))).await.fine();
        }
        let export =
            api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
        let more = export.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line["table"] == "bindings" {
                line["value"]["grants"]["http"] = json!([{"origin": "https://vendor.example.com"}]);
            }
            format!("{line}\n")
        });
        let host = TestHost::new(&["extracts"]).await.unwrap();
        let there = Api::new(&host);
        let path = "/control/v1/companies/acme/import?scope=company";
        let done = there.send(Method::Post, path, Some(more.collect()), &[]).await.fine();
        assert_eq!((&done["waiting"], &done["requested"]), (&json!(2), &json!([key])), "{done}");
        // Only for the whole company, also here.
        let confined = json!({
            "scope": {"companyId": "acme", "agentId": "ada"}, "sources": [{"commentId": "c1"}],
        });
        assert_eq!(there.post(FORGET, &confined).await.status, 400, "{provider}");
        let gone = there.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
        assert_eq!(
            (&gone["bindings"][0]["forgotten"], &gone["isComplete"]),
            (&json!(1), &json!(true)),
            "{gone}"
        );
        let left =
            there.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
        assert!(!left.contains("said in c1") && left.contains("said in c2"), "{provider}: {left}");
        there
            .put(&format!("/control/v1/companies/acme/bindings/{key}/grants"), &grants)
            .await
            .fine();
        eventually("the other one is with its provider", async || {
            there.query("acme", "said").await.iter().any(|text| text == "said in c2")
        })
        .await;
        assert_eq!(texts(&there, key).await, ["said in c2"], "{provider}");
    }
}
