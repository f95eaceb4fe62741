//! Forgotten is gone: from every answer of every route, from exports, and, after a compaction, from
//! every file under the data directory. With the providers that ship.

use std::path::{Path, PathBuf};
use std::time::Duration;

use memhost_server::Method;
use memhost_tests::{Serving, TestHost, eventually};
use serde_json::{Value, json};

use super::cli;
use super::mcp_http::{self, Client};
use super::support::Api;

/// A word that nothing else contains.
const WORD: &str = "quetzalcoatl7351";
const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";

async fn host(provider: &str, policy: &Value) -> (TestHost, Api) {
    let guests: &[&str] =
        if provider == "local-markdown" { &[] } else { std::slice::from_ref(&provider) };
    let host = TestHost::with(guests, |options| {
        options.retry.first = Duration::from_millis(10);
        options.compact_after = Duration::from_millis(50);
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    let grants = json!({"storageBytes": 64 << 20, "directoryBytes": 64 << 20});
    let body = json!({
        "key": "memory", "providerKey": provider, "grants": grants, "default": true,
        "policy": policy,
    });
    api.post(&format!("{CONTROL}/bindings"), &body).await.fine();
    (host, api)
}

/// What is kept of requests, so that everything that can have a text has it.
fn talkative() -> Value {
    json!({"retention": {"snapshots": "full"}})
}

fn scope() -> Value {
    json!({"companyId": "acme", "subjectId": "u1", "projectId": "p1", "runId": "r1"})
}

fn hydrate(id: &str) -> Value {
    json!({
        "hookKind": "pre_run_hydrate", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": scope(), "query": "which vendor", "deadlineMs": 30_000,
    })
}

async fn write(api: &Api, text: &str) -> Value {
    let body = json!({"scope": scope(), "records": [{"text": text, "metadata": {"kind": "fact"}}]});
    let key = [("idempotency-key", "write-1")];
    let made = api
        .send(Method::Post, &format!("{RUNTIME}/records"), Some(body.to_string()), &key)
        .await
        .fine();
    made["records"][0].clone()
}

/// Everything that the host answers about the company.
async fn everything(api: &Api) -> String {
    let mut all = String::new();
    for path in [
        "deliveries",
        "jobs",
        "operations",
        "activity",
        "events",
        "reviews",
        "cost-events",
        "finance-events",
        "export",
        "bindings",
        "costs",
        "evaluation",
    ] {
        let answer = api.send(Method::Get, &format!("{CONTROL}/{path}"), None, &[]).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        all.push_str(&answer.text);
    }
    let operations = api.get(&format!("{CONTROL}/operations?limit=1000")).await;
    for operation in operations["items"].as_array().unwrap() {
        let id = operation["id"].as_str().unwrap();
        all.push_str(&api.get(&format!("{CONTROL}/operations/{id}")).await.to_string());
    }
    for (path, body) in [
        ("list", json!({"scope": {"companyId": "acme"}})),
        ("query", json!({"scope": scope(), "query": "vendor"})),
    ] {
        all.push_str(&api.post(&format!("{RUNTIME}/{path}"), &body).await.fine().to_string());
    }
    // Again under the keys of before.
    for (key, path, body) in keyed() {
        let again = api
            .send(Method::Post, &path, Some(body.to_string()), &[("idempotency-key", key)])
            .await;
        all.push_str(&again.text);
    }
    all.push_str(&api.post(&format!("{RUNTIME}/hooks"), &hydrate("h1")).await.fine().to_string());
    all
}

/// Reads whose answers are kept under a key.
fn keyed() -> Vec<(&'static str, String, Value)> {
    vec![
        ("query-1", format!("{RUNTIME}/query"), json!({"scope": scope(), "query": "which vendor"})),
        ("list-1", format!("{RUNTIME}/list"), json!({"scope": scope()})),
        ("hydrate-1", format!("{RUNTIME}/hooks"), hydrate("h1")),
    ]
}

/// The files below a directory that contain the word.
fn with_word(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(with_word(&path));
        } else if std::fs::read(&path)
            .is_ok_and(|bytes| memchr::memmem::find(&bytes, WORD.as_bytes()).is_some())
        {
            found.push(path);
        }
    }
    found
}

async fn is_gone_from_disk(host: &TestHost) {
    let data_dir = host.data_dir().to_owned();
    eventually("no file has the word any more", async || with_word(&data_dir).is_empty()).await;
}

async fn forget(api: &Api, handle: &Value) {
    let body = json!({
        "scope": {"companyId": "acme", "subjectId": "u1", "projectId": "p1"}, "handles": [handle],
    });
    let answer = api.post(&format!("{RUNTIME}/forget"), &body).await.fine();
    assert_eq!(answer["outcomes"][0]["effect"], "hard", "{answer}");
}

async fn forget_scope(api: &Api, _: &Value) {
    let body = json!({"scope": {"companyId": "acme", "runId": "r1"}});
    let answer = api.post(&format!("{RUNTIME}/scope/forget"), &body).await.fine();
    let at = &answer["bindings"][0];
    assert_eq!((&at["forgotten"], &answer["isComplete"]), (&json!(1), &json!(true)), "{answer}");
}

