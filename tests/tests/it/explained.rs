//! What a query returned, explained afterwards.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const RUNTIME: &str = "/runtime/v1/companies/acme";

async fn explain(api: &Api, id: &Value, rest: &str) -> Value {
    let id = id.as_str().unwrap();
    api.get(&format!("/control/v1/companies/acme/operations/{id}/explanation{rest}")).await
}

fn states(explained: &Value) -> Vec<&str> {
    let records = explained["records"].as_array().unwrap();
    records.iter().map(|record| record["state"].as_str().unwrap()).collect()
}

/// The records of the answer that was given, not of the one that would be given now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_explained_by_what_it_returned() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let mut made = Vec::new();
    let notes = ["The vendor is Acme Paper", "The vendor delivers on Mondays", "Vendor: call Eve"];
    for text in notes {
        made.push(api.capture("acme", text).await.fine()["records"][0].clone());
    }
    let scope = json!({"companyId": "acme"});
    let query = json!({"scope": scope, "query": "vendor"});
    let answer = api.post(&format!("{RUNTIME}/query"), &query).await.fine();
    let returned: Vec<&Value> =
        answer["snippets"].as_array().unwrap().iter().map(|hit| &hit["handle"]).collect();
    assert_eq!(returned.len(), 3);
    let id = &answer["operationId"];
    let at_once = explain(&api, id, "").await;
    assert_eq!(states(&at_once), ["unchanged"; 3]);
    let handles: Vec<&Value> = at_once["records"]
        .as_array()
        .unwrap()
        .iter()
        .zip(1..)
        .map(|(record, rank)| {
            assert_eq!(record["rank"], rank);
            &record["handle"]
        })
        .collect();
    assert_eq!(handles, returned);
    // One is corrected, one is forgotten, and a better one comes.
    let correct = json!({"scope": scope, "handle": returned[0],
        "patch": {"record": {"text": "The vendor is Globex"}}});
    let corrected = api.post(&format!("{RUNTIME}/correct"), &correct).await.fine();
    let forget = json!({"scope": scope, "handles": [returned[1]]});
    let forgotten = api.post(&format!("{RUNTIME}/forget"), &forget).await.fine();
    api.capture("acme", "vendor vendor vendor").await.fine();
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let later = explain(&api, id, "?again=true").await;
    let records = later["records"].as_array().unwrap();
    assert_eq!(records.len(), 3, "{later}");
    assert_eq!(records[0]["changedBy"], corrected["operationId"], "{later}");
    assert_ne!(records[0]["state"], "unchanged");
    assert_eq!(
        (&records[1]["state"], &records[1]["changedBy"]),
        (&json!("gone"), &forgotten["operationId"])
    );
    assert_eq!(records[2]["state"], "unchanged");
    let why = later["notAgain"].as_str().unwrap();
    assert!(later["again"].is_null() && why.contains("retention.snapshots"), "{later}");
    // What is no answer has nothing to explain.
    let id = forgotten["operationId"].as_str().unwrap();
    let path = format!("/control/v1/companies/acme/operations/{id}/explanation");
    let refused = api.send(Method::Get, &path, None, &[]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(refused.text.contains("only a query or a list"), "{}", refused.text);
}

/// The request is asked again only where its text was kept, and by its own binding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_asked_again_where_its_text_was_kept() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let binding = json!({"key": "kept", "providerKey": "local-markdown",
        "grants": {"storageBytes": 64 << 20, "directoryBytes": 64 << 20},
        "policy": {"retention": {"snapshots": "full"}}});
    api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
    let scope = json!({"companyId": "acme"});
    let note = json!({"bindingKey": "kept", "scope": scope, "source": {"kind": "manual_note",
        "companyId": "acme"}, "payload": {"text": "The vendor is Acme Paper"}});
    api.post(&format!("{RUNTIME}/capture"), &note).await.fine();
    let query = json!({"bindingKey": "kept", "scope": scope, "query": "vendor"});
    let answer = api.post(&format!("{RUNTIME}/query"), &query).await.fine();
    let explained = explain(&api, &answer["operationId"], "?again=true").await;
    assert_eq!(explained["again"]["hits"].as_array().map(Vec::len), Some(1), "{explained}");
    assert!(explained["notAgain"].is_null(), "{explained}");
    // Nobody asks the provider for who only looks.
    let quiet = explain(&api, &answer["operationId"], "").await;
    assert!(quiet["again"].is_null() && quiet["notAgain"].is_null(), "{quiet}");
    // Another company does not find it.
    api.capture("globex", "x").await.fine();
    let id = answer["operationId"].as_str().unwrap();
    let path = format!("/control/v1/companies/globex/operations/{id}/explanation");
    assert_eq!(api.send(Method::Get, &path, None, &[]).await.status, 404);
}

/// A run was given what fits its token budget, and the rest is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recall_says_what_its_budget_left_out() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    for text in ["The vendor is Acme Paper".to_owned(), format!("vendor {}", "word ".repeat(200))] {
        api.capture("acme", &text).await.fine();
    }
    let hook = json!({"hookKind": "pre_run_hydrate", "hookId": "run-1", "query": "vendor",
        "scope": {"companyId": "acme"}, "triggeredAt": "2026-11-20T10:00:00Z", "tokenBudget": 60});
    let receipt = api.post(&format!("{RUNTIME}/hooks"), &hook).await.fine();
    let (context, delivery) = (&receipt["context"], &receipt["deliveries"][0]);
    assert_eq!((&context["included"], &context["omitted"]), (&json!(1), &json!(1)), "{receipt}");
    let omitted = delivery["recall"]["omitted"].as_array().unwrap();
    assert_eq!((omitted.len(), &delivery["recall"]["recordCount"]), (1, &json!(2)), "{receipt}");
    let explained = explain(&api, &delivery["operationId"], "").await;
    for record in explained["records"].as_array().unwrap() {
        let is_omitted = record["handle"] == omitted[0];
        assert_eq!(record["isOmitted"].as_bool().unwrap_or_default(), is_omitted, "{explained}");
    }
}
