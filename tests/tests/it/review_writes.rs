//! Review of what is written: agents' writes wait, whatever way they take; a person who may review
//! writes past the queue, and the queue says so; imported records are judged at import.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::{Client, OPERATOR, agent, listening, token};
use super::support::{Answer, Api};

const PROVIDERS: [&str; 4] = ["local-markdown", "cross-agent", "facts", "taxonomy"];

/// A host with every provider that ships, and `acme` and `zeta` bound to this one. `acme` holds
/// everything.
async fn holding(provider: &str) -> (TestHost, Api) {
    let host = TestHost::new(&["cross-agent", "facts", "taxonomy"]).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "memory", provider, &json!({"review": {"all": true}})).await;
    bind(&api, "zeta", "memory", provider, &json!({})).await;
    (host, api)
}

async fn bind(api: &Api, company: &str, key: &str, provider: &str, policy: &Value) {
    let mut body = json!({"key": key, "providerKey": provider, "policy": policy, "default": true});
    // The built-in provider has its grants by default.
    if provider != "local-markdown" {
        body["grants"] = json!({"storageBytes": 64 << 20, "clock": true});
    }
    api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
}

async fn reviews(api: &Api, status: &str) -> Vec<Value> {
    let path = format!("/control/v1/companies/acme/reviews?status={status}&limit=1000");
    api.get(&path).await["items"].as_array().unwrap().clone()
}

async fn write(api: &Api, company: &str, text: &str) -> Answer {
    let record = json!({"text": text, "metadata": {"kind": "fact", "confidence": 0.99}});
    let body = json!({"scope": {"companyId": company}, "records": [record]});
    api.post(&format!("/runtime/v1/companies/{company}/records"), &body).await
}

async fn correct(api: &Api, handle: &Value, text: &str) -> Value {
    let body = json!({
        "scope": {"companyId": "acme"}, "handle": handle, "patch": {"record": {"text": text}},
    });
    api.post("/runtime/v1/companies/acme/correct", &body).await.fine()
}

/// The texts of everything that a company's memory shows.
async fn shown(api: &Api, company: &str) -> Vec<String> {
    let body = json!({"scope": {"companyId": company}, "limit": 100});
    let page = api.post(&format!("/runtime/v1/companies/{company}/list"), &body).await.fine();
    page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect()
}

