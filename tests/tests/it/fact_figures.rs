//! The figures of PageSpace's success metrics, as Prometheus reads them.

use jiff::SignedDuration;
use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::{Serving, TestHost};
use serde_json::{Value, json};

use super::mcp_http::{Client, OPERATOR, token};
use super::support::Api;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_success_metrics_of_facts_are_computed() {
    let clock = TestClock::new();
    let mut host =
        TestHost::with(&["facts"], |options| options.clock = clock.clone()).await.unwrap();
    host = host.surfaces(|surfaces| {
        surfaces.integrations = serde_json::from_value(
            json!({"pagespace": {"company": "acme", "agents_name_users": true}}),
        )
        .unwrap();
    });
    let api = Api::new(&host);
    let binding = json!({"key": "facts", "providerKey": "facts", "default": true,
        "grants": {"storageBytes": 1 << 20, "clock": true}, "policy": {"mcp": {"aliases": true}}});
    for company in ["acme", "zeta"] {
        api.post(&format!("/control/v1/companies/{company}/bindings"), &binding).await.fine();
    }
    let metrics = async |api: &Api| api.send(Method::Get, "/metrics", None, &[]).await.text;
    let figures = async |api: &Api, owner: &str| {
        // What was counted is kept for a minute.
        clock.advance(SignedDuration::from_secs(61));
        let text = metrics(api).await;
        [
            "facts",
            "fact_owners",
            "facts_active",
            "facts_active_owners",
            "facts_added",
            "facts_removed_soon",
        ]
        .map(|name| value(&text, &format!("memhost_{name}{{owner=\"{owner}\"}}")))
    };
    let as_user = async |method: Method, path: &str, user: &str, body: Option<Value>| {
        api.send(method, path, body.map(|body| body.to_string()), &[("x-user-id", user)])
            .await
            .fine()
    };
    let fact = |text: &str| Some(json!({"fact": text}));
    assert_eq!(figures(&api, "user").await, [0.0; 6]);
    // Long ago, and still there.
    as_user(Method::Post, "/api/memory/user", "u0", fact("Old")).await;
    clock.advance(DAY * 40);
    let mut ids = Vec::new();
    for text in ["One", "Two", "Three", "Four"] {
        ids.push(as_user(Method::Post, "/api/memory/user", "u1", fact(text)).await["id"].clone());
    }
    as_user(Method::Get, "/api/memory/user", "u2", None).await;
    for drive in ["d1", "d2"] {
        as_user(Method::Post, &format!("/api/memory/drive/{drive}"), "u1", fact("Of a drive"))
            .await;
    }
    // Another company's facts are no part of it.
    let other = json!({
        "scope": {"companyId": "zeta", "subjectId": "u9"}, "records": [{"text": "of zeta"}],
    });
    api.post("/runtime/v1/companies/zeta/records", &other).await.fine();
    assert_eq!(figures(&api, "user").await, [5.0, 2.0, 2.0, 1.0, 4.0, 0.0]);
    assert_eq!(figures(&api, "drive").await, [2.0, 2.0, 2.0, 2.0, 2.0, 0.0]);
    // One is removed soon by its user, one by a model, and one late.
    let delete = async |id: &Value| {
        let path = format!("/api/memory/user/{}", id.as_str().unwrap());
        api.send(Method::Delete, &path, None, &[("x-user-id", "u1")]).await.fine();
    };
    delete(&ids[0]).await;
    let agent =
        token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"})).await;
    let serving = Serving::start(&host, OPERATOR).await.unwrap();
    let address = serving.url().trim_start_matches("http://").parse().unwrap();
    let ada = Client::new(address, &agent).with("memhost-subject-id", "u1");
    let gone = ada.does("remove_memory", json!({"scope": "user", "factId": ids[1]})).await;
    assert_eq!(gone["isRemoved"], true, "{gone}");
    clock.advance(DAY * 8);
    delete(&ids[2]).await;
    // The agent acted for u1; it is no user of its own.
    assert_eq!(figures(&api, "user").await, [2.0, 2.0, 2.0, 1.0, 4.0, 1.0]);
    // The size of a context, in tokens.
    let recall = json!({
        "scope": {"companyId": "acme", "subjectId": "u1"}, "query": "", "intent": "agent_preamble",
    });
    let preamble = api.post("/runtime/v1/companies/acme/query", &recall).await.fine();
    assert_eq!(preamble["profileSummary"], "## About This User\n\n- Four\n\n");
    let text = metrics(&api).await;
    let series =
        |name: &str| value(&text, &format!("memhost_preamble_tokens_{name}{{provider=\"facts\"}}"));
    assert_eq!((series("sum"), series("count")), (9.0, 1.0));
    drop(api);
    serving.stop().await.unwrap();
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(figures(&api, "user").await[..2], [2.0, 2.0], "after a restart");
    // A fact that is the drive's counts for the drive, also where its scope names the user who is
    // there.
    let of_drive = json!({"scope": {"companyId": "acme", "subjectId": "u3", "namespace": "d1"},
        "records": [{"text": "Ships on Fridays", "metadata": {"scope": "drive"}}]});
    api.post("/runtime/v1/companies/acme/records", &of_drive).await.fine();
    assert_eq!(figures(&api, "user").await[..2], [2.0, 2.0]);
    assert_eq!(figures(&api, "drive").await[..2], [3.0, 2.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_without_the_integration_has_no_figures_of_facts() {
    let host = TestHost::new(&[]).await.unwrap();
    let text = Api::new(&host).send(Method::Get, "/metrics", None, &[]).await.text;
    assert!(!text.contains("memhost_fact") && text.ends_with("# EOF\n"), "{text}");
}
