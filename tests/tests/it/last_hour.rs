//! A binding whose calls or recalls fail now and then is said to be in trouble, in the same words
//! everywhere, although its circuit is closed.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::{Api, bind_provider};
use super::ui_pages::operator;

const BINDING: &str = "/control/v1/companies/acme/bindings/traps";
const RUNTIME: &str = "/runtime/v1/companies/acme";

async fn warnings(api: &Api) -> Vec<String> {
    let view = api.get(BINDING).await;
    let all = view["warnings"].as_array().cloned().unwrap_or_default();
    all.iter().map(|warning| warning.as_str().unwrap().to_owned()).collect()
}

async fn query(api: &Api, text: &str) {
    let body = json!({"scope": {"companyId": "acme"}, "query": text});
    api.post(&format!("{RUNTIME}/query"), &body).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_failed_calls_of_many_are_said_everywhere() {
    let host = TestHost::new(&["traps"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "traps").await;
    for number in 0..40 {
        query(&api, if number % 8 == 7 { "trap" } else { "words" }).await;
        // What a caller did wrong is not the provider's failure.
        let wrong = json!({"scope": {"companyId": "acme"}, "query": "x", "topK": 0});
        api.post(&format!("{RUNTIME}/query"), &wrong).await;
    }
    let said = "5 of 40 calls failed in the last hour; the last: ";
    let found = warnings(&api).await;
    assert!(found.len() == 1 && found[0].starts_with(said), "{found:?}");
    let doctor = api.get("/control/v1/doctor").await.to_string();
    assert!(doctor.contains(said), "{doctor}");
    let trouble = async |kind: &str| {
        let metrics = api.send(Method::Get, "/metrics", None, &[]).await.text;
        metrics.contains(&format!("memhost_troubled_bindings{{trouble=\"{kind}\"}} 1\n"))
    };
    assert!(trouble("failing").await && !trouble("degraded").await);
    let visitor = operator(&api).await;
    for page in ["/c/acme", "/c/acme/bindings/traps"] {
        let shown = visitor.page(page).await;
        assert!(shown.contains(said) && !shown.contains("no problems"), "{page}: {shown}");
    }
    assert!(!visitor.page("/c/acme/bindings").await.contains("healthy"));
    // A new binding under the key has an hour of its own.
    api.send(Method::Delete, BINDING, None, &[]).await.fine();
    bind_provider(&api, "acme", "traps").await;
    query(&api, "words").await;
    assert_eq!(warnings(&api).await, Vec::<String>::new());
    assert!(!trouble("failing").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recall_that_found_nobody_is_degraded_and_no_success() {
    let host = TestHost::new(&["traps"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "traps").await;
    let hydrate = async |number: u32, text: &str| {
        let event = json!({
            "hookKind": "pre_run_hydrate", "hookId": format!("h{number}"), "query": text,
            "triggeredAt": "2026-11-20T10:00:00Z", "scope": {"companyId": "acme"},
            "deadlineMs": 30_000,
        });
        let receipt = api.post(&format!("{RUNTIME}/hooks"), &event).await.fine();
        receipt["deliveries"][0]["status"].clone()
    };
    assert_eq!(hydrate(0, "words").await, "delivered");
    for number in 1..4 {
        assert_eq!(hydrate(number, "trap").await, "degraded");
    }
    let found = warnings(&api).await;
    let said = "3 of 4 recalls were degraded in the last hour; the last: ";
    assert!(found.iter().any(|warning| warning.starts_with(said)), "{found:?}");
    let path = "/control/v1/companies/acme/deliveries?status=degraded";
    let listed: Value = api.get(path).await;
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
    let why = listed["items"][0]["recall"]["degraded"].as_str().unwrap();
    assert!(why.contains("trapped") || why.contains("trap"), "{why}");
}