async fn agents(host: &TestHost, api: &Api) -> [Api; 2] {
    let ada = token(host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let bob = token(host, "acme", json!({"name": "bob", "role": "agent", "agentId": "bob"})).await;
    [api.with(&ada), api.with(&bob)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_writes_waits_with_every_provider() {
    for provider in PROVIDERS {
        let (mut host, api) = holding(provider).await;
        let [ada, bob] = agents(&host, &api).await;
        let written = write(&ada, "acme", "The valve opens at noon").await.fine();
        let queue = reviews(&api, "pending").await;
        assert_eq!(queue.len(), 1, "{provider}: it is in the queue before anybody asks for it");
        assert_eq!(queue[0]["operationId"], written["operationId"], "{provider}");
        for reader in [&api, &ada, &bob] {
            assert!(shown(reader, "acme").await.is_empty(), "{provider}");
            assert!(reader.query("acme", "valve noon").await.is_empty(), "{provider}");
        }
        // The other company holds nothing.
        write(&api, "zeta", "The valve of zeta").await.fine();
        assert_eq!(shown(&api, "zeta").await, ["The valve of zeta"], "{provider}");
        let tokens =
            token(&host, "zeta", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
        write(&api.with(&tokens), "zeta", "Another valve of zeta").await.fine();
        assert_eq!(shown(&api, "zeta").await.len(), 2, "{provider}");
        // Also after a restart.
        drop((api, ada, bob));
        host.stop().await;
        host.start().await.unwrap();
        let api = Api::new(&host);
        assert!(shown(&api, "acme").await.is_empty(), "{provider}");
        let path = format!(
            "/control/v1/companies/acme/reviews/{}/decision",
            queue[0]["id"].as_str().unwrap()
        );
        api.post(&path, &json!({"decision": "approve"})).await.fine();
        assert_eq!(shown(&api, "acme").await, ["The valve opens at noon"], "{provider}");
        assert!(reviews(&api, "pending").await.is_empty(), "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_makes_of_a_record_waits_with_every_provider() {
    for provider in PROVIDERS {
        let (host, api) = holding(provider).await;
        let [ada, _] = agents(&host, &api).await;
        let written = write(&api, "acme", "The pump runs daily").await.fine();
        assert_eq!(shown(&api, "acme").await, ["The pump runs daily"], "{provider}");
        let corrected = correct(&ada, &written["records"][0], "The pump never runs").await;
        let queue = reviews(&api, "pending").await;
        assert_eq!(
            (queue.len(), &queue[0]["operationId"]),
            (1, &corrected["operationId"]),
            "{provider}"
        );
        assert!(
            !shown(&api, "acme").await.contains(&"The pump never runs".to_owned()),
            "{provider}"
        );
        let path = format!(
            "/control/v1/companies/acme/reviews/{}/decision",
            queue[0]["id"].as_str().unwrap()
        );
        api.post(&path, &json!({"decision": "edit", "text": "The pump runs weekly"})).await.fine();
        assert!(
            reviews(&api, "pending").await.is_empty(),
            "{provider}: what a decision writes is decided with it"
        );
        assert!(
            shown(&api, "acme").await.contains(&"The pump runs weekly".to_owned()),
            "{provider}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_may_review_writes_past_the_queue_and_it_says_so() {
    for provider in PROVIDERS {
        let (mut host, api) = holding(provider).await;
        let admin =
            token(&host, "acme", json!({"name": "eve", "role": "company_administrator"})).await;
        let written = write(&api.with(&admin), "acme", "The tank holds nine litres").await.fine();
        let corrected = correct(&api, &written["records"][0], "The tank holds ten litres").await;
        assert!(reviews(&api, "pending").await.is_empty(), "{provider}");
        let passed = reviews(&api, "approved").await;
        let who = |operation: &Value| {
            let item = passed.iter().find(|item| item["operationId"] == *operation).unwrap();
            assert!(
                item["reasons"].to_string().contains("wrote it past the queue"),
                "{provider}: {item}"
            );
            item["decidedBy"].as_str().unwrap().to_owned()
        };
        assert_eq!(who(&written["operationId"]), "company_administrator:eve", "{provider}");
        assert_eq!(who(&corrected["operationId"]), "operator", "{provider}");
        drop(api);
        host.stop().await;
        host.start().await.unwrap();
        assert_eq!(
            shown(&Api::new(&host), "acme").await,
            ["The tank holds ten litres"],
            "{provider}"
        );
    }
}

/// A program that speaks MCP writes for an agent, also with the operator's token.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notes_over_mcp_wait() {
    let (host, api) = holding("local-markdown").await;
    let address = listening(host.service()).await;
    let ada = agent(&host, address).await;
    let operator = Client::new(address, OPERATOR).with("memhost-company-id", "acme");
    ada.does("memory.note", json!({"text": "The lamp is green"})).await;
    operator.does("memory.note", json!({"text": "The lamp is red"})).await;
    assert_eq!(reviews(&api, "pending").await.len(), 2);
    assert!(shown(&api, "acme").await.is_empty());
    let known = write(&api, "acme", "The lamp is off").await.fine();
    let id = &known["records"][0]["providerRecordId"];
    ada.does("memory.correct", json!({"id": id, "text": "The lamp is on"})).await;
    assert_eq!(reviews(&api, "pending").await.len(), 3);
    assert!(!shown(&api, "acme").await.contains(&"The lamp is on".to_owned()));
}

/// The lines bring records of two partitions. An import into a third one is refused, one into the
/// company takes both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_records_are_judged_at_import() {
    for provider in ["cross-agent", "taxonomy"] {
        let (mut host, api) = holding(provider).await;
        for (namespace, text) in [("north", "The gate is shut"), ("south", "The gate is open")] {
            let record = json!({"text": text, "metadata": {"kind": "fact", "confidence": 0.99}});
            let body = json!({
                "scope": {"companyId": "zeta", "namespace": namespace}, "records": [record],
            });
            api.post("/runtime/v1/companies/zeta/records", &body).await.fine();
        }
        let all = json!({"scope": {"companyId": "zeta"}});
        let exported = api.post("/runtime/v1/companies/zeta/export", &all).await.fine();
        let other = json!({
            "scope": {"companyId": "acme", "namespace": "east"}, "lines": exported["lines"],
        });
        let refused = api.post("/runtime/v1/companies/acme/import", &other).await;
        assert_eq!(
            (refused.status, &refused.json["field"]),
            (400, &json!("lines.0")),
            "{provider}: {}",
            refused.text
        );
        let import = json!({"scope": {"companyId": "acme"}, "lines": exported["lines"]});
        let imported = api.post("/runtime/v1/companies/acme/import", &import).await.fine();
        assert_eq!(imported["imported"], 2, "{provider}: {imported}");
        let queue = reviews(&api, "pending").await;
        assert_eq!(queue.len(), 2, "{provider}: {queue:?}");
        assert!(
            queue.iter().all(|item| item["operationId"] == imported["operationId"]),
            "{provider}"
        );
        assert!(shown(&api, "acme").await.is_empty(), "{provider}");
        // A decision reaches a record wherever the import has put it.
        for (item, decision) in queue.iter().zip(["approve", "reject"]) {
            let path = format!(
                "/control/v1/companies/acme/reviews/{}/decision",
                item["id"].as_str().unwrap()
            );
            api.post(&path, &json!({"decision": decision})).await.fine();
        }
        let kept = queue[0]["text"].as_str().unwrap().to_owned();
        drop(api);
        host.stop().await;
        host.start().await.unwrap();
        assert_eq!(shown(&Api::new(&host), "acme").await, [kept], "{provider}");
    }
}
