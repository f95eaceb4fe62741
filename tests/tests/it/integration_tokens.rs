//! Tokens for programs: an integration that acts for whom each request names, a monitor, the last
//! use of a token, and rotation with an overlap.

use std::sync::Arc;

use memhost_ports::Clock;
use memhost_server::Method;
use memhost_tests::TestHost;
use memhost_tests::clock::TestClock;
use serde_json::{Value, json};

use super::mcp_http::{self, Client};
use super::support::{Answer, Api};

const TOKENS: &str = "/control/v1/companies/acme/tokens";
const AGENT: &str = "x-memhost-act-as-agent";
const RUN: &str = "x-memhost-act-as-run";
const PERSON: &str = "x-memhost-act-as-person";
const ROLE: &str = "x-memhost-act-as-role";

async fn gateway(operator: &Api, company: &str) -> Api {
    let path = format!("/control/v1/companies/{company}/tokens");
    let made =
        operator.post(&path, &json!({"name": "gateway", "role": "integration"})).await.fine();
    operator.with(made["value"].as_str().unwrap())
}

fn runtime(route: &str) -> String {
    format!("/runtime/v1/companies/acme/{route}")
}

async fn send(api: &Api, route: &str, body: &Value, headers: &[(&'static str, &str)]) -> Answer {
    api.send(Method::Post, &runtime(route), Some(body.to_string()), headers).await
}

#[allow(clippy::needless_pass_by_value, reason = "the callers make the values here")]
fn note(text: &str, scope: Value) -> Value {
    let mut body = json!({
        "scope": {"companyId": "acme"},
        "payload": {"text": text},
        "mode": "capture_record",
        "source": {"kind": "issue_comment", "companyId": "acme", "commentId": "c1"},
        "hook": {
            "hookKind": "manual_capture", "hookId": text, "triggeredAt": "2026-11-20T00:00:00Z",
        },
    });
    body["scope"].as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
    body
}

async fn last(operator: &Api) -> Value {
    operator.get("/control/v1/companies/acme/operations?limit=1").await["items"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_integration_acts_for_the_agent_and_run_that_a_request_names() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let gateway = gateway(&operator, "acme").await;
    for agent in ["ada", "bob"] {
        send(&gateway, "capture", &note(agent, json!({})), &[(AGENT, agent), (RUN, "r1")])
            .await
            .fine();
        let operation = last(&operator).await;
        assert_eq!(operation["principal"], format!("integration:gateway as agent:{agent}"));
        assert_eq!(
            (&operation["scope"]["agentId"], &operation["scope"]["runId"]),
            (&json!(agent), &json!("r1"))
        );
        assert_eq!(operation["hook"]["actorAgentId"], agent);
        assert_eq!(
            operation["source"]["assertedBy"],
            format!("integration:gateway as agent:{agent}")
        );
    }
    // It is that agent for the whole request.
    let answer =
        send(&gateway, "capture", &note("x", json!({"agentId": "bob"})), &[(AGENT, "ada")]).await;
    assert_eq!(
        (answer.problem(), &answer.json["field"]),
        ((403, "forbidden"), &json!("scope.agentId"))
    );
    let answer = send(
        &gateway,
        "capture",
        &note("x", json!({"runId": "r2"})),
        &[(AGENT, "ada"), (RUN, "r1")],
    )
    .await;
    assert_eq!(
        (answer.problem(), &answer.json["field"]),
        ((403, "forbidden"), &json!("scope.runId"))
    );
    // What an agent may not, nobody may through it.
    let export = json!({"scope": {"companyId": "acme"}});
    assert_eq!(send(&gateway, "export", &export, &[(AGENT, "ada")]).await.status, 403);
    assert_eq!(
        send(&gateway, "export", &export, &[]).await.status,
        403,
        "the role of an agent where none is named"
    );
    // Without a name it speaks for itself, and what it says of agents is its word.
    send(&gateway, "capture", &note("y", json!({"agentId": "carol"})), &[]).await.fine();
    assert_eq!(last(&operator).await["principal"], "integration:gateway");
    // Each of them has its own idempotency keys.
    let key = ("idempotency-key", "k1");
    let first =
        send(&gateway, "capture", &note("z", json!({})), &[(AGENT, "ada"), key]).await.fine();
    let second =
        send(&gateway, "capture", &note("z", json!({})), &[(AGENT, "bob"), key]).await.fine();
    assert_ne!(first["operationId"], second["operationId"]);
    // Another company is out of reach, and so is the control plane.
    operator.capture("other", "theirs").await.fine();
    assert_eq!(gateway.capture("other", "x").await.status, 403);
    for path in ["tokens", "bindings", "operations", "resolve", "stream"] {
        let path = format!("/control/v1/companies/acme/{path}");
        assert_eq!(
            gateway.send(Method::Get, &path, None, &[(AGENT, "ada")]).await.status,
            403,
            "{path}"
        );
    }
    for (headers, field) in [
        (vec![(AGENT, "ada"), (PERSON, "u1")], PERSON),
        (vec![(RUN, "r1")], RUN),
        (vec![(AGENT, "ada"), (ROLE, "auditor")], ROLE),
        (vec![(PERSON, "u1"), (ROLE, "operator")], ROLE),
        (vec![(ROLE, "chief")], ROLE),
        (vec![(AGENT, "a/b")], AGENT),
        (vec![(AGENT, "ada"), (AGENT, "bob")], AGENT),
    ] {
        let answer = send(&gateway, "query", &json!({}), &headers).await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (400, &json!(field)),
            "{headers:?}: {}",
            answer.text
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_integration_acts_for_a_person_with_a_role() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let gateway = gateway(&operator, "acme").await;
    // In the role of an agent, a person has what is the person's.
    send(&gateway, "capture", &note("of u1", json!({})), &[(PERSON, "u1")]).await.fine();
    let operation = last(&operator).await;
    assert_eq!(operation["scope"]["subjectId"], "u1");
    assert_eq!(operation["principal"], "integration:gateway as person:u1, agent");
    let answer =
        send(&gateway, "capture", &note("x", json!({"subjectId": "u2"})), &[(PERSON, "u1")]).await;
    assert_eq!(
        (answer.problem(), &answer.json["field"]),
        ((403, "forbidden"), &json!("scope.subjectId"))
    );
    // An auditor looks and does not write; an administrator exports. Both on the runtime plane
    // only.
    let as_auditor = [(PERSON, "u2"), (ROLE, "auditor")];
    let list = json!({"scope": {"companyId": "acme", "subjectId": "u1"}});
    let found = send(&gateway, "list", &list, &as_auditor).await.fine();
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(send(&gateway, "capture", &note("x", json!({})), &as_auditor).await.status, 403);
    let as_admin = [(PERSON, "u3"), (ROLE, "company_administrator")];
    let export = json!({"scope": {"companyId": "acme"}});
    // The provider that is built in exports nothing: the request is allowed, and answered by the
    // provider's interfaces.
    assert_eq!(send(&gateway, "export", &export, &as_admin).await.problem(), (422, "unsupported"));
    assert_eq!(send(&gateway, "export", &export, &as_auditor).await.problem(), (403, "forbidden"));
    let path = "/control/v1/companies/acme/tokens";
    assert_eq!(gateway.send(Method::Get, path, None, &as_admin).await.status, 403);
}

/// Only an integration acts for somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_else_acts_for_somebody() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    operator.capture("acme", "a fact").await.fine();
    let query = json!({"scope": {"companyId": "acme"}, "query": "fact"});
    for body in [
        json!({"name": "ada", "role": "agent", "agentId": "ada"}),
        json!({"name": "admin", "role": "company_administrator"}),
        json!({"name": "auditor", "role": "auditor"}),
    ] {
        let made = operator.post(TOKENS, &body).await.fine();
        let api = operator.with(made["value"].as_str().unwrap());
        for (name, value) in [(AGENT, "ada"), (RUN, "r1"), (PERSON, "u1"), (ROLE, "agent")] {
            let answer = send(&api, "query", &query, &[(name, value)]).await;
            assert_eq!(
                (answer.problem(), &answer.json["field"]),
                ((403, "forbidden"), &json!(name)),
                "{body}"
            );
        }
    }
    let answer = send(&operator, "query", &query, &[(AGENT, "ada")]).await;
    assert_eq!(answer.problem(), (403, "forbidden"));
}

/// An empty header is that of a gateway whose variable is not set: the request would be confined to
/// nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_integration_that_names_nobody_by_mistake_is_refused() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    let gateway = gateway(&operator, "acme").await;
    send(&gateway, "capture", &note("of u1", json!({})), &[(PERSON, "u1")]).await.fine();
    let list = json!({"scope": {"companyId": "acme"}});
    for headers in [vec![(PERSON, "")], vec![(PERSON, " "), (ROLE, "agent")], vec![(AGENT, "")]] {
        let answer = send(&gateway, "list", &list, &headers).await;
        assert_eq!(
            (answer.status, &answer.json["field"]),
            (400, &json!(headers[0].0)),
            "{}",
            answer.text
        );
        assert!(!answer.text.contains("of u1"));
    }
    // Somebody is named, or nobody on purpose.
    for headers in
        [vec![(AGENT, ""), (PERSON, "u1")], vec![(AGENT, "ada"), (PERSON, ""), (RUN, "")], vec![]]
    {
        send(&gateway, "list", &list, &headers).await.fine();
    }
}

/// Paperclip's gateway names agent, run, issue and project in headers of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_of_paperclip_count_with_an_integrations_token_only() {
    let (host, address) = mcp_http::host(&[]).await;
    let operator = Api::new(&host);
    let token =
        mcp_http::token(&host, "acme", json!({"name": "gateway", "role": "integration"})).await;
    let with = |client: Client| {
        client
            .with("x-paperclip-company-id", "acme")
            .with("x-paperclip-agent-id", "bob")
            .with("x-paperclip-run-id", "run-9")
            .with("x-paperclip-issue-id", "issue-4")
            .with("x-paperclip-project-id", "project-2")
    };
    let gateway = with(Client::new(address, &token));
    gateway.does("memory.note", json!({"text": "The gate code changes monthly"})).await;
    let operation = last(&operator).await;
    assert_eq!(operation["principal"], "integration:gateway as agent:bob");
    let scope = &operation["scope"];
    assert_eq!(
        [&scope["agentId"], &scope["runId"], &scope["issueId"], &scope["projectId"]],
        [&json!("bob"), &json!("run-9"), &json!("issue-4"), &json!("project-2")]
    );
    // The host's own header goes first.
    let own = gateway.with("x-memhost-act-as-agent", "carol");
    own.does("memory.note", json!({"text": "Carol's"})).await;
    assert_eq!(last(&operator).await["principal"], "integration:gateway as agent:carol");
    let elsewhere = gateway.with("x-paperclip-company-id", "other");
    let refused = elsewhere.is_refused("memory.search", json!({"query": "x"})).await;
    assert!(refused.contains("x-paperclip-company-id"), "{refused}");
    // From anybody else they are claims, and do nothing.
    let ada = with(mcp_http::agent(&host, address).await);
    ada.does("memory.note", json!({"text": "Ada's own"})).await;
    let operation = last(&operator).await;
    assert_eq!(
        (&operation["principal"], &operation["scope"]["agentId"]),
        (&json!("agent:ada"), &json!("ada"))
    );
    assert_eq!((operation["scope"].get("runId"), operation["scope"].get("issueId")), (None, None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_monitor_learns_nothing_of_a_company() {
    let host = TestHost::new(&["cross-agent"]).await.unwrap();
    let operator = Api::new(&host);
    // Without the grant that it needs, so that there is something to tell.
    let body = json!({"key": "k", "providerKey": "cross-agent", "default": true});
    operator.post("/control/v1/companies/acme-secret/bindings", &body).await.fine();
    let named = operator.send(Method::Get, "/control/v1/doctor", None, &[]).await;
    let made = operator
        .post("/control/v1/tokens", &json!({"name": "prometheus", "role": "monitor"}))
        .await
        .fine();
    let monitor = operator.with(made["value"].as_str().unwrap());
    let seen = monitor.send(Method::Get, "/control/v1/doctor", None, &[]).await;
    assert!(named.text.contains("acme-secret"), "the operator is told: {}", named.text);
    assert!(seen.status == 200 && !seen.text.contains("acme-secret"), "{}", seen.text);
    let metrics = monitor.send(Method::Get, "/metrics", None, &[]).await;
    assert!(metrics.status == 200 && !metrics.text.contains("acme-secret"), "{}", metrics.text);
    assert_eq!(monitor.send(Method::Get, "/control/v1/companies", None, &[]).await.status, 403);
    let in_company = operator.post(TOKENS, &json!({"name": "m", "role": "monitor"})).await;
    assert_eq!((in_company.status, &in_company.json["field"]), (400, &json!("role")));
    let of_nobody =
        operator.post("/control/v1/tokens", &json!({"name": "g", "role": "integration"})).await;
    assert_eq!((of_nobody.status, &of_nobody.json["field"]), (400, &json!("role")));
}

/// Whether a token's value is accepted.
async fn works(operator: &Api, value: &str) -> bool {
    let path = "/control/v1/companies/acme/operations";
    operator.with(value).send(Method::Get, path, None, &[]).await.status == 200
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_value_works_until_the_overlap_ends() {
    let clock = TestClock::new();
    let mut host =
        TestHost::with(&[], |options| options.clock = Arc::clone(&clock) as Arc<dyn Clock>)
            .await
            .unwrap();
    let operator = Api::new(&host);
    let made = operator.post(TOKENS, &json!({"name": "a", "role": "auditor"})).await.fine();
    let (first, rotate) = (
        made["value"].as_str().unwrap(),
        format!("{TOKENS}/{}/rotate", made["id"].as_str().unwrap()),
    );
    let rotated = operator.post(&rotate, &json!({"overlapSeconds": 3600})).await.fine();
    let second = rotated["value"].as_str().unwrap();
    assert!(rotated["previousValueUntil"].is_string(), "{rotated}");
    assert!(works(&operator, first).await && works(&operator, second).await);
    // Also after a restart.
    drop(operator);
    host.stop().await;
    host.start().await.unwrap();
    let operator = Api::new(&host);
    assert!(works(&operator, first).await && works(&operator, second).await);
    clock.advance(jiff::SignedDuration::from_mins(61));
    assert!(!works(&operator, first).await && works(&operator, second).await);
    let refused = host.operations("acme").await.unwrap().remove(0);
    assert!(refused.error.unwrap().message.contains("another value"));
    // Only the value just before works on, and none where no overlap is asked for or the token is
    // revoked.
    let third = operator.post(&rotate, &json!({"overlapSeconds": 3600})).await.fine();
    let third = third["value"].as_str().unwrap();
    let fourth = operator.post(&rotate, &json!({"overlapSeconds": 3600})).await.fine();
    let fourth = fourth["value"].as_str().unwrap();
    assert!(
        !works(&operator, second).await
            && works(&operator, third).await
            && works(&operator, fourth).await
    );
    let fifth = operator.post(&rotate, &json!({})).await.fine();
    let fifth = fifth["value"].as_str().unwrap();
    assert!(
        !works(&operator, third).await
            && !works(&operator, fourth).await
            && works(&operator, fifth).await
    );
    let sixth = operator.post(&rotate, &json!({"overlapSeconds": 3600})).await.fine();
    let sixth = sixth["value"].as_str().unwrap();
    let path = rotate.trim_end_matches("/rotate").to_owned();
    operator.send(Method::Delete, &path, None, &[]).await.fine();
    assert!(!works(&operator, fifth).await && !works(&operator, sixth).await);
    let answer = operator.post(&rotate, &json!({"overlapSeconds": 2_592_001})).await;
    assert_eq!((answer.status, &answer.json["field"]), (400, &json!("overlapSeconds")));
}

/// The last use is known to the hour, and outlives the host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_show_when_they_were_last_used() {
    let clock = TestClock::new();
    let mut host =
        TestHost::with(&[], |options| options.clock = Arc::clone(&clock) as Arc<dyn Clock>)
            .await
            .unwrap();
    let operator = Api::new(&host);
    let made = operator.post(TOKENS, &json!({"name": "a", "role": "auditor"})).await.fine();
    let value = made["value"].as_str().unwrap();
    let shown = async |operator: &Api| operator.get(TOKENS).await["items"][0]["lastUsedAt"].clone();
    assert_eq!(shown(&operator).await, Value::Null);
    assert!(works(&operator, value).await);
    let first = shown(&operator).await;
    let at: jiff::Timestamp = first.as_str().unwrap().parse().unwrap();
    assert_eq!(at.as_second() % 3_600, 0);
    assert!((0..3_600).contains(&(host.service().control().now().as_second() - at.as_second())));
    drop(operator);
    host.stop().await;
    host.start().await.unwrap();
    let operator = Api::new(&host);
    assert_eq!(shown(&operator).await, first);
    clock.advance(jiff::SignedDuration::from_hours(3));
    assert!(works(&operator, value).await);
    assert_ne!(shown(&operator).await, first);
    // Rotating and revoking keep it.
    let path = format!("{TOKENS}/{}", made["id"].as_str().unwrap());
    let before = shown(&operator).await;
    operator.post(&format!("{path}/rotate"), &json!({})).await.fine();
    operator.send(Method::Delete, &path, None, &[]).await.fine();
    assert_eq!(shown(&operator).await, before);
}

/// The list, and what the host has in memory, do not grow for as long as somebody makes tokens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_have_ended_leave_the_list() {
    let clock = TestClock::new();
    let mut host =
        TestHost::with(&[], |options| options.clock = Arc::clone(&clock) as Arc<dyn Clock>)
            .await
            .unwrap();
    let operator = Api::new(&host);
    let soon =
        |host: &TestHost| host.service().control().now() + jiff::SignedDuration::from_mins(5);
    let of_run = |number: usize, end: jiff::Timestamp| {
        json!({
            "name": format!("run-{number}"), "role": "agent", "agentId": "ada", "expiresAt": end,
        })
    };
    let end = soon(&host);
    for number in 0..1_010 {
        operator.post(TOKENS, &of_run(number, end)).await.fine();
    }
    clock.advance(jiff::SignedDuration::from_mins(6));
    let made = operator.post(TOKENS, &json!({"name": "a", "role": "auditor"})).await.fine();
    let count =
        async |operator: &Api| operator.get(TOKENS).await["items"].as_array().unwrap().len();
    assert_eq!(count(&operator).await, 1_001, "1,000 that have ended, and the new one");
    // One that was revoked has ended, too, and a month later all of them are gone. Those that are
    // valid stay.
    let path = format!("{TOKENS}/{}", made["id"].as_str().unwrap());
    operator.send(Method::Delete, &path, None, &[]).await.fine();
    clock.advance(jiff::SignedDuration::from_hours(31 * 24));
    let mut left = 0;
    for _ in 0..3 {
        operator.post(TOKENS, &json!({"name": "b", "role": "auditor"})).await.fine();
        left = count(&operator).await;
    }
    assert_eq!(left, 3);
    drop(operator);
    host.stop().await;
    host.start().await.unwrap();
    assert_eq!(count(&Api::new(&host)).await, 3, "in the store, too");
}
