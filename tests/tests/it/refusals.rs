//! Refusals are counted: one record for each token, minute, kind and reason.

use std::sync::Arc;

use memhost_ports::Clock;
use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::{TestHost, eventually};
use memhost_types::{Operation, Outcome};
use serde_json::{Value, json};

use crate::support::{Api, bind_provider};

const TOKENS: &str = "/control/v1/companies/acme/tokens";
const RETENTION: &str = "/control/v1/companies/acme/retention";

async fn host() -> (TestHost, Arc<TestClock>) {
    let clock = TestClock::new();
    let host = TestHost::with(&[], |options| options.clock = Arc::clone(&clock) as Arc<dyn Clock>)
        .await
        .unwrap();
    (host, clock)
}

async fn refusals(host: &TestHost) -> Vec<Operation> {
    let all = host.operations("acme").await.unwrap().into_iter();
    all.filter(|operation| operation.outcome == Outcome::Refused).collect()
}

fn sum(refusals: &[Operation]) -> u64 {
    refusals.iter().map(|refusal| refusal.count).sum()
}

async fn token(operator: &Api, body: Value) -> (String, Api) {
    let made = operator.post(TOKENS, &body).await.fine();
    (made["id"].as_str().unwrap().to_owned(), operator.with(made["value"].as_str().unwrap()))
}

