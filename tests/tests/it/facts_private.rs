//! Private records beside a summary: whoever may not see them still gets all facts, and the host
//! says what it left out.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::{Client, listening_until};
use super::support::Api;

const SECRET: &str = "marzipan";

/// A host with PageSpace's routes at the provider `facts`.
async fn facts() -> TestHost {
    let integrations =
        serde_json::from_value(json!({"pagespace": {"company": "acme", "binding": "facts"}}))
            .unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let binding = json!({
        "key": "facts", "providerKey": "facts", "default": true, "config": {"tokenBudget": 5_000},
        "grants": {"storageBytes": 64 << 20, "clock": true}, "policy": {"mcp": {"aliases": true}},
    });
    Api::new(&host).post("/control/v1/companies/acme/bindings", &binding).await.fine();
    host
}

async fn gateway(api: &Api) -> Api {
    let made = json!({"name": "gateway", "role": "integration"});
    let made = api.post("/control/v1/companies/acme/tokens", &made).await.fine();
    api.with(made["value"].as_str().unwrap())
}

/// What a run of this user in the drive d1 gets of memory, by the hook before it.
async fn hydrated(gateway: &Api, user: &str, id: &str) -> Value {
    let event = json!({
        "hookKind": "pre_run_hydrate", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
        "query": "", "scope": {"companyId": "acme", "namespace": "d1"}, "deadlineMs": 30_000,
        "tokenBudget": 5_000,
    });
    let headers = [("x-memhost-act-as-person", user)];
    let path = "/runtime/v1/companies/acme/hooks";
    gateway.send(Method::Post, path, Some(event.to_string()), &headers).await.fine()["context"]
        .clone()
}

async fn asked(gateway: &Api, user: &str) -> Value {
    let query = json!({"scope": {"companyId": "acme", "namespace": "d1"}, "query": "", "topK": 5,
        "intent": "agent_preamble"});
    let headers = [("x-memhost-act-as-person", user)];
    gateway
        .send(Method::Post, "/runtime/v1/companies/acme/query", Some(query.to_string()), &headers)
        .await
        .fine()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_note_takes_no_fact_from_anybodys_context() {
    let mut host = facts().await;
    let api = Api::new(&host);
    let gate = gateway(&api).await;
    for n in 0..49 {
        let add = async |path: &str, text: String| {
            let body = json!({"fact": text, "source": "ai"}).to_string();
            gate.send(Method::Post, path, Some(body), &[("x-memhost-act-as-person", "u1")])
                .await
                .fine();
        };
        add("/api/memory/user", format!("Fact {n} about u1")).await;
        add("/api/memory/drive/d1", format!("Fact {n} of d1")).await;
    }
    let text = |context: &Value| context["text"].as_str().unwrap().to_owned();
    let before = text(&hydrated(&gate, "u1", "before").await);
    let count = |text: &str, what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        (count(&before, "about u1"), count(&before, "of d1"), count(&before, "About This ")),
        (49, 49, 2),
        "{before}"
    );
    let summary = asked(&gate, "u1").await["profileSummary"].clone();
    assert_eq!(count(summary.as_str().unwrap(), "- Fact"), 98);
    // Private notes of an agent, in the drive and of its own.
    let ada = api.agent("ada").await;
    let (address, listener) = listening_until(host.service()).await;
    let client = Client::new(address, ada.token());
    let note = json!({"text": format!("Ada likes {SECRET}"), "visibility": "agent"});
    let own = client.does("memory.note", note.clone()).await;
    let in_drive = client.with("memhost-namespace", "d1");
    let of_drive = in_drive.does("memory.note", note).await;
    let context = hydrated(&gate, "u1", "hidden").await;
    assert_eq!(text(&context), before, "u1 has nothing to do with ada");
    assert!(
        context["degraded"].as_array().is_none_or(Vec::is_empty),
        "nothing is missing: {context}"
    );
    let bundle = asked(&gate, "u1").await;
    assert_eq!(
        (&bundle["profileSummary"], bundle["snippets"].as_array().unwrap().len()),
        (&summary, 5),
        "{bundle}"
    );
    let other = text(&hydrated(&gate, "u2", "other").await);
    assert_eq!(
        (count(&other, "about u1"), count(&other, "of d1"), count(&other, SECRET)),
        (0, 49, 0),
        "{other}"
    );
    for client in [&in_drive, &client] {
        let found = client.does("memory.search", json!({"query": SECRET})).await;
        assert!(found.to_string().contains("Ada likes"), "it is there for ada: {found}");
    }
    for (client, noted) in [(&client, own), (&in_drive, of_drive)] {
        client.does("memory.forget", json!({"ids": [noted["record"]["id"]]})).await;
    }
    assert_eq!(text(&hydrated(&gate, "u1", "forgotten").await), before);
    let token = gate.token().to_owned();
    drop((api, gate, ada));
    listener.abort();
    host.stop().await;
    host.start().await.unwrap();
    let gate = Api::new(&host).with(&token);
    assert_eq!(text(&hydrated(&gate, "u1", "restarted").await), before);
}

