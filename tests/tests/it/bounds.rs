//! What a caller can make the host keep, answer and compute is bounded, in bytes and not only in
//! count.

use std::sync::Arc;

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;
use super::ui_pages::{Visitor, operator};

const QUERY: &str = "/runtime/v1/companies/acme/query";
const RECORDS: &str = "/runtime/v1/companies/acme/records";
const HOOKS: &str = "/runtime/v1/companies/acme/hooks";
const OPERATIONS: &str = "/control/v1/companies/acme/operations";
const FEES: &str = "/control/v1/companies/acme/finance-events";
/// The largest page, as it is sent: 4 MiB as they are stored, and the record that passes them.
const LARGEST_PAGE: usize = 6 << 20;

async fn host() -> (TestHost, Api) {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    (host, api)
}

fn large(bytes: usize) -> String {
    "memory is a list of words ".repeat(bytes / 26)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_request_is_recorded_without_what_was_not_checked() {
    let (_host, api) = host().await;
    let huge = "x".repeat(7 << 20);
    let many = "x".repeat(64 << 10);
    let scope = |id: &str| json!({"companyId": "acme", "agentId": "ada", "projectId": id});
    for number in 0..120 {
        let id = if number < 3 { &huge } else { &many };
        let refused = api.post(QUERY, &json!({"scope": scope(id), "query": "q"})).await;
        assert_eq!(
            (refused.problem(), &refused.json["field"]),
            ((400, "invalid_request"), &json!("scope.projectId"))
        );
        assert!(refused.text.len() < 2_048, "{}", refused.text);
    }
    let capture = json!({
        "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme", "externalRef": &many},
        "hook": {"hookKind": &many, "hookId": &many, "triggeredAt": "2026-01-01T00:00:00Z"},
        "payload": {"text": "t"},
    });
    assert_eq!(
        api.post("/runtime/v1/companies/acme/capture", &capture).await.problem(),
        (400, "invalid_request")
    );
    let all = api.send(Method::Get, &format!("{OPERATIONS}?limit=1000"), None, &[]).await;
    let items = all.json["items"].as_array().unwrap();
    let count = items.iter().map(|item| item["count"].as_u64().unwrap_or(1)).sum::<u64>();
    assert_eq!(count, 121, "each is counted");
    assert!(all.text.len() < items.len() * 1_024, "{} bytes", all.text.len());
    assert!(
        items.iter().all(|item| item["outcome"] == "refused" && item["error"]["field"].is_string())
    );
    assert_eq!(items.last().unwrap()["scope"], json!({"companyId": "acme", "agentId": "ada"}));
    assert!(items[0]["source"].is_null() && items[0]["hook"].is_null(), "{}", items[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_very_many_values_is_refused() {
    let (_host, api) = host().await;
    let body = json!({
        "scope": {"companyId": "acme"}, "query": "q", "metadataFilter": {"a": vec![0; 1_000_001]},
    });
    let refused = api.post(QUERY, &body).await;
    assert_eq!(refused.problem(), (400, "invalid_request"));
    assert!(refused.text.contains("JSON values"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_hook_is_stored_unchecked() {
    let (_host, api) = host().await;
    let event = |field: &str, value: Value| {
        let mut event = json!({
            "hookKind": "pre_run_hydrate", "hookId": "h", "triggeredAt": "2026-01-01T00:00:00Z",
            "scope": {"companyId": "acme"}, "query": "q",
        });
        event[field] = value;
        event
    };
    let huge = "x".repeat(7 << 20);
    for (field, value, at) in [
        ("metadata", json!({"a": huge}), "metadata"),
        ("payload", json!({"text": huge}), "payload.text"),
        ("payload", json!({"object": {"a": huge}}), "payload.object"),
        (
            "source",
            json!({"kind": "run", "companyId": "acme", "externalRef": huge}),
            "source.externalRef",
        ),
        ("query", json!(huge), "query"),
        ("heartbeatRunId", json!(huge), "heartbeatRunId"),
        ("scope", json!({"companyId": "acme", "namespace": huge}), "scope.namespace"),
    ] {
        let refused = api.post(HOOKS, &event(field, value)).await;
        assert_eq!((refused.status, &refused.json["field"]), (400, &json!(at)), "{}", refused.text);
    }
    let deliveries = api.get("/control/v1/companies/acme/deliveries").await;
    assert_eq!(deliveries["items"], json!([]));
}

/// Reads a list to its end. Answers how many records it has, and the size of its largest page.
async fn read_all(api: &Api, path: &str) -> (usize, usize) {
    let (mut count, mut largest, mut cursor) = (0, 0, String::new());
    loop {
        let page = api.send(Method::Get, &format!("{path}?limit=1000{cursor}"), None, &[]).await;
        largest = largest.max(page.text.len());
        let json = page.fine();
        count += json["items"].as_array().unwrap().len();
        match json["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return (count, largest),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_ends_when_it_is_large() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let text = large(1_000_000);
    let record = json!({"scope": {"companyId": "acme"}, "records": [{"text": "a"}]});
    api.post(RECORDS, &record).await.fine();
    let policy = json!({"policy": {"retention": {"snapshots": "full"}}});
    api.patch("/control/v1/companies/acme/bindings/default", &policy).await.fine();
    for _ in 0..10 {
        let record = json!({"scope": {"companyId": "acme"}, "records": [{"text": text}]});
        api.post(RECORDS, &record).await.fine();
    }
    let (count, largest) = read_all(&api, OPERATIONS).await;
    assert!(count == 11 && largest < LARGEST_PAGE, "{count} operations, {largest} bytes");
    // All of them leave with the company, oldest first.
    let exported = api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    let exported =
        exported.lines().filter(|line| line.contains("\"kind\":\"record_upsert\"")).count();
    assert_eq!(exported, 11);

    // Rows of a table, which are found in another way than operations.
    for number in 0..30 {
        let fee = json!({
            "eventKind": "fee", "biller": "b", "amountCents": 1,
            "occurredAt": "2026-11-20T10:00:00Z", "externalInvoiceId": format!("i{number}"),
            "metadataJson": {"text": large(240_000)},
        });
        api.post(FEES, &fee).await.fine();
    }
    let (count, largest) = read_all(&api, FEES).await;
    assert!(count == 30 && largest < LARGEST_PAGE, "{count} cost events, {largest} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_follows_so_many_streams_and_no_more() {
    let (_host, api) = host().await;
    let made = api
        .post("/control/v1/companies/acme/tokens", &json!({"name": "t", "role": "auditor"}))
        .await
        .fine();
    let path = "/control/v1/companies/acme/stream";
    let auditor = api.with(made["value"].as_str().unwrap());
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(api.stream(path, &[]).await);
    }
    let refused = api.send(Method::Get, path, None, &[]).await;
    assert_eq!(refused.problem(), (429, "too_many_streams"), "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after"));
    let bearer = format!("Bearer {}", auditor.token());
    let others = auditor.stream(path, &[("authorization", &bearer)]).await;
    streams.pop();
    // The host learns of the end of a stream by itself.
    memhost_tests::eventually("a place is free again", async || {
        let request = memhost_server::Request { path: path.to_owned(), ..Default::default() };
        api.open(request).await == 200
    })
    .await;
    drop(others);
}

/// Every guard of `expect_off_executor` is on in this build: what computes for long on a thread of
/// the executor panics, and its request is answered with 500.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_large_is_computed_on_the_executor() {
    let (_host, api) = host().await;
    let texts: Vec<Value> =
        (0..40).map(|number| json!({"text": format!("{number} {}", large(20_000))})).collect();
    let scope = json!({"companyId": "acme"});
    api.post(RECORDS, &json!({"scope": scope, "records": texts})).await.fine();
    let policy =
        json!({"policy": {"review": {"threshold": 0.5}, "retention": {"snapshots": "full"}}});
    api.patch("/control/v1/companies/acme/bindings/default", &policy).await.fine();
    api.post(QUERY, &json!({"scope": scope, "query": "memory", "topK": 1_000})).await.fine();
    let open = json!({"policy": {}});
    api.patch("/control/v1/companies/acme/bindings/default", &open).await.fine();
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": "h", "triggeredAt": "2026-01-01T00:00:00Z",
        "scope": scope, "query": "memory words", "topK": 1_000, "tokenBudget": 100_000,
        "deadlineMs": 30_000,
    });
    let context = api.post(HOOKS, &hydrate).await.fine()["context"].clone();
    assert!(context["included"].as_u64().unwrap() > 10, "{}", context["degraded"]);
    assert!(context["tokens"].as_u64().unwrap() <= 100_000);
    for path in [
        OPERATIONS,
        "/control/v1/companies/acme/reviews",
        "/control/v1/companies/acme/deliveries",
        "/openapi.json",
    ] {
        api.get(path).await;
    }
    let list = json!({"scope": scope, "limit": 1_000});
    api.post("/runtime/v1/companies/acme/list", &list).await.fine();
    let capture = json!({
        "scope": scope, "source": {"kind": "run", "companyId": "acme"},
        "payload": {"text": large(1_000_000)},
    });
    api.post("/runtime/v1/companies/acme/capture", &capture).await.fine();
    let events: Vec<Value> = (0..1_000)
        .map(|_| {
            json!({
                "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "k",
                "details": {"a": large(5_000)},
            })
        })
        .collect();
    api.post("/runtime/v1/companies/acme/events", &json!({"events": events})).await.fine();
    let (count, largest) = read_all(&api, "/control/v1/companies/acme/events").await;
    assert!(count == 1_000 && largest < LARGEST_PAGE, "{count} events, {largest} bytes");
    let visitor = operator(&api).await;
    visitor.page("/c/acme/query?query=memory&topK=100").await;
    visitor.page("/c/acme/records").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_array_is_no_request() {
    let (_host, api) = host().await;
    for body in [
        json!(["default", {"companyId": "acme"}, "q"]),
        json!({"scope": ["acme", "ada"], "query": "q"}),
    ] {
        let refused = api.post(QUERY, &body).await;
        assert_eq!(refused.problem(), (400, "invalid_request"), "{}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_of_another_site_starts_no_call_of_a_provider() {
    let (_host, api) = host().await;
    api.post(RECORDS, &json!({"scope": {"companyId": "acme"}, "records": [{"text": "a"}]}))
        .await
        .fine();
    let visitor: Visitor = operator(&api).await;
    let recorded = async || api.get(OPERATIONS).await["items"].as_array().unwrap().len();
    let before = recorded().await;
    let session = visitor.session.as_str();
    for path in
        ["/c/acme/query?query=a", "/c/acme/records", "/c/acme/records/default/a", "/c/acme/browse"]
    {
        for site in ["cross-site", "same-site"] {
            for headers in
                [&[("cookie", session), ("sec-fetch-site", site)][..], &[("sec-fetch-site", site)]]
            {
                let answer = visitor.api.send(Method::Get, path, None, headers).await;
                assert!(
                    answer.status == 200 && answer.text.contains("Open the page"),
                    "{path}: {}",
                    answer.text
                );
                assert!(!answer.text.contains("http-equiv"), "{path} opens by itself");
            }
        }
    }
    assert_eq!(recorded().await, before, "a link of another site led to an operation");
    let own = [("cookie", session), ("sec-fetch-site", "same-origin")];
    let answer = visitor.api.send(Method::Get, "/c/acme/query?query=a", None, &own).await;
    assert!(answer.status == 200 && recorded().await > before, "{}", answer.text);
    // A page that asks no provider opens by itself.
    let answer = visitor
        .api
        .send(Method::Get, "/c/acme/operations", None, &[("sec-fetch-site", "cross-site")])
        .await;
    assert!(answer.text.contains("http-equiv"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_changes_at_once_under_one_revision_one_is_made_and_the_others_are_stale() {
    let (_host, api) = host().await;
    api.post(RECORDS, &json!({"scope": {"companyId": "acme"}, "records": [{"text": "a"}]}))
        .await
        .fine();
    let path = "/control/v1/companies/acme/bindings/default";
    let tag =
        api.send(Method::Get, path, None, &[]).await.headers["etag"].to_str().unwrap().to_owned();
    let api = Arc::new(api);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..24 {
        let (api, tag) = (Arc::clone(&api), tag.clone());
        tasks.spawn(async move {
            let body = json!({"limits": {"callTimeoutMs": 10_000 + number}}).to_string();
            api.send(Method::Patch, path, Some(body), &[("if-match", tag.as_str())]).await.status
        });
    }
    let mut statuses = tasks.join_all().await;
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (200, &[412; 23][..]));
}

/// Texts, lists and maps of a schema that may be of any size.
fn unbounded(
    document: &Value,
    schema: &Value,
    path: &str,
    inside: &mut Vec<String>,
    found: &mut Vec<String>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        if inside.iter().any(|known| known == reference) {
            return;
        }
        let mut target = document.pointer(&reference[1..]).unwrap().clone();
        let beside = schema.as_object().unwrap().iter().filter(|(word, _)| *word != "$ref");
        target
            .as_object_mut()
            .unwrap()
            .extend(beside.map(|(word, value)| (word.clone(), value.clone())));
        inside.push(reference.to_owned());
        unbounded(document, &target, path, inside, found);
        inside.pop();
        return;
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        for one in schema[word].as_array().into_iter().flatten() {
            unbounded(document, one, path, inside, found);
        }
    }
    let is = |kind: &str| {
        schema["type"] == kind
            || schema["type"].as_array().is_some_and(|all| all.contains(&json!(kind)))
    };
    let has = |word: &str| !schema[word].is_null();
    let is_short = ["enum", "const", "maxLength", "pattern"].into_iter().any(has)
        || matches!(schema["format"].as_str(), Some("uuid" | "date-time" | "date"));
    if is("string") && !is_short || is("array") && !has("maxItems") {
        found.push(path.to_owned());
    }
    if is("array") {
        unbounded(document, &schema["items"], &format!("{path}[]"), inside, found);
    }
    if is("object") {
        let names = schema["properties"].as_object();
        for (name, member) in names.into_iter().flatten() {
            unbounded(document, member, &format!("{path}.{name}"), inside, found);
        }
        let is_closed = schema["additionalProperties"] == json!(false)
            || has("maxProperties")
            || has("x-max-bytes");
        if !is_closed {
            found.push(format!("{path}.*"));
        }
    }
}

#[test]
fn every_field_of_every_body_in_the_document_has_a_limit() {
    let document = memhost_server::openapi();
    let (mut found, mut bodies) = (Vec::new(), 0);
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for (media, body) in
                operation["requestBody"]["content"].as_object().into_iter().flatten()
            {
                // Lines: each is read and checked by itself.
                if media == "application/x-ndjson" {
                    continue;
                }
                bodies += 1;
                unbounded(
                    &document,
                    &body["schema"],
                    &format!("{method} {path} "),
                    &mut Vec::new(),
                    &mut found,
                );
            }
        }
    }
    assert!(
        found.is_empty() && bodies > 20,
        "{bodies} bodies; without a limit:\n{}",
        found.join("\n")
    );
}
