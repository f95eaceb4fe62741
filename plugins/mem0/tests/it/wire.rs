//! The hosted API cannot be run here. Its oracle is mem0's own client:
//! `tests/vendors/mem0/record-client.py` recorded what it sends, and the provider sends the same.

use memhost_sdk::testing::http::{Sent, sent};
use memhost_sdk::testing::{capture, forget, list, query, scope, upsert};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Health, Provider};
use serde_json::{Value, json};

use super::{open, server};

/// Method, path with the memory left out, query, and the members of the body; those of filters,
/// too.
fn shape(method: &str, path: &str, query: &str, body: &Value) -> String {
    let path = path
        .split('/')
        .map(|part| if part.len() == 36 { "ID" } else { part })
        .collect::<Vec<_>>()
        .join("/");
    let names = |value: &Value| {
        value.as_object().map(|all| all.keys().cloned().collect::<Vec<_>>().join(","))
    };
    format!("{method} {path}?{query} {:?} {}", names(body), body["filters"])
}

#[test]
fn the_provider_sends_what_the_client_of_mem0_sends() {
    server::start();
    let mut mem0 = open("hosted", json!({"threshold": 0.2}));
    mem0.check_health().unwrap();
    let metadata = Some(r#"{"topic":"gate"}"#.to_owned());
    let record = RecordWrite {
        text: "The gate is green.".to_owned(),
        metadata: metadata.clone(),
        expires_at: Some("2030-01-01T00:00:00Z".to_owned()),
        ..RecordWrite::default()
    };
    let id = mem0
        .upsert_records(UpsertRequest { records: vec![record], ..upsert("op", &[]) })
        .unwrap()
        .records
        .remove(0);
    mem0.capture(CaptureRequest {
        mode: CaptureMode::CaptureResidue,
        ..capture("op-2", "The gate is green.")
    })
    .unwrap();
    mem0.query(QueryRequest {
        scope: Scope::company("company"),
        metadata_filter: metadata,
        ..query("gate")
    })
    .unwrap();
    mem0.list_records(list(None, 10)).unwrap();
    let patch = Patch::Replacement(RecordWrite {
        text: "The gate is blue.".to_owned(),
        ..RecordWrite::default()
    });
    let request =
        CorrectRequest { operation_id: "op-3".to_owned(), id: id.clone(), scope: scope(), patch };
    mem0.correct(request).unwrap();
    mem0.forget(forget(vec![id], scope())).unwrap();
    let request =
        ForgetScopeRequest { operation_id: "op-4".to_owned(), scope: Scope::company("company") };
    mem0.forget_scope(request).unwrap();

    let sent = sent();
    assert!(
        sent.iter()
            .all(|sent| sent.header("authorization") == Some("Token {{secret:MEM0_API_KEY}}"))
    );
    let shapes: Vec<_> = sent
        .iter()
        .map(|Sent { method, path, query, body, .. }| shape(method, path, query, body))
        .collect();
    let recorded: Vec<Value> = include_str!("../recorded/client.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(recorded[0]["of"], "mem0ai 2.2.1");
    for request in &recorded[1..] {
        let text = |name: &str| request[name].as_str().unwrap();
        let mut body = request["body"].clone();
        // The client may leave the metadata out; the provider always has some.
        if text("path") == "/v3/memories/add/" {
            body["metadata"] = json!({});
        }
        let expected = shape(text("method"), text("path"), text("query"), &body);
        assert!(
            shapes.contains(&expected),
            "the client sends {expected}; the provider sends {shapes:#?}"
        );
        assert_eq!(request["authorization"], "Token KEY");
    }
}