/// The summary of a provider that does not name its records, in the scope of the agent carol.
async fn of_carol(api: &Api, provider: &str) -> (Value, Value) {
    let query = json!({
        "scope": {"companyId": "acme", "agentId": "carol"}, "query": "", "intent": "agent_preamble",
    });
    let bundle = api.post("/runtime/v1/companies/acme/query", &query).await.fine();
    assert!(!bundle.to_string().contains(SECRET), "{provider}: {bundle}");
    (bundle["profileSummary"].clone(), bundle["degraded"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_comes_back_when_the_last_private_record_is_gone() {
    let mut host = TestHost::new(&["reference"]).await.unwrap();
    let api = Api::new(&host);
    super::support::bind_provider(&api, "acme", "reference").await;
    let records = "/runtime/v1/companies/acme/records";
    let scope = |agent: &str| json!({"companyId": "acme", "agentId": agent});
    let write = async |api: &Api, agent: &str, text: &str, visibility: &str| {
        let body =
            json!({"scope": scope(agent), "records": [{"text": text}], "visibility": visibility});
        api.post(records, &body).await.fine()["records"][0].clone()
    };
    let forget = async |api: &Api, handle: &Value| {
        let body = json!({"scope": scope("ada"), "handles": [handle]});
        api.post("/runtime/v1/companies/acme/forget", &body).await.fine()
    };
    write(&api, "carol", "the gate is green", "company").await;
    let whole = json!("Number of records: 1");
    let summary = async |api: &Api| of_carol(api, "reference").await;
    assert_eq!(summary(&api).await, (whole.clone(), Value::Null));
    let (first, second) = (
        write(&api, "ada", SECRET, "agent").await,
        write(&api, "ada", &format!("more {SECRET}"), "agent").await,
    );
    let (left, why) = summary(&api).await;
    assert_eq!(left, Value::Null, "a number says something of what is hidden");
    assert!(why.as_str().unwrap().contains("private to others"), "{why}");
    forget(&api, &first).await;
    assert_eq!(summary(&api).await.0, Value::Null, "there is another one");
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(summary(&api).await.0, Value::Null, "also after a restart");
    forget(&api, &second).await;
    assert_eq!(summary(&api).await, (whole.clone(), Value::Null));
    // A private record that its owner gives to everybody, and one that was never made.
    let given = write(&api, "ada", "the wall is blue", "agent").await;
    assert_eq!(summary(&api).await.0, Value::Null);
    let body = json!({"scope": scope("ada"), "visibility": "company",
        "records": [{"id": given["providerRecordId"], "text": "the wall is blue"}]});
    api.post(records, &body).await.fine();
    assert_eq!(summary(&api).await.0, json!("Number of records: 2"));
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(summary(&Api::new(&host)).await, (json!("Number of records: 2"), Value::Null));
}

/// The guest `wrong` makes its summary of all agents' records, and says nothing of which ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_mixes_agents_tells_nobody_of_private_records() {
    let host = TestHost::new(&["wrong"]).await.unwrap();
    let api = Api::new(&host);
    let binding = json!({
        "key": "wrong", "providerKey": "wrong", "default": true, "config": {"break": "PRF-03"},
        "grants": {"storageBytes": 64 << 20, "directoryBytes": 64 << 20},
    });
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let records = "/runtime/v1/companies/acme/records";
    let write = async |agent: &str, text: &str, visibility: &str| {
        let scope = json!({"companyId": "acme", "agentId": agent});
        let body = json!({"scope": scope, "records": [{"text": text}], "visibility": visibility});
        api.post(records, &body).await.fine();
    };
    write("carol", "the gate is green", "company").await;
    write("ada", &format!("Ada likes {SECRET}"), "agent").await;
    assert_eq!(
        of_carol(&api, "wrong").await.0,
        Value::Null,
        "the number would say that there are more"
    );
}
