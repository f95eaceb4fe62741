//! Events of hooks: those that nobody takes, what tells them apart, waits that are no tries,
//! changes by filter, and whose the operations are.

use std::time::Duration;

use memhost_server::Method;
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS, event, hydrate};
use super::support::{Api, extracting};

/// An event that no binding takes is answered with the reason, recorded and counted, also where
/// recall is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_nobody_takes_is_not_lost_in_silence() {
    let (_host, api) = extracting().await;
    let mut comment = event("c1", "a comment");
    comment["hookKind"] = json!("issue_comment_capture");
    let answer = api.post(HOOKS, &comment).await.fine();
    assert_eq!(answer["deliveries"], json!([]));
    let reason = answer["notTaken"]["reason"].as_str().unwrap();
    assert!(reason.contains("`extracts` does not subscribe to it"), "{reason}");
    let id = answer["notTaken"]["operationId"].as_str().unwrap();
    let operation = api.get(&format!("/control/v1/companies/acme/operations/{id}")).await;
    assert_eq!(
        (&operation["outcome"], &operation["error"]["code"]),
        (&json!("refused"), &json!("no_binding"))
    );
    assert_eq!(
        (&operation["hook"]["hookId"], &operation["kind"]),
        (&json!("c1"), &json!("capture"))
    );
    api.patch("/control/v1/companies/acme/bindings/extracts", &json!({"enabled": false}))
        .await
        .fine();
    let recalled = api.post(HOOKS, &hydrate("h1", "gate", &json!({}))).await.fine();
    let degraded = recalled["context"]["degraded"][0].as_str().unwrap();
    assert!(degraded.contains("`extracts` is disabled"), "{recalled}");
    let metrics = api.send(Method::Get, "/metrics", None, &[]).await.text;
    for kind in ["issue_comment_capture", "pre_run_hydrate"] {
        assert!(
            metrics.contains(&format!("hooks_not_taken_total{{kind=\"{kind}\"}} 1")),
            "{metrics}"
        );
    }
    // Another company has another reason.
    api.make("zeta").await;
    let mut theirs = event("c1", "a comment");
    theirs["hookKind"] = json!("issue_comment_capture");
    theirs["scope"]["companyId"] = json!("zeta");
    theirs["source"]["companyId"] = json!("zeta");
    let answer = api.post("/runtime/v1/companies/zeta/hooks", &theirs).await.fine();
    assert!(!answer["notTaken"]["reason"].as_str().unwrap().contains("extracts"), "{answer}");
}

/// One idempotent call makes sure that a company has a default binding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_binding_is_ensured_once() {
    let (_host, api) = extracting().await;
    let path = "/control/v1/companies/zeta/default-binding";
    let wanted = json!({"key": "notes", "providerKey": "local-markdown"});
    let made = api.put(path, &wanted).await.fine();
    assert_eq!(made["key"], "notes");
    for _ in 0..2 {
        assert_eq!(
            api.put(path, &json!({"key": "x", "providerKey": "extracts"})).await.fine()["key"],
            "notes"
        );
    }
    let all = api.get("/control/v1/companies/zeta/bindings").await;
    assert_eq!(all["items"].as_array().unwrap().len(), 1);
    // A binding that is there and is not the default becomes it.
    let body = json!({"key": "second", "providerKey": "local-markdown"});
    api.post("/control/v1/companies/eta/bindings", &body).await.fine();
    let found = api.put("/control/v1/companies/eta/default-binding", &body).await.fine();
    assert_eq!(found["key"], "second");
    assert_eq!(api.get("/control/v1/companies/eta/resolve").await["binding"]["key"], "second");
}

