//! `protectAdministrators`: what an operator or an administrator wrote is changed by nobody else,
//! whichever way they take.

use memhost_server::Method;
use memhost_tests::{TestHost, eventually};
use serde_json::{Value, json};

use super::hooks::{DELIVERIES, HOOKS};
use super::mcp_http;
use super::support::{Answer, Api};

const BINDING: &str = "/control/v1/companies/acme/bindings/notes";

fn runtime(what: &str) -> String {
    format!("/runtime/v1/companies/acme/{what}")
}

/// The scope of the agent `ada`, which is what her requests have without naming it.
fn scope() -> Value {
    json!({"companyId": "acme", "agentId": "ada"})
}

fn comment() -> Value {
    json!({"kind": "issue_comment", "companyId": "acme", "issueId": "i1", "commentId": "c1"})
}

/// Writes a record of the comment under an id and answers its handle.
async fn write(api: &Api, id: &str, more: Value) -> Answer {
    let mut body = json!({
        "scope": scope(), "source": comment(),
        "records": [{"id": id, "text": format!("{id}: the gate opens at noon")}],
    });
    let Value::Object(more) = more else { unreachable!("{more}") };
    body.as_object_mut().unwrap().extend(more);
    api.post(&runtime("records"), &body).await
}

fn handle(id: &str) -> Value {
    json!({"providerKey": "local-markdown", "providerRecordId": id})
}

async fn correct(api: &Api, id: &str) -> Answer {
    let body = json!({
        "scope": scope(), "handle": handle(id), "patch": {"record": {"text": "rule: at dusk"}},
    });
    api.post(&runtime("correct"), &body).await
}

async fn forget(api: &Api, ids: &[&str]) -> Answer {
    let handles: Vec<Value> = ids.iter().map(|id| handle(id)).collect();
    api.post(&runtime("forget"), &json!({"scope": scope(), "handles": handles})).await
}

