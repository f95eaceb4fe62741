//! A company as a whole: retention, erasure, events, idempotency keys, bindings in full, backups.

use memhost_server::Method;
use memhost_tests::{eventually, parse};
use serde_json::{Value, json};

use super::support::{Api, bind, extracting};

const COMPANY: &str = "/control/v1/companies/acme";

pub(super) fn path(rest: &str) -> String {
    format!("{COMPANY}/{rest}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_are_kept_as_long_as_the_retention_says() {
    let (host, api) = extracting().await;
    for n in 0..20 {
        api.capture("acme", &format!("metered {n}")).await.fine();
    }
    let costs = api.get(&path("costs")).await;
    let kept = async || {
        api.put(&path("retention"), &json!({"operationsMaxCount": 5})).await.fine();
        host.operations("acme").await.unwrap().len()
    };
    // Operations that are not indexed yet stay until they are.
    eventually("the rest is gone", async || kept().await <= 5).await;
    assert_eq!(kept().await, 5);
    assert_eq!(api.get(&path("costs")).await, costs, "sums stay");
    assert_eq!(api.get(&path("cost-events")).await["items"].as_array().unwrap().len(), 20);
    api.put(&path("retention"), &json!({"operationsMaxAgeDays": 1})).await.fine();
    assert_eq!(host.operations("acme").await.unwrap().len(), 5);
    assert_eq!(
        api.put(&path("retention"), &json!({"operationsMaxCount": 0})).await.json["field"],
        "operationsMaxCount"
    );
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
}

/// Creates one of everything that a company can have.
pub(super) async fn fill(api: &Api) {
    for n in 0..5 {
        api.capture("acme", &format!("fact {n}")).await.fine();
    }
    bind(api, "acme", "careful", &json!({"review": {"all": true}})).await;
    api.capture("acme", "waits for a person").await.fine();
    api.put(&path("targets"), &json!({"bindingKey": "extracts"})).await.fine();
    api.put(&path("targets"), &json!({"bindingKey": "careful", "agentId": "ada"})).await.fine();
    let used_as = json!({"kind": "query", "parameter": "key"});
    let secret =
        json!({"value": "a value of eight", "origins": ["https://a.example"], "usedAs": used_as});
    api.put(&path("secrets/KEY"), &secret).await.fine();
    api.post(&path("tokens"), &json!({"name": "t", "role": "auditor"})).await.fine();
    api.put(&path("budgets/month"), &json!({"limitCents": 1000})).await.fine();
    api.capture("acme", "metered 7").await.fine();
    api.capture("acme", "job makes a record").await.fine();
    api.until(&path("jobs"), |jobs| jobs["items"][0]["status"] == "succeeded").await;
    let fee = json!({
        "eventKind": "fee", "biller": "b", "amountCents": 1, "occurredAt": "2026-11-20T00:00:00Z",
    });
    api.post(&path("finance-events"), &fee).await.fine();
    let event = json!({
        "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "claude",
    });
    api.post("/runtime/v1/companies/acme/events", &json!({"events": [event]})).await.fine();
    let hook = json!({
        "hookKind": "post_run_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
        "scope": {"companyId": "acme"}, "source": {"kind": "run", "companyId": "acme"},
        "payload": {"text": "by hook"}, "waitMs": 10_000,
    });
    api.post("/runtime/v1/companies/acme/hooks", &hook).await.fine();
    api.put(&path("retention"), &json!({"operationsMaxAgeDays": 30})).await.fine();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_company_leaves_only_a_tombstone() {
    let (mut host, api) = extracting().await;
    fill(&api).await;
    bind(&api, "other", "extracts", &json!({})).await;
    api.capture("other", "the neighbours' fact").await.fine();
    assert_eq!(
        api.post(&path("erase"), &json!({"confirm": "other"})).await.json["field"],
        "confirm"
    );
    // Neither a used-up budget nor a disabled binding prevents erasure.
    api.put(&path("budgets/day"), &json!({"limitCents": 1})).await.fine();
    assert_eq!(api.capture("acme", "x").await.status, 402);
    api.patch(&path("bindings/careful"), &json!({"enabled": false})).await.fine();
    let tombstone = api.post(&path("erase"), &json!({"confirm": "acme"})).await.fine();
    assert_eq!(
        (&tombstone["companyId"], &tombstone["erasedBy"]),
        (&json!("acme"), &json!("operator"))
    );
    assert_eq!(tombstone["notForgotten"], json!([]), "{tombstone}");
    assert_eq!(tombstone["forgotten"]["careful"], 1, "also what waited for a person");
    assert!(
        tombstone["forgotten"]["extracts"].as_u64().unwrap() >= 6
            && tombstone["removedKeys"].as_u64().unwrap() > 50
    );
    assert!(is_signed(&tombstone), "{tombstone}");
    assert_eq!(api.capture("acme", "once more").await.problem(), (410, "company_erased"));
    // A key of a request to it is not kept: the same key with another request would be refused for
    // that.
    for text in ["one", "another"] {
        let records = json!({"scope": {"companyId": "acme"}, "records": [{"text": text}]});
        let key = [("idempotency-key", "k")];
        let answer = api
            .send(
                Method::Post,
                "/runtime/v1/companies/acme/records",
                Some(records.to_string()),
                &key,
            )
            .await;
        assert_eq!(answer.problem(), (410, "company_erased"));
    }
    assert_eq!(api.query("other", "neighbours").await, ["the neighbours' fact"]);
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.get("/control/v1/tombstones/acme").await, tombstone);
    assert_eq!(api.query("other", "neighbours").await, ["the neighbours' fact"]);
    assert_eq!(api.capture("acme", "once more").await.problem(), (410, "company_erased"));
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
    // On the disk only its name is left, in the tombstone and in later refusals.
    drop(api);
    let data = host.data_dir().to_owned();
    host.stop().await;
    let db = memhost_tests::open_store(&data);
    for name in db.tree_names() {
        for entry in &db.open_tree(&name).unwrap() {
            let (key, value) = entry.unwrap();
            let text = [String::from_utf8_lossy(&key), String::from_utf8_lossy(&value)].concat();
            for word in ["fact 1", "waits for a person", "a record", "by hook", "claude"] {
                assert!(!text.contains(word), "{word} in {}", String::from_utf8_lossy(&name));
            }
        }
    }
    assert!(!data.join("memory/acme").exists());
}

/// Checks a tombstone with nothing but its documentation.
fn is_signed(tombstone: &Value) -> bool {
    let mut signed = serde_json::Map::new();
    for name in [
        "companyId",
        "erasedAt",
        "erasedBy",
        "forgotten",
        "notForgotten",
        "isComplete",
        "removedKeys",
    ] {
        signed.insert(name.to_owned(), tombstone[name].clone());
    }
    let names = [
        "companyId",
        "erasedAt",
        "erasedBy",
        "forgotten",
        "notForgotten",
        "isComplete",
        "removedKeys",
    ];
    let fields: Vec<String> =
        names.iter().map(|name| format!("\"{name}\":{}", signed[*name])).collect();
    let text = format!("{{{}}}", fields.join(","));
    let bytes = |name: &str| {
        let hex = tombstone[name].as_str().unwrap().as_bytes();
        hex.chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect::<Vec<_>>()
    };
    let key =
        ed25519_dalek::VerifyingKey::from_bytes(&bytes("publicKey").try_into().unwrap()).unwrap();
    let signature = ed25519_dalek::Signature::from_slice(&bytes("signature")).unwrap();
    key.verify_strict(text.as_bytes(), &signature).is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_found_by_project_session_and_tool() {
    let (_host, api) = extracting().await;
    let event = |kind: &str, session: &str, more: Value| {
        let mut event =
            json!({"type": kind, "projectId": "p1", "sessionId": session, "agentKind": "codex"});
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let tool = json!({"toolId": "bash", "status": "ok", "durationMs": 12});
    let failed =
        json!({"toolId": "bash", "status": "error", "durationMs": 3, "error": "no such file"});
    let events = json!({"events": [
        event("session.started", "s1", json!({"eventId": "e1"})),
        event("tool_call.started", "s1", json!({"toolId": "bash"})),
        event("tool_call.succeeded", "s1", tool),
        event("tool_call.failed", "s2", failed),
        event("memory.saved", "s2", json!({"details": {"records": 2}})),
    ]});
    let to = "/runtime/v1/companies/acme/events";
    let first = api.post(to, &events).await.fine();
    // A repeated event with the same id is stored once.
    let again = api.post(to, &json!({"events": [events["events"][0]]})).await.fine();
    assert_eq!(again["items"][0], first["items"][0]);
    let count = |query: &'static str| {
        let api = api.with_same();
        async move {
            api.get(&path(&format!("events?{query}"))).await["items"].as_array().unwrap().len()
        }
    };
    assert_eq!(
        (count("projectId=p1").await, count("sessionId=s1").await, count("toolId=bash").await),
        (5, 3, 3)
    );
    assert_eq!(count("toolId=bash&sessionId=s2").await, 1);
    assert_eq!(count("type=tool_call.failed").await, 1);
    assert_eq!((count("sessionId=s").await, count("agentKind=claude").await), (0, 0));
    let page = api.get(&path("events?projectId=p1&limit=2")).await;
    let next =
        format!("events?projectId=p1&limit=10&cursor={}", page["nextCursor"].as_str().unwrap());
    assert_eq!(api.get(&path(&next)).await["items"].as_array().unwrap().len(), 3);
    for (wrong, field) in [
        (event("tool_call.started", "s", json!({})), "events.0.toolId"),
        (
            event("tool_call.succeeded", "s", json!({"toolId": "t", "status": "ok"})),
            "events.0.durationMs",
        ),
        (
            event("tool_call.failed", "s", json!({"toolId": "t", "status": "x", "durationMs": 1})),
            "events.0.error",
        ),
        (event("session.paused", "s", json!({})), "events.0.type"),
    ] {
        let answer = api.post(to, &json!({"events": [wrong]})).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
    let twice = event("session.started", "s", json!({"eventId": "e2"}));
    let answer = api.post(to, &json!({"events": [twice, twice]})).await;
    assert_eq!((answer.status, &answer.json["field"]), (400, &json!("events.1.eventId")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_with_a_key_is_done_once() {
    let (mut host, api) = extracting().await;
    let body = json!({"scope": {"companyId": "acme"}, "records": [{"text": "once"}]}).to_string();
    let records = "/runtime/v1/companies/acme/records";
    let send = |api: &Api, body: &str, key: &'static str| {
        let (api, body) = (api.with_same(), body.to_owned());
        let headers = [("idempotency-key", key)];
        async move { api.send(Method::Post, records, Some(body), &headers).await }
    };
    let (a, b) = tokio::join!(send(&api, &body, "k1"), send(&api, &body, "k1"));
    assert_eq!((a.status, &a.json), (200, &b.json));
    assert_ne!(
        a.headers.contains_key("idempotency-replayed"),
        b.headers.contains_key("idempotency-replayed")
    );
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(send(&api, &body, "k1").await.json, a.json);
    assert_eq!(api.query("acme", "once").await.len(), 1);
    let other = body.replace("once", "twice");
    assert_eq!(send(&api, &other, "k1").await.problem(), (409, "idempotency_key_reused"));
    assert_eq!(send(&api, &other, "").await.status, 400);
    // The same key of another token is another key.
    let made = api
        .post(&path("tokens"), &json!({"name": "a", "role": "agent", "agentId": "ada"}))
        .await
        .fine();
    let agent = api.with(made["value"].as_str().unwrap());
    assert_eq!(send(&agent, &other, "k1").await.status, 200);
    assert!(send(&agent, &other, "k1").await.headers.contains_key("idempotency-replayed"));
    assert_eq!(send(&agent, &body, "k1").await.problem(), (409, "idempotency_key_reused"));
    // A final refusal is answered again from the store. A refusal that may pass is tried again.
    let bad = json!({"scope": {"companyId": "acme"}, "records": []}).to_string();
    assert_eq!(
        (send(&api, &bad, "k2").await.status, send(&api, &bad, "k2").await.status),
        (400, 400)
    );
    let binding = path("bindings/extracts");
    let key = [("idempotency-key", "k3")];
    let patch = json!({"enabled": false}).to_string();
    let first = api.send(Method::Patch, &binding, Some(patch.clone()), &key).await.fine();
    assert_eq!(api.send(Method::Patch, &binding, Some(patch.clone()), &key).await.json, first);
    // What a request expects is a part of it.
    let expects = [("idempotency-key", "k3"), ("if-match", "\"1\"")];
    let other = api.send(Method::Patch, &binding, Some(patch), &expects).await;
    assert_eq!(other.problem(), (409, "idempotency_key_reused"));
}

/// A caller that disconnected and asks again with the same key gets the first answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_disconnected_gets_the_first_answer_for_its_key() {
    let (host, api) = extracting().await;
    let source = json!({"kind": "manual_note", "companyId": "acme"});
    let payload = json!({"text": "metered 1 after release"});
    let body =
        json!({"scope": {"companyId": "acme"}, "source": source, "payload": payload}).to_string();
    let send = || {
        let path = "/runtime/v1/companies/acme/capture";
        api.send(Method::Post, path, Some(body.clone()), &[("idempotency-key", "k")])
    };
    let is_called = async || {
        host.usage("acme", "extracts").await.is_some_and(|usage| usage.calls_in_flight == 1)
    };
    tokio::select! {
        answer = send() => panic!("answered before the release: {}", answer.text),
        () = eventually("the provider is called", is_called) => {}
    }
    api.capture("acme", "release").await.fine();
    let again = send().await;
    assert_eq!(
        (again.status, again.headers["idempotency-replayed"].to_str().unwrap()),
        (200, "true")
    );
    let captures = host.operations("acme").await.unwrap();
    assert_eq!(captures.iter().filter(|operation| operation.kind.as_str() == "capture").count(), 2);
}

/// A key belongs to one token, a token's value is not stored, and erasing a company with a short
/// name erases no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_that_resemble_other_keys_do_not_collide() {
    let (mut host, api) = extracting().await;
    let key = [("idempotency-key", "k")];
    let body = json!({"name": "ada", "role": "agent", "agentId": "ada"}).to_string();
    let first = api.send(Method::Post, &path("tokens"), Some(body.clone()), &key).await.fine();
    let again = api.send(Method::Post, &path("tokens"), Some(body.clone()), &key).await.fine();
    assert!(
        first["value"].is_string() && again.get("value").is_none() && again["id"] == first["id"]
    );
    // An agent of another company with the same name and key gets another answer.
    bind(&api, "other", "extracts", &json!({})).await;
    let made = api
        .post(
            "/control/v1/companies/other/tokens",
            &json!({"name": "ada", "role": "agent", "agentId": "ada"}),
        )
        .await
        .fine();
    let stranger = api.with(made["value"].as_str().unwrap());
    let answer = stranger.send(Method::Post, &path("tokens"), Some(body), &key).await;
    assert_eq!(answer.problem(), (403, "forbidden"));
    // Keys of due deliveries begin with `d`, those of jobs with `j`. Names of companies may, too.
    api.patch(&path("bindings/extracts"), &json!({"enabled": false})).await.fine();
    let hook = json!({
        "hookKind": "post_run_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
        "bindingKey": "extracts", "scope": {"companyId": "acme"},
        "source": {"kind": "run", "companyId": "acme"}, "payload": {"text": "a fact"},
    });
    let waiting = api.post("/runtime/v1/companies/acme/hooks", &hook).await.fine();
    for company in ["d", "j", "tombstone"] {
        bind(&api, company, "extracts", &json!({})).await;
        api.capture(company, "x").await.fine();
        api.post(&format!("/control/v1/companies/{company}/erase"), &json!({"confirm": company}))
            .await
            .fine();
    }
    drop((api, stranger));
    host.stop().await;
    let token = first["value"].as_str().unwrap();
    let db = memhost_tests::open_store(host.data_dir());
    for name in db.tree_names() {
        for entry in &db.open_tree(&name).unwrap() {
            let (_, value) = entry.unwrap();
            assert!(
                !String::from_utf8_lossy(&value).contains(token),
                "in {}",
                String::from_utf8_lossy(&name)
            );
        }
    }
    drop(db);
    host.start().await.unwrap();
    let api = Api::new(&host);
    for company in ["d", "j", "tombstone"] {
        assert_eq!(api.capture(company, "x").await.problem(), (410, "company_erased"));
        let token = json!({"name": "n", "role": "auditor"});
        let answer = api.post(&format!("/control/v1/companies/{company}/tokens"), &token).await;
        assert_eq!(answer.problem(), (410, "company_erased"));
        let last = &host.operations(company).await.unwrap()[0];
        assert_eq!((last.kind.as_str(), last.outcome.as_str()), ("control", "refused"));
    }
    api.patch(&path("bindings/extracts"), &json!({"enabled": true})).await.fine();
    let delivery =
        path(&format!("deliveries/{}", waiting["deliveries"][0]["id"].as_str().unwrap()));
    api.until(&delivery, |delivery| delivery["status"] == "delivered").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_changes_only_if_the_entity_tag_matches() {
    let (host, api) = extracting().await;
    let binding = path("bindings/extracts");
    let shown = api.send(Method::Get, &binding, None, &[]).await;
    let tag = shown.headers["etag"].to_str().unwrap().to_owned();
    let patch = |body: Value, tag: &str| {
        let (api, tag, binding) = (api.with_same(), tag.to_owned(), binding.clone());
        async move {
            api.send(Method::Patch, &binding, Some(body.to_string()), &[("if-match", &tag)]).await
        }
    };
    patch(json!({"policy": {"pii": "redact"}}), &tag).await.fine();
    let late = patch(json!({"enabled": false}), &tag).await;
    assert_eq!(late.problem(), (412, "stale_revision"));
    assert_eq!(patch(json!({"enabled": false}), "seven").await.json["field"], "if-match");
    let activity = api.get(&path("activity")).await;
    let last = &activity["items"][0];
    assert_eq!(
        (&last["before"]["policy"]["pii"], &last["after"]["policy"]["pii"]),
        (&json!("allow"), &json!("redact"))
    );
    // A configuration is checked with the schema and then by the provider. Errors of both have
    // pointers.
    let bad =
        json!({"key": "m", "providerKey": "local-markdown", "config": {"ranking": {"b": "much"}}});
    let answer = api.post(&path("bindings"), &bad).await;
    assert_eq!(
        (answer.status, &answer.json["errors"][0]["pointer"]),
        (422, &json!("/ranking/b")),
        "{}",
        answer.text
    );
    // The explanation of a resolution.
    api.put(&path("targets"), &json!({"bindingKey": "extracts", "agentId": "ada"})).await.fine();
    let resolved = api.get(&path("resolve?agentId=ada")).await;
    let steps: Vec<_> = resolved["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["rule"].clone(), step["decides"].clone()))
        .collect();
    let expected = [("explicit_key", false), ("agent_override", true), ("company_default", false)];
    assert_eq!(steps, expected.map(|(rule, decides)| (json!(rule), json!(decides))));
    // Deleting removes assignments and stored memory. Another binding may use the key again.
    api.capture("acme", "a fact").await.fine();
    api.send(Method::Delete, &binding, None, &[("if-match", "\"1\"")]).await;
    assert_eq!(api.send(Method::Delete, &binding, None, &[]).await.status, 204);
    assert_eq!(
        api.send(Method::Get, &path("resolve?agentId=ada"), None, &[]).await.problem(),
        (404, "no_binding")
    );
    bind(&api, "acme", "extracts", &json!({})).await;
    assert!(api.query("acme", "fact").await.is_empty());
    assert_eq!(host.service().control().bindings(&parse("acme")).await.unwrap().len(), 1);
}
