//! What answers say beside their records: who asserts a source, what a token may not do, how a rate
//! stands, which binding an operation was for, and that a read under an idempotency key is done
//! again.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Api, bind_provider};

const RUNTIME: &str = "/runtime/v1/companies/acme";
const BINDINGS: &str = "/control/v1/companies/acme/bindings";

async fn with(provider: &str) -> (TestHost, Api) {
    let shipped: &[&str] = if provider == "local-markdown" { &[] } else { &[provider] };
    let host = TestHost::new(shipped).await.unwrap();
    let api = Api::new(&host);
    let grants = json!({"storageBytes": 64 << 20, "directoryBytes": 64 << 20, "clock": true});
    let body = json!({"key": "memory", "providerKey": provider, "grants": grants, "default": true});
    api.post(BINDINGS, &body).await.fine();
    (host, api)
}

/// What an agent says of a source is shown as what it says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_shown_with_who_asserts_their_source() {
    for provider in ["local-markdown", "cross-agent", "facts", "taxonomy"] {
        let (_host, api) = with(provider).await;
        let ada = api.agent("ada").await;
        let source = json!({
            "kind": "issue_comment", "companyId": "acme", "commentId": "c9", "issueId": "i1",
        });
        let record = json!({
            "text": "The bell rings at nine", "metadata": {"kind": "fact", "confidence": 0.99},
        });
        let body = json!({"scope": {"companyId": "acme"}, "source": source, "records": [record]});
        let handle =
            ada.post(&format!("{RUNTIME}/records"), &body).await.fine()["records"][0].clone();
        let scope = json!({"companyId": "acme"});
        let read = async |path: &str, body: Value| {
            api.post(&format!("{RUNTIME}/{path}"), &body).await.fine()
        };
        let got = read("get", json!({"scope": scope, "handle": handle})).await;
        let listed = read("list", json!({"scope": scope})).await;
        let filter = json!({"commentId": "c9"});
        let found = read("query", json!({"scope": scope, "query": "bell", "filter": filter})).await;
        for record in [&got["record"], &listed["items"][0], &found["snippets"][0]] {
            assert_eq!(record["source"]["assertedBy"], "agent:ada", "{provider}: {record}");
            assert_eq!(record["source"]["commentId"], "c9", "{provider}: {record}");
        }
    }
}

/// A fact of a project is forgotten by its handle without the project.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_needs_no_project() {
    for provider in ["local-markdown", "cross-agent", "facts", "taxonomy"] {
        let (_host, api) = with(provider).await;
        let ada = api.agent("ada").await;
        let record = json!({
            "text": "The bell rings at nine", "metadata": {"kind": "fact", "confidence": 0.99},
        });
        let body = json!({"scope": {"companyId": "acme", "projectId": "p1"}, "records": [record]});
        let handle =
            ada.post(&format!("{RUNTIME}/records"), &body).await.fine()["records"][0].clone();
        let scope = json!({"companyId": "acme"});
        let got = ada
            .post(&format!("{RUNTIME}/get"), &json!({"scope": scope, "handle": handle}))
            .await
            .fine();
        assert!(got["record"].is_object(), "{provider}: {got}");
        let forgotten = ada
            .post(&format!("{RUNTIME}/forget"), &json!({"scope": scope, "handles": [handle]}))
            .await
            .fine();
        assert_ne!(forgotten["outcomes"][0]["effect"], "not_found", "{provider}: {forgotten}");
    }
}

