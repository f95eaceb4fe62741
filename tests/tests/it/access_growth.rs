//! Rights never grow: no chain of calls leads from a token to a value that can do more, and
//! `operations` limits both planes.

use std::collections::BTreeSet;

use memhost_server::Method;
use memhost_tests::TestHost;
use memhost_types::{Act, Role};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::support::Api;

/// A token that somebody holds, and what the host says of it.
#[derive(Clone)]
struct Held {
    api_token: String,
    token: Value,
}

/// Something that a held token does next.
#[derive(Debug, Clone)]
enum Step {
    Create { whose: Option<&'static str>, body: Value },
    Rotate { of_company: Option<&'static str>, index: usize },
}

fn operations() -> impl Strategy<Value = Option<Vec<&'static str>>> {
    let names: Vec<&'static str> = Act::ALL.iter().map(|act| act.as_str()).collect();
    prop_oneof![
        1 => Just(None),
        // `administer` and `host` are what makes tokens: without them a chain ends at once.
        3 => (
            proptest::sample::subsequence(names, 1..6), any::<bool>(),
        ).prop_map(|(mut some, is_company)| {
            let more = if is_company { "administer" } else { "host" };
            if !some.contains(&more) {
                some.push(more);
            }
            Some(some)
        }),
    ]
}

fn token_body() -> impl Strategy<Value = Value> {
    let roles: Vec<&'static str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let expiry = proptest::option::of(1_i64..48);
    (proptest::sample::select(roles), operations(), expiry).prop_map(|(role, operations, hours)| {
        let mut body = json!({"name": role, "role": role});
        if role == "agent" {
            body["agentId"] = json!("ada");
        }
        if let Some(operations) = operations {
            body["operations"] = json!(operations);
        }
        if let Some(hours) = hours {
            let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours);
            body["expiresAt"] = json!(end.to_string());
        }
        body
    })
}

fn company() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![4 => Just(Some("acme")), 1 => Just(Some("other")), 1 => Just(None)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (company(), token_body()).prop_map(|(whose, body)| Step::Create { whose, body }),
        (company(), 0_usize..40).prop_map(|(of_company, index)| Step::Rotate { of_company, index }),
    ]
}

fn tokens_path(company: Option<&str>) -> String {
    company.map_or_else(
        || "/control/v1/tokens".to_owned(),
        |id| format!("/control/v1/companies/{id}/tokens"),
    )
}

/// What a token can do, found by trying: one route for each act that a route needs, in two
/// companies and for the host.
async fn rights(api: &Api) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for company in ["acme", "other"] {
        let scope = json!({"companyId": company});
        let handle = json!({"providerKey": "local-markdown", "providerRecordId": "r"});
        let runtime = |route: &str| format!("/runtime/v1/companies/{company}/{route}");
        let control = |route: &str| format!("/control/v1/companies/{company}/{route}");
        let tries = [
            (
                Method::Post,
                runtime("capture"),
                json!({
                    "scope": scope, "source": {"kind": "manual_note", "companyId": company},
                    "payload": {"text": "t"},
                }),
            ),
            (Method::Post, runtime("query"), json!({"scope": scope, "query": "t"})),
            (Method::Post, runtime("list"), json!({"scope": scope})),
            (Method::Post, runtime("get"), json!({"scope": scope, "handle": handle})),
            (Method::Post, runtime("export"), json!({"scope": scope})),
            (
                Method::Post,
                runtime("hooks"),
                json!({"hookKind": "x", "hookId": "h", "triggeredAt": "2026-11-20T00:00:00Z",
                "scope": scope, "bindingKey": "none",
                "source": {"kind": "manual_note", "companyId": company}, "payload": {"text": "t"}}),
            ),
            (
                Method::Post,
                runtime("events"),
                json!({
                    "events": [{
                        "type": "session.started", "projectId": "p", "sessionId": "s",
                        "agentKind": "c", "eventId": "e",
                    }],
                }),
            ),
            (Method::Get, control("bindings"), Value::Null),
            (Method::Get, control("tokens"), Value::Null),
            (Method::Get, control("secrets"), Value::Null),
            (Method::Get, control("activity"), Value::Null),
            (Method::Get, control("operations"), Value::Null),
            (Method::Get, control("resolve"), Value::Null),
            (Method::Put, control("targets"), json!({"bindingKey": "none"})),
            (Method::Put, control("bindings/none/grants"), json!({})),
        ];
        for (method, path, body) in tries {
            let body = (!body.is_null()).then(|| body.to_string());
            let answer = api.send(method, &path, body, &[]).await;
            if answer.status != 403 && answer.status != 401 {
                found.insert(path);
            }
        }
    }
    for path in [
        "/control/v1/companies",
        "/control/v1/plugins",
        "/control/v1/doctor",
        "/metrics",
        "/control/v1/tokens",
    ] {
        if api.send(Method::Get, path, None, &[]).await.status == 200 {
            found.insert(path.to_owned());
        }
    }
    let backup = api.post("/control/v1/backups", &json!({"directory": "relative"})).await;
    if backup.status != 403 {
        found.insert("/control/v1/backups".to_owned());
    }
    found
}

