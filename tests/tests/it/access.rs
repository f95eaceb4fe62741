//! The rights of roles: every route, for every role, in its own company and in another.

use std::collections::BTreeSet;
use std::sync::Arc;

use memhost_ports::Clock;
use memhost_server::Method;
use memhost_tests::clock::TestClock;
use memhost_tests::{TestHost, parse};
use serde_json::{Value, json};

use super::support::Api;

/// `+` allowed, `-` refused: company administrator, agent, auditor and integration, each in its own
/// company. The operator may call every route, no other role may call any in another company, and a
/// monitor none of a company.
pub(crate) const COMPANY: &[(Method, &str, &str)] = &[
    (Method::Post, "/runtime/v1/companies/{company}/capture", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/capture/batch", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/records", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/query", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/list", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/get", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/forget", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/correct", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/explain", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/browse", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/export", "+---"),
    (Method::Post, "/runtime/v1/companies/{company}/import", "+---"),
    (Method::Post, "/runtime/v1/companies/{company}/scope/forget", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/sources/forget", "+--+"),
    (Method::Post, "/runtime/v1/companies/{company}/sources/list", "++++"),
    (Method::Post, "/runtime/v1/companies/{company}/hooks", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/hooks/batch", "++-+"),
    (Method::Post, "/runtime/v1/companies/{company}/events", "++-+"),
    (Method::Get, "/control/v1/companies/{company}/bindings", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/bindings", "+---"),
    (Method::Get, "/control/v1/companies/{company}/bindings/{key}", "+-+-"),
    (Method::Patch, "/control/v1/companies/{company}/bindings/{key}", "+---"),
    (Method::Delete, "/control/v1/companies/{company}/bindings/{key}", "+---"),
    (Method::Get, "/control/v1/companies/{company}/bindings/{key}/grants", "+-+-"),
    (Method::Put, "/control/v1/companies/{company}/bindings/{key}/grants", "----"),
    (Method::Post, "/control/v1/companies/{company}/bindings/{key}/reset", "+---"),
    (Method::Put, "/control/v1/companies/{company}/bindings/{key}/budgets/{period}", "+---"),
    (Method::Delete, "/control/v1/companies/{company}/bindings/{key}/budgets/{period}", "+---"),
    (Method::Get, "/control/v1/companies/{company}/resolve", "+++-"),
    (Method::Put, "/control/v1/companies/{company}/default-binding", "+---"),
    (Method::Get, "/control/v1/companies/{company}/targets", "+-+-"),
    (Method::Put, "/control/v1/companies/{company}/targets", "+---"),
    (Method::Get, "/control/v1/companies/{company}/secrets", "+-+-"),
    (Method::Put, "/control/v1/companies/{company}/secrets/{name}", "+---"),
    (Method::Delete, "/control/v1/companies/{company}/secrets/{name}", "+---"),
    (Method::Get, "/control/v1/companies/{company}/tokens", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/tokens", "+---"),
    (Method::Post, "/control/v1/companies/{company}/tokens/{id}/rotate", "+---"),
    (Method::Delete, "/control/v1/companies/{company}/tokens/{id}", "+---"),
    (Method::Post, "/control/v1/companies/{company}/tokens/find", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/activity", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/operations", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/operations/{id}", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/operations/{id}/explanation", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/deliveries", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/deliveries/{id}", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/deliveries/{id}/replay", "+---"),
    (Method::Post, "/control/v1/companies/{company}/deliveries/{id}/discard", "+---"),
    (Method::Post, "/control/v1/companies/{company}/deliveries/replay", "+---"),
    (Method::Post, "/control/v1/companies/{company}/deliveries/discard", "+---"),
    (Method::Get, "/runtime/v1/companies/{company}/jobs", "++++"),
    (Method::Get, "/runtime/v1/companies/{company}/jobs/{id}", "++++"),
    (Method::Get, "/control/v1/companies/{company}/jobs", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/jobs/{id}", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/jobs/{id}/cancel", "+---"),
    (Method::Post, "/control/v1/companies/{company}/jobs/{id}/retry", "+---"),
    (Method::Post, "/control/v1/companies/{company}/jobs/retry", "+---"),
    (Method::Get, "/control/v1/companies/{company}/reviews", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/reviews/{id}/decision", "+---"),
    (Method::Get, "/control/v1/companies/{company}/costs", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/outgoing", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/evaluation", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/cost-events", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/finance-events", "+-+-"),
    (Method::Post, "/control/v1/companies/{company}/finance-events", "+---"),
    (Method::Get, "/control/v1/companies/{company}/budgets", "+-+-"),
    (Method::Put, "/control/v1/companies/{company}/budgets/{period}", "+---"),
    (Method::Delete, "/control/v1/companies/{company}/budgets/{period}", "+---"),
    (Method::Get, "/control/v1/companies/{company}/events", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/stream", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/retention", "+-+-"),
    (Method::Put, "/control/v1/companies/{company}/retention", "+---"),
    (Method::Get, "/control/v1/companies/{company}/usage", "+-+-"),
    (Method::Get, "/control/v1/companies/{company}/export", "----"),
    (Method::Post, "/control/v1/companies/{company}/import", "----"),
    (Method::Post, "/control/v1/companies/{company}/restore", "----"),
    (Method::Post, "/control/v1/companies/{company}/erase", "----"),
];

/// For the operator only, and some for a monitor.
pub(crate) const HOST: &[(Method, &str)] = &[
    (Method::Get, "/control/v1/companies"),
    (Method::Put, "/control/v1/companies/{company}"),
    (Method::Get, "/control/v1/plugins"),
    (Method::Post, "/control/v1/plugins/scan"),
    (Method::Get, "/control/v1/stream"),
    (Method::Get, "/control/v1/doctor"),
    (Method::Get, "/control/v1/hosts"),
    (Method::Patch, "/control/v1/hosts/{id}"),
    (Method::Get, "/control/v1/tokens"),
    (Method::Post, "/control/v1/tokens"),
    (Method::Post, "/control/v1/tokens/{id}/rotate"),
    (Method::Delete, "/control/v1/tokens/{id}"),
    (Method::Post, "/control/v1/tokens/find"),
    (Method::Get, "/control/v1/tombstones/{company}"),
    (Method::Post, "/control/v1/backups"),
    (Method::Get, "/metrics"),
];

/// A body with the shape that a route expects.
fn body(path: &str, company: &str) -> Value {
    let scope = json!({"companyId": company});
    let handle = json!({"providerKey": "p", "providerRecordId": "r"});
    let source = json!({"kind": "manual_note", "companyId": company});
    match path.rsplit('/').next().unwrap() {
        "capture" => json!({"scope": scope, "source": source, "payload": {"text": "t"}}),
        "records" => json!({"scope": scope, "records": [{"text": "t"}]}),
        "query" | "explain" => json!({"scope": scope, "query": "t"}),
        "forget" | "list" if path.contains("/sources/") => {
            json!({"scope": scope, "sources": [{"runId": "r"}]})
        }
        "forget" if path.contains("/scope/") => {
            json!({"scope": {"companyId": company, "runId": "r"}})
        }
        "list" | "browse" | "export" => json!({"scope": scope}),
        "import" => json!({"scope": scope, "lines": ""}),
        "get" => json!({"scope": scope, "handle": handle}),
        "forget" => json!({"scope": scope, "handles": [handle]}),
        "correct" => json!({"scope": scope, "handle": handle, "patch": {"instruction": "t"}}),
        "hooks" => {
            json!({
                "hookKind": "manual_capture", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
                "scope": scope, "source": source, "payload": {"text": "t"},
            })
        }
        "batch" if path.ends_with("hooks/batch") => json!({"events": [body("hooks", company)]}),
        "events" => {
            json!({
                "events": [{
                    "type": "session.started", "projectId": "p", "sessionId": "s", "agentKind": "c",
                }],
            })
        }
        "bindings" | "default-binding" => json!({"key": "k", "providerKey": "p"}),
        "targets" => json!({"bindingKey": "k"}),
        "tokens" => json!({"name": "n", "role": "auditor"}),
        "finance-events" => json!({"eventKind": "fee", "biller": "b", "amountCents": 1,
            "occurredAt": "2026-11-20T00:00:00Z"}),
        "decision" => json!({"decision": "approve"}),
        "{id}" if path.contains("/hosts/") => json!({"isDraining": true}),
        "erase" => json!({"confirm": "nobody"}),
        "{name}" => {
            json!({
                "value": "a value of eight", "origins": ["https://a.example"],
                "usedAs": {"kind": "query", "parameter": "key"},
            })
        }
        "{period}" => json!({"limitCents": 1}),
        "backups" => json!({"directory": "relative"}),
        _ => json!({}),
    }
}

fn address(path: &str, company: &str) -> String {
    path.replace("{company}", company)
        .replace("{key}", "none")
        .replace("{name}", "NONE")
        .replace("{period}", "day")
        .replace("{id}", "0199f0a0-0000-7000-8000-000000000000")
}

async fn status(api: &Api, method: Method, path: &str, company: &str) -> (u16, Value) {
    let body = (method != Method::Get).then(|| body(path, company).to_string());
    let headers: &[_] = match path.rsplit('/').next().unwrap() {
        // An allowed caller gets an error about the id, because a stream would not end.
        "stream" => &[("last-event-id", "none")],
        "batch" if path.ends_with("capture/batch") => &[("content-type", "application/x-ndjson")],
        _ => &[],
    };
    let answer = api.send(method, &address(path, company), body, headers).await;
    (answer.status, answer.json)
}

async fn token(api: &Api, company: &str, body: Value) -> String {
    let made = api.post(&format!("/control/v1/companies/{company}/tokens"), &body).await.fine();
    made["value"].as_str().unwrap().to_owned()
}

/// Those that a monitor may call, too.
const MONITORED: [&str; 3] = ["/control/v1/doctor", "/control/v1/hosts", "/metrics"];

async fn roles(api: &Api, company: &str) -> [Api; 4] {
    let mut all = Vec::new();
    for body in [
        json!({"name": "admin", "role": "company_administrator"}),
        json!({"name": "ada", "role": "agent", "agentId": "ada"}),
        json!({"name": "auditor", "role": "auditor"}),
        json!({"name": "gateway", "role": "integration"}),
    ] {
        all.push(api.with(&token(api, company, body).await));
    }
    all.try_into().unwrap_or_else(|_| panic!("four roles"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_allows_exactly_the_roles_of_the_table() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let callers = roles(&operator, "acme").await;
    let monitor =
        operator.post("/control/v1/tokens", &json!({"name": "m", "role": "monitor"})).await.fine();
    let monitor = operator.with(monitor["value"].as_str().unwrap());
    // One company exists and the other does not. The answers must be the same.
    operator.capture("other", "something").await.fine();
    let mut wrong = Vec::new();
    for (method, path, allowed) in COMPANY {
        let (status_of_operator, problem) = status(&operator, *method, path, "acme").await;
        if matches!(status_of_operator, 401 | 403 | 404 | 405) && problem["code"] == "no_route"
            || status_of_operator == 403
        {
            wrong.push(format!("{method:?} {path}: the operator gets {problem}"));
        }
        // A monitor reaches no company, and is not told which ones exist.
        let (of_monitor, problem) = status(&monitor, *method, path, "acme").await;
        let elsewhere = status(&monitor, *method, path, "nobody").await;
        if of_monitor != 403 || (of_monitor, problem.clone()) != elsewhere {
            wrong.push(format!(
                "{method:?} {path}: a monitor gets {of_monitor} {problem}, or {elsewhere:?}"
            ));
        }
        for (caller, may) in callers.iter().zip(allowed.chars()) {
            let (found, problem) = status(caller, *method, path, "acme").await;
            if (found != 403) != (may == '+') {
                wrong.push(format!("{method:?} {path} {may}: {found} {problem}"));
            }
            let mut refusals = BTreeSet::new();
            for company in ["other", "nobody"] {
                let (found, mut problem) = status(caller, *method, path, company).await;
                problem["operationId"].take();
                refusals.insert((found, problem.to_string()));
            }
            if refusals.len() != 1 || refusals.iter().next().unwrap().0 != 403 {
                wrong.push(format!("{method:?} {path} elsewhere: {refusals:?}"));
            }
        }
    }
    for (method, path) in HOST {
        for caller in &callers {
            let (found, _) = status(caller, *method, path, "acme").await;
            if found != 403 {
                wrong.push(format!("{method:?} {path}: {found}"));
            }
        }
        let (found, _) = status(&monitor, *method, path, "acme").await;
        if (found == 200) != MONITORED.contains(path) || (found != 200 && found != 403) {
            wrong.push(format!("{method:?} {path}: a monitor gets {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every refusal is recorded in the caller's company, and in no other.
    let refused = async |company: &'static str| {
        let log = host.operations(company).await.unwrap();
        log.into_iter().filter(|operation| {
            operation.error.as_ref().is_some_and(|error| error.code.as_str() == "forbidden")
        })
    };
    assert!(
        refused("acme").await.map(|refusal| refusal.count).sum::<u64>()
            >= 2 * 4 * COMPANY.len() as u64
    );
    assert_eq!(refused("other").await.count() + refused("nobody").await.count(), 0);
    assert!(refused("acme").await.all(|operation| operation.scope.agent_id.is_none()));
    assert!(
        refused("acme")
            .await
            .all(|operation| !operation.principal.to_string().starts_with("monitor"))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_when_it_is_revoked_rotated_or_expired() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let path = "/control/v1/companies/acme/tokens";
    let body = json!({"name": "ada", "role": "agent", "agentId": "ada", "operations": ["query"]});
    let made = operator.post(path, &body).await.fine();
    let (id, value) = (made["id"].as_str().unwrap(), made["value"].as_str().unwrap());
    let agent = operator.with(value);
    assert_eq!(agent.query("acme", "x").await, Vec::<String>::new());
    assert_eq!(
        agent.capture("acme", "x").await.problem(),
        (403, "forbidden"),
        "not one of its operations"
    );
    let as_bob = json!({"scope": {"companyId": "acme", "agentId": "bob"}, "query": "x"});
    let answer = agent.post("/runtime/v1/companies/acme/query", &as_bob).await;
    assert_eq!(
        (answer.problem(), &answer.json["field"]),
        ((403, "forbidden"), &json!("scope.agentId"))
    );
    let resolve = "/control/v1/companies/acme/resolve";
    let refused = agent.send(Method::Get, resolve, None, &[]).await;
    assert_eq!(refused.problem(), (403, "forbidden"), "not one of its operations");
    // Only which binding answers, without its settings.
    let whole =
        token(&operator, "acme", json!({"name": "whole", "role": "agent", "agentId": "ada"})).await;
    let resolved = operator.with(&whole).get(resolve).await;
    assert_eq!(
        (&resolved["binding"]["key"], resolved["binding"].get("config")),
        (&json!("default"), None)
    );
    // Only a digest is stored.
    let listed = operator.get(path).await;
    assert!(listed["items"][0].get("value").is_none() && !listed.to_string().contains(value));
    let rotated = operator.post(&format!("{path}/{id}/rotate"), &json!({})).await.fine();
    assert_eq!(agent.send(Method::Get, "/control/v1/companies", None, &[]).await.status, 401);
    let agent = operator.with(rotated["value"].as_str().unwrap());
    assert_eq!(agent.query("acme", "x").await, Vec::<String>::new());
    operator.send(Method::Delete, &format!("{path}/{id}"), None, &[]).await.fine();
    let answer = agent.post("/runtime/v1/companies/acme/query", &json!({})).await;
    assert_eq!(
        (answer.status, answer.headers["www-authenticate"].to_str().unwrap()),
        (401, "Bearer")
    );
    assert_eq!(
        operator.post(&format!("{path}/{id}/rotate"), &json!({})).await.problem(),
        (409, "token_revoked")
    );
    // A call with a revoked token is recorded.
    let last = &host.operations("acme").await.unwrap()[0];
    assert_eq!((last.kind.as_str(), last.principal.to_string().as_str()), ("control", "agent:ada"));
    assert!(last.error.as_ref().unwrap().message.contains("was revoked"));
    let activity = operator.get("/control/v1/companies/acme/activity").await;
    let actions: Vec<_> =
        activity["items"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert!(actions.starts_with(&[json!("token_revoked"), json!("token_rotated")]), "{actions:?}");
    assert!(!activity.to_string().contains("mh_"));
    for (body, field) in [
        (json!({"name": "", "role": "auditor"}), "name"),
        (json!({"name": "x", "role": "operator"}), "role"),
        (json!({"name": "x", "role": "agent"}), "agentId"),
        (json!({"name": "x", "role": "auditor", "runId": "r"}), "runId"),
        (json!({"name": "x", "role": "auditor", "expiresAt": "2020-01-01T00:00:00Z"}), "expiresAt"),
        (json!({"name": "x", "role": "agent", "agentId": "a", "operations": []}), "operations"),
    ] {
        let answer = operator.post(path, &body).await;
        assert_eq!((answer.status, &answer.json["field"]), (400, &json!(field)), "{}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_outlive_the_host_and_expire() {
    let clock = TestClock::new();
    let mut host =
        TestHost::with(&[], |options| options.clock = Arc::clone(&clock) as Arc<dyn Clock>)
            .await
            .unwrap();
    let operator = Api::new(&host);
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let short = json!({"name": "s", "role": "auditor", "expiresAt": soon.to_string()});
    let short = token(&operator, "acme", short).await;
    let long = token(&operator, "acme", json!({"name": "l", "role": "auditor"})).await;
    drop(operator);
    host.stop().await;
    host.start().await.unwrap();
    let operator = Api::new(&host);
    let path = "/control/v1/companies/acme/operations";
    assert_eq!(operator.with(&long).send(Method::Get, path, None, &[]).await.status, 200);
    assert_eq!(operator.with(&short).send(Method::Get, path, None, &[]).await.status, 200);
    clock.advance(jiff::SignedDuration::from_hours(2));
    assert_eq!(operator.with(&short).send(Method::Get, path, None, &[]).await.status, 401);
    assert_eq!(host.service().tenancy().tokens(Some(&parse("acme"))).len(), 2);
}

/// Only an operator sets grants and limits, however a binding is created or changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_administrator_cannot_set_grants_or_limits() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let [admin, ..] = roles(&operator, "acme").await;
    let path = "/control/v1/companies/acme/bindings";
    let plain = json!({"key": "m", "providerKey": "local-markdown", "default": true});
    admin.post(path, &plain).await.fine();
    for extra in
        [json!({"grants": {"storageBytes": 1}}), json!({"limits": {"callTimeoutMs": 600_000}})]
    {
        let mut body = json!({"key": "n", "providerKey": "local-markdown"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        assert_eq!(admin.post(path, &body).await.problem(), (403, "forbidden"), "{body}");
    }
    let limits = json!({"limits": {"callTimeoutMs": 600_000}});
    assert_eq!(admin.patch(&format!("{path}/m"), &limits).await.problem(), (403, "forbidden"));
    admin.patch(&format!("{path}/m"), &json!({"enabled": false})).await.fine();
    operator.patch(&format!("{path}/m"), &limits).await.fine();
}
