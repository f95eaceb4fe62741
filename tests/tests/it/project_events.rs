//! The events of a project's memory, `memory.saved` and `memory.recalled`, whichever way it is
//! written and recalled.

use memhost_server::Method;
use memhost_tests::{Serving, TestHost};
use serde_json::{Value, json};

use super::cli::{run, words};
use super::mcp_http::{Client, OPERATOR, token};
use super::support::Api;

/// A host whose company `acme` has Apropos' routes. The company `zeta` has the same provider and no
/// routes.
async fn host() -> (TestHost, Api) {
    let configured =
        serde_json::from_value(json!({"apropos": {"company": "acme", "binding": "shared"}}))
            .unwrap();
    let host = TestHost::new(&["cross-agent"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = configured);
    let api = Api::new(&host);
    for (company, key) in [("acme", "shared"), ("acme", "other"), ("zeta", "shared")] {
        let binding = json!({"key": key, "providerKey": "cross-agent", "default": key == "shared",
            "grants": {"storageBytes": 1 << 24}});
        api.post(&format!("/control/v1/companies/{company}/bindings"), &binding).await.fine();
    }
    (host, api)
}

/// The events of a project, oldest first.
async fn events(api: &Api, company: &str, project: &str) -> Vec<Value> {
    let page = api
        .get(&format!("/control/v1/companies/{company}/events?projectId={project}&limit=100"))
        .await;
    page["items"].as_array().unwrap().iter().rev().cloned().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_and_recall_of_a_project_leaves_one_event() {
    let (mut host, api) = host().await;
    let path = "/api/projects/p1/memory";
    let told = async |api: &Api| -> Vec<(String, String, String, u64)> {
        let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
        let events = events(api, "acme", "p1").await;
        let one = |event: &Value| {
            let count = event["details"]["count"].as_u64().unwrap();
            (text(event, "type"), text(event, "agentKind"), text(event, "sessionId"), count)
        };
        events.iter().map(one).collect()
    };
    let row = |kind: &str, agent: &str, session: &str, count: u64| {
        (format!("memory.{kind}"), agent.to_owned(), session.to_owned(), count)
    };
    let mut wanted = Vec::new();
    // By the routes: one item, its change, an import of two, and a recall. A search is none, nor is
    // a deletion.
    let item = json!({
        "content": "Deploys are frozen on Fridays", "sessionId": "s1", "agentKind": "codex",
    });
    let made = api.post(path, &item).await.fine();
    wanted.push(row("saved", "codex", "s1", 1));
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    api.patch(&one, &json!({"tags": ["ops"]})).await.fine();
    wanted.push(row("saved", "codex", "s1", 1));
    let unchanged = api.get(&one).await;
    let patched = api.patch(&one, &json!({})).await.fine();
    assert_eq!(patched, unchanged, "a change of nothing leaves no event and no new time");
    assert_eq!(api.get(&one).await, unchanged);
    let two = json!({
        "items": [{"content": "The gate has two locks"}, {"content": "The office is in Bonn"}],
    });
    api.post(&format!("{path}/import"), &two).await.fine();
    wanted.push(row("saved", "unknown", "none", 2));
    api.post(&format!("{path}/search"), &json!({"query": "deploys"})).await.fine();
    let recall = json!({"query": "deploys", "sessionId": "s2", "agentKind": "claude"});
    api.post(&format!("{path}/recall"), &recall).await.fine();
    wanted.push(row("recalled", "claude", "s2", 1));
    // Without a question: the most useful items.
    let useful = api.post(&format!("{path}/recall"), &json!({})).await.fine();
    assert_eq!(useful["items"].as_array().unwrap().len(), 3, "{useful:?}");
    wanted.push(row("recalled", "unknown", "none", 3));
    // By a tool.
    let ada = token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let serving = Serving::start(&host, OPERATOR).await.unwrap();
    let address = serving.url().trim_start_matches("http://").parse().unwrap();
    let ada = Client::new(address, &ada)
        .with("user-agent", "claude-code/2.1")
        .with("memhost-project-id", "p1");
    ada.does("memory.note", json!({"text": "Builds run on Mondays"})).await;
    wanted.push(row("saved", "claude-code", "none", 1));
    ada.does("memory.search", json!({"query": "builds"})).await;
    wanted.push(row("recalled", "claude-code", "none", 1));
    let listed = api.get(path).await;
    let note = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["content"] == "Builds run on Mondays");
    assert_eq!(
        note.unwrap()["agentKind"],
        "claude-code",
        "the item names the client as its event does: {listed:?}"
    );
    for (filter, found) in [
        ("agentKind=claude-code", true),
        ("agentKind=codex", false),
        ("agentKind=claude-code&limit=1", true),
    ] {
        let listed = api.get(&format!("{path}?{filter}")).await;
        let is_found = listed.to_string().contains("Builds run on Mondays");
        assert_eq!(is_found, found, "{filter}: as the item shows it: {listed}");
    }
    // By the command line.
    let home = tempfile::tempdir().unwrap();
    let environment =
        [("MEMHOST_URL", serving.url()), ("MEMHOST_TOKEN", OPERATOR), ("MEMHOST_COMPANY", "acme")];
    let done =
        run(home.path(), &environment, &words("note 'The bell rings at nine' --project p1"), "")
            .await;
    assert_eq!(done.code, 0, "{done:?}");
    wanted.push(row("saved", "unknown", "none", 1));
    // By the runtime plane: records, a capture, and one that another binding of the company has.
    let scope = json!({"companyId": "acme", "projectId": "p1", "sessionKey": "s3"});
    let record = json!({"scope": scope, "records": [{"text": "Lunch is at noon"}]});
    api.post("/runtime/v1/companies/acme/records", &record).await.fine();
    wanted.push(row("saved", "unknown", "s3", 1));
    let capture = json!({"scope": scope, "source": {"kind": "manual_note", "companyId": "acme"},
        "mode": "capture_record",
        "payload": {"text": "Tea is in the kitchen", "metadata": {"agentKind": "codex"}}});
    api.post("/runtime/v1/companies/acme/capture", &capture).await.fine();
    wanted.push(row("saved", "codex", "s3", 1));
    let elsewhere =
        json!({"bindingKey": "other", "scope": scope, "records": [{"text": "Elsewhere"}]});
    api.post("/runtime/v1/companies/acme/records", &elsewhere).await.fine();
    // By a hook, which is delivered once however often it is sent.
    let hook = json!({
        "hookKind": "post_run_capture", "hookId": "h1", "triggeredAt": "2026-11-23T12:00:00Z",
        "scope": scope, "source": {"kind": "external_document", "companyId": "acme"},
        "waitMs": 20_000, "payload": {"text": "The printer is on the second floor"},
        "metadata": {"agentKind": "claude"},
    });
    for _ in 0..2 {
        api.post("/runtime/v1/companies/acme/hooks", &hook).await.fine();
    }
    wanted.push(row("saved", "claude", "s3", 1));
    let of_session = api.get(&format!("{path}?sessionId=s3")).await;
    for text in ["Lunch is at noon", "Tea is in the kitchen", "The printer is on the second floor"]
    {
        assert!(of_session.to_string().contains(text), "{of_session}");
    }
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": "h2", "triggeredAt": "2026-11-23T12:00:00Z",
        "scope": scope, "query": "printer", "topK": 1,
    });
    api.post("/runtime/v1/companies/acme/hooks", &hydrate).await.fine();
    wanted.push(row("recalled", "unknown", "s3", 1));
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": "h3", "triggeredAt": "2026-11-23T12:00:00Z",
        "scope": scope, "query": "printer", "topK": 1, "metadata": {"agentKind": "claude"},
    });
    api.post("/runtime/v1/companies/acme/hooks", &hydrate).await.fine();
    wanted.push(row("recalled", "claude", "s3", 1));
    assert_eq!(told(&api).await, wanted);
    // An idempotent repetition is answered from what was kept.
    let admin = json!({"name": "admin", "role": "company_administrator"});
    let admin = api.with(&token(&host, "acme", admin).await);
    let key = [("idempotency-key", "k1")];
    for _ in 0..2 {
        admin.send(Method::Post, path, Some(item.to_string()), &key).await.fine();
    }
    wanted.push(row("saved", "codex", "s1", 1));
    drop((api, admin));
    serving.stop().await.unwrap();
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(told(&api).await, wanted, "after a restart");
    // The first event names its item and its operation, and no text. That stays so when the item is
    // forgotten.
    let first = events(&api, "acme", "p1").await[0].clone();
    assert_eq!(first["details"]["ids"], json!([made["id"]]));
    let operation = first["details"]["operationId"].as_str().unwrap();
    assert_eq!(
        api.get(&format!("/control/v1/companies/acme/operations/{operation}")).await["kind"],
        "record_upsert"
    );
    assert_eq!(api.send(Method::Delete, &one, None, &[]).await.status, 204);
    let all = events(&api, "acme", "p1").await;
    assert_eq!(all.len(), wanted.len(), "a deletion leaves no event of its own");
    assert!(!json!(all).to_string().contains("frozen"), "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn companies_do_not_see_each_others_events() {
    let (_host, api) = host().await;
    for company in ["acme", "zeta"] {
        let scope = json!({"companyId": company, "projectId": "p1"});
        let record = json!({"scope": scope, "records": [{"text": format!("of {company}")}]});
        api.post(&format!("/runtime/v1/companies/{company}/records"), &record).await.fine();
    }
    assert_eq!(events(&api, "acme", "p1").await.len(), 1);
    assert_eq!(
        events(&api, "zeta", "p1").await,
        Vec::<Value>::new(),
        "its projects are not Apropos'"
    );
    let outsider = json!({"name": "a", "role": "company_administrator"});
    let outsider = api.post("/control/v1/companies/zeta/tokens", &outsider).await.fine();
    let outsider = api.with(outsider["value"].as_str().unwrap());
    let refused = outsider
        .send(Method::Get, "/control/v1/companies/acme/events?projectId=p1", None, &[])
        .await;
    assert_eq!(refused.status, 403);
    // A write that fails, and one without a project, leave none.
    let wrong = json!({"scope": {"companyId": "acme", "projectId": "p1"},
        "records": [{"text": "x", "metadata": {"type": "rumour"}}]});
    assert_eq!(api.post("/runtime/v1/companies/acme/records", &wrong).await.status, 400);
    let free = json!({"scope": {"companyId": "acme"}, "records": [{"text": "of no project"}]});
    api.post("/runtime/v1/companies/acme/records", &free).await.fine();
    assert_eq!(events(&api, "acme", "p1").await.len(), 1);
}
