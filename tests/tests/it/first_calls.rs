//! The first calls of a company, at the same time: all of them find its first binding.

use memhost_tests::{TestHost, is_whole};
use serde_json::json;

use super::support::Api;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_company_accepts_many_first_events_at_once() {
    let host = TestHost::new(&[]).await.unwrap();
    for round in 0..24 {
        Api::new(&host).make(&format!("new{round}")).await;
        let mut events = tokio::task::JoinSet::new();
        for n in 0..16 {
            let (api, company) = (Api::new(&host), format!("new{round}"));
            events.spawn(async move {
                let event = json!({
                    "hookKind": "manual_capture", "hookId": format!("first-{n}"),
                    "triggeredAt": "2026-11-20T10:00:00Z",
                    "scope": {"companyId": company},
                    "source": {"kind": "manual_note", "companyId": company},
                    "payload": {"text": "a first fact"}, "waitMs": 10_000,
                });
                api.post(&format!("/runtime/v1/companies/{company}/hooks"), &event).await.fine()
            });
        }
        for receipt in events.join_all().await {
            assert_eq!(receipt["deliveries"].as_array().unwrap().len(), 1, "{receipt}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_company_accepts_many_first_calls_of_every_kind_at_once() {
    let host = TestHost::new(&[]).await.unwrap();
    for round in 0..4 {
        // Only writes make a company. One is unknown until the first of them.
        let company = format!("first{round}");
        let (is_unknown, kinds) = if round % 2 == 0 { (true, 2) } else { (false, 4) };
        if !is_unknown {
            Api::new(&host).make(&company).await;
        }
        let mut calls = tokio::task::JoinSet::new();
        let count = if is_whole() { 180 } else { 60 };
        for n in 0..count {
            let (api, company) = (Api::new(&host), company.clone());
            calls.spawn(async move {
                let scope = json!({"companyId": company});
                let source = json!({"kind": "manual_note", "companyId": company});
                let hook = json!({
                    "hookKind": "manual_capture", "hookId": format!("h{n}"),
                    "triggeredAt": "2026-11-20T10:00:00Z",
                    "scope": scope, "source": source, "payload": {"text": "a fact"},
                });
                let (path, body) = match n % kinds {
                    0 => (
                        "capture",
                        json!({"scope": scope, "source": source, "payload": {"text": "a fact"}}),
                    ),
                    1 => ("records", json!({"scope": scope, "records": [{"text": "a fact"}]})),
                    2 => ("query", json!({"scope": scope, "query": "a fact"})),
                    _ => ("hooks", hook),
                };
                let answer =
                    api.post(&format!("/runtime/v1/companies/{company}/{path}"), &body).await;
                (path, answer.status, answer.text)
            });
        }
        let answers = calls.join_all().await;
        let wrong: Vec<_> =
            answers.iter().filter(|(_, status, _)| !(200..300).contains(status)).collect();
        assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), answers.len());
    }
}

/// A binding that nobody asked for gets no more than the host allows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_write_makes_no_binding_above_the_limits_of_the_host() {
    let host = TestHost::with(&[], |options| options.sandbox.max_memory_bytes = 64 << 20);
    let host = host.await.unwrap();
    let refused = host.write("acme", "The gate is red").await.unwrap_err();
    assert!(refused.to_string().contains("memoryBytes"), "{refused}");
    let bindings = host.service().control().bindings(&memhost_tests::parse("acme")).await.unwrap();
    assert!(bindings.is_empty());
}
