//! A person behind an integration is no agent: whatever agent the person's request names, on every
//! surface, nobody's private records are read, written or forgotten.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http::{self, Client};
use super::support::{Answer, Api};
use super::whose::{agents, ask, host, written};

/// A word of ada's private record, and of nothing else.
const SECRET: &str = "marzipan";
const PERSON: &str = "x-memhost-act-as-person";

/// A gateway's request for the person `u1`.
async fn as_person(gateway: &Api, route: &str, body: &Value) -> Answer {
    let path = format!("/runtime/v1/companies/acme/{route}");
    gateway.send(Method::Post, &path, Some(body.to_string()), &[(PERSON, "u1")]).await
}

async fn gateway(host: &TestHost) -> String {
    mcp_http::token(host, "acme", json!({"name": "gateway", "role": "integration"})).await
}

/// The private record that ada has, as ada reads it.
async fn of_ada(ada: &Api) -> Vec<String> {
    ada.query("acme", SECRET).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_names_an_agent_gets_nothing_of_the_agents() {
    let (host, api) = host("extracts").await;
    let [ada, ..] = agents(&host).await;
    let gateway = api.with(&gateway(&host).await);
    let text = format!("ada likes {SECRET}");
    let handle = written(&ada, "acme", &text, &json!({"visibility": "agent"})).await;
    let scope = json!({"companyId": "acme", "agentId": "ada"});
    let source = json!({"kind": "manual_note", "companyId": "acme"});
    let hook = |kind: &str| {
        json!({
            "hookKind": kind, "hookId": kind, "triggeredAt": "2026-11-20T10:00:00Z", "scope": scope,
            "source": source, "query": SECRET, "payload": {"text": "planted"},
            "visibility": "agent",
        })
    };
    let planted = json!([{"text": "planted"}]);
    for (route, body) in [
        ("query", json!({"scope": scope, "query": SECRET})),
        ("list", json!({"scope": scope})),
        ("get", json!({"scope": scope, "handle": handle})),
        ("browse", json!({"scope": scope})),
        ("sources/list", json!({"scope": scope, "sources": [{"issueId": "I-1"}]})),
        (
            "records",
            json!({"scope": scope, "source": source, "records": planted, "visibility": "agent"}),
        ),
        (
            "capture",
            json!({
                "scope": scope, "source": source, "payload": {"text": "planted"},
                "visibility": "agent",
            }),
        ),
        (
            "correct",
            json!({"scope": scope, "handle": handle, "patch": {"record": {"text": "planted"}}}),
        ),
        ("hooks", hook("post_run_capture")),
        ("hooks", hook("pre_run_hydrate")),
        ("forget", json!({"scope": scope, "handles": [handle]})),
        ("scope/forget", json!({"scope": scope})),
    ] {
        let refused = as_person(&gateway, route, &body).await;
        assert!(!refused.text.contains(SECRET), "{route}: {}", refused.text);
        let whole = (refused.problem(), &refused.json["field"]);
        assert_eq!(
            whole,
            ((403, "forbidden"), &json!("scope.agentId")),
            "{route}: {}",
            refused.text
        );
    }
    let events = json!({"events": [{"type": "session.started", "projectId": "p", "sessionId": "s",
        "agentKind": "claude", "agentId": "ada"}]});
    drop(as_person(&gateway, "events", &events).await);
    let seen = ask(&ada, "acme", "list", json!({})).await.fine().to_string();
    assert!(seen.contains(SECRET) && !seen.contains("planted"), "{seen}");
    assert_eq!(of_ada(&ada).await, [text.as_str()]);
    // The agent that works for the person may be named, and gives nothing of the agent's.
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": "h1", "triggeredAt": "2026-11-20T10:00:00Z",
        "scope": {"companyId": "acme"}, "actorAgentId": "ada", "query": SECRET,
    });
    let found = as_person(&gateway, "hooks", &hydrate).await.fine();
    assert!(!found.to_string().contains(&text), "{found}");
    // Without an agent a person has the person's own.
    let own = json!({"scope": {"companyId": "acme"}, "source": source, "visibility": "person",
        "records": [{"text": format!("u1 likes {SECRET}, too")}]});
    as_person(&gateway, "records", &own).await.fine();
    let found =
        as_person(&gateway, "query", &json!({"scope": {"companyId": "acme"}, "query": SECRET}))
            .await
            .fine();
    assert_eq!(found["snippets"].as_array().unwrap().len(), 1, "{found}");
    as_person(
        &gateway,
        "scope/forget",
        &json!({"scope": {"companyId": "acme", "subjectId": "u1"}}),
    )
    .await
    .fine();
    assert_eq!(of_ada(&ada).await, [text.as_str()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_names_an_agent_gets_nothing_of_the_agents_over_mcp() {
    let (host, _) = host("extracts").await;
    let address = mcp_http::listening(host.service()).await;
    let [ada, ..] = agents(&host).await;
    let text = format!("ada likes {SECRET}");
    let handle = written(&ada, "acme", &text, &json!({"visibility": "agent"})).await;
    let person = Client::new(address, &gateway(&host).await).with(PERSON, "u1");
    let claims = person.with("memhost-agent-id", "ada");
    for (tool, arguments) in [
        ("memory.search", json!({"query": SECRET})),
        ("memory.note", json!({"text": "planted", "visibility": "agent"})),
        ("memory.correct", json!({"id": handle["providerRecordId"], "text": "planted"})),
        ("memory.forget", json!({"ids": [handle["providerRecordId"]]})),
    ] {
        let refused = claims.is_refused(tool, arguments).await;
        assert!(
            refused.contains("scope.agentId") && !refused.contains(SECRET),
            "{tool}: {refused}"
        );
    }
    let resources = claims.ask("resources/list", json!({})).await;
    assert!(!resources.to_string().contains(SECRET), "{resources}");
    assert_eq!(of_ada(&ada).await, [text.as_str()]);
    assert_eq!(
        ask(&ada, "acme", "list", json!({})).await.fine()["items"].as_array().unwrap().len(),
        1
    );
    assert_eq!(person.does("memory.search", json!({"query": SECRET})).await["records"], json!([]));
}

/// What waits for a decision about a record that a person may not read stays, with the text in its
/// operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_forgets_their_scope_ends_no_private_change_of_an_agent() {
    let (host, api) = host("local-markdown").await;
    let [ada, ..] = agents(&host).await;
    let gateway = api.with(&gateway(&host).await);
    let scope = json!({"companyId": "acme", "subjectId": "u1"});
    let private = json!({"scope": scope, "visibility": "agent"});
    let handle = written(&ada, "acme", "ada's view of u1", &private).await;
    let shared = json!({"scope": scope});
    let of_all = written(&ada, "acme", "what all know of u1", &shared).await;
    let policy = json!({"policy": {"review": {"all": true}, "retention": {"snapshots": "full"}}});
    api.patch("/control/v1/companies/acme/bindings/memory", &policy).await.fine();
    let change = |handle: &Value, text: &str, visibility: Value| {
        json!({"scope": scope, "visibility": visibility,
            "records": [{"id": handle["providerRecordId"], "text": text}]})
    };
    let correction = json!({
        "scope": scope, "handle": handle, "patch": {"record": {"text": "ada's correction"}},
    });
    let mut operations = Vec::new();
    for (route, body) in [
        ("records", change(&handle, "ada's second view", json!("agent"))),
        ("correct", correction),
        ("records", change(&of_all, "what all know better", Value::Null)),
    ] {
        let waits = ada.post(&format!("/runtime/v1/companies/acme/{route}"), &body).await.fine();
        assert_eq!(waits["inReview"].as_array().unwrap().len(), 1, "{waits}");
        operations.push(waits["operationId"].as_str().unwrap().to_owned());
    }
    as_person(
        &gateway,
        "scope/forget",
        &json!({"scope": {"companyId": "acme", "subjectId": "u1"}}),
    )
    .await
    .fine();
    let reviews = api.get("/control/v1/companies/acme/reviews?limit=50").await;
    let mut left = Vec::new();
    for operation in &operations {
        let item = reviews["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["operationId"] == **operation);
        let path = format!("/control/v1/companies/acme/operations/{operation}");
        let has_text = api.get(&path).await["payload"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("acme"));
        left.push((item.unwrap()["status"].as_str().unwrap().to_owned(), has_text));
    }
    let pending = || ("pending".to_owned(), true);
    assert_eq!(left, [pending(), pending(), ("rejected".to_owned(), false)], "{reviews}");
    // Whoever may read it ends it.
    ada.post("/runtime/v1/companies/acme/scope/forget", &json!({"scope": scope})).await.fine();
    let reviews = api.get("/control/v1/companies/acme/reviews?status=pending").await;
    assert_eq!(reviews["items"], json!([]));
}

/// Each reads all that a company has: many at once would keep others from an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scopes_of_a_company_are_forgotten_one_after_another() {
    let (host, api) = host("local-markdown").await;
    let [ada, ..] = agents(&host).await;
    let many: Vec<Value> =
        (0..300).map(|number| json!({"text": format!("fact {number}")})).collect();
    ask(&ada, "acme", "records", json!({"records": many})).await.fine();
    let forget = |run: usize| {
        let (ada, scope) =
            (ada.with_same(), json!({"companyId": "acme", "runId": format!("r{run}")}));
        async move {
            ada.post("/runtime/v1/companies/acme/scope/forget", &json!({"scope": scope}))
                .await
                .fine()
        }
    };
    let all: Vec<_> = (0..8).map(|run| tokio::spawn(forget(run))).collect();
    for one in all {
        one.await.unwrap();
    }
    let operations = api.get("/control/v1/companies/acme/operations?kind=forget&limit=50").await;
    let time = |operation: &Value, field: &str| {
        operation[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let mut times: Vec<_> = operations["items"].as_array().unwrap().iter().collect::<Vec<_>>();
    times.sort_by_key(|operation| time(operation, "startedAt"));
    assert_eq!(times.len(), 8, "{operations}");
    for pair in times.windows(2) {
        assert!(
            time(pair[0], "finishedAt") <= time(pair[1], "startedAt"),
            "{} and {}",
            pair[0],
            pair[1]
        );
    }
}