/// By handle, and by scope.
async fn forgotten_with(provider: &str) {
    is_gone_after(provider, forget).await;
    is_gone_after(provider, forget_scope).await;
}

async fn is_gone_after(provider: &str, forget: impl AsyncFnOnce(&Api, &Value)) {
    let (mut host, api) = host(provider, &talkative()).await;
    let handle = write(&api, &format!("The vendor is {WORD}")).await;
    for (key, path, body) in keyed() {
        let answer = api
            .send(Method::Post, &path, Some(body.to_string()), &[("idempotency-key", key)])
            .await;
        assert!((200..300).contains(&answer.status), "{provider}: {}", answer.text);
    }
    assert!(everything(&api).await.contains(WORD), "{provider}: the test looks where the text is");
    assert!(!with_word(host.data_dir()).is_empty(), "{provider}");
    forget(&api, &handle).await;
    let left = everything(&api).await;
    let at = left
        .find(WORD)
        .map(|at| left[at.saturating_sub(400)..(at + 100).min(left.len())].to_owned());
    assert_eq!(at, None, "{provider}");
    is_gone_from_disk(&host).await;
    let kept = api.get(&format!("{CONTROL}/operations?limit=1000")).await["items"]
        .as_array()
        .unwrap()
        .len();
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert!(!everything(&api).await.contains(WORD), "{provider}, after a restart");
    assert!(
        api.get(&format!("{CONTROL}/operations?limit=1000")).await["items"]
            .as_array()
            .unwrap()
            .len()
            >= kept
    );
    assert_eq!(with_word(host.data_dir()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_local_markdown_forgot_is_gone() {
    forgotten_with("local-markdown").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cross_agent_forgot_is_gone() {
    forgotten_with("cross-agent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_facts_forgot_is_gone() {
    forgotten_with("facts").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_taxonomy_forgot_is_gone() {
    forgotten_with("taxonomy").await;
}

/// What was forgotten is in no answer and no file, also after a restart.
async fn stays_gone(mut host: TestHost, api: Api) {
    let left = everything(&api).await;
    let at = left
        .find(WORD)
        .map(|at| left[at.saturating_sub(400)..(at + 100).min(left.len())].to_owned());
    assert_eq!(at, None);
    is_gone_from_disk(&host).await;
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    assert!(!everything(&Api::new(&host)).await.contains(WORD), "after a restart");
    assert_eq!(with_word(host.data_dir()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_forgets_over_mcp_is_gone() {
    let (host, api) = host("local-markdown", &talkative()).await;
    let serving = Serving::start(&host, cli::TOKEN).await.unwrap();
    let address = serving.url().trim_start_matches("http://").parse().unwrap();
    let token =
        mcp_http::token(&host, "acme", json!({"name": "ada", "role": "agent", "agentId": "ada"}))
            .await;
    let ada = Client::new(address, &token)
        .with("memhost-subject-id", "u1")
        .with("memhost-project-id", "p1");
    let noted = ada.does("memory.note", json!({"text": format!("The vendor is {WORD}")})).await;
    let found = ada.does("memory.search", json!({"query": "which vendor"})).await;
    assert!(found.to_string().contains(WORD), "{found}");
    assert!(everything(&api).await.contains(WORD) && !with_word(host.data_dir()).is_empty());
    let forgotten = ada.does("memory.forget", json!({"ids": [noted["record"]["id"]]})).await;
    assert_eq!(forgotten["outcomes"][0]["effect"], "hard", "{forgotten}");
    let found = ada.does("memory.search", json!({"query": "which vendor"})).await;
    assert_eq!(found["records"], json!([]));
    // A server that stops ends the work in the background, too.
    is_gone_from_disk(&host).await;
    serving.stop().await.unwrap();
    stays_gone(host, api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_person_forgets_on_the_command_line_is_gone() {
    let (host, api) = host("facts", &talkative()).await;
    let serving = Serving::start(&host, cli::TOKEN).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let environment = [
        ("MEMHOST_URL", serving.url()),
        ("MEMHOST_TOKEN", cli::TOKEN),
        ("MEMHOST_COMPANY", "acme"),
    ];
    let run = async |line: String| {
        let line = format!("{line} --subject u1 --project p1 -o json");
        let done = cli::run(home.path(), &environment, &cli::words(&line), "").await;
        assert_eq!(done.code, 0, "{line}: {done:?}");
        serde_json::from_str::<Value>(&done.out).unwrap()
    };
    let noted = run(format!("note 'The vendor is {WORD}' --metadata {{\"kind\":\"fact\"}}")).await;
    let found = run("search 'which vendor'".to_owned()).await;
    assert!(found.to_string().contains(WORD), "{found}");
    assert!(everything(&api).await.contains(WORD) && !with_word(host.data_dir()).is_empty());
    let id = noted["records"][0]["providerRecordId"].as_str().unwrap();
    let forgotten = run(format!("forget facts:{id}")).await;
    assert_eq!(forgotten["outcomes"][0]["effect"], "hard", "{forgotten}");
    let found = run("search 'which vendor'".to_owned()).await;
    assert_eq!(found["snippets"], json!([]));
    // A server that stops ends the work in the background, too.
    is_gone_from_disk(&host).await;
    serving.stop().await.unwrap();
    stays_gone(host, api).await;
}

/// What another company has stays, and so does what was not forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_was_forgotten_is_gone() {
    let (_host, api) = host("local-markdown", &talkative()).await;
    let handle = write(&api, &format!("The vendor is {WORD}")).await;
    let body = json!({"scope": scope(), "records": [{"text": "The vendor of paper is Smith"}]});
    let other = api.post(&format!("{RUNTIME}/records"), &body).await.fine();
    let theirs = json!({
        "scope": {"companyId": "zeta"}, "records": [{"text": format!("zeta knows {WORD}")}],
    });
    api.post("/runtime/v1/companies/zeta/records", &theirs).await.fine();
    forget(&api, &handle).await;
    let snapshot = format!("{CONTROL}/operations/{}", other["operationId"].as_str().unwrap());
    assert!(api.get(&snapshot).await["payload"]["text"].as_str().unwrap().contains("Smith"));
    let found = api.query("zeta", "zeta").await;
    assert_eq!(found, [format!("zeta knows {WORD}")]);
    assert!(!everything(&api).await.contains(WORD));
}

/// A host that ended before the compaction does it after its next start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_not_compacted_is_compacted_after_the_next_start() {
    let (mut host, api) = host("facts", &talkative()).await;
    host.change(|options| options.compact_after = Duration::from_hours(12));
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let handle = write(&api, &format!("The vendor is {WORD}")).await;
    forget(&api, &handle).await;
    drop(api);
    host.stop().await;
    assert!(!with_word(host.data_dir()).is_empty(), "the store keeps what was removed");
    host.start().await.unwrap();
    is_gone_from_disk(&host).await;
}

async fn only_review(api: &Api) -> Value {
    let page = api.get(&format!("{CONTROL}/reviews")).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1, "{page}");
    page["items"][0].clone()
}

/// A rejected record, and what a person took out of a text, is gone, also for those who may look at
/// everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_rejected_or_taken_out_in_a_review_is_gone() {
    for (decision, stays) in [
        (json!({"decision": "reject"}), None),
        (
            json!({"decision": "edit", "text": "Write to the vendor's office"}),
            Some("vendor's office"),
        ),
    ] {
        let policy = json!({"review": {"piiRisk": 2}, "retention": {"snapshots": "full"}});
        let (host, api) = host("local-markdown", &policy).await;
        api.capture("acme", &format!("Write to {WORD}@mail.example about the vendor")).await.fine();
        let item = only_review(&api).await;
        assert!(item["text"].as_str().unwrap().contains(WORD));
        let path = format!("{CONTROL}/reviews/{}/decision", item["id"].as_str().unwrap());
        api.post(&path, &decision).await.fine();
        api.post(&path, &decision).await.fine();
        let left = everything(&api).await;
        let at = left
            .find(WORD)
            .map(|at| left[at.saturating_sub(400)..(at + 100).min(left.len())].to_owned());
        assert_eq!(at, None, "{decision}");
        assert!(stays.is_none_or(|stays| left.contains(stays)), "{decision}");
        is_gone_from_disk(&host).await;
    }
}

/// The same for a capture that a person holds back before it leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discarded_or_rejected_capture_is_gone() {
    let (host, api) = super::support::extracting_with(2).await;
    let policy = json!({"policy": {"pii": "hold"}});
    api.patch(&format!("{CONTROL}/bindings/extracts"), &policy).await.fine();
    let body = json!({
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme"},
        "payload": {
            "text": format!("Write to {WORD}@mail.example"),
            "object": {"to": format!("{WORD}@mail.example")},
        },
        "metadata": {"to": format!("{WORD}@mail.example")},
    });
    api.post(&format!("{RUNTIME}/capture"), &body).await.fine();
    let item = only_review(&api).await;
    let path = format!("{CONTROL}/reviews/{}/decision", item["id"].as_str().unwrap());
    api.post(&path, &json!({"decision": "reject"})).await.fine();
    let event = json!({
        "hookKind": "manual_capture", "hookId": "dead", "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
        "waitMs": 10_000, "payload": {"text": format!("flaky 9 {WORD}")},
        "metadata": {"note": WORD},
    });
    let dead = api.post(&format!("{RUNTIME}/hooks"), &event).await.fine();
    assert_eq!(dead["deliveries"][0]["status"], "dead", "{dead}");
    let done =
        api.post(&format!("{CONTROL}/deliveries/discard"), &json!({"status": "dead"})).await.fine();
    assert_eq!(done, json!({"changed": 1, "more": false}));
    for path in ["deliveries", "reviews", "operations", "activity"] {
        let left = api.get(&format!("{CONTROL}/{path}")).await.to_string();
        assert!(!left.contains(WORD), "{path}: {left}");
    }
    drop(host);
}
