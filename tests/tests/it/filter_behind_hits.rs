//! A record that a filter wants, or that its reader may see, is found although a thousand others
//! fit the question better: with every provider that lists, the host looks further.

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::token;
use super::support::Api;
use super::whose::{ask, bind};

/// As many as a provider answers at most.
const OTHERS: usize = 1_000;

async fn write(api: &Api, records: Value, visibility: &str) {
    let body =
        json!({"scope": {"companyId": "acme"}, "records": records, "visibility": visibility});
    api.post("/runtime/v1/companies/acme/records", &body).await.fine();
}

fn better() -> Value {
    let one = |n| json!({"id": format!("n{n}"), "text": "needle needle needle"});
    (0..OTHERS).map(one).collect()
}

async fn found(api: &Api, filter: Value) -> Vec<String> {
    let body = json!({"query": "needle", "topK": 3, "filter": filter});
    let page = ask(api, "acme", "query", body).await.fine();
    assert!(page.get("degraded").is_none(), "{page}");
    let snippets = page["snippets"].as_array().unwrap().iter();
    let id = |snippet: &Value| snippet["handle"]["providerRecordId"].as_str().unwrap().to_owned();
    snippets.map(id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_and_a_reader_find_what_stands_behind_a_thousand_hits() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    bind(&api, "acme", "memory", "local-markdown", &json!({})).await;
    let mut agents = Vec::new();
    for name in ["ada", "bob"] {
        let body = json!({"name": name, "role": "agent", "agentId": name});
        agents.push(api.with(&token(&host, "acme", body).await));
    }
    let source =
        json!({"kind": "issue_comment", "companyId": "acme", "issueId": "i1", "commentId": "c1"});
    let text = "the needle of the issue, in a longer sentence than the others have";
    let target = json!([
        {"id": "target", "text": text, "source": source},
        {"id": "other", "text": "nothing that was asked for", "source": source},
    ]);
    write(&api, target, "company").await;
    write(&agents[0], better(), "agent").await;
    assert_eq!(found(&agents[1], json!({})).await[0], "target", "the others are private to ada");
    assert_eq!(found(&agents[0], json!({"issueId": "i1"})).await[0], "target");
    assert_eq!(found(&agents[0], json!({})).await.len(), 3);
}
