//! Deletions and erasures that are cut short are finished at the next start.

use std::sync::Arc;

use memhost_server::Method;
use memhost_tests::faults::Faults;
use memhost_tests::{TestHost, eventually, open_store};
use serde_json::json;

use crate::support::Api;

const SECRET: &str = "the recipe of the lemonade";

/// A host with a binding that has stored a text in a file, and the guest `extracts` with one in the
/// store.
async fn host() -> (TestHost, Api, Arc<Faults>) {
    let (faults, wrap) = Faults::new();
    let host =
        TestHost::with(&["extracts"], |options| options.wrap_store = Some(wrap)).await.unwrap();
    let api = Api::new(&host);
    for company in ["acme", "other"] {
        super::support::bind(&api, company, "extracts", &json!({})).await;
        api.post(
            &format!("/control/v1/companies/{company}/bindings"),
            &json!({"key": "files", "providerKey": "local-markdown"}),
        )
        .await
        .fine();
        for key in ["extracts", "files"] {
            let text = format!("{SECRET} of {company}");
            let body = json!({
                "bindingKey": key, "scope": {"companyId": company}, "records": [{"text": text}],
            });
            api.post(&format!("/runtime/v1/companies/{company}/records"), &body).await.fine();
        }
    }
    (host, api, faults)
}

/// Where the text of a company still is.
fn left(host: &TestHost, company: &str) -> Vec<String> {
    let (text, mut found) = (format!("{SECRET} of {company}"), Vec::new());
    let db = open_store(host.data_dir());
    for name in db.tree_names() {
        for entry in &db.open_tree(&name).unwrap() {
            let (_, value) = entry.unwrap();
            if String::from_utf8_lossy(&value).contains(&text) {
                found.push(String::from_utf8_lossy(&name).into_owned());
            }
        }
    }
    drop(db);
    let mut directories = vec![host.data_dir().join("memory")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false if std::fs::read_to_string(&path).is_ok_and(|read| read.contains(&text)) => {
                    found.push(path.display().to_string());
                }
                false => {}
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_was_cut_short_is_finished_at_the_next_start() {
    let (mut host, api, faults) = host().await;
    faults.keep_stored(true);
    for key in ["extracts", "files"] {
        let path = format!("/control/v1/companies/acme/bindings/{key}");
        assert_eq!(api.send(Method::Delete, &path, None, &[]).await.status, 500);
        assert_eq!(
            api.send(Method::Get, &path, None, &[]).await.status,
            404,
            "it is deleted all the same"
        );
    }
    drop(api);
    host.stop().await;
    assert!(left(&host, "acme").len() >= 2, "{:?}", left(&host, "acme"));
    faults.keep_stored(false);
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(api.query("other", "recipe").await.len(), 1);
    drop(api);
    host.stop().await;
    assert_eq!(left(&host, "acme"), [""; 0]);
    assert!(left(&host, "other").len() >= 2);
    let marks =
        open_store(host.data_dir()).open_tree("host").unwrap().scan_prefix(b"deleting").count();
    assert_eq!(marks, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn erasing_a_company_finishes_deletions_that_were_cut_short() {
    let (mut host, api, faults) = host().await;
    faults.keep_stored(true);
    for key in ["extracts", "files"] {
        let path = format!("/control/v1/companies/acme/bindings/{key}");
        assert_eq!(api.send(Method::Delete, &path, None, &[]).await.status, 500);
    }
    faults.keep_stored(false);
    api.post("/control/v1/companies/acme/erase", &json!({"confirm": "acme"})).await.fine();
    drop(api);
    host.stop().await;
    assert_eq!(left(&host, "acme"), [""; 0]);
    assert!(left(&host, "other").len() >= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_was_cut_short_is_finished_at_the_next_start() {
    let (mut host, api, faults) = host().await;
    faults.keep_stored(true);
    assert_eq!(
        api.post("/control/v1/companies/acme/erase", &json!({"confirm": "acme"})).await.status,
        500
    );
    drop(api);
    host.stop().await;
    faults.keep_stored(false);
    host.start().await.unwrap();
    let api = Api::new(&host);
    let tombstone = async || api.get("/control/v1/tombstones/acme").await;
    eventually("the erasure is complete", async || {
        tombstone().await["removedKeys"].as_u64() > Some(0)
    })
    .await;
    let found = tombstone().await;
    assert_eq!(found["erasedBy"], "operator", "whoever began it");
    assert_eq!(found["forgotten"]["files"], 1, "before it was cut short: {found}");
    assert_eq!(api.query("other", "recipe").await.len(), 1);
    drop(api);
    host.stop().await;
    assert_eq!(left(&host, "acme"), [""; 0]);
    assert!(!host.data_dir().join("memory/acme").exists());
    let marks =
        open_store(host.data_dir()).open_tree("host").unwrap().scan_prefix(b"erasing").count();
    assert_eq!(marks, 0);
}

/// An erasure keeps bindings and secrets until every provider has confirmed it, or an operator
/// gives one up by name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_a_provider_does_not_confirm_keeps_its_binding() {
    const ERASE: &str = "/control/v1/companies/acme/erase";
    let mut host = TestHost::new(&["lying-list"]).await.unwrap();
    let api = Api::new(&host);
    super::support::bind_provider(&api, "acme", "lying-list").await;
    let used_as = json!({"kind": "query", "parameter": "key"});
    let secret =
        json!({"value": "a value of eight", "origins": ["https://a.example"], "usedAs": used_as});
    api.put("/control/v1/companies/acme/secrets/KEY", &secret).await.fine();
    api.capture("acme", "a fact").await.fine();
    let refused = api.post(ERASE, &json!({"confirm": "acme"})).await;
    assert_eq!(refused.problem(), (409, "not_forgotten"), "{}", refused.text);
    let detail = refused.json["detail"].as_str().unwrap();
    assert!(detail.contains("`lying-list`") && detail.contains("--abandon lying-list"), "{detail}");
    assert_eq!(api.capture("acme", "again").await.problem(), (410, "company_erased"));
    drop(api);
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(
        api.post(ERASE, &json!({"confirm": "acme"})).await.status,
        409,
        "also after a restart"
    );
    let wrong = api.post(ERASE, &json!({"confirm": "acme", "abandon": ["other"]})).await;
    assert_eq!((wrong.status, &wrong.json["field"]), (400, &json!("abandon")));
    let done = api.post(ERASE, &json!({"confirm": "acme", "abandon": ["lying-list"]})).await.fine();
    assert_eq!(done["abandoned"], json!({"lying-list": "operator"}), "{done}");
    assert_eq!(done["notForgotten"].as_array().unwrap().len(), 1);
    assert!(done["removedKeys"].as_u64().unwrap() > 0);
    // It is complete, and says the same again.
    assert_eq!(api.post(ERASE, &json!({"confirm": "acme"})).await.fine(), done);
}
