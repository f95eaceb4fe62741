//! A company for which nobody has decided who answers: the built-in provider does, and only a write
//! leaves a trace.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;
use super::ui_pages::operator;

const CONTROL: &str = "/control/v1/companies/acme";
const RUNTIME: &str = "/runtime/v1/companies/acme";

async fn bindings(api: &Api) -> Vec<Value> {
    let all = api.get(&format!("{CONTROL}/bindings")).await["items"].as_array().unwrap().clone();
    all.iter().map(|shown| shown["key"].clone()).collect()
}

/// What was done to which thing, by whom, newest first.
async fn activity(api: &Api) -> Vec<(String, String, Value)> {
    let all = api.get(&format!("{CONTROL}/activity")).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| {
        (text(&entry["action"]), text(&entry["subject"]), entry["principal"].clone())
    };
    all["items"].as_array().unwrap().iter().map(entry).collect()
}

/// Reads in every way, all of which are answered.
async fn read(api: &Api, key: Option<&str>) {
    let scope = json!({"companyId": "acme"});
    for (what, mut body) in [
        ("query", json!({"scope": scope, "query": "gate"})),
        ("list", json!({"scope": scope})),
        ("browse", json!({"scope": scope})),
    ] {
        if let Some(key) = key {
            body["bindingKey"] = json!(key);
        }
        let answer = api.post(&format!("{RUNTIME}/{what}"), &body).await;
        assert_eq!(answer.status, 200, "{what} {key:?}: {}", answer.text);
    }
    let hydrate = json!({
        "hookKind": "pre_run_hydrate", "hookId": format!("h{key:?}"), "scope": scope,
        "triggeredAt": "2026-11-20T10:00:00Z", "query": "gate", "bindingKey": key,
    });
    api.post(&format!("{RUNTIME}/hooks"), &hydrate).await.fine();
}

async fn resolved(api: &Api, query: &str) -> (u16, Value) {
    let path = format!("{CONTROL}/resolve{query}");
    let answer = api.send(Method::Get, &path, None, &[]).await;
    (answer.status, answer.json)
}

fn write(api: &Api, text: &str, key: Option<&str>) -> impl Future<Output = u16> {
    let body = json!({
        "scope": {"companyId": "acme"}, "bindingKey": key, "records": [{"text": text}],
    });
    async move { api.post(&format!("{RUNTIME}/records"), &body).await.status }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_creates_nothing_and_a_write_says_whose_it_was() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    api.make("acme").await;
    let (ada, before) = (api.agent("ada").await, activity(&api).await);
    for key in [None, Some("default")] {
        read(&ada, key).await;
        read(&api, key).await;
    }
    assert_eq!((bindings(&api).await, activity(&api).await), (vec![], before.clone()));
    for (query, why, decides) in
        [("", "company_default", 2), ("?bindingKey=default", "explicit_key", 0)]
    {
        let (status, shown) = resolved(&api, query).await;
        assert_eq!(status, 200, "{shown}");
        assert_eq!(shown["binding"]["key"], "default");
        assert_eq!(shown["binding"]["providerKey"], "local-markdown");
        assert_eq!(
            (&shown["why"], &shown["steps"][decides]["decides"]),
            (&json!(why), &json!(true))
        );
        let says = shown["steps"][2]["says"].as_str().unwrap();
        assert!(says.contains("nobody has decided"), "{says}");
    }
    assert_eq!(resolved(&api, "?bindingKey=other").await.0, 404);
    // Its own page and its grants say the same, and are no decision either.
    let shown = api.get(&format!("{CONTROL}/bindings/default")).await;
    assert_eq!((&shown["isDefault"], &shown["revision"]), (&json!(true), &json!(0)), "{shown}");
    api.get(&format!("{CONTROL}/bindings/default/grants")).await;
    let page = operator(&api).await.page("/c/acme/bindings/default").await;
    assert!(page.contains("Nobody has decided") && !page.contains("Set as default"), "{page}");
    let other = format!("{CONTROL}/bindings/other");
    assert_eq!(api.send(Method::Get, &other, None, &[]).await.status, 404);
    assert_eq!((bindings(&api).await, activity(&api).await), (vec![], before.clone()));
    assert_eq!(write(&ada, "the gate is green", Some("other")).await, 404);
    assert_eq!(bindings(&api).await, Vec::<Value>::new());
    // The plan's literal key works from the first call on, and the agent who wrote is named.
    assert_eq!(write(&ada, "the gate is green", Some("default")).await, 200);
    assert_eq!(bindings(&api).await, [json!("default")]);
    let after = activity(&api).await;
    let new = &after[..after.len() - before.len()];
    let actions: Vec<_> = new.iter().map(|(action, subject, _)| (&**action, &**subject)).collect();
    assert_eq!(actions, [("binding_created", "default"), ("target_changed", "the company")]);
    assert!(new.iter().all(|(.., by)| by.to_string().contains("ada")), "{new:?}");
    assert_eq!(ada.query("acme", "gate").await, ["the gate is green"]);
    let (_, shown) = resolved(&api, "").await;
    assert!(shown["steps"][2]["says"].as_str().unwrap().contains("the default of the company is"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_that_was_deleted_does_not_come_back() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    api.make("acme").await;
    assert_eq!(write(&api, "the gate is green", None).await, 200);
    let path = format!("{CONTROL}/bindings/default");
    api.send(Method::Delete, &path, None, &[]).await;
    drop(api);
    for is_restarted in [false, true] {
        if is_restarted {
            host.stop().await;
            host.start().await.unwrap();
        }
        let api = Api::new(&host);
        let body = json!({"scope": {"companyId": "acme"}, "query": "gate"});
        let none = api.post(&format!("{RUNTIME}/query"), &body).await;
        assert_eq!(none.problem(), (404, "no_binding"));
        assert!(none.text.contains("memhost binding create"), "{}", none.text);
        assert_eq!(write(&api, "the gate is red", None).await, 404);
        assert_eq!(write(&api, "the gate is red", Some("default")).await, 404);
        assert_eq!(resolved(&api, "").await.0, 404);
        assert_eq!(bindings(&api).await, Vec::<Value>::new());
        assert_eq!(api.send(Method::Get, &path, None, &[]).await.status, 404);
    }
    // Another company is not concerned.
    let api = Api::new(&host);
    api.make("beta").await;
    assert_eq!(api.query("beta", "gate").await, Vec::<String>::new());
}