/// What is there, by text.
async fn texts(api: &Api) -> Vec<String> {
    let page = api.post(&runtime("list"), &json!({"scope": {"companyId": "acme"}})).await.fine();
    let items = page["items"].as_array().unwrap().iter();
    let mut all: Vec<_> = items.map(|item| item["text"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

async fn bound(api: &Api, protects: bool) {
    let body = json!({
        "key": "notes", "providerKey": "local-markdown", "default": true,
        "policy": {"protectAdministrators": protects},
    });
    api.post("/control/v1/companies/acme/bindings", &body).await.fine();
}

async fn integration(api: &Api) -> Api {
    let body = json!({"name": "gateway", "role": "integration"});
    let made = api.post("/control/v1/companies/acme/tokens", &body).await.fine();
    api.with(made["value"].as_str().unwrap())
}

fn is_protected(answer: &Answer, what: &str) {
    assert_eq!(answer.problem(), (403, "forbidden"), "{what}: {}", answer.text);
    for part in ["`rule`", "`operator`", "protectAdministrators", "ask an administrator"] {
        assert!(answer.text.contains(part), "{what}: {part} is not in {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_changes_no_record_of_an_administrator() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    bound(&api, false).await;
    let ada = api.agent("ada").await;
    // Without the setting they may.
    write(&api, "rule", json!({})).await.fine();
    forget(&ada, &["rule"]).await.fine();
    assert_eq!(texts(&api).await, Vec::<String>::new());

    api.patch(BINDING, &json!({"policy": {"protectAdministrators": true}})).await.fine();
    let shown = api.get(BINDING).await;
    assert_eq!(shown["policy"]["protectAdministrators"], true, "{shown}");
    write(&api, "rule", json!({})).await.fine();
    write(&ada, "own", json!({})).await.fine();
    let both = ["own: the gate opens at noon", "rule: the gate opens at noon"];
    let tokens = (ada.token().to_owned(), integration(&api).await.token().to_owned());
    drop((api, ada));
    for is_restarted in [false, true] {
        if is_restarted {
            host.stop().await;
            host.start().await.unwrap();
        }
        let api = Api::new(&host);
        let (ada, gateway) = (api.with(&tokens.0), api.with(&tokens.1));
        let as_agent = [("x-memhost-act-as-agent", "ada")];
        for (what, answer) in [
            ("overwrite", write(&ada, "rule", json!({})).await),
            ("move", write(&ada, "rule", json!({"visibility": "agent"})).await),
            ("correct", correct(&ada, "rule").await),
            ("forget", forget(&ada, &["rule"]).await),
            ("forget with another", forget(&ada, &["own", "rule"]).await),
            ("an integration", forget(&gateway, &["rule"]).await),
            ("an integration for an agent", {
                let body = json!({"scope": scope(), "handles": [handle("rule")]});
                gateway
                    .send(Method::Post, &runtime("forget"), Some(body.to_string()), &as_agent)
                    .await
            }),
        ] {
            is_protected(&answer, what);
            assert_eq!(texts(&api).await, both, "{what}");
        }
        let lines = json!({"scope": {"companyId": "acme"}, "lines": "{}\n"});
        let import = gateway.post(&runtime("import"), &lines).await;
        assert_eq!(import.problem(), (403, "forbidden"), "{}", import.text);
    }
    // An administrator takes an agent's record over, and gives away nothing by that.
    let (api, ada) = (Api::new(&host), Api::new(&host).with(&tokens.0));
    let admin = json!({"name": "boss", "role": "company_administrator"});
    let made = api.post("/control/v1/companies/acme/tokens", &admin).await.fine();
    let boss = api.with(made["value"].as_str().unwrap());
    write(&boss, "own", json!({})).await.fine();
    assert_eq!(forget(&ada, &["own"]).await.problem(), (403, "forbidden"));
    correct(&boss, "rule").await.fine();
    forget(&boss, &["own"]).await.fine();
    let left = texts(&api).await;
    assert_eq!(left, ["rule: at dusk"]);
}

/// One binding's setting says nothing about another company's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetting_at_large_leaves_and_counts_what_is_protected() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    bound(&api, true).await;
    let (ada, gateway) = (api.agent("ada").await, integration(&api).await);
    let rule = ["rule: the gate opens at noon"];
    for (what, who, body) in [
        ("scope/forget", &ada, json!({"scope": scope()})),
        (
            "sources/forget",
            &gateway,
            json!({"scope": {"companyId": "acme"}, "sources": [{"commentId": "c1"}]}),
        ),
    ] {
        write(&api, "rule", json!({})).await.fine();
        write(&ada, "own", json!({})).await.fine();
        let gone = who.post(&runtime(what), &body).await.fine();
        let at = &gone["bindings"][0];
        let counted = (&at["forgotten"], &at["protected"], &gone["isComplete"]);
        assert_eq!(counted, (&json!(1), &json!(1), &json!(true)), "{what}: {gone}");
        assert_eq!(texts(&api).await, rule, "{what}");
        let gone = api.post(&runtime(what), &body).await.fine();
        let at = &gone["bindings"][0];
        assert_eq!((&at["forgotten"], &at["protected"]), (&json!(1), &json!(0)), "{what}: {gone}");
        assert_eq!(texts(&api).await, Vec::<String>::new(), "{what}");
    }
    api.make("beta").await;
    let body =
        json!({"scope": {"companyId": "beta"}, "records": [{"id": "rule", "text": "beta's"}]});
    api.post("/runtime/v1/companies/beta/records", &body).await.fine();
    let token = json!({"name": "ada", "role": "agent", "agentId": "ada"});
    let made = api.post("/control/v1/companies/beta/tokens", &token).await.fine();
    let beta = api.with(made["value"].as_str().unwrap());
    let body = json!({"scope": {"companyId": "beta"}, "handles": [handle("rule")]});
    let gone = beta.post("/runtime/v1/companies/beta/forget", &body).await.fine();
    assert_eq!(gone["outcomes"][0]["effect"], "hard", "{gone}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_a_hook_nor_a_capture_replaces_what_is_protected() {
    for protects in [false, true] {
        let host = TestHost::new(&[]).await.unwrap();
        let api = Api::new(&host);
        bound(&api, protects).await;
        let ada = api.agent("ada").await;
        for by_hook in [false, true] {
            write(&api, "rule", json!({"scope": {"companyId": "acme"}})).await.fine();
            let mut body = json!({
                "scope": {"companyId": "acme"}, "source": comment(), "replacesSource": true,
                "payload": {"text": format!("the gate is open, by a hook: {by_hook}")},
            });
            if by_hook {
                let event = json!({
                    "hookKind": "post_run_capture", "hookId": "h1",
                    "triggeredAt": "2030-11-20T10:00:00Z",
                });
                body.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
                ada.post(HOOKS, &body).await.fine();
                eventually("no delivery is pending", async || {
                    let left = api.get(&format!("{DELIVERIES}?status=pending&limit=1")).await;
                    left["items"].as_array().unwrap().is_empty()
                })
                .await;
            } else {
                ada.post(&runtime("capture"), &body).await.fine();
            }
            let left = texts(&api).await;
            assert!(left.iter().any(|text| text.starts_with("the gate is open")), "{left:?}");
            let is_there = left.iter().any(|text| text.starts_with("rule:"));
            assert_eq!(is_there, protects, "by a hook: {by_hook}: {left:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_over_mcp_is_refused_in_the_same_words() {
    let (host, address) = mcp_http::host(&[]).await;
    let api = Api::new(&host);
    bound(&api, true).await;
    write(&api, "rule", json!({"scope": {"companyId": "acme"}})).await.fine();
    let agent = mcp_http::agent(&host, address).await;
    for (tool, arguments) in [
        ("memory_forget", json!({"ids": ["rule"]})),
        ("memory_correct", json!({"id": "rule", "text": "rule: at dusk"})),
    ] {
        let refusal = agent.is_refused(tool, arguments).await;
        for part in ["forbidden", "`rule`", "protectAdministrators"] {
            assert!(refusal.contains(part), "{tool}: {refusal}");
        }
    }
    assert_eq!(texts(&api).await, ["rule: the gate opens at noon"]);
}

/// What a job makes of an administrator's capture is the administrator's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_of_a_job_has_the_writer_of_the_capture() {
    let (_host, api) = super::support::extracting().await;
    super::support::bind(&api, "acme", "kept", &json!({"protectAdministrators": true})).await;
    let ada = api.agent("ada").await;
    let capture = async |by: &Api, text: &str| {
        let body = json!({
            "bindingKey": "kept", "scope": {"companyId": "acme"}, "source": comment(),
            "payload": {"text": text},
        });
        by.post(&runtime("capture"), &body).await.fine();
    };
    capture(&api, "job 1 records").await;
    let all = json!({"bindingKey": "kept", "scope": {"companyId": "acme"}});
    let mut record = Value::Null;
    eventually("the job has made a record", async || {
        let page = api.post(&runtime("list"), &all).await.fine();
        record = page["items"][0].clone();
        !record.is_null()
    })
    .await;
    let get = json!({
        "bindingKey": "kept", "scope": {"companyId": "acme"}, "handle": record["handle"],
    });
    let got = api.post(&runtime("get"), &get).await.fine();
    assert_eq!(got["row"]["writtenBy"], "operator", "{got}");
    let forget = json!({
        "bindingKey": "kept", "scope": scope(), "handles": [record["handle"]],
    });
    let refused = ada.post(&runtime("forget"), &forget).await;
    assert_eq!(refused.problem(), (403, "forbidden"), "{}", refused.text);
}
