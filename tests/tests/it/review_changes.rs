//! Changes of records that are there, where the policy holds them: the record stays as it is until
//! a person approves the change, and a rejection takes nothing away. Whoever writes is told what
//! waits.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::{agent, listening};
use super::support::{Answer, Api};

const PROVIDERS: [&str; 4] = ["local-markdown", "cross-agent", "facts", "taxonomy"];
const GOOD: &str = "The valve opens at noon";

async fn holding(provider: &str) -> (TestHost, Api) {
    let host = TestHost::new(&["cross-agent", "facts", "taxonomy"]).await.unwrap();
    let api = Api::new(&host);
    let review = json!({"review": {"all": true}, "retention": {"snapshots": "full"}});
    let mut body =
        json!({"key": "memory", "providerKey": provider, "policy": review, "default": true});
    if provider != "local-markdown" {
        body["grants"] = json!({"storageBytes": 64 << 20, "clock": true});
    }
    api.post("/control/v1/companies/acme/bindings", &body).await.fine();
    (host, api)
}

async fn write(api: &Api, id: Option<&Value>, text: &str) -> Value {
    let mut record = json!({"text": text, "metadata": {"kind": "fact", "confidence": 0.99}});
    if let Some(id) = id {
        record["id"] = id.clone();
    }
    let body = json!({"scope": {"companyId": "acme"}, "records": [record]});
    api.post("/runtime/v1/companies/acme/records", &body).await.fine()
}

async fn correct(api: &Api, handle: &Value, text: &str) -> Value {
    let body = json!({
        "scope": {"companyId": "acme"}, "handle": handle, "patch": {"record": {"text": text}},
    });
    api.post("/runtime/v1/companies/acme/correct", &body).await.fine()
}

async fn decide(api: &Api, answer: &Value, decision: &str) -> Answer {
    let id = answer["inReview"][0]["reviewId"]
        .as_str()
        .unwrap_or_else(|| panic!("nothing waits: {answer}"));
    let path = format!("/control/v1/companies/acme/reviews/{id}/decision");
    api.post(&path, &json!({"decision": decision})).await
}

async fn shown(api: &Api) -> Vec<String> {
    let body = json!({"scope": {"companyId": "acme"}, "limit": 100});
    let page = api.post("/runtime/v1/companies/acme/list", &body).await.fine();
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rejected_change_leaves_the_record_as_it_was() {
    for provider in PROVIDERS {
        let (mut host, api) = holding(provider).await;
        let ada = api.agent("ada").await;
        let handle = write(&api, None, GOOD).await["records"][0].clone();
        let corrected = correct(&ada, &handle, "The valve never opens").await;
        assert_eq!(corrected["record"], handle, "{provider}");
        assert_eq!(shown(&ada).await, [GOOD], "{provider}: it is found while the correction waits");
        assert_eq!(api.query("acme", "valve").await, [GOOD], "{provider}");
        decide(&api, &corrected, "reject").await.fine();
        assert_eq!(shown(&ada).await, [GOOD], "{provider}: a rejection takes nothing away");
        let replaced = write(&ada, Some(&handle["providerRecordId"]), "The valve is gone").await;
        assert_eq!(
            (&replaced["records"][0], shown(&ada).await),
            (&handle, vec![GOOD.to_owned()]),
            "{provider}"
        );
        decide(&api, &replaced, "reject").await.fine();
        drop((api, ada));
        host.stop().await;
        host.start().await.unwrap();
        let api = Api::new(&host);
        assert_eq!(shown(&api).await, [GOOD], "{provider}");
        // Nothing of what was rejected is left.
        for path in ["reviews", "export"] {
            let path = format!("/control/v1/companies/acme/{path}");
            let left = api.send(memhost_server::Method::Get, &path, None, &[]).await.text;
            assert!(
                !left.contains("never opens") && !left.contains("valve is gone"),
                "{provider}: {left}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approved_change_is_made_and_counts() {
    for provider in PROVIDERS {
        let (mut host, api) = holding(provider).await;
        let ada = api.agent("ada").await;
        let handle = write(&api, None, GOOD).await["records"][0].clone();
        let corrected = correct(&ada, &handle, "The valve opens at one").await;
        decide(&api, &corrected, "approve").await.fine();
        assert_eq!(shown(&ada).await, ["The valve opens at one"], "{provider}");
        let replaced =
            write(&ada, Some(&handle["providerRecordId"]), "The valve opens at two").await;
        decide(&api, &replaced, "approve").await.fine();
        assert_eq!(shown(&ada).await, ["The valve opens at two"], "{provider}");
        // A new record and one that is there, in one request: each has its handle.
        let records = json!([
            {"text": "The pump is new"},
            {"id": handle["providerRecordId"], "text": "The valve leaks"},
        ]);
        let body = json!({"scope": {"companyId": "acme"}, "records": records});
        let both = ada.post("/runtime/v1/companies/acme/records", &body).await.fine();
        assert_eq!(
            (both["records"].as_array().unwrap().len(), &both["records"][1]),
            (2, &handle),
            "{provider}: {both}"
        );
        assert_eq!(both["inReview"].as_array().unwrap().len(), 2, "{provider}: {both}");
        assert_eq!(shown(&ada).await, ["The valve opens at two"], "{provider}");
        drop((api, ada));
        host.stop().await;
        host.start().await.unwrap();
        let api = Api::new(&host);
        assert_eq!(shown(&api).await, ["The valve opens at two"], "{provider}");
        // What waits goes with the record.
        let body = json!({"scope": {"companyId": "acme"}, "handles": [handle]});
        api.post("/runtime/v1/companies/acme/forget", &body).await.fine();
        let left = api.get("/control/v1/companies/acme/reviews").await.to_string();
        assert!(!left.contains("valve"), "{provider}: {left}");
        let refused = decide(&api, &json!({"inReview": [both["inReview"][1]]}), "approve").await;
        let is_gone =
            refused.status == 409 || !shown(&api).await.contains(&"The valve leaks".to_owned());
        assert!(is_gone, "{provider}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_is_told_what_waits() {
    let (host, api) = holding("local-markdown").await;
    let captured = api.capture("acme", "The lamp is green").await.fine();
    let waits = &captured["inReview"][0];
    assert_eq!(
        (&waits["handle"], &captured["held"]),
        (&captured["records"][0], &Value::Null),
        "{captured}"
    );
    assert!(waits["reason"].as_str().unwrap().contains("holds everything"), "{captured}");
    let ada = agent(&host, listening(host.service()).await).await;
    let noted = ada.does("memory.note", json!({"text": "The lamp is red"})).await;
    assert_eq!(noted["waitsForReview"], true, "{noted}");
    let known = write(&api, None, "The lamp is off").await;
    assert_eq!(
        known.get("inReview"),
        None,
        "a person who may review writes past the queue: {known}"
    );
    let id = &known["records"][0]["providerRecordId"];
    let corrected = ada.does("memory.correct", json!({"id": id, "text": "The lamp is on"})).await;
    assert_eq!(corrected["waitsForReview"], true, "{corrected}");
    assert_eq!(shown(&api).await, ["The lamp is off"]);
}