/// A refusal names no field that the request does not have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_an_agent_is_told_why_it_forgets_no_source() {
    let (_host, api) = with("local-markdown").await;
    let ada = api.agent("ada").await;
    let body = json!({"scope": {"companyId": "acme"}, "sources": [{"commentId": "c1"}]});
    let refused = ada.post(&format!("{RUNTIME}/sources/forget"), &body).await;
    assert_eq!(
        (refused.problem(), refused.json.get("field")),
        ((403, "forbidden"), None),
        "{}",
        refused.text
    );
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(detail.contains("acts for one agent") && !detail.contains("scope.agentId"), "{detail}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_for_a_disabled_binding_is_told_how_to_enable_it() {
    let (_host, api) = with("local-markdown").await;
    api.patch(&format!("{BINDINGS}/memory"), &json!({"enabled": false})).await.fine();
    let source = json!({"kind": "manual_note", "companyId": "acme"});
    let event = json!({
        "hookKind": "manual_capture", "hookId": "h1", "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": {"companyId": "acme"}, "source": source, "payload": {"text": "a fact"},
    });
    let answer = api.post(&format!("{RUNTIME}/hooks"), &event).await.fine();
    let reason = answer["notTaken"]["reason"].as_str().unwrap();
    assert!(reason.contains("memhost binding update memory --enabled true"), "{reason}");
    assert!(!reason.contains("--policy"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_for_the_rate_says_how_the_rate_stands() {
    let (_host, api) = with("local-markdown").await;
    api.patch(&format!("{BINDINGS}/memory"), &json!({"limits": {"callsPerSecond": 1}}))
        .await
        .fine();
    let body = json!({"scope": {"companyId": "acme"}, "query": "x"});
    for _ in 0..50 {
        let answer = api.post(&format!("{RUNTIME}/query"), &body).await;
        if answer.status == 429 {
            assert_eq!(answer.headers["ratelimit-policy"], "\"callsPerSecond\";q=1;w=1");
            assert!(
                answer.headers["ratelimit"]
                    .to_str()
                    .unwrap()
                    .starts_with("\"callsPerSecond\";r=0;t=")
            );
            assert!(answer.headers.contains_key("retry-after"));
            return;
        }
    }
    panic!("no call was over the rate");
}

/// A binding that has the key of a deleted one has operations of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_are_filtered_by_the_binding_and_not_its_key_alone() {
    let host = TestHost::new(&["facts"]).await.unwrap();
    let api = Api::new(&host);
    let mut ids = Vec::new();
    for number in 0..2 {
        bind_provider(&api, "acme", "facts").await;
        ids.push(api.get(&format!("{BINDINGS}/facts")).await["id"].as_str().unwrap().to_owned());
        api.query("acme", "x").await;
        if number == 0 {
            assert_eq!(
                api.send(Method::Delete, &format!("{BINDINGS}/facts"), None, &[]).await.status,
                204
            );
        }
    }
    assert_ne!(ids[0], ids[1]);
    for id in &ids {
        for filter in [format!("bindingId={id}"), format!("bindingId={id}&bindingKey=facts")] {
            let found = api.get(&format!("/control/v1/companies/acme/operations?{filter}")).await;
            let found = found["items"].as_array().unwrap();
            assert_eq!(found.len(), 1, "{filter}: {found:?}");
            assert_eq!(found[0]["bindingId"], *id);
        }
    }
}

/// A read with a key is done again: what a stored answer had may be forgotten by now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_with_an_idempotency_key_is_done_again() {
    let (_host, api) = with("local-markdown").await;
    let body =
        json!({"scope": {"companyId": "acme"}, "records": [{"text": "The bell rings at nine"}]});
    let handle = api.post(&format!("{RUNTIME}/records"), &body).await.fine()["records"][0].clone();
    let scope = json!({"companyId": "acme"});
    let reads = [
        ("query", json!({"scope": scope, "query": "bell"}), "snippets"),
        ("list", json!({"scope": scope}), "items"),
        ("sources/list", json!({"scope": scope, "sources": [{"commentId": "c1"}]}), "records"),
    ];
    let read = async |path: &str, body: &Value| {
        let key = [("idempotency-key", path)];
        let answer = api
            .send(Method::Post, &format!("{RUNTIME}/{path}"), Some(body.to_string()), &key)
            .await;
        assert!(!answer.headers.contains_key("idempotency-replayed"), "{path}");
        answer.fine()
    };
    for (path, body, _) in &reads {
        read(path, body).await;
    }
    let forget = json!({"scope": scope, "handles": [handle]});
    api.post(&format!("{RUNTIME}/forget"), &forget).await.fine();
    for (path, body, items) in &reads {
        let again = read(path, body).await;
        assert_eq!(again[*items], json!([]), "{path}: {again}");
    }
}
