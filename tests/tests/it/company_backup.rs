//! A backup of a running host, and its restore.

use memhost_core::{check_backup, restore_backup};
use memhost_tests::TestHost;
use serde_json::json;

use super::company::{fill, path};
use super::support::{Api, extracting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_running_host_is_restored_unchanged() {
    let (host, api) = extracting().await;
    fill(&api).await;
    let local = json!({"key": "local", "providerKey": "local-markdown"});
    api.post(&path("bindings"), &local).await.fine();
    let note = json!({
        "bindingKey": "local", "scope": {"companyId": "acme"}, "records": [{"text": "in a file"}],
    });
    api.post("/runtime/v1/companies/acme/records", &note).await.fine();
    let to = host.directory().join("backup");
    let made = api.post("/control/v1/backups", &json!({"directory": to})).await.fine();
    assert!(made["keys"].as_u64().unwrap() > 20 && made["files"].as_u64().unwrap() > 1, "{made}");
    assert!(!to.join("vault.key").exists() && to.join("host.key").exists());
    assert_eq!(
        api.post("/control/v1/backups", &json!({"directory": to})).await.json["field"],
        "directory"
    );
    assert_eq!(
        api.post("/control/v1/backups", &json!({"directory": "here"})).await.json["field"],
        "directory"
    );
    check_backup(&to).unwrap();
    let restored = host.directory().join("restored");
    restore_backup(&to, &restored).unwrap();
    let keys = host.data_dir().join("vault.key");
    std::fs::copy(keys, restored.join("vault.key")).unwrap();
    let second =
        TestHost::with(&["extracts"], |options| options.data_dir = restored.clone()).await.unwrap();
    let there = Api::new(&second);
    for rest in [
        "bindings/local/grants",
        "jobs",
        "cost-events",
        "secrets",
        "tokens",
        "reviews",
        "deliveries",
    ] {
        assert_eq!(there.get(&path(rest)).await, api.get(&path(rest)).await, "{rest}");
    }
    let ask = json!({"bindingKey": "local", "scope": {"companyId": "acme"}, "query": "file"});
    let found = there.post("/runtime/v1/companies/acme/query", &ask).await.fine();
    assert_eq!(found["snippets"][0]["text"], "in a file");
    assert!(second.service().control().verify_store().await.unwrap().is_empty());
    // What is a link is no part of a backup: the manifest says nothing of where it leads.
    let outside = host.directory().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("private"), "of this machine").unwrap();
    std::os::unix::fs::symlink(&outside, to.join("plugins")).unwrap();
    std::os::unix::fs::symlink(outside.join("private"), to.join("vault.key")).unwrap();
    let linked = host.directory().join("linked");
    restore_backup(&to, &linked).unwrap();
    assert!(!linked.join("plugins/private").exists() && !linked.join("vault.key").exists());
    // A changed byte is noticed before anything is written.
    std::fs::write(to.join("host.key"), [0; 32]).unwrap();
    let error = restore_backup(&to, &host.directory().join("third")).unwrap_err().to_string();
    assert!(
        error.contains("host.key was changed") && !host.directory().join("third").exists(),
        "{error}"
    );
}
