//! The four success criteria of the cross-agent memory core, on the provider `cross-agent` through
//! a real host.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const MEMORY: &str = "/api/projects/p1/memory";

/// A host with the provider as a company's default, and Apropos' routes on it.
async fn host(config: &Value) -> (TestHost, Api) {
    let configured = json!({"apropos": {"company": "acme", "binding": "shared"}});
    let host = TestHost::new(&["cross-agent"]).await.unwrap();
    let host = host
        .surfaces(|surfaces| surfaces.integrations = serde_json::from_value(configured).unwrap());
    let api = Api::new(&host);
    bind(&api, config).await;
    (host, api)
}

async fn bind(api: &Api, config: &Value) {
    let binding = json!({
        "key": "shared", "providerKey": "cross-agent", "config": config, "default": true,
        "grants": {"storageBytes": 256 << 20},
    });
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
}

async fn recall(api: &Api, query: &str) -> Vec<(String, String)> {
    let found = api.post(&format!("{MEMORY}/recall"), &json!({"query": query})).await.fine();
    let one = |item: &Value| {
        (item["id"].as_str().unwrap().to_owned(), item["content"].as_str().unwrap().to_owned())
    };
    found["items"].as_array().unwrap().iter().map(one).collect()
}

/// Memory persists across sessions and across agent frameworks in the same project. A memory
/// created in one framework is recallable in another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_framework_wrote_another_one_recalls_in_a_later_session() {
    let (mut host, api) = host(&json!({})).await;
    let (codex, claude) = (api.agent("codex-1").await, api.agent("claude-1").await);
    let item = json!({
        "sessionId": "s1", "agentKind": "codex", "type": "decision", "confidence": 0.9,
        "content": "Deployments are frozen on Fridays", "tags": ["release"], "source": "inferred",
    });
    let written = codex.post(MEMORY, &item).await.fine();
    codex
        .post("/api/projects/p2/memory", &json!({"content": "Deployments of another project"}))
        .await
        .fine();
    let wanted = vec![(
        written["id"].as_str().unwrap().to_owned(),
        written["content"].as_str().unwrap().to_owned(),
    )];
    assert_eq!(recall(&claude, "when may I deploy?").await, wanted);
    let tokens = [codex, claude].map(|api| api.token().to_owned());
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    for token in &tokens {
        assert_eq!(recall(&api.with(token), "when may I deploy?").await, wanted, "after a restart");
    }
    let claude = api.with(&tokens[1]);
    let all = claude.get(&format!("{MEMORY}?agentKind=codex&sessionId=s1&type=decision")).await;
    assert_eq!(all["items"], json!([written]), "as it was written, whoever looks");
}

/// Tool/MCP call visibility is queryable and filterable per project and session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_calls_are_found_by_project_session_and_tool() {
    let (_host, api) = host(&json!({})).await;
    for (name, kind, project, session) in
        [("ada", "codex", "p1", "s1"), ("bob", "claude", "p1", "s2"), ("eve", "claude", "p2", "s3")]
    {
        let event = |what: &str, tool: Option<&str>| {
            let mut event = json!({
                "type": what, "projectId": project, "sessionId": session, "agentKind": kind,
            });
            if let Some(tool) = tool {
                event["toolId"] = json!(tool);
            }
            if what == "tool_call.failed" {
                event["status"] = json!("failed");
                event["durationMs"] = json!(12);
                event["error"] = json!("exit 1");
            }
            event
        };
        let events = json!({
            "events": [
                event("session.started", None), event("tool_call.started", Some("Bash")),
                event("tool_call.failed", Some("Bash")),
                event("tool_call.started", Some("mcp__memhost__search")),
            ],
        });
        let token = api.agent(name).await;
        token.post("/runtime/v1/companies/acme/events", &events).await.fine();
    }
    for (filter, count) in [
        ("", 12),
        ("projectId=p1", 8),
        ("projectId=p1&sessionId=s2", 4),
        ("sessionId=s2&toolId=Bash", 2),
        ("projectId=p1&toolId=mcp__memhost__search", 2),
        ("projectId=p2&sessionId=s1", 0),
    ] {
        let found = api.get(&format!("/control/v1/companies/acme/events?{filter}")).await;
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{filter}: {found}");
    }
    let failed = api.get("/control/v1/companies/acme/events?sessionId=s1&toolId=Bash").await;
    let failed = failed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["type"] == "tool_call.failed")
        .unwrap();
    assert_eq!(
        (&failed["agentKind"], &failed["durationMs"], &failed["error"]),
        (&json!("codex"), &json!(12), &json!("exit 1"))
    );
}

/// Agent switch does not change memory behavior.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_gets_the_same_results_in_the_same_order() {
    let (_host, api) = host(&json!({})).await;
    let (codex, claude) = (api.agent("codex-1").await, api.agent("claude-1").await);
    for (number, writer) in [&codex, &claude].into_iter().cycle().take(12).enumerate() {
        let kind = if number % 2 == 0 { "codex" } else { "claude" };
        let item = json!({
            "agentKind": kind, "content": format!("The gate has {number} locks"), "type": "fact",
            "confidence": 1.0 - f64::from(u8::try_from(number).unwrap()) / 20.0,
        });
        writer.post(MEMORY, &item).await.fine();
    }
    let (first, second) =
        (recall(&codex, "locks of the gate").await, recall(&claude, "locks of the gate").await);
    assert_eq!(first, second);
    assert_eq!(first.len(), 10);
    assert_eq!(first[0].1, "The gate has 0 locks", "the highest confidence first");
    // What one of them forgets or corrects is forgotten or corrected for the other.
    let handle = json!({"providerKey": "cross-agent", "providerRecordId": first[0].0});
    let forget = json!({"scope": {"companyId": "acme", "projectId": "p1"}, "handles": [handle]});
    claude.post("/runtime/v1/companies/acme/forget", &forget).await.fine();
    assert_eq!(recall(&codex, "locks of the gate").await[0].1, "The gate has 1 locks");
}

/// The routes of Apropos with this provider: bad input, import, export and `explain`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn apropos_routes_work_with_cross_agent() {
    let (_host, api) = host(&json!({})).await;
    for number in 0..5 {
        let item =
            json!({"content": format!("fact {number}"), "type": "preference", "confidence": 0.9});
        api.post(MEMORY, &item).await.fine();
    }
    let exported = api.send(Method::Post, &format!("{MEMORY}/export"), None, &[]).await.fine();
    assert_eq!(exported["items"].as_array().unwrap().len(), 5);
    api.post(&format!("{MEMORY}/import"), &exported).await.fine();
    let now = api.send(Method::Post, &format!("{MEMORY}/export"), None, &[]).await.fine();
    assert_eq!(now["items"], exported["items"]);
    let asked = json!({"scope": {"companyId": "acme", "projectId": "p1"}, "query": "fact 3"});
    let told = api.post("/runtime/v1/companies/acme/explain", &asked).await.fine();
    let parts = told["hits"][0]["contributions"].as_array().unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["words", "coverage", "relevance", "recency", "confidence"]);
    let record = json!({
        "scope": {"companyId": "acme"}, "records": [{"text": "x", "metadata": {"type": "rumour"}}],
    });
    let refused = api.post("/runtime/v1/companies/acme/records", &record).await;
    assert_eq!(
        (refused.status, &refused.json["field"]),
        (400, &json!("records.0.metadata.type")),
        "{}",
        refused.text
    );
}
