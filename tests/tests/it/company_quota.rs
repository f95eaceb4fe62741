//! The quota of what the host keeps of a company: one that writes all day does not fill the disk of
//! the others.

use std::sync::Arc;

use jiff::SignedDuration;
use memhost_server::Method;
use memhost_tests::TestHost;
use memhost_tests::clock::TestClock;
use serde_json::{Value, json};

use super::mcp_http;
use super::support::{Answer, Api};

const QUOTA: u64 = 200 << 10;

async fn emit(api: &Api, company: &str, number: usize) -> Answer {
    let event = json!({
        "eventId": format!("e{number}"), "type": "session.started", "projectId": "p",
        "sessionId": "s",
        "agentKind": "claude", "details": { "text": "x".repeat(8_000) },
    });
    api.post(&format!("/runtime/v1/companies/{company}/events"), &json!({ "events": [event] }))
        .await
}

fn note(company: &str, text: &str) -> Value {
    let source = json!({ "kind": "manual_note", "companyId": company });
    json!({ "scope": { "companyId": company }, "source": source, "records": [{ "text": text }] })
}

async fn write(api: &Api, company: &str, text: &str) -> Answer {
    api.post(&format!("/runtime/v1/companies/{company}/records"), &note(company, text)).await
}

fn refused(answer: &Answer) {
    assert_eq!(answer.problem(), (507, "quota_exceeded"), "{}", answer.text);
    assert!(
        answer.json["detail"].as_str().unwrap().contains("company_max_bytes"),
        "{}",
        answer.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_that_writes_all_day_is_refused_alone_until_it_has_less() {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock);
    let host = TestHost::with(&[], |options| {
        options.clock = shared;
        options.store.company_bytes = QUOTA;
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    let company = "/control/v1/companies/acme";
    let held = async || api.get(&format!("{company}/usage")).await["heldBytes"].as_u64().unwrap();
    let written = write(&api, "acme", "deploys are frozen on Fridays").await.fine();
    write(&api, "other", "theirs").await.fine();
    let mut events = 0;
    while events < 100 && emit(&api, "acme", events).await.status < 300 {
        events += 1;
    }
    assert!((10..100).contains(&events), "{events}");
    refused(&emit(&api, "acme", 1_000).await);
    assert_eq!(api.get(&format!("{company}/usage")).await["maxBytes"], QUOTA);
    assert!((QUOTA..QUOTA + 16_000).contains(&held().await), "{}", held().await);
    // Every way in is closed, and a key may be used again later.
    refused(&write(&api, "acme", "new").await);
    let path = "/runtime/v1/companies/acme/records";
    let keyed = async || {
        let body = Some(note("acme", "with a key").to_string());
        api.send(Method::Post, path, body, &[("idempotency-key", "k1")]).await
    };
    refused(&keyed().await);
    refused(&api.capture("acme", "new").await);
    refused(
        &api.post(&format!("{company}/tokens"), &json!({ "name": "new", "role": "auditor" })).await,
    );
    let hook = json!({
        "hookKind": "manual_capture", "hookId": "h", "triggeredAt": "2026-01-01T00:00:00Z",
        "scope": { "companyId": "acme" }, "source": { "kind": "manual_note", "companyId": "acme" },
        "payload": { "text": "something" },
    });
    refused(&api.post("/runtime/v1/companies/acme/hooks", &hook).await);
    refused(
        &api.post("/runtime/v1/companies/acme/hooks/batch", &json!({ "events": [hook] })).await,
    );
    // The others do not notice.
    emit(&api, "other", 0).await.fine();
    write(&api, "other", "more of theirs").await.fine();
    let doctor = api.get("/control/v1/doctor").await;
    let check = doctor["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "companies")
        .unwrap();
    assert_eq!(check["health"], "warning", "{check}");
    assert!(check["found"].as_str().unwrap().contains("acme"), "{check}");
    // Reads go on; their records take a quarter more than the quota at most.
    assert_eq!(api.query("acme", "may I deploy on Fridays?").await.len(), 1);
    let query = json!({ "scope": { "companyId": "acme" }, "query": "x" });
    let mut reads = 0;
    while reads < 1_000 && api.post("/runtime/v1/companies/acme/query", &query).await.status == 200
    {
        reads += 1;
    }
    refused(&api.post("/runtime/v1/companies/acme/query", &query).await);
    assert!(held().await < QUOTA + QUOTA / 4 + 16_000, "{}", held().await);
    // What removes something goes on, and then there is room.
    let forget = json!({ "scope": { "companyId": "acme" }, "handles": [written["records"][0]] });
    api.post("/runtime/v1/companies/acme/forget", &forget).await.fine();
    clock.advance(SignedDuration::from_hours(72));
    api.put(
        &format!("{company}/retention"),
        &json!({ "eventsMaxAgeDays": 1, "operationsMaxAgeDays": 1 }),
    )
    .await
    .fine();
    assert!(held().await < QUOTA / 2, "{}", held().await);
    emit(&api, "acme", 2_000).await.fine();
    let answer = keyed().await;
    assert!(!answer.headers.contains_key("idempotency-replayed"), "{}", answer.text);
    answer.fine();
    api.post(&format!("{company}/erase"), &json!({ "confirm": "acme" })).await.fine();
}

/// What deletions leave behind has a bound: answers under keys, snapshots of requests, and records
/// of operations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_deletions_leave_has_an_end() {
    const QUOTA: u64 = 64 << 10;
    let host = TestHost::with(&[], |options| options.store.company_bytes = QUOTA).await.unwrap();
    let api = Api::new(&host);
    let written = write(&api, "acme", "deploys are frozen on Fridays").await.fine();
    let ada = api.agent("ada").await;
    let made = json!({ "name": "chief", "role": "company_administrator" });
    let made = api.post("/control/v1/companies/acme/tokens", &made).await.fine();
    let chief = api.with(made["value"].as_str().unwrap());
    let full = json!({ "policy": { "retention": { "snapshots": "full" } } });
    chief.patch("/control/v1/companies/acme/bindings/default", &full).await.fine();
    let held =
        async || api.get("/control/v1/companies/acme/usage").await["heldBytes"].as_u64().unwrap();
    let unknown = |number: usize| {
        let id = format!("{}{number}", "z".repeat(500));
        json!({ "providerKey": "local-markdown", "providerRecordId": id })
    };
    let handles: Vec<Value> = (0..1_000).map(unknown).collect();
    let forget =
        |handles: &[Value]| json!({ "scope": { "companyId": "acme" }, "handles": handles });
    let path = "/runtime/v1/companies/acme/forget";
    let keyed = async |api: &Api, key: String, handles: &[Value]| {
        let body = Some(forget(handles).to_string());
        api.send(Method::Post, path, body, &[("idempotency-key", &key)]).await
    };
    // Neither an answer nor a snapshot for which there is no room is kept.
    for number in 0..3 {
        keyed(&ada, format!("large-{number}"), &handles).await.fine();
    }
    assert!(held().await < QUOTA, "{}", held().await);
    let again = keyed(&ada, "large-0".to_owned(), &handles).await;
    assert!(
        again.status == 200
            && again.text.is_empty()
            && again.headers.contains_key("idempotency-replayed")
    );
    // Where reads are refused, too, new keys are; what is known is answered, and without a key it
    // goes on.
    let mut keys = 0;
    while keys < 1_000 && keyed(&ada, format!("small-{keys}"), &handles[..1]).await.status == 200 {
        keys += 1;
    }
    refused(&keyed(&ada, "new".to_owned(), &handles[..1]).await);
    assert_eq!(keyed(&ada, "large-0".to_owned(), &handles).await.status, 200);
    assert!(
        (QUOTA + QUOTA / 4..QUOTA + QUOTA / 4 + 8_000).contains(&held().await),
        "{}",
        held().await
    );
    ada.post(path, &forget(&[written["records"][0].clone()])).await.fine();
    // Deletions end at twice the quota, and an administrator's settings half of it later. The
    // operator's go on.
    let mut deletions = 0;
    while deletions < 1_000 && ada.post(path, &forget(&handles[..1])).await.status == 200 {
        deletions += 1;
    }
    refused(&ada.post(path, &forget(&handles[..1])).await);
    assert!((2 * QUOTA..2 * QUOTA + 8_000).contains(&held().await), "{}", held().await);
    let describe = async |api: &Api, days: usize| {
        let body = json!({ "activityMaxAgeDays": 100 + days }).to_string();
        api.send(Method::Put, "/control/v1/companies/acme/retention", Some(body), &[]).await
    };
    describe(&chief, 0).await.fine();
    let mut changes = 0;
    while changes < 1_000 && describe(&chief, changes % 2 + 1).await.status < 300 {
        changes += 1;
    }
    refused(&describe(&chief, 3).await);
    assert!(held().await < 2 * QUOTA + QUOTA / 2 + 8_000, "{}", held().await);
    api.post(path, &forget(&handles[..1])).await.fine();
    describe(&api, 4).await.fine();
    api.post("/control/v1/companies/acme/erase", &json!({ "confirm": "acme" })).await.fine();
}

/// Over MCP as over HTTP: the key of a refusal by the quota is free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_over_mcp_does_later_what_a_full_company_refused() {
    let clock = TestClock::new();
    let shared = Arc::clone(&clock);
    let host = TestHost::with(&[], |options| {
        options.clock = shared;
        options.store.company_bytes = QUOTA;
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    write(&api, "acme", "the first").await.fine();
    let client = mcp_http::agent(&host, mcp_http::listening(host.service()).await).await;
    let client = client.with("idempotency-key", "note-1");
    let mut events = 0;
    while events < 100 && emit(&api, "acme", events).await.status < 300 {
        events += 1;
    }
    clock.advance(SignedDuration::from_hours(49));
    let note = json!({ "text": "The gate is green" });
    let text = client.is_refused("memory.note", note.clone()).await;
    assert!(text.starts_with("quota_exceeded:"), "{text}");
    let retention = json!({ "eventsMaxAgeDays": 1, "operationsMaxAgeDays": 1 });
    api.put("/control/v1/companies/acme/retention", &retention).await.fine();
    client.does("memory.note", note).await;
}

#[tokio::test]
async fn a_company_over_its_quota_can_be_erased() {
    let host = TestHost::with(&[], |options| options.store.company_bytes = 16 << 10).await.unwrap();
    let api = Api::new(&host);
    write(&api, "acme", "deploys are frozen on Fridays").await.fine();
    // One request can bring more than there is room for: the next one is refused.
    let event = json!({
        "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "claude",
        "details": { "text": "x".repeat(8_000) },
    });
    let events = json!({ "events": [event, event, event, event] });
    api.post("/runtime/v1/companies/acme/events", &events).await.fine();
    let query = json!({ "scope": { "companyId": "acme" }, "query": "x" });
    refused(&api.post("/runtime/v1/companies/acme/query", &query).await);
    api.post("/control/v1/companies/acme/erase", &json!({ "confirm": "acme" })).await.fine();
}
