//! Requests to companies that the host does not have: they are refused and leave nothing. What an
//! operator makes for a company makes it.

use memhost_server::{Method, openapi};
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::cli::Terminal;
use super::mcp_http::{Client, OPERATOR, listening};
use super::support::{Answer, Api};
use super::ui_pages::operator;

/// A company that nobody has made. `acme` exists.
const UNKNOWN: &str = "acmee";

/// What may be the first thing that is made for a company.
const FIRST: [&str; 9] = [
    "makeCompany",
    "createBinding",
    "ensureDefaultBinding",
    "createToken",
    "setSecret",
    "importCompany",
    "capture",
    "captureBatch",
    "upsertRecords",
];

async fn companies(api: &Api) -> Vec<String> {
    let found = api.get("/control/v1/companies").await;
    found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|company| company.as_str().unwrap().to_owned())
        .collect()
}

fn scope(company: &str) -> Value {
    json!({"companyId": company})
}

fn hook(company: &str, kind: &str) -> Value {
    json!({
        "hookKind": kind, "hookId": "h1", "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": scope(company),
        "source": {"kind": "manual_note", "companyId": company}, "payload": {"text": "a fact"},
        "query": "a fact",
    })
}

/// A valid body of a memory operation: the host looks at the scope in it.
fn body(operation: &str, company: &str) -> Value {
    let handle = json!({"providerKey": "local-markdown", "providerRecordId": "r1"});
    let (scope, text) = (scope(company), "a fact");
    match operation {
        "query" | "explainQuery" => json!({"scope": scope, "query": text}),
        "getRecord" => json!({"scope": scope, "handle": handle}),
        "forget" => json!({"scope": scope, "handles": [handle]}),
        "correct" => json!({"scope": scope, "handle": handle, "patch": {"instruction": text}}),
        "capture" => {
            let source = json!({"kind": "manual_note", "companyId": company});
            json!({"scope": scope, "source": source, "payload": {"text": text}})
        }
        "upsertRecords" => json!({"scope": scope, "records": [{"text": text}]}),
        "importRecords" => json!({"scope": scope, "lines": ""}),
        "deliverHook" => hook(company, "manual_capture"),
        "deliverHooks" => json!({"events": [hook(company, "manual_capture")]}),
        "forgetSources" | "listSources" => {
            json!({"scope": scope, "sources": [{"commentId": "c1"}]})
        }
        _ => json!({"scope": scope}),
    }
}

/// Every documented request about a company that is not among the first that one can make for it.
fn requests(company: &str) -> Vec<(Method, String, Option<String>, String)> {
    let (document, mut all) = (openapi(), Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, route) in item.as_object().unwrap() {
            let Some(id) = route["operationId"].as_str() else { continue };
            let is_of_company = path.contains("/companies/{company}");
            if !is_of_company || FIRST.contains(&id) {
                continue;
            }
            let method = match method.as_str() {
                "get" => Method::Get,
                "post" => Method::Post,
                "put" => Method::Put,
                "patch" => Method::Patch,
                "delete" => Method::Delete,
                other => panic!("{other} {path}"),
            };
            let path = path
                .replace("{company}", company)
                .replace("{period}", "day")
                .replace("{key}", "default");
            let path = path
                .replace("{id}", "0199e2a0-0000-7000-8000-000000000000")
                .replace("{name}", "KEY");
            let path = path.split('/').map(|part| if part.starts_with('{') { "x1" } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            let body = route.get("requestBody").map(|_| body(id, company).to_string());
            all.push((method, path, body, id.to_owned()));
        }
    }
    all
}

fn assert_unknown(answer: &Answer, what: &str) {
    assert_eq!(answer.problem(), (404, "unknown_company"), "{what}: {}", answer.text);
    let detail = answer.json["detail"].as_str().unwrap();
    assert!(
        detail.contains("`acmee`") && detail.contains("company create --company acmee"),
        "{what}: {detail}"
    );
}

