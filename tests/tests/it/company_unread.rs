//! Exports and erasures of companies with bindings that cannot be read: never granted, or with an
//! open circuit.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Answer, Api, bind_provider};

const ACME: &str = "/control/v1/companies/acme";

async fn export(api: &Api) -> Answer {
    api.send(Method::Get, &format!("{ACME}/export"), None, &[]).await
}

async fn erase(api: &Api) -> Answer {
    api.post(&format!("{ACME}/erase"), &json!({"confirm": "acme"})).await
}

/// A binding of a shipped provider that was never granted anything holds nothing, and is in
/// nobody's way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_was_never_granted_is_in_nobodys_way() {
    for provider in ["facts", "cross-agent", "taxonomy"] {
        let host = TestHost::new(&[provider]).await.unwrap();
        let api = Api::new(&host);
        api.post(&format!("{ACME}/bindings"), &json!({"key": "fx", "providerKey": provider}))
            .await
            .fine();
        api.post(
            &format!("{ACME}/bindings"),
            &json!({"key": "md", "providerKey": "local-markdown"}),
        )
        .await
        .fine();
        let record = json!({
            "scope": {"companyId": "acme"}, "bindingKey": "md", "records": [{"text": "a note"}],
        });
        api.post("/runtime/v1/companies/acme/records", &record).await.fine();
        let ask = json!({"scope": {"companyId": "acme"}, "bindingKey": "fx", "query": "x"});
        assert_ne!(
            api.post("/runtime/v1/companies/acme/query", &ask).await.status,
            200,
            "{provider}: not granted"
        );
        let scope = json!({"scope": {"companyId": "acme", "agentId": "ada"}});
        let forgotten = api.post("/runtime/v1/companies/acme/scope/forget", &scope).await.fine();
        assert_eq!(forgotten["isComplete"], true, "{provider}: {forgotten}");
        let exported = export(&api).await;
        let last: Value = serde_json::from_str(exported.text.lines().last().unwrap()).unwrap();
        assert_eq!(
            (exported.status, &last["type"]),
            (200, &json!("end")),
            "{provider}: {}",
            exported.text
        );
        assert!(exported.text.contains("a note"), "{provider}");
        let erased = erase(&api).await.fine();
        assert_eq!(
            (&erased["notForgotten"], &erased["isComplete"]),
            (&json!([]), &json!(true)),
            "{provider}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_circuit_is_a_problem_of_an_export_and_none_of_an_erasure() {
    let host = TestHost::new(&["traps"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "traps").await;
    api.capture("acme", "a fact").await.fine();
    let trap = json!({"scope": {"companyId": "acme"}, "query": "trap"});
    let opened = async || {
        api.post("/runtime/v1/companies/acme/query", &trap).await.problem() == (503, "circuit_open")
    };
    memhost_tests::eventually("the circuit opens", opened).await;
    let exported = export(&api).await;
    assert_eq!(exported.problem(), (503, "circuit_open"), "{}", exported.text);
    let detail = exported.json["detail"].as_str().unwrap();
    assert!(
        detail.contains("its binding `traps` cannot be read")
            && detail.contains("binding reset traps"),
        "{detail}"
    );
    let erased = erase(&api).await.fine();
    assert_eq!(
        (&erased["notForgotten"], &erased["isComplete"]),
        (&json!([]), &json!(true)),
        "{erased}"
    );
}

/// Whoever looks is told that an erasure is not complete, and what goes on with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_is_not_complete_is_listed() {
    let host = TestHost::new(&["lying-list"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "lying-list").await;
    api.capture("acme", "a fact").await.fine();
    assert_eq!(erase(&api).await.problem(), (409, "not_forgotten"));
    let listed = api.get("/control/v1/companies").await;
    assert_eq!((&listed["items"], &listed["erasing"]), (&json!([]), &json!(["acme"])), "{listed}");
    assert_eq!(api.get("/control/v1/tombstones/acme").await["isComplete"], false);
    let refused = api.post(&format!("{ACME}/bindings/lying-list/reset"), &json!({})).await;
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(
        detail.contains("is not complete") && detail.contains("memhost company delete"),
        "{detail}"
    );
    let body = json!({"confirm": "acme", "abandon": ["lying-list"]});
    assert_eq!(api.post(&format!("{ACME}/erase"), &body).await.fine()["isComplete"], true);
    let listed = api.get("/control/v1/companies").await;
    assert_eq!(listed.get("erasing"), None, "{listed}");
}
