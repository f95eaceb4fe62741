//! Forgetting a scope: what waits, what comes late of older material, and what is more than one
//! operation forgets.

use memhost_server::Method;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::by_scope::{FORGET, forget, of};
use super::by_source::{CAPTURE, comment, material, revision, settled, texts};
use super::hooks::{DELIVERIES, HOOKS};
use super::support::{Api, bind, extracting};
use super::whose;

const BINDING: &str = "/control/v1/companies/acme/bindings/extracts";

fn in_run(mut body: Value, run: &str) -> Value {
    body["scope"]["runId"] = json!(run);
    body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_makes_for_a_forgotten_scope_is_forgotten_when_it_arrives() {
    let (_host, api) = extracting().await;
    for (id, run) in [("c1", "r1"), ("c2", "r2")] {
        api.post(CAPTURE, &in_run(material(&comment(id), "job await go"), run)).await.fine();
    }
    let gone = forget(&api, json!({"runId": "r1"})).await.fine();
    assert_eq!(gone["bindings"][0]["forgotten"], 0, "nothing was there yet: {gone}");
    // What is captured for the scope after that is kept.
    api.post(CAPTURE, &in_run(material(&comment("c3"), "go"), "r1")).await.fine();
    eventually("both jobs end", async || {
        let jobs = api.get("/control/v1/companies/acme/jobs?status=succeeded").await;
        jobs["items"].as_array().unwrap().len() == 2
    })
    .await;
    assert_eq!(texts(&api, "extracts").await, ["go", "job await go"]);
    let filter = json!({"scope": {"companyId": "acme"}, "filter": {"runId": "r2"}});
    let left = api.post("/runtime/v1/companies/acme/list", &filter).await.fine();
    assert_eq!(left["items"].as_array().unwrap().len(), 1, "that of the other run stays: {left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_to_be_captured_for_a_scope_is_given_up() {
    let (_host, api) = extracting().await;
    let enable =
        async |enabled: bool| drop(api.patch(BINDING, &json!({"enabled": enabled})).await.fine());
    enable(false).await;
    for run in ["r1", "r2"] {
        let mut event = in_run(revision(run, &comment(run), &format!("said in {run}")), run);
        event["bindingKey"] = json!("extracts");
        let receipt = api.post(HOOKS, &event).await.fine();
        assert_eq!(receipt["deliveries"][0]["status"], "pending", "{receipt}");
    }
    let gone = forget(&api, json!({"runId": "r1"})).await.fine();
    assert_eq!(
        (gone["discarded"].as_array().unwrap().len(), &gone["isComplete"]),
        (1, &json!(false)),
        "{gone}"
    );
    assert!(!api.get(DELIVERIES).await.to_string().contains("said in r1"), "its material stays");
    enable(true).await;
    settled(&api).await;
    assert_eq!(texts(&api, "extracts").await, ["said in r2"]);
    assert_eq!(forget(&api, json!({"runId": "r1"})).await.fine()["isComplete"], true);
}

/// An agent gives up what waits for its own scope, also what waits for a person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_a_person_goes_with_its_scope() {
    let (_host, api) = extracting().await;
    api.patch(BINDING, &json!({"policy": {"pii": "hold"}})).await.fine();
    let (ada, carol) = (api.agent("ada").await, api.agent("carol").await);
    for (agent, name) in [(&ada, "ada"), (&carol, "carol")] {
        let text = format!("write to {name}@mail.example");
        agent.post(CAPTURE, &material(&comment(name), &text)).await.fine();
    }
    let gone = forget(&ada, json!({"agentId": "ada"})).await.fine();
    assert_eq!(
        (gone["discarded"].as_array().unwrap().len(), &gone["isComplete"]),
        (1, &json!(true)),
        "{gone}"
    );
    for path in ["deliveries", "reviews", "operations", "activity"] {
        let left = api.get(&format!("/control/v1/companies/acme/{path}")).await.to_string();
        assert!(!left.contains("ada@mail"), "{path}: {left}");
    }
    let waiting = api.get("/control/v1/companies/acme/reviews?status=pending").await;
    assert_eq!(waiting["items"].as_array().unwrap().len(), 1, "{waiting}");
    assert!(waiting.to_string().contains("carol@mail"), "{waiting}");
}

/// A change that waits for a person is its author's. The record that it would change is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_waits_goes_with_the_scope_of_its_author() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    whose::bind(&api, "acme", "memory", "local-markdown", &json!({"review": {"all": true}})).await;
    let handle = whose::written(&api, "acme", "the valve opens at noon", &json!({})).await;
    let ada = api.agent("ada").await;
    let patch = json!({"record": {"text": "it never opens"}});
    let body = json!({"scope": {"companyId": "acme"}, "handle": handle, "patch": patch});
    ada.post("/runtime/v1/companies/acme/correct", &body).await.fine();
    let reviews = "/control/v1/companies/acme/reviews";
    assert!(api.get(reviews).await.to_string().contains("it never opens"), "it waits");
    forget(&ada, json!({"agentId": "ada"})).await.fine();
    assert!(!api.get(reviews).await.to_string().contains("it never opens"), "its text stays");
    let waiting = api.get(&format!("{reviews}?status=pending")).await;
    assert!(waiting["items"].as_array().unwrap().is_empty(), "{waiting}");
    assert_eq!(texts(&api, "memory").await, ["the valve opens at noon"]);
}

