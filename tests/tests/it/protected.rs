//! A binding that keeps from agents what administrators wrote.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http;
use super::support::Api;
use super::whose::bind;

const RUNTIME: &str = "/runtime/v1/companies/acme";

fn scope() -> Value {
    json!({"companyId": "acme"})
}

async fn text(api: &Api, handle: &Value) -> Value {
    let get = json!({"scope": scope(), "handle": handle});
    api.post(&format!("{RUNTIME}/get"), &get).await.fine()["record"]["text"].clone()
}

/// Writes a record of an issue, and answers its handle.
async fn write(api: &Api, text: &str) -> Value {
    let source = json!({"kind": "issue", "companyId": "acme", "issueId": "i1"});
    let body = json!({"scope": scope(), "records": [{"text": text, "source": source}]});
    api.post(&format!("{RUNTIME}/records"), &body).await.fine()["records"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_change_what_administrators_wrote_where_the_binding_lets_them() {
    for (provider, is_kept) in [
        ("local-markdown", true),
        ("local-markdown", false),
        ("facts", true),
        ("cross-agent", true),
    ] {
        let host = TestHost::new(&["facts", "cross-agent"]).await.unwrap();
        let api = Api::new(&host);
        bind(&api, "acme", "memory", provider, &json!({"protectAdministrators": is_kept})).await;
        let address = mcp_http::listening(host.service()).await;
        let (ada, agent) = (api.agent("ada").await, mcp_http::agent(&host, address).await);
        let rule = write(&api, "Deployments are frozen on Fridays").await;
        let own = write(&ada, "The gate of the north hall is green").await;
        let id = &rule["providerRecordId"];
        let overwrite = json!({"scope": scope(), "records": [{"text": "no freeze", "id": id}]});
        let correct =
            json!({"scope": scope(), "handle": rule, "patch": {"record": {"text": "no freeze"}}});
        let forget = json!({"scope": scope(), "handles": [rule]});
        if !is_kept {
            ada.post(&format!("{RUNTIME}/records"), &overwrite).await.fine();
            assert_eq!(text(&api, &rule).await, "no freeze");
            continue;
        }
        for (what, body) in [("records", &overwrite), ("correct", &correct), ("forget", &forget)] {
            let refused = ada.post(&format!("{RUNTIME}/{what}"), body).await;
            assert_eq!(
                refused.problem(),
                (403, "forbidden"),
                "{provider} {what}: {}",
                refused.text
            );
            assert!(refused.text.contains("an administrator wrote the record"), "{}", refused.text);
        }
        for (tool, arguments) in [
            ("memory_forget", json!({"ids": [id]})),
            ("memory_correct", json!({"id": id, "text": "no freeze"})),
        ] {
            let refused = agent.is_refused(tool, arguments).await;
            assert!(refused.contains("an administrator wrote the record"), "{tool}: {refused}");
        }
        // What is forgotten as a whole leaves it, and takes the agent's own.
        let mine = json!({"scope": {"companyId": "acme", "agentId": "ada"}});
        ada.post(&format!("{RUNTIME}/scope/forget"), &mine).await;
        assert_eq!(text(&api, &rule).await, "Deployments are frozen on Fridays", "{provider}");
        let forget = json!({"scope": scope(), "handles": [own]});
        ada.post(&format!("{RUNTIME}/forget"), &forget).await;
        // An administrator changes it, and what an administrator corrected is kept, too.
        api.post(&format!("{RUNTIME}/correct"), &correct).await.fine();
        let hers = write(&ada, "The south hall is closed").await;
        let patch = json!({"record": {"text": "The south hall is open"}});
        let correct = json!({"scope": scope(), "handle": hers, "patch": patch});
        let corrected = api.post(&format!("{RUNTIME}/correct"), &correct).await.fine();
        let now = corrected.get("record").and_then(|record| record.get("handle"));
        let now = now.unwrap_or(&hers).clone();
        let forget = json!({"scope": scope(), "handles": [now]});
        let refused = ada.post(&format!("{RUNTIME}/forget"), &forget).await;
        assert_eq!(refused.problem(), (403, "forbidden"), "{provider}: {}", refused.text);
    }
}
