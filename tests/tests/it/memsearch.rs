//! The provider `memsearch` through the host and the sandbox: two agents, two companies, and a
//! restart. `just vendors` lets the real memsearch index what it writes.

use std::fs;
use std::path::{Path, PathBuf};

use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::support::Api;

const RUNTIME: &str = "/runtime/v1/companies";

async fn host() -> (TestHost, Api) {
    let host = TestHost::new(&["memsearch"]).await.unwrap();
    let api = Api::new(&host);
    api.make("zeta").await;
    for company in ["acme", "zeta"] {
        let body = json!({"key": "journal", "providerKey": "memsearch", "default": true,
            "grants": {"storageBytes": 64 << 20, "directoryBytes": 32 << 20, "clock": true}});
        api.post(&format!("/control/v1/companies/{company}/bindings"), &body).await.fine();
    }
    (host, api)
}

async fn write(api: &Api, company: &str, agent: &str, id: &str, text: &str) -> Value {
    let body = json!({
        "scope": {"companyId": company, "agentId": agent, "sessionKey": "standup"},
        "visibility": "agent",
        "records": [{"id": id, "text": text, "createdAt": "2026-03-01T12:00:00Z"}],
    });
    api.post(&format!("{RUNTIME}/{company}/records"), &body).await.fine()["records"][0].clone()
}

/// The journals of all bindings.
fn journals(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(journals(&path));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_in_journals_of_their_company() {
    let (mut host, api) = host().await;
    let (ada, bob) = (api.agent("ada").await, api.agent("bob").await);
    let gate = write(&api, "acme", "ada", "gate", "The gate is red").await;
    write(&api, "acme", "bob", "door", "The door is shut").await;
    write(&api, "acme", "ada", "gate", "The gate is green").await;
    write(&api, "zeta", "zoe", "gate", "The gate of zeta").await;
    let files = journals(host.data_dir());
    assert_eq!(files.len(), 2, "{files:?}");
    let contents: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let own = contents.iter().position(|content| content.contains("The gate is green")).unwrap();
    assert!(
        contents[own].starts_with(
            "# 2026-03-01\n\n## Session 12:00\n\n### 12:00\n<!-- session:standup -->\n"
        )
    );
    assert!(
        contents[own].contains("The door is shut") && !contents[own].contains("red"),
        "{}",
        contents[own]
    );
    assert!(!contents[own].contains("zeta") && contents[1 - own].contains("The gate of zeta"));
    let tokens = [ada.token().to_owned(), bob.token().to_owned()];
    drop((api, ada, bob));
    host.stop().await;
    // Somebody writes while the host is away, as memsearch's plugins do.
    let edited = contents[own].clone() + "### 13:00\n- The roof leaks\n\n";
    fs::write(&files[own], edited).unwrap();
    host.start().await.unwrap();
    let api = Api::new(&host);
    let [ada, bob] = tokens.map(|token| api.with(&token));
    assert_eq!(
        ada.query("acme", "which gate or roof?").await,
        ["The roof leaks".to_owned(), "The gate is green".to_owned()]
            .map(|text| text.replace("The roof", "- The roof"))
    );
    assert_eq!(bob.query("acme", "gate").await, Vec::<String>::new());
    assert_eq!(api.query("zeta", "gate").await, ["The gate of zeta"]);
    let forget = json!({"scope": {"companyId": "acme"}, "handles": [gate]});
    let forgotten = api.post(&format!("{RUNTIME}/acme/forget"), &forget).await.fine();
    assert_eq!(forgotten["outcomes"][0]["effect"], "hard", "{forgotten}");
    assert!(!fs::read_to_string(&files[own]).unwrap().contains("green"));
    assert!(fs::read_to_string(&files[own]).unwrap().contains("The roof leaks"));
}
