//! A record has one provenance: every surface that answers it says the same of where it came from
//! and who changed it, with every provider that can correct one, also after a restart.

use std::path::{Path, PathBuf};

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::cli::Terminal;
use super::mcp_http::{Client, OPERATOR, listening, token};
use super::support::Api;
use super::ui_pages::operator;
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

/// What a model, a person at a terminal and a person at a browser read of the same record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_names_source_writer_and_corrector() {
    let terminal = Terminal::open(&[]).await;
    let host = &terminal.host;
    let api = Api::new(host);
    let (ada, bob) = (api.agent("ada").await, api.agent("bob").await);
    let body = json!({
        "scope": {"companyId": "acme"}, "payload": {"text": "The launch is in May"},
        "source": serde_json::from_str::<Value>(FROM).unwrap(),
        "hook": {"hookKind": "issue_comment_capture", "hookId": "h1",
            "triggeredAt": "2026-01-02T03:04:05Z"},
    });
    let runtime = "/runtime/v1/companies/acme";
    let written = ada.post(&format!("{runtime}/capture"), &body).await.fine();
    let handle = &written["records"][0];
    let id = handle["providerRecordId"].as_str().unwrap();
    let body = json!({"scope": {"companyId": "acme"}, "handle": handle,
        "patch": {"record": {"text": "The launch is in June"}}});
    bob.post(&format!("{runtime}/correct"), &body).await.fine();
    let got = ask(&api, "acme", "get", json!({"handle": handle})).await.fine();
    assert_eq!(got["row"]["hookKind"], "issue_comment_capture", "{got}");
    let hook = json!({"hookKind": "pre_run_hydrate", "hookId": "r1", "query": "launch",
        "scope": {"companyId": "acme"}, "triggeredAt": "2026-11-20T10:00:00Z"});
    let recalled = api.post(&format!("{runtime}/hooks"), &hook).await.fine();
    let client =
        Client::new(listening(host.service()).await, OPERATOR).with("memhost-company-id", "acme");
    let found = client.call("memory_search", json!({"query": "launch"})).await;
    let visitor = operator(&api).await;
    let address = format!("/c/acme/records/default/{}", id.replace('#', "%23").replace('/', "%2F"));
    let texts = [
        ("recall", recalled["context"]["text"].as_str().unwrap().to_owned()),
        ("MCP", found["content"][0]["text"].as_str().unwrap().to_owned()),
        ("MCP, structured", found["structuredContent"].to_string()),
        ("command line", terminal.fine(&format!("record show '{id}'")).await),
        ("page", visitor.page(&address).await),
    ];
    for (surface, text) in &texts {
        for part in ["June", "c1", "agent:ada", "agent:bob", "2026-01-02"] {
            assert!(text.contains(part), "{surface} without {part}: {text}");
        }
    }
}

fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).into_iter().flatten().flatten().map(|one| one.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// A record that the host did not see written: its source is what its provider says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_a_provider_says_is_a_claim() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let written = api.capture("acme", "The launch is in May").await.fine();
    let id = written["records"][0]["providerRecordId"].as_str().unwrap();
    let all = files(host.data_dir());
    let file = all.iter().find(|path| path.extension().is_some_and(|end| end == "md"));
    let file = file.unwrap_or_else(|| panic!("no note in {all:?}"));
    let note = std::fs::read_to_string(file).unwrap();
    let planted = note.replace("May", "July").replace(id, "planted");
    std::fs::write(file.with_file_name("planted.md"), planted).unwrap();
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let page = ask(&api, "acme", "list", json!({"limit": 10})).await.fine();
    let items = page["items"].as_array().unwrap();
    let planted = items.iter().find(|item| item["text"].as_str().unwrap().contains("July"));
    let planted = planted.unwrap_or_else(|| panic!("{page}"));
    assert!(planted["source"].is_null() && planted["writtenBy"].is_null(), "{planted}");
    assert!(!planted["claimedSource"].is_null(), "{planted}");
}

/// Until when a record counts is a part of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_text_says_when_a_record_ends() {
    let terminal = Terminal::open(&[]).await;
    let api = Api::new(&terminal.host);
    let record = json!({"text": "The pier is closed", "expiresAt": "2031-07-08T09:10:11Z"});
    let body = json!({"scope": {"companyId": "acme"}, "records": [record]});
    let written = api.post("/runtime/v1/companies/acme/records", &body).await.fine();
    let id = written["records"][0]["providerRecordId"].as_str().unwrap();
    let hook = json!({"hookKind": "pre_run_hydrate", "hookId": "r1", "query": "pier",
        "scope": {"companyId": "acme"}, "triggeredAt": "2026-11-20T10:00:00Z"});
    let recalled = api.post("/runtime/v1/companies/acme/hooks", &hook).await.fine();
    let url = listening(terminal.host.service()).await;
    let client = Client::new(url, OPERATOR).with("memhost-company-id", "acme");
    let found = client.call("memory_search", json!({"query": "pier"})).await;
    let address = format!("/c/acme/records/default/{}", id.replace('#', "%23").replace('/', "%2F"));
    for (surface, text) in [
        ("recall", recalled["context"]["text"].as_str().unwrap().to_owned()),
        ("MCP", found["content"][0]["text"].as_str().unwrap().to_owned()),
        ("MCP, structured", found["structuredContent"].to_string()),
        ("command line", terminal.fine(&format!("record show '{id}'")).await),
        ("page", operator(&api).await.page(&address).await),
    ] {
        assert!(text.contains("2031-07-08"), "{surface}: {text}");
    }
}