async fn make(operator: &Api, company: Option<&str>, body: &Value) -> Option<Held> {
    let made = operator.post(&tokens_path(company), body).await;
    let value = made.json["value"].as_str()?.to_owned();
    Some(Held { api_token: value, token: made.json })
}

/// From one token on, every value that some chain of calls yields is tried. It can do nothing that
/// the first cannot, and it ends no later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_never_grow_over_any_chain_of_calls() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    for company in ["acme", "other"] {
        operator.capture(company, "something").await.fine();
        let unlimited = json!({"name": "unlimited", "role": "company_administrator"});
        make(&operator, Some(company), &unlimited).await.unwrap();
    }
    make(&operator, None, &json!({"name": "unlimited", "role": "operator"})).await.unwrap();
    let mut runner = TestRunner::deterministic();
    let (mut chains, mut obtained) = (0, 0);
    while chains < 40 {
        let draw = (company(), token_body()).new_tree(&mut runner).unwrap().current();
        // Every other chain begins with a token that can make others: the rest show that they make
        // none.
        let is_maker =
            ["operator", "company_administrator"].iter().any(|role| draw.1["role"] == *role);
        if chains % 2 == 0 && !is_maker {
            continue;
        }
        let Some(first) = make(&operator, draw.0, &draw.1).await else { continue };
        chains += 1;
        let most = rights(&operator.with(&first.api_token)).await;
        let mut held = vec![first.clone()];
        for number in 0..32 {
            let step = step().new_tree(&mut runner).unwrap().current();
            let by = held[number % held.len()].clone();
            let api = operator.with(&by.api_token);
            let answer = match &step {
                Step::Create { whose, body } => api.post(&tokens_path(*whose), body).await,
                Step::Rotate { of_company, index } => {
                    // The ids of tokens are no secret.
                    let all = operator.get(&tokens_path(*of_company)).await["items"]
                        .as_array()
                        .unwrap()
                        .clone();
                    let Some(one) = all.get(index % all.len().max(1)) else { continue };
                    let path = format!(
                        "{}/{}/rotate",
                        tokens_path(*of_company),
                        one["id"].as_str().unwrap()
                    );
                    api.post(&path, &json!({"overlapSeconds": 600})).await
                }
            };
            let Some(value) = answer.json["value"].as_str() else { continue };
            obtained += 1;
            let found = rights(&operator.with(value)).await;
            let grown: Vec<_> = found.difference(&most).collect();
            assert!(grown.is_empty(), "{} → {step:?} → {}: {grown:?}", first.token, answer.json);
            if let Some(end) = first.token["expiresAt"].as_str() {
                let other = answer.json["expiresAt"].as_str();
                let is_over =
                    |other: &str| other.parse::<jiff::Timestamp>().unwrap() <= end.parse().unwrap();
                assert!(other.is_some_and(is_over), "{} → {}", first.token, answer.json);
            }
            held.push(Held { api_token: value.to_owned(), token: answer.json });
        }
    }
    assert!(obtained > 15, "only {obtained} values were obtained: the chains show little");
}

