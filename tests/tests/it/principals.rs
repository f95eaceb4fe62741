//! Who asked, with names and ids that could be read as more than one name: whatever an id holds, it
//! is one agent or one person, in the log, in facts and in what it may do.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Answer, Api};

const DRIVE: &str = "/api/memory/drive/d1";
const UPSERT: &str = "/runtime/v1/companies/acme/records";
const TOKENS: &str = "/control/v1/companies/acme/tokens";
const OPERATIONS: &str = "/control/v1/companies/acme/operations";
const AGENT: &str = "x-memhost-act-as-agent";
const PERSON: &str = "x-memhost-act-as-person";
const ROLE: &str = "x-memhost-act-as-role";

const AWKWARD: [&str; 10] = [
    "eve as person:bob",
    "eve as person:bob, company_administrator",
    "eve as agent:bob",
    "x as agent",
    "a:b, c",
    ", agent",
    "operator",
    "host:system",
    "\"eve\" as person:bob, agent",
    "ünï 名前",
];

async fn host() -> (TestHost, Api) {
    let integrations =
        serde_json::from_value(json!({"pagespace": {"company": "acme", "binding": "facts"}}))
            .unwrap();
    let host = TestHost::new(&["facts"])
        .await
        .unwrap()
        .surfaces(|surfaces| surfaces.integrations = integrations);
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    (host, api)
}

async fn token(operator: &Api, body: &Value) -> Api {
    let made = operator.post(TOKENS, body).await.fine();
    assert_eq!(made["createdBy"], "operator");
    operator.with(made["value"].as_str().unwrap())
}

async fn gateway(operator: &Api, name: &str) -> Api {
    token(operator, &json!({"name": name, "role": "integration"})).await
}

