//! A record has one provenance: every surface that answers it says the same of where it came from
//! and who changed it, with every provider that can correct one, also after a restart.

use serde_json::{Value, json};

use super::mcp_http::token;
use super::support::Api;
use super::whose::{ask, host};

const FROM: &str = r#"{"kind": "issue_comment", "companyId": "acme", "commentId": "c1"}"#;

/// The source and the correction of the only record, as each surface answers them.
async fn everywhere(api: &Api) -> Vec<(&'static str, Value)> {
    let mut all = Vec::new();
    let picked = |record: &Value| {
        json!({"source": record["source"], "corrected": record["corrected"],
            "claimed": record["claimedSource"]})
    };
    for (name, filter) in [("query", json!({})), ("filtered", json!({"text": "launch"}))] {
        let body = json!({"query": "when is the launch", "filter": filter});
        let page = ask(api, "acme", "query", body).await.fine();
        all.push((name, picked(&page["snippets"][0])));
    }
    let page = ask(api, "acme", "list", json!({"limit": 10})).await.fine();
    all.push(("list", picked(&page["items"][0])));
    let handle = page["items"][0]["handle"].clone();
    let got = ask(api, "acme", "get", json!({"handle": handle})).await.fine();
    all.push(("get", picked(&got["record"])));
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_surface_says_the_same_before_and_after_a_correction_and_a_restart() {
    for provider in ["local-markdown", "cross-agent"] {
        let (mut host, api) = host(provider).await;
        let mut agents = Vec::new();
        for name in ["ada", "bob"] {
            let body = json!({"name": name, "role": "agent", "agentId": name});
            agents.push(api.with(&token(&host, "acme", body).await));
        }
        let from: Value = serde_json::from_str(FROM).unwrap();
        let record = json!({
            "text": "The launch is in May", "source": from,
            "metadata": {"kind": "fact", "confidence": 0.99},
        });
        let body = json!({"scope": {"companyId": "acme"}, "records": [record]});
        let path = "/runtime/v1/companies/acme/records";
        let written = agents[0].post(path, &body).await.fine();
        for (surface, said) in everywhere(&api).await {
            assert_eq!(said["source"]["commentId"], "c1", "{provider} {surface}: {said}");
            assert_eq!(said["source"]["assertedBy"], "agent:ada", "{provider} {surface}: {said}");
            assert_eq!((&said["corrected"], &said["claimed"]), (&Value::Null, &Value::Null));
        }
        let patch = json!({"record": {"text": "The launch is in June"}});
        let body = json!({"handle": written["records"][0], "patch": patch});
        let corrected = ask(&agents[1], "acme", "correct", body).await;
        assert_eq!(corrected.status, 200, "{provider}: {}", corrected.text);
        let before = everywhere(&api).await;
        for (surface, said) in &before {
            assert_eq!(*said, before[0].1, "{provider} {surface}");
            assert_eq!(said["corrected"]["by"], "agent:bob", "{provider} {surface}: {said}");
        }
        drop((agents, api));
        host.stop().await;
        host.start().await.unwrap();
        assert_eq!(everywhere(&Api::new(&host)).await, before, "{provider} after a restart");
    }
}