/// A minute may end once during such a flood.
async fn flood(callers: &[&Api], count: usize, path: &str, body: &Value) {
    for _ in 0..count {
        for caller in callers {
            assert!(caller.post(path, body).await.status >= 400);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_with_a_revoked_token_is_one_record_a_minute_with_the_exact_number() {
    let (mut host, clock) = host().await;
    let operator = Api::new(&host);
    operator.capture("acme", "a fact").await.fine();
    let (id, revoked) = token(&operator, json!({"name": "r", "role": "auditor"})).await;
    let soon = (clock.now() + jiff::SignedDuration::from_hours(1)).to_string();
    let (_, expired) =
        token(&operator, json!({"name": "e", "role": "auditor", "expiresAt": soon})).await;
    operator.send(Method::Delete, &format!("{TOKENS}/{id}"), None, &[]).await.fine();
    clock.advance(jiff::SignedDuration::from_hours(2));
    let ask = json!({"scope": {"companyId": "acme"}, "query": "fact"});
    flood(&[&revoked, &expired], 300, "/runtime/v1/companies/acme/query", &ask).await;
    let found = refusals(&host).await;
    assert!(found.len() <= 4, "{} records", found.len());
    assert_eq!(sum(&found), 600, "also while the minute lasts");
    // The next minute has a record of its own, and what was counted before is written.
    clock.advance(jiff::SignedDuration::from_mins(1));
    flood(&[&revoked], 10, "/runtime/v1/companies/acme/query", &ask).await;
    assert_eq!(sum(&refusals(&host).await), 610);
    // Also what is counted when the host stops.
    drop((operator, revoked, expired));
    host.stop().await;
    host.start().await.unwrap();
    let (operator, found) = (Api::new(&host), refusals(&host).await);
    assert_eq!(sum(&found), 610);
    assert!(found.len() <= 6, "{} records", found.len());
    let listed = operator.get("/control/v1/companies/acme/operations?outcome=refused").await;
    assert!(
        listed["items"].as_array().unwrap().iter().any(|one| one["count"].as_u64() > Some(100)),
        "{listed}"
    );
    // The numbers of the operations have no gaps that a flood made.
    let last = operator.capture("acme", "another fact").await.fine();
    let last: memhost_types::OperationId = last["operationId"].as_str().unwrap().parse().unwrap();
    assert!(last.sequence() < 20, "{}", last.sequence());
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
}

/// Each of these is refused for a reason of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_of_valid_tokens_are_counted_by_kind_and_reason() {
    let (host, _) = host().await;
    let operator = Api::new(&host);
    operator.capture("acme", "a fact").await.fine();
    let limits = json!({"limits": {"callsPerSecond": 1}});
    operator.patch("/control/v1/companies/acme/bindings/default", &limits).await.fine();
    let (_, agent) =
        token(&operator, json!({"name": "a", "role": "agent", "agentId": "ada"})).await;
    let scope = json!({"companyId": "acme"});
    let runtime = |path: &str| format!("/runtime/v1/companies/acme/{path}");
    flood(&[&agent], 50, &runtime("export"), &json!({"scope": scope})).await;
    flood(&[&agent], 50, TOKENS, &json!({"name": "n", "role": "auditor"})).await;
    flood(&[&agent], 50, &runtime("query"), &json!({"scope": scope, "query": "x", "topK": 0}))
        .await;
    flood(&[&agent], 50, &runtime("records"), &json!({"scope": scope, "records": []})).await;
    let elsewhere = json!({"scope": scope, "query": "x", "bindingKey": "nowhere"});
    flood(&[&agent], 50, &runtime("query"), &elsewhere).await;
    let found = refusals(&host).await;
    assert_eq!(sum(&found), 250);
    assert!((5..=10).contains(&found.len()), "{} records", found.len());
    let mut kinds: Vec<_> =
        found.iter().map(|one| (one.kind.as_str(), one.error.clone().unwrap().code)).collect();
    kinds.sort_by_key(|(kind, code)| (*kind, code.as_str()));
    kinds.dedup();
    let kinds: Vec<_> = kinds.iter().map(|(kind, code)| (*kind, code.as_str())).collect();
    let expected = [
        ("control", "forbidden"),
        ("export", "forbidden"),
        ("query", "invalid_request"),
        ("query", "no_binding"),
        ("record_upsert", "invalid_request"),
    ];
    assert_eq!(kinds, expected);
    // Too fast: the answer names the record that counts it.
    let ask = json!({"scope": scope, "query": "x"});
    let mut limited = Vec::new();
    for _ in 0..50 {
        let answer = agent.post(&runtime("query"), &ask).await;
        if answer.status == 429 {
            limited.push(answer.json["operationId"].as_str().unwrap().to_owned());
        }
    }
    assert!(limited.len() > 20, "{}", limited.len());
    for id in &limited {
        let shown = operator.get(&format!("/control/v1/companies/acme/operations/{id}")).await;
        assert_eq!(shown["error"]["code"], "rate_limited");
    }
    // A counted refusal gives its number back.
    let newest = host.operations("acme").await.unwrap()[0].id.sequence();
    assert!(newest < 120, "{newest}");
    let rated = refusals(&host)
        .await
        .into_iter()
        .filter(|one| one.error.as_ref().unwrap().code.as_str() == "rate_limited");
    assert_eq!(rated.map(|one| one.count).sum::<u64>(), limited.len() as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_push_no_other_record_out_of_retention() {
    let (host, clock) = host().await;
    let operator = Api::new(&host);
    let (id, revoked) = token(&operator, json!({"name": "r", "role": "auditor"})).await;
    operator.send(Method::Delete, &format!("{TOKENS}/{id}"), None, &[]).await.fine();
    for n in 0..8 {
        operator.capture("acme", &format!("fact {n}")).await.fine();
        clock.advance(jiff::SignedDuration::from_mins(2));
        assert_eq!(revoked.capture("acme", "x").await.status, 401);
    }
    for _ in 0..20 {
        clock.advance(jiff::SignedDuration::from_mins(2));
        assert_eq!(revoked.capture("acme", "x").await.status, 401);
    }
    let captures = async || {
        operator.put(RETENTION, &json!({"operationsMaxCount": 5})).await.fine();
        let all = host.operations("acme").await.unwrap();
        all.iter().filter(|one| one.kind.as_str() == "capture").count()
    };
    // What is not indexed yet stays until it is.
    eventually("the oldest captures are gone", async || captures().await <= 5).await;
    assert_eq!(captures().await, 5);
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
}

/// Their intents are on disk: none of them may be counted in an earlier refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captures_that_an_open_circuit_refuses_all_end() {
    let mut host = TestHost::new(&["traps"]).await.unwrap();
    let operator = Api::new(&host);
    bind_provider(&operator, "acme", "traps").await;
    let (_, agent) =
        token(&operator, json!({"name": "a", "role": "agent", "agentId": "ada"})).await;
    let trap = json!({"scope": {"companyId": "acme"}, "query": "trap"});
    let path = "/runtime/v1/companies/acme/query";
    let opened = async || operator.post(path, &trap).await.problem() == (503, "circuit_open");
    eventually("the circuit opens", opened).await;
    let capture = async || {
        let answer = agent.capture("acme", "a fact").await;
        (answer.status == 503).then(|| answer.json["operationId"].as_str().unwrap().to_owned())
    };
    let mut refused = Vec::new();
    for _ in 0..20 {
        refused.extend(capture().await);
    }
    refused.sort();
    let all = refused.len();
    refused.dedup();
    assert!(all > 0 && refused.len() == all, "each has an operation of its own");
    drop((operator, agent));
    host.stop().await;
    host.start().await.unwrap();
    let operator = Api::new(&host);
    let found = operator
        .get("/control/v1/companies/acme/operations?kind=capture&outcome=refused&limit=100")
        .await;
    assert_eq!(found["items"].as_array().unwrap().len(), all);
    for outcome in ["in_progress", "interrupted"] {
        let path = format!("/control/v1/companies/acme/operations?outcome={outcome}");
        assert_eq!(operator.get(&path).await["items"], json!([]), "{outcome}");
    }
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
}