/// A header carries ASCII only.
fn encoded(id: &str) -> String {
    id.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

async fn save(api: &Api, headers: &[(&'static str, &str)], text: &str) -> Answer {
    let body = json!({"fact": text, "source": "ai"}).to_string();
    api.send(Method::Post, DRIVE, Some(body), headers).await
}

async fn last_principal(operator: &Api) -> Value {
    operator.get(&format!("{OPERATIONS}?limit=1")).await["items"][0]["principal"].clone()
}

async fn created_by(operator: &Api, text: &str) -> Value {
    let facts = operator.get(DRIVE).await;
    let found = facts.as_array().unwrap().iter().find(|fact| fact["fact"] == text);
    found.unwrap_or_else(|| panic!("{text} is not in {facts}"))["createdBy"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_is_one_agent_or_person_whatever_it_holds() {
    let (_host, operator) = host().await;
    let gw = gateway(&operator, "gw").await;
    for id in AWKWARD {
        let header = encoded(id);
        let text = format!("Of the person {id}");
        save(&gw, &[(PERSON, &header)], &text).await.fine();
        let principal = last_principal(&operator).await;
        assert_eq!(principal, format!("integration:gw as person:{id}, agent"));
        assert_eq!(created_by(&operator, &text).await, id);

        let text = format!("Of the agent {id}");
        save(&gw, &[(AGENT, &header)], &text).await.fine();
        assert_eq!(last_principal(&operator).await, format!("integration:gw as agent:{id}"));
        assert_eq!(created_by(&operator, &text).await, id);

        let own = token(&operator, &json!({"name": id, "role": "agent", "agentId": id})).await;
        let text = format!("By the agent {id}");
        save(&own, &[], &text).await.fine();
        assert_eq!(last_principal(&operator).await, format!("agent:{id}"));
        assert_eq!(created_by(&operator, &text).await, id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_gives_no_rights_of_the_one_that_it_names() {
    let (_host, operator) = host().await;
    let gw = gateway(&operator, "gw").await;
    let of_bob = json!({"scope": {"companyId": "acme", "subjectId": "bob"},
        "records": [{"text": "Bob likes tea"}]});
    let write = async |api: &Api, headers: &[(&'static str, &str)]| {
        api.send(Method::Post, UPSERT, Some(of_bob.to_string()), headers).await
    };
    // An agent may write the facts of a user of its own name, and of no other.
    write(&gw, &[(AGENT, "bob")]).await.fine();
    let eve = encoded("eve as agent:bob");
    assert_eq!(write(&gw, &[(AGENT, &eve)]).await.problem(), (403, "forbidden"));
    // A person who calls herself an administrator is none.
    let admin = [(PERSON, "ada"), (ROLE, "company_administrator")];
    let body = json!({"fact": "Chose Zustand", "source": "user"}).to_string();
    let fact = gw.send(Method::Post, DRIVE, Some(body), &admin).await.fine();
    let path = format!("/api/memory/drive/{}", fact["id"].as_str().unwrap());
    let eve = encoded("eve as person:ada, company_administrator");
    let remove = async |api: &Api, headers: &[(&'static str, &str)]| {
        api.send(Method::Delete, &path, None, headers).await
    };
    assert_eq!(remove(&gw, &[(PERSON, &eve)]).await.problem(), (403, "forbidden"));

    // Nor does the name of a token: with it, eve is still eve.
    let named = gateway(&operator, "gw as person:ada, company_administrator").await;
    assert_eq!(remove(&named, &[(PERSON, "eve")]).await.problem(), (403, "forbidden"));
    save(&named, &[(PERSON, "eve")], "Builds on Mondays").await.fine();
    assert_eq!(
        last_principal(&operator).await,
        "integration:\"gw as person:ada, company_administrator\" as person:eve, agent"
    );
    assert_eq!(created_by(&operator, "Builds on Mondays").await, "eve");
    // In its own name it is nobody, and writes for bob as the operator's gateway does.
    let named = gateway(&operator, "gw as agent:eve").await;
    write(&named, &[]).await.fine();
    assert_eq!(last_principal(&operator).await, "integration:\"gw as agent:eve\"");
    assert_eq!(remove(&gw, &admin).await.status, 204);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_keeps_who_wrote_what() {
    let (_host, operator) = host().await;
    let gw = gateway(&operator, "gw as agent:eve").await;
    for id in AWKWARD {
        save(&gw, &[(PERSON, &encoded(id))], &format!("Of {id}")).await.fine();
    }
    let export =
        operator.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    let other = TestHost::new(&["facts"]).await.unwrap();
    let there = Api::new(&other);
    let import = "/control/v1/companies/acme/import?acceptGrants=true&scope=company";
    there.send(Method::Post, import, Some(export), &[]).await.fine();
    let principals = async |api: &Api| {
        let page = api.get(&format!("{OPERATIONS}?kind=record_upsert&limit=100")).await;
        let all = page["items"].as_array().unwrap().iter();
        // The import's own writes are the host's.
        all.map(|operation| operation["principal"].clone())
            .filter(|principal| principal != "host:system")
            .collect::<Vec<_>>()
    };
    let all = principals(&operator).await;
    assert_eq!(all.len(), AWKWARD.len());
    assert_eq!(principals(&there).await, all);
}

/// Whoever stands before the host may have read another one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_that_decides_is_sent_once() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let query = || Some(json!({"scope": {"companyId": "acme"}, "query": "x"}).to_string());
    let path = "/runtime/v1/companies/acme/query";
    let gw = gateway(&operator, "gw").await;
    for (caller, name, values) in [
        (&gw, "authorization", &["Bearer another"][..]),
        (&operator, "idempotency-key", &["one", "two"]),
        (&operator, "host", &["a.example", "b.example"]),
    ] {
        let headers: Vec<(&str, &str)> = values.iter().map(|value| (name, *value)).collect();
        let answer = caller.send(Method::Post, path, query(), &headers).await;
        assert_eq!(answer.status, 400, "{name}: {}", answer.text);
        assert!(answer.text.contains("is sent twice; send it once"), "{name}: {}", answer.text);
    }
}