/// While a provider's circuit is open, a delivery waits: that is no try and leaves no operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_circuit_uses_up_no_try() {
    let host = memhost_tests::TestHost::with(&["traps"], |options| {
        options.retry.first = Duration::from_millis(5);
        options.retry.longest = Duration::from_millis(20);
        options.retry.attempts = 3;
    })
    .await
    .unwrap();
    let api = Api::new(&host);
    super::support::bind_provider(&api, "acme", "traps").await;
    let trap = json!({"scope": {"companyId": "acme"}, "query": "trap"});
    let opened = async || {
        let answer = api.post("/runtime/v1/companies/acme/query", &trap).await;
        answer.problem() == (503, "circuit_open")
    };
    memhost_tests::eventually("the circuit opens", opened).await;
    let mut waiting = event("w1", "a fact");
    waiting["waitMs"] = json!(0);
    let answer = api.post(HOOKS, &waiting).await.fine();
    let path = format!("{DELIVERIES}/{}", answer["deliveries"][0]["id"].as_str().unwrap());
    let seen = api.until(&path, |delivery| delivery["error"]["code"] == "circuit_open").await;
    assert_eq!((&seen["status"], &seen["attempts"]), (&json!("pending"), &json!(0)), "{seen}");
    let ended = api.until(&path, |delivery| delivery["status"] != "pending").await;
    assert_eq!((&ended["status"], &ended["attempts"]), (&json!("delivered"), &json!(1)), "{ended}");
    let operations = api.get("/control/v1/companies/acme/operations?kind=capture").await;
    assert_eq!(operations["items"].as_array().unwrap().len(), 1, "no record for a wait");
}

/// Replay and discard take filters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_replayed_and_discarded_by_filter() {
    let (_host, api) = extracting().await;
    for id in ["d1", "d2", "d3"] {
        let answer = api.post(HOOKS, &event(id, &format!("flaky 7 {id}"))).await.fine();
        assert_eq!(answer["deliveries"][0]["status"], "dead");
        // A provider that is never available gets no further calls.
        api.capture("acme", "a fact").await.fine();
    }
    let refused = api.post(&format!("{DELIVERIES}/replay"), &json!({"hookid": "d1"})).await;
    assert_eq!(refused.status, 400);
    let done = api.post(&format!("{DELIVERIES}/discard"), &json!({"hookId": "d3"})).await.fine();
    assert_eq!(done, json!({"changed": 1, "more": false}));
    let done = api
        .post(&format!("{DELIVERIES}/replay"), &json!({"hookKind": "post_run_capture"}))
        .await
        .fine();
    assert_eq!(done["changed"], 2);
    api.until(&format!("{DELIVERIES}?status=delivered"), |page| {
        page["items"].as_array().unwrap().len() == 2
    })
    .await;
    let gone = api.get(&format!("{DELIVERIES}?status=discarded")).await;
    assert!(gone["items"][0].get("payload").is_none(), "{gone}");
    let theirs = api.post("/control/v1/companies/zeta/deliveries/discard", &json!({})).await;
    assert!(theirs.status == 404 || theirs.json["changed"] == 0, "{}", theirs.text);
}

/// An operation of a hook has its sender, and its agent and run where the scope has none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_of_hooks_say_who_sent_the_event_and_for_whom() {
    let (_host, api) = extracting().await;
    let body = json!({"name": "gateway", "role": "company_administrator"});
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    let gateway = api.with(made["value"].as_str().unwrap());
    let mut sent = event("p1", "job 1");
    sent["actorAgentId"] = json!("ada");
    sent["heartbeatRunId"] = json!("hb-7");
    sent["scope"] = json!({"companyId": "acme"});
    gateway.post(HOOKS, &sent).await.fine();
    let jobs = "/control/v1/companies/acme/jobs";
    let done = api.until(jobs, |page| page["items"][0]["status"] == "succeeded").await;
    assert_eq!(done["items"][0]["hook"]["hookId"], "p1", "{done}");
    let mut recall =
        hydrate("p2", "job", &json!({"actorAgentId": "ada", "heartbeatRunId": "hb-7"}));
    recall["scope"] = json!({"companyId": "acme"});
    gateway.post(HOOKS, &recall).await.fine();
    let found = api.get("/control/v1/companies/acme/operations?agentId=ada&runId=hb-7").await;
    let kinds: Vec<&str> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| operation["kind"].as_str().unwrap())
        .collect();
    for kind in ["capture", "query", "extraction"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    for operation in found["items"].as_array().unwrap() {
        assert_eq!(
            (&operation["hook"]["actorAgentId"], &operation["hook"]["triggeredAt"]),
            (&json!("ada"), &json!("2026-11-20T10:00:00Z")),
            "{operation}"
        );
        if operation["kind"] != "extraction" {
            assert_eq!(operation["principal"], "company_administrator:gateway", "{operation}");
        }
    }
    assert_eq!(
        api.get("/control/v1/companies/acme/operations?agentId=bob").await["items"],
        json!([])
    );
}

