//! The explorer's list of the records of all bindings.

use memhost_tests::TestHost;
use serde_json::json;

use super::support::Api;
use super::ui_pages::operator;

const RUNTIME: &str = "/runtime/v1/companies/acme";

/// Nobody has chosen a binding: what is in any of them is shown, page by page, and a binding that
/// does not answer is named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_any_binding_are_those_of_all() {
    let host = TestHost::new(&["traps"]).await.unwrap();
    let api = Api::new(&host);
    let grants = json!({"storageBytes": 64 << 20, "directoryBytes": 64 << 20});
    for key in ["one", "three", "two"] {
        let binding = json!({"key": key, "providerKey": "local-markdown", "grants": grants});
        api.post("/control/v1/companies/acme/bindings", &binding).await.fine();
        let records: Vec<_> =
            (0..40).map(|number| json!({"text": format!("{key} number {number:02}")})).collect();
        let notes = json!({
            "bindingKey": key, "scope": {"companyId": "acme"}, "records": records,
        });
        api.post(&format!("{RUNTIME}/records"), &notes).await.fine();
    }
    let visitor = operator(&api).await;
    let (mut path, mut seen, mut pages) = ("/c/acme/records".to_owned(), Vec::new(), 0);
    loop {
        let page = visitor.page(&path).await;
        pages += 1;
        for key in ["one", "two", "three"] {
            for number in 0..40 {
                let text = format!("{key} number {number:02}");
                if page.contains(&text) {
                    seen.push(text);
                }
            }
        }
        // The link to the next page says so.
        let Some(link) = page.split("data-next").nth(1) else { break };
        path = link.split('"').nth(1).unwrap().replace("&amp;", "&");
        assert!(pages < 9, "{path}");
    }
    seen.sort();
    let all = seen.len();
    seen.dedup();
    assert_eq!((seen.len(), all, pages), (120, 120, 3));
    // A binding alone has its own, and one that fails takes none of the others.
    let one = visitor.page("/c/acme/records?bindingKey=two").await;
    assert!(one.contains("two number 00") && !one.contains("one number"), "{one}");
    let broken = json!({"key": "broken", "providerKey": "traps", "grants": grants});
    api.post("/control/v1/companies/acme/bindings", &broken).await.fine();
    api.patch("/control/v1/companies/acme/bindings/broken", &json!({"enabled": false}))
        .await
        .fine();
    let page = visitor.page("/c/acme/records").await;
    assert!(page.contains("The records of broken are missing"), "{page}");
    assert!(page.contains("one number 00"), "{page}");
}