/// The export of a company with a record.
async fn export(company: &str) -> String {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    api.capture(company, "a fact that moves").await.fine();
    api.send(Method::Get, &format!("/control/v1/companies/{company}/export"), None, &[]).await.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_but_the_first_ones_makes_a_company() {
    let lines = export(UNKNOWN).await;
    let mut host = TestHost::new(&[]).await.unwrap();
    let mut asked = 0;
    for is_restarted in [false, true] {
        let api = Api::new(&host);
        for (number, (method, path, body, id)) in requests(UNKNOWN).into_iter().enumerate() {
            let key = format!("key-{number}");
            let keys: &[(&str, &str)] =
                if method == Method::Get { &[] } else { &[("idempotency-key", &key)] };
            let answer = api.send(method, &path, body, keys).await;
            assert_unknown(&answer, &id);
            assert!(
                answer.json["detail"].as_str().unwrap().contains("did you mean `acme`?"),
                "{}",
                answer.text
            );
            asked += 1;
        }
        assert!(asked >= 60, "{asked}");
        for kind in ["pre_run_hydrate", "post_run_capture", "issue_comment_capture"] {
            let path = format!("/runtime/v1/companies/{UNKNOWN}/hooks");
            assert_unknown(&api.post(&path, &hook(UNKNOWN, kind)).await, kind);
        }
        assert_eq!(companies(&api).await, ["acme"], "restarted: {is_restarted}");
        let metrics = api.send(Method::Get, "/metrics", None, &[]).await.text;
        let counted: u64 = metrics
            .lines()
            .find_map(|line| line.strip_prefix("memhost_unknown_company_total ")?.parse().ok())
            .unwrap_or_else(|| panic!("{metrics}"));
        assert!(counted >= 60, "{counted}");
        if !is_restarted {
            drop(api);
            host.stop().await;
            host.start().await.unwrap();
        }
    }
    // Nothing is in the way of the company.
    let api = Api::new(&host);
    let path = format!("/control/v1/companies/{UNKNOWN}/import?acceptGrants=true&scope=company");
    api.send(Method::Post, &path, Some(lines), &[]).await.fine();
    assert_eq!(companies(&api).await, ["acme", UNKNOWN]);
    assert_eq!(api.query(UNKNOWN, "fact").await, ["a fact that moves"]);
    let operations =
        api.get(&format!("/control/v1/companies/{UNKNOWN}/operations?outcome=refused")).await;
    assert_eq!(operations["items"], json!([]), "a refusal became an operation of the company");
    // The same key after the company is there: what it was refused is no answer.
    let path = format!("/runtime/v1/companies/{UNKNOWN}/query");
    for (number, (_, known, body, _)) in requests(UNKNOWN).into_iter().enumerate() {
        if known == path {
            let key = format!("key-{number}");
            api.send(Method::Post, &path, body, &[("idempotency-key", &key)]).await.fine();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_thing_that_an_operator_makes_makes_its_company() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let control = |company: &str, rest: &str| format!("/control/v1/companies/{company}{rest}");
    let runtime = |company: &str, rest: &str| format!("/runtime/v1/companies/{company}/{rest}");
    let binding = json!({"key": "main", "providerKey": "local-markdown"});
    let line = json!({
        "scope": {"companyId": "first-batch"},
        "source": {"kind": "manual_note", "companyId": "first-batch"},
        "payload": {"text": "a fact"},
    });
    let used_as = json!({"kind": "query", "parameter": "key"});
    let secret = json!({
        "value": "a value of eight", "origins": ["https://api.example.com"], "usedAs": used_as,
    });
    let first: Vec<(&str, Method, String, String)> = vec![
        ("first-itself", Method::Put, control("first-itself", ""), String::new()),
        ("first-binding", Method::Post, control("first-binding", "/bindings"), binding.to_string()),
        (
            "first-default",
            Method::Put,
            control("first-default", "/default-binding"),
            binding.to_string(),
        ),
        (
            "first-token",
            Method::Post,
            control("first-token", "/tokens"),
            json!({"name": "ada", "role": "agent", "agentId": "ada"}).to_string(),
        ),
        ("first-secret", Method::Put, control("first-secret", "/secrets/KEY"), secret.to_string()),
        (
            "first-capture",
            Method::Post,
            runtime("first-capture", "capture"),
            body("capture", "first-capture").to_string(),
        ),
        (
            "first-record",
            Method::Post,
            runtime("first-record", "records"),
            body("upsertRecords", "first-record").to_string(),
        ),
        (
            "first-import",
            Method::Post,
            control("first-import", "/import"),
            export("first-import").await,
        ),
    ];
    for (company, method, path, body) in &first {
        let missing = api.send(Method::Get, &control(company, "/bindings"), None, &[]).await;
        assert_eq!(missing.problem(), (404, "unknown_company"), "{company}");
        api.send(*method, path, Some(body.clone()), &[]).await.fine();
        api.get(&control(company, "/bindings")).await;
        assert!(companies(&api).await.iter().any(|known| known == company), "{company}");
    }
    let batch = api
        .send(
            Method::Post,
            &runtime("first-batch", "capture/batch"),
            Some(line.to_string()),
            &[("content-type", "application/x-ndjson")],
        )
        .await;
    assert_eq!(batch.status, 200, "{}", batch.text);
    api.get(&control("first-batch", "/bindings")).await;
    let again = api.send(Method::Put, &control("first-itself", ""), None, &[]).await.fine();
    assert_eq!(again["isNew"], false);
    let before = companies(&api).await;
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(companies(&api).await, before);
    for (company, ..) in &first {
        api.get(&control(company, "/bindings")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_makes_no_company() {
    let lines = export(UNKNOWN).await;
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let control = |rest: &str| format!("/control/v1/companies/{UNKNOWN}/{rest}");
    let runtime = |rest: &str| format!("/runtime/v1/companies/{UNKNOWN}/{rest}");
    let mut long = body("upsertRecords", UNKNOWN);
    long["records"][0]["text"] = "".into();
    let mut named = body("capture", UNKNOWN);
    named["bindingKey"] = "main".into();
    let for_nobody = |operation: &str, visibility: &str| {
        let mut body = body(operation, UNKNOWN);
        body["visibility"] = visibility.into();
        body
    };
    for (path, body, status) in [
        (control("bindings"), json!({"key": "main", "providerKey": "nobodys"}), 404),
        (control("tokens"), json!({"name": "ada", "role": "agent"}), 400),
        (control("import"), json!({"type": "nothing"}), 400),
        (control("erase"), json!({"confirm": UNKNOWN}), 404),
        (runtime("records"), long, 400),
        (runtime("capture"), named, 404),
        (runtime("records"), for_nobody("upsertRecords", "agent"), 400),
        (runtime("capture"), for_nobody("capture", "person"), 400),
        (runtime("import"), json!({"scope": scope(UNKNOWN), "lines": "{}"}), 404),
    ] {
        let answer = api.post(&path, &body).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert_eq!(companies(&api).await, ["acme"], "{path}");
    }
    // A token without the right writes nothing, and no log of a company that does not exist has its
    // refusal.
    let limited = json!({"name": "reader", "role": "operator", "operations": ["query", "view"]});
    let limited = api.post("/control/v1/tokens", &limited).await.fine();
    let limited = api.with(limited["value"].as_str().unwrap());
    assert_eq!(limited.capture(UNKNOWN, "a fact").await.status, 403);
    // Who may not list companies is not told of one.
    let answer = limited.send(Method::Get, &control("bindings"), None, &[]).await;
    assert_unknown(&answer, "limited");
    assert!(!answer.text.contains("did you mean"), "{}", answer.text);
    // Nor is the bearer of another company's token told whether one exists.
    let ada = api.agent("ada").await;
    assert_eq!(ada.capture(UNKNOWN, "a fact").await.problem(), (403, "forbidden"));
    drop((api, limited, ada));
    host.stop().await;
    // Without a binding for everybody a write has nobody to answer it.
    host.change(|options| options.zero_config = false);
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(companies(&api).await, ["acme"]);
    assert_unknown(&api.capture(UNKNOWN, "a fact").await, "no configuration");
    assert_eq!(companies(&api).await, ["acme"]);
    // No refusal above is in the way of the company, or in its log.
    let path = control("import?acceptGrants=true&scope=company");
    api.send(Method::Post, &path, Some(lines), &[]).await.fine();
    assert_eq!(api.get(&control("operations?outcome=refused")).await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reaches_no_company_is_told_of_none() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    api.make("other").await;
    let body = json!({"name": "m", "role": "monitor"});
    let value =
        api.post("/control/v1/tokens", &body).await.fine()["value"].as_str().unwrap().to_owned();
    let monitor = api.with(&value);
    let mut asked = 0;
    for ((method, path, body, id), (_, other_path, other_body, _)) in
        requests(UNKNOWN).into_iter().zip(requests("other"))
    {
        let unknown = monitor.send(method, &path, body, &[]).await;
        let known = monitor.send(method, &other_path, other_body, &[]).await;
        assert_eq!((unknown.status, &unknown.json), (403, &known.json), "{id}: {}", known.text);
        asked += 1;
    }
    assert!(asked >= 60, "{asked}");
    let address = listening(host.service()).await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("tools/call", json!({"name": "memory.search", "arguments": {"query": "a fact"}})),
    ] {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut answers = Vec::new();
        for company in [UNKNOWN, "other"] {
            let client = Client::new(address, &value).with("memhost-company-id", company);
            answers.push(client.send("POST", message.clone()).await.json.to_string());
        }
        assert_eq!(answers[0], answers[1], "{method}");
        assert!(
            answers[0].contains("does not allow") || method == "resources/list",
            "{method}: {answers:?}"
        );
    }
    let log = api.get("/control/v1/companies/other/operations").await;
    assert_eq!(log["items"], json!([]), "it wrote into a company's log");
    // Neither does a message repeat what reorders a text.
    let answer =
        api.send(Method::Get, "/control/v1/companies/acm%E2%80%AEe/bindings", None, &[]).await;
    assert_eq!(answer.problem(), (404, "unknown_company"));
    assert!(
        !answer.text.contains('\u{202e}') && answer.text.contains("u{202e}"),
        "{}",
        answer.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_says_which_company_is_meant() {
    let terminal = Terminal::open(&[]).await;
    for line in [
        "search fact -c acmee",
        "record list -c acmee",
        "binding list -c acmee",
        "operation list -c acmee",
        "company show -c acmee",
        "company export -c acmee",
        "company delete -c acmee --confirm acmee",
        "binding update main -c acmee --enabled true",
    ] {
        let done = terminal.run(line).await;
        assert_eq!(done.code, 3, "{line}: {done:?}");
        let told = [
            "no company `acmee`",
            "did you mean `acme`?",
            "memhost company create --company acmee",
        ];
        assert!(told.iter().all(|text| done.err.contains(text)), "{line}: {done:?}");
    }
    assert!(!terminal.fine("company list").await.contains("acmee"));
    assert!(terminal.fine("company create -c acmee").await.contains("acmee: created"));
    assert!(terminal.fine("company create -c acmee").await.contains("exists already"));
    assert!(terminal.fine("company list").await.contains("acmee"));
    terminal.fine("search fact -c acmee").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_and_a_person_are_told() {
    let host = TestHost::new(&[]).await.unwrap();
    let client =
        Client::new(listening(host.service()).await, OPERATOR).with("memhost-company-id", UNKNOWN);
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("tools/call", json!({"name": "memory.search", "arguments": {"query": "a fact"}})),
    ] {
        let answer = client.send(
            "POST",
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string(),
        );
        let answer = answer.await.json.to_string();
        assert!(answer.contains("this host has no company `acmee`"), "{method}: {answer}");
    }
    let api = Api::new(&host);
    let visitor = operator(&api).await;
    for page in
        ["", "/records", "/query", "/operations", "/bindings", "/tokens", "/new-binding", "/live"]
    {
        let answer = visitor.get(&format!("/c/{UNKNOWN}{page}")).await;
        assert_eq!(answer.status, 404, "{page}: {}", answer.text);
        assert!(
            answer.text.contains("this host has no company `acmee`"),
            "{page}: {}",
            answer.text
        );
    }
    assert_eq!(companies(&api).await, ["acme"]);
}