/// The examples that led to this rule.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_limit_both_planes() {
    let host = TestHost::new(&[]).await.unwrap();
    let operator = Api::new(&host);
    operator.capture("acme", "something").await.fine();
    let tokens = "/control/v1/companies/acme/tokens";
    let admin = json!({"name": "a", "role": "company_administrator", "operations": ["query"]});
    let admin = make(&operator, Some("acme"), &admin).await.unwrap();
    let admin = operator.with(&admin.api_token);
    let unlimited = json!({"name": "b", "role": "company_administrator"});
    let refused = admin.post(tokens, &unlimited).await;
    assert_eq!(refused.problem(), (403, "forbidden"), "{}", refused.text);
    assert!(refused.text.contains("do not include `administer`"), "{}", refused.text);
    for list in [
        "bindings",
        "tokens",
        "secrets",
        "operations",
        "activity",
        "deliveries",
        "jobs",
        "costs",
        "stream",
    ] {
        let path = format!("/control/v1/companies/acme/{list}");
        assert_eq!(
            admin.send(Method::Get, &path, None, &[]).await.problem(),
            (403, "forbidden"),
            "{list}"
        );
    }
    assert_eq!(admin.query("acme", "something").await.len(), 1);
    // One that may administer gives what it has, and no more.
    let some = json!({
        "name": "c", "role": "company_administrator", "operations": ["query", "administer"],
    });
    let some = make(&operator, Some("acme"), &some).await.unwrap();
    let some = operator.with(&some.api_token);
    let refused = some.post(tokens, &unlimited).await;
    assert_eq!((refused.problem(), &refused.json["field"]), ((403, "forbidden"), &json!("role")));
    let wider =
        json!({"name": "d", "role": "agent", "agentId": "ada", "operations": ["query", "forget"]});
    let refused = some.post(tokens, &wider).await;
    assert_eq!(
        (refused.problem(), &refused.json["field"]),
        ((403, "forbidden"), &json!("operations"))
    );
    assert!(refused.text.contains("do not include `forget`"), "{}", refused.text);
    let within = json!({"name": "d", "role": "agent", "agentId": "ada", "operations": ["query"]});
    some.post(tokens, &within).await.fine();
    // Its value would be as good as the token.
    let strong = make(&operator, Some("acme"), &unlimited).await.unwrap();
    let rotate = format!("{tokens}/{}/rotate", strong.token["id"].as_str().unwrap());
    assert_eq!(some.post(&rotate, &json!({})).await.problem(), (403, "forbidden"));
    let lister = json!({"name": "o", "role": "operator", "operations": ["list"]});
    let lister = make(&operator, None, &lister).await.unwrap();
    let lister = operator.with(&lister.api_token);
    let unlimited = json!({"name": "p", "role": "operator"});
    assert_eq!(lister.post("/control/v1/tokens", &unlimited).await.problem(), (403, "forbidden"));
    assert_eq!(
        lister.post("/control/v1/backups", &json!({"directory": "/b"})).await.problem(),
        (403, "forbidden")
    );
    let binding = json!({"key": "k", "providerKey": "local-markdown"});
    let refused = lister.post("/control/v1/companies/acme/bindings", &binding).await;
    assert_eq!(refused.problem(), (403, "forbidden"));
    assert_eq!(lister.send(Method::Get, "/metrics", None, &[]).await.status, 403);
    // An unlimited operator that ends makes none that does not.
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let ends = json!({"name": "q", "role": "operator", "expiresAt": soon.to_string()});
    let ends = make(&operator, None, &ends).await.unwrap();
    let refused = operator.with(&ends.api_token).post("/control/v1/tokens", &unlimited).await;
    assert_eq!(
        (refused.problem(), &refused.json["field"]),
        ((403, "forbidden"), &json!("expiresAt"))
    );
    assert!(
        refused.text.contains("after the end of your own token")
            || refused.text.contains("your own token ends at")
    );
    for (body, word) in [
        (
            json!({"name": "x", "role": "auditor", "operations": ["capture"]}),
            "the role `auditor` may not do",
        ),
        (json!({"name": "x", "role": "auditor", "operations": ["query", "query"]}), "twice"),
        (json!({"name": "x", "role": "auditor", "operations": ["extraction"]}), "none of"),
    ] {
        let answer = operator.post(tokens, &body).await;
        assert!(answer.status == 400 && answer.text.contains(word), "{}", answer.text);
    }
}
