//! The interfaces `profile`, `review` and `transfer` through the host.

use std::time::Duration;

use memhost_server::Method;
use memhost_tests::{Serving, TestHost, eventually};
use memhost_types::OperationKind;
use serde_json::{Value, json};

use super::cli;
use super::support::{Api, bind_provider};

const RUNTIME: &str = "/runtime/v1/companies/acme";
const CONTROL: &str = "/control/v1/companies/acme";
const REVIEWS: &str = "/control/v1/companies/acme/reviews";

async fn reference() -> (TestHost, Api) {
    let host = TestHost::new(&["reference"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "reference").await;
    (host, api)
}

async fn note(api: &Api, text: &str, metadata: &Value) {
    let body =
        json!({"scope": {"companyId": "acme"}, "records": [{"text": text, "metadata": metadata}]});
    api.post(&format!("{RUNTIME}/records"), &body).await.fine();
}

async fn preamble(api: &Api, intent: &str) -> Value {
    let body = json!({"scope": {"companyId": "acme"}, "query": "", "intent": intent});
    api.post(&format!("{RUNTIME}/query"), &body).await.fine()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recall_before_a_run_includes_the_summary() {
    let (_host, api) = reference().await;
    note(&api, "the gate is green", &json!({})).await;
    assert_eq!(preamble(&api, "agent_preamble").await["profileSummary"], "Number of records: 1");
    assert_eq!(
        preamble(&api, "answer").await["profileSummary"],
        Value::Null,
        "only the start of a run does"
    );
    // A summary may contain records that nobody has approved, so it is left out.
    let binding = "/control/v1/companies/acme/bindings/reference";
    api.patch(binding, &json!({"policy": {"review": {"all": true}}})).await.fine();
    assert_eq!(preamble(&api, "agent_preamble").await["profileSummary"], Value::Null);
}

async fn queue(api: &Api, status: &str) -> Vec<Value> {
    api.get(&format!("{REVIEWS}?status={status}")).await["items"].as_array().unwrap().clone()
}

async fn decide(api: &Api, item: &Value, decision: &Value) -> super::support::Answer {
    api.post(&format!("{REVIEWS}/{}/decision", item["id"].as_str().unwrap()), decision).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_that_a_provider_holds_are_decided_in_the_hosts_queue() {
    let (mut host, api) = reference().await;
    let held = json!({"hold": true, "kind": "fact", "confidence": 0.4, "rule": "fact.may"});
    for text in [
        "the deadline may be Sunday",
        "the gate may be red",
        "the wall may be grey",
        "the door may be blue",
    ] {
        note(&api, text, &held).await;
    }
    note(&api, "the gate is green", &json!({})).await;
    assert_eq!(api.query("acme", "may gate").await, ["the gate is green"]);
    let pending = queue(&api, "pending").await;
    assert_eq!(pending.len(), 4, "once each, however often the provider was asked: {pending:?}");
    let find = |text: &str| {
        pending.iter().find(|item| item["text"].as_str().unwrap().contains(text)).unwrap()
    };
    let gate = find("gate");
    assert_eq!(
        (&gate["holder"], &gate["kind"], &gate["metadata"]["rule"]),
        (&json!("provider"), &json!("fact"), &json!("fact.may"))
    );
    assert!(gate["reasons"][0].as_str().unwrap().contains("the provider holds it"), "{gate}");

    decide(&api, gate, &json!({"decision": "approve"})).await.fine();
    decide(&api, find("Sunday"), &json!({"decision": "reject"})).await.fine();
    let edited = json!({"decision": "edit", "text": "the wall is grey"});
    assert_eq!(decide(&api, find("wall"), &edited).await.fine()["text"], "the wall is grey");
    let mut found = api.query("acme", "gate deadline wall").await;
    found.sort();
    assert_eq!(found, ["the gate is green", "the gate may be red", "the wall is grey"]);
    assert_eq!(
        decide(&api, gate, &json!({"decision": "approve"})).await.status,
        200,
        "the same twice is one"
    );
    assert_eq!(
        decide(&api, gate, &json!({"decision": "reject"})).await.problem(),
        (409, "already_decided")
    );
    let metadata = json!({"scope": {"companyId": "acme"}, "query": "wall"});
    let wall = api.post(&format!("{RUNTIME}/query"), &metadata).await.fine();
    assert_eq!(
        wall["snippets"][0]["metadata"]["rule"], "fact.may",
        "an edit of the text leaves the rest"
    );
    let told = host
        .operations("acme")
        .await
        .unwrap()
        .into_iter()
        .filter(|one| one.kind == OperationKind::Review)
        .count();
    assert_eq!(told, 3, "each decision is an operation");

    // A record that is forgotten before a decision ends as rejected, and nothing of it is in the
    // queue.
    let door = find("door");
    let forget = json!({"scope": {"companyId": "acme"}, "handles": [door["subject"]["record"]]});
    api.post(&format!("{RUNTIME}/forget"), &forget).await.fine();
    assert_eq!(
        decide(&api, door, &json!({"decision": "approve"})).await.problem(),
        (409, "already_decided")
    );
    let rejected = queue(&api, "rejected").await;
    let gone = rejected.iter().find(|item| item["id"] == door["id"]).unwrap();
    assert_eq!(
        (&gone["decidedBy"], &gone["text"]),
        (&json!("forgotten before a decision"), &json!(""))
    );

    // An agent cannot decide, and the decisions survive a restart.
    let ada = json!({"name": "ada", "role": "agent", "agentId": "ada"});
    let token = api.post("/control/v1/companies/acme/tokens", &ada).await.fine();
    let ada = api.with(token["value"].as_str().unwrap());
    assert_eq!(decide(&ada, gate, &json!({"decision": "approve"})).await.status, 403);
    drop((api, ada));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!((queue(&api, "pending").await.len(), queue(&api, "approved").await.len()), (0, 2));
    assert_eq!(api.query("acme", "gate").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_list_of_waiting_records_is_left() {
    let (_host, api) = reference().await;
    let held = json!({"hold": true});
    let write = note(&api, "an endless list", &held);
    tokio::time::timeout(Duration::from_secs(60), write).await.expect("the write ends");
    assert!(queue(&api, "pending").await.is_empty());
}

/// All parts of an export.
async fn export(api: &Api, company: &str) -> Vec<String> {
    let (mut cursor, mut parts) = (Value::Null, Vec::new());
    loop {
        let mut body = json!({"scope": {"companyId": company}});
        if !cursor.is_null() {
            body["cursor"] = cursor;
        }
        let part = api.post(&format!("/runtime/v1/companies/{company}/export"), &body).await.fine();
        parts.push(part["lines"].as_str().unwrap().to_owned());
        cursor = part["nextCursor"].clone();
        if cursor.is_null() {
            return parts;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_complete_and_is_imported_once() {
    let (host, api) = reference().await;
    for number in 0..20 {
        note(&api, &format!("fact {number} is {}", "x".repeat(100)), &json!({"n": number})).await;
    }
    note(&api, "this waits", &json!({"hold": true})).await;
    let parts = export(&api, "acme").await;
    assert!(parts.len() > 2, "{} parts", parts.len());
    let other = TestHost::new(&["reference"]).await.unwrap();
    let there = Api::new(&other);
    bind_provider(&there, "acme", "reference").await;
    let import = |lines: String| {
        let there = there.with_same();
        async move {
            there
                .post(
                    &format!("{RUNTIME}/import"),
                    &json!({"scope": {"companyId": "acme"}, "lines": lines}),
                )
                .await
        }
    };
    // An invalid line refuses the lines before it, too.
    let wrong = import(format!("{}{{\"id\": 1}}\n", parts[0])).await;
    let at = format!("lines.{}", parts[0].lines().count());
    assert_eq!(
        (wrong.status, wrong.json["field"].as_str()),
        (400, Some(at.as_str())),
        "{}",
        wrong.text
    );
    assert_eq!(import("no json\n".to_owned()).await.json["field"], "lines.0");
    assert!(there.query("acme", "fact").await.is_empty());
    for (round, expected) in [(0, [21, 0]), (1, [0, 21])] {
        let mut sums = [0, 0];
        for part in &parts {
            let done = import(part.clone()).await.fine();
            sums[0] += done["imported"].as_u64().unwrap();
            sums[1] += done["unchanged"].as_u64().unwrap();
        }
        assert_eq!(sums, expected, "round {round}");
    }
    assert_eq!(export(&there, "acme").await, parts, "nothing is lost, times and order included");
    let kinds: Vec<_> =
        host.operations("acme").await.unwrap().iter().map(|operation| operation.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == OperationKind::Export).count(), parts.len());
    // A cursor is valid for its scope only, and a binding with a review policy exports nothing.
    let first = api
        .post(&format!("{RUNTIME}/export"), &json!({"scope": {"companyId": "acme"}}))
        .await
        .fine();
    let elsewhere =
        json!({"scope": {"companyId": "acme", "subjectId": "u"}, "cursor": first["nextCursor"]});
    assert_eq!(api.post(&format!("{RUNTIME}/export"), &elsewhere).await.json["field"], "cursor");
    let binding = "/control/v1/companies/acme/bindings/reference";
    api.patch(binding, &json!({"policy": {"review": {}}})).await.fine();
    let refused =
        api.post(&format!("{RUNTIME}/export"), &json!({"scope": {"companyId": "acme"}})).await;
    assert_eq!(refused.json["code"], "unsupported", "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_company_keeps_its_providers_own_lines() {
    let (_host, api) = reference().await;
    note(&api, "the gate is green", &json!({})).await;
    note(&api, "this waits", &json!({"hold": true})).await;
    let lines = export(&api, "acme").await;
    let all = api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    assert!(all.contains(r#""type":"own""#), "{all}");
    let other = TestHost::new(&["reference"]).await.unwrap();
    let there = Api::new(&other);
    let done =
        there.send(Method::Post, "/control/v1/companies/acme/import", Some(all), &[]).await.fine();
    assert_eq!(
        (&done["records"], &done["waiting"]),
        (&json!(0), &json!(1)),
        "lines have their scopes, and wait"
    );
    let grants = json!({"storageBytes": 64 << 20});
    there.put("/control/v1/companies/acme/bindings/reference/grants", &grants).await.fine();
    let shown = async || there.get("/control/v1/companies/acme/bindings/reference").await;
    eventually("the lines are with the provider", async || shown().await.get("warnings").is_none())
        .await;
    assert_eq!(export(&there, "acme").await, lines, "when each was made, and what waits");
    let waits = queue(&there, "pending").await;
    decide(&there, &waits[0], &json!({"decision": "approve"})).await.fine();
    assert_eq!(there.query("acme", "waits").await.len(), 1);
    // An imported binding can be changed, although its fields were stored in another order.
    let binding = "/control/v1/companies/acme/bindings/reference";
    assert_eq!(there.patch(binding, &json!({"enabled": false})).await.fine()["enabled"], false);
}

/// Who corrected the record of an answer to `get`, and of each record of a list.
async fn corrections(api: &Api, handle: &Value) -> (Value, Vec<(Value, Value)>) {
    let scope = json!({"companyId": "acme"});
    let got = api
        .post(&format!("{RUNTIME}/get"), &json!({"scope": scope, "handle": handle}))
        .await
        .fine();
    let listed = api.post(&format!("{RUNTIME}/list"), &json!({"scope": scope})).await.fine();
    let listed = listed["items"].as_array().unwrap().iter();
    let listed = listed.map(|item| (item["handle"].clone(), item["corrected"].clone())).collect();
    (got["record"]["corrected"].clone(), listed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_says_who_corrected_it_where_the_one_before_is_kept() {
    let (mut host, api) = reference().await;
    let records = json!([{"text": "the gate is green"}, {"text": "the wall is grey"}]);
    let body = json!({"scope": {"companyId": "acme"}, "records": records});
    let written = api.post(&format!("{RUNTIME}/records"), &body).await.fine();
    let (gate, wall) = (&written["records"][0], &written["records"][1]);
    let body = json!({"name": "gateway", "role": "company_administrator"});
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    let gateway = api.with(made["value"].as_str().unwrap());
    // This provider keeps the first one as history, and changes the second one in place.
    let correct = async |handle: &Value, text: &str| {
        let patch = json!({"record": {"text": text}});
        let body = json!({"scope": {"companyId": "acme"}, "handle": handle, "patch": patch});
        gateway.post(&format!("{RUNTIME}/correct"), &body).await.fine()
    };
    let corrected = correct(gate, "instead the gate is red").await;
    assert_eq!(&corrected["superseded"], gate);
    let in_place = correct(wall, "the wall is white").await;
    assert_eq!((&in_place["record"], &in_place["superseded"]), (wall, &Value::Null));
    let told = corrections(&api, &corrected["record"]).await;
    assert_eq!(
        (&told.0["by"], &told.0["from"]),
        (&json!("company_administrator:gateway"), gate),
        "{}",
        told.0
    );
    assert_eq!(told.0["operationId"], corrected["operationId"]);
    assert_eq!(told.1.len(), 2, "{:?}", told.1);
    for (handle, by) in &told.1 {
        // What is changed in place was corrected from itself.
        let own = handle == wall && by["from"] == *wall && by["by"] == told.0["by"];
        assert!(own || *by == told.0, "{handle}: {by}");
    }
    let operation = api
        .get(&format!("{CONTROL}/operations/{}", corrected["operationId"].as_str().unwrap()))
        .await;
    assert_eq!(
        (&operation["records"], &operation["recordCount"]),
        (&json!([corrected["record"], gate]), &json!(1))
    );
    // For people.
    let (id, from) =
        (&corrected["record"]["providerRecordId"], gate["providerRecordId"].as_str().unwrap());
    let visitor = super::ui_pages::operator(&api).await;
    let page = visitor.page(&format!("/c/acme/records/reference/{}", id.as_str().unwrap())).await;
    assert!(page.contains("by company_administrator:gateway, ") && page.contains(from), "{page}");
    let (serving, home) =
        (Serving::start(&host, cli::TOKEN).await.unwrap(), tempfile::tempdir().unwrap());
    let environment = [
        ("MEMHOST_URL", serving.url()),
        ("MEMHOST_TOKEN", cli::TOKEN),
        ("MEMHOST_COMPANY", "acme"),
    ];
    let line = cli::words(&format!("record show {}", id.as_str().unwrap()));
    let shown = cli::run(home.path(), &environment, &line, "").await;
    assert!(
        shown.out.lines().any(|line| {
            line.starts_with("corrected by company_administrator:gateway at ")
                && line.ends_with(&format!(" from {from}"))
        }),
        "{shown:?}"
    );
    serving.stop().await.unwrap();
    // From the operation log.
    drop((api, gateway, visitor));
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(corrections(&Api::new(&host), &corrected["record"]).await, told, "after a restart");
}