/// Agents see their own jobs, and those of no agent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_see_the_jobs_that_they_may_know_of() {
    let (_host, api) = extracting().await;
    let agents = [api.agent("ada").await, api.agent("bob").await];
    let body = json!({
        "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
        "payload": {"text": "job 1"},
    });
    agents[0].post("/runtime/v1/companies/acme/capture", &body).await.fine();
    let jobs = "/runtime/v1/companies/acme/jobs";
    let mine = agents[0].until(jobs, |page| page["items"][0]["status"] == "succeeded").await;
    assert_eq!(
        (mine["items"].as_array().unwrap().len(), &mine["items"][0]["canRetry"]),
        (1, &json!(false))
    );
    assert_eq!(agents[1].get(jobs).await["items"], json!([]));
    let one = format!("{jobs}/{}", mine["items"][0]["id"].as_str().unwrap());
    assert_eq!(agents[1].send(Method::Get, &one, None, &[]).await.problem(), (404, "no_job"));
    assert_eq!(agents[0].get(&one).await["status"], "succeeded");
    assert_eq!(api.get(jobs).await["items"].as_array().unwrap().len(), 1);
    let theirs = agents[0].send(Method::Get, "/runtime/v1/companies/zeta/jobs", None, &[]).await;
    assert_eq!(theirs.status, 403);
}

/// Events are told apart by kind, id and agent, whatever the provider deduplicates by: nine events
/// under one id are nine records, and each of them again is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_events_under_one_id_are_nine_records_at_every_provider() {
    const KINDS: [&str; 3] = ["post_run_capture", "issue_comment_capture", "manual_capture"];
    let providers = ["local-markdown", "cross-agent", "facts", "taxonomy"];
    let host = memhost_tests::TestHost::new(&providers[1..]).await.unwrap();
    let api = Api::new(&host);
    for provider in providers {
        let hooks: Vec<Value> =
            KINDS.iter().map(|kind| json!({"kind": kind, "when": "always"})).collect();
        let body = json!({
            "key": "memory", "providerKey": provider, "default": true, "policy": {"hooks": hooks},
            "grants": {"storageBytes": 64 << 20, "directoryBytes": 64 << 20},
        });
        api.post(&format!("/control/v1/companies/{provider}/bindings"), &body).await.fine();
        for is_again in [false, true] {
            let mut handles = std::collections::BTreeSet::new();
            for kind in KINDS {
                for agent in ["ada", "bob", "carol"] {
                    let sent = json!({
                        "hookKind": kind,
                        "hookId": "run-1",
                        "triggeredAt": "2026-11-20T10:00:00Z",
                        "scope": {
                            "companyId": provider, "agentId": agent, "subjectId": agent,
                            "projectId": "p1",
                        },
                        "source": {"kind": "run", "companyId": provider, "runId": "run-1"},
                        "mode": "capture_record",
                        "payload": {
                            "text": format!("{agent} prefers {kind}"),
                            "metadata": {"kind": "preference"},
                        },
                        "waitMs": 10_000,
                    });
                    let path = format!("/runtime/v1/companies/{provider}/hooks");
                    let answer = api.post(&path, &sent).await.fine();
                    let delivery = &answer["deliveries"][0];
                    assert_eq!(delivery["status"], "delivered", "{provider}: {delivery}");
                    assert_eq!(answer["isDuplicate"], is_again);
                    handles.extend(
                        delivery["records"].as_array().into_iter().flatten().map(Value::to_string),
                    );
                }
            }
            assert_eq!(handles.len(), 9, "{provider}: {handles:?}");
        }
    }
}
