//! MemOS's cloud cannot be run here. Its oracle is MemOS's own client:
//! `tests/vendors/memos/record-client.py` recorded what it sends, and the provider sends the same.

use memhost_sdk::testing::faults::Stand;
use memhost_sdk::testing::http::{sent, serve};
use memhost_sdk::testing::{capture, forget, list, query, scope};
use memhost_sdk::types::*;
use memhost_sdk::{Correction, Erasure, Extraction, Provider};
use serde_json::Value;

use super::{open, server};

/// Method and path, with the memory left out, and the condition by which something is deleted.
fn request(method: &str, path: &str, body: &Value) -> String {
    let path = if method == "GET" { "/get/memory/ID" } else { path };
    let deleted = ["memory_ids", "user_id"]
        .into_iter()
        .find(|name| path.starts_with("/delete") && body.get(name).is_some());
    format!("{method} {path} {}", deleted.unwrap_or_default())
}

fn kind(value: &Value) -> &str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

#[test]
fn the_provider_sends_what_the_client_of_memos_sends() {
    let mut state = server::State::default();
    serve(move |sent| Ok(state.answer(sent)));
    let mut memos = open(serde_json::json!({"threshold": 0.2}));
    // A delivery that may come again is looked for before.
    let hook = HookContext {
        hook_kind: HookKind::ManualCapture,
        triggered_at: "2026-01-01T00:00:00Z".to_owned(),
        actor_agent_id: None,
        heartbeat_run_id: None,
    };
    let job = memos
        .capture(CaptureRequest { hook: Some(hook), ..capture("op", "The gate is green.") })
        .unwrap()
        .jobs;
    let id = memos.run_job(job[0].provider_job_id.clone()).unwrap().records.remove(0);
    memos.query(query("gate")).unwrap();
    memos.list_records(list(None, 10)).unwrap();
    let text = RecordWrite { text: "The gate is blue.".to_owned(), ..RecordWrite::default() };
    for patch in [Patch::Replacement(text), Patch::Instruction("The gate is yellow.".to_owned())] {
        let request = CorrectRequest {
            operation_id: "op-2".to_owned(),
            id: id.clone(),
            scope: scope(),
            patch,
        };
        memos.correct(request).unwrap();
    }
    memos.forget(forget(vec![id], scope())).unwrap();
    let request =
        ForgetScopeRequest { operation_id: "op-3".to_owned(), scope: Scope::company("company") };
    memos.forget_scope(request).unwrap();

    let recorded: Vec<Value> = include_str!("../recorded/client.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(recorded[0]["of"], "MemoryOS 2.0.33");
    let client = |line: &Value| {
        self::request(
            line["method"].as_str().unwrap(),
            line["path"].as_str().unwrap(),
            &line["body"],
        )
    };
    let mut unsent: Vec<String> = recorded[1..].iter().map(client).collect();
    for sent in sent() {
        let name = self::request(sent.method, &sent.path, &sent.body);
        assert_eq!(
            (sent.header("authorization"), sent.query.as_str()),
            (Some("Token {{secret:MEMOS_API_KEY}}"), "")
        );
        let known = recorded.iter().skip(1).find(|line| client(line) == name);
        let known = known.unwrap_or_else(|| panic!("the client of MemOS never sends {name}"));
        assert_eq!(known["authorization"], "Token KEY");
        // Each member is one that the client sends, of the same kind.
        for (member, value) in sent.body.as_object().into_iter().flatten() {
            assert_eq!(kind(value), kind(&known["body"][member]), "{member} of {name}");
        }
        unsent.retain(|other| *other != name);
    }
    assert!(unsent.is_empty(), "the provider does not send {unsent:#?}");
}