/// The log keeps no text of a scope that was forgotten, also where no record was made of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_keeps_no_text_of_a_forgotten_scope() {
    let (_host, api) = extracting().await;
    bind(&api, "acme", "second", &json!({"retention": {"snapshots": "full"}})).await;
    for run in ["r1", "r2"] {
        let mut body = in_run(material(&comment(run), "metered 1"), run);
        body["bindingKey"] = json!("second");
        api.post(CAPTURE, &body).await.fine();
    }
    let log = "/control/v1/companies/acme/operations?bindingKey=second&kind=capture";
    let texts = async || api.get(log).await.to_string().matches("metered 1").count();
    let before = texts().await;
    assert!(before >= 2, "the test looks where the text is");
    forget(&api, json!({"runId": "r1"})).await.fine();
    assert_eq!(2 * texts().await, before);
}

/// One operation forgets at most 1,000 records. What a provider only hides stays, and is not asked
/// for a second time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_records_of_a_scope_than_one_operation_forgets() {
    let (_host, api) = extracting().await;
    for (run, word) in [("r1", "plain"), ("r2", "indelible")] {
        for count in [1_000, 1] {
            let records: Vec<Value> =
                (0..count).map(|number| json!({"text": format!("{word} {number}")})).collect();
            let body = json!({"scope": {"companyId": "acme", "runId": run}, "records": records});
            api.post("/runtime/v1/companies/acme/records", &body).await.fine();
        }
        let gone = forget(&api, json!({"runId": run})).await.fine();
        let at = &gone["bindings"][0];
        let counts = ["forgotten", "hidden"].map(|name| at[name].as_u64().unwrap());
        assert_eq!(counts, if word == "plain" { [1_001, 0] } else { [0, 1_001] }, "{gone}");
        assert_eq!(
            (at["operationIds"].as_array().unwrap().len(), &gone["isComplete"]),
            (2, &json!(true)),
            "{gone}"
        );
    }
}

/// Records of an import wait until somebody has decided about its grants, and their provider has
/// nothing until then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_of_an_import_goes_with_its_scope() {
    let (_host, api) = extracting().await;
    for run in ["r1", "r2"] {
        api.post(CAPTURE, &in_run(material(&comment(run), &format!("said in {run}")), run))
            .await
            .fine();
    }
    let export = api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
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
    assert_eq!(done["waiting"], 2, "{done}");
    let gone = there.post(FORGET, &of(&json!({"runId": "r1"}))).await.fine();
    assert_eq!(
        (&gone["bindings"][0]["forgotten"], &gone["isComplete"]),
        (&json!(1), &json!(true)),
        "{gone}"
    );
    let left = there.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    assert!(!left.contains("said in r1") && left.contains("said in r2"), "{left}");
    there.put(&format!("{BINDING}/grants"), &json!({"storageBytes": 64 << 20})).await.fine();
    eventually("the other one is with its provider", async || {
        texts(&there, "extracts").await == ["said in r2"]
    })
    .await;
}
