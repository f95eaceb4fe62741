//! Prints, key by key, what a host of this version stores. A later version with another format must
//! be able to read it.
//!
//! `freeze-store > tests/frozen/format-N.jsonl`, run by the version whose format N it is. Each line
//! has a tree's name, a key and a value, both in hex. sled's own files are not part of the format.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::Result;
use memhost_core::{CreateBinding, SetSecret, SetTarget};
use memhost_tests::{TestHost, agent_scope, caller, capture, forget, parse, query, upsert};
use memhost_types::{OperationKind, Scope};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<()> {
    let mut host = TestHost::new(&[]).await?;
    fill(&host).await?;
    host.stop().await;
    let db = sled::open(host.data_dir().join("store"))?;
    let mut out = std::io::stdout().lock();
    for name in db.tree_names() {
        for entry in &db.open_tree(&name)? {
            let (key, value) = entry?;
            let line = json!({
                "tree": String::from_utf8_lossy(&name), "key": hex(&key), "value": hex(&value),
            });
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Stores records of many kinds.
async fn fill(host: &TestHost) -> Result<()> {
    let (service, acme) = (host.service(), parse("acme"));
    let scoped = |text: &str| {
        let mut request = capture("acme", text);
        request.scope = Scope { project_id: Some("apollo".into()), ..agent_scope("acme", "ada") };
        request
    };
    for n in 0..20 {
        service
            .operations()
            .capture(&caller(), scoped(&format!("the gate code of week {n} is {}", n * 7 + 1_000)))
            .await?;
    }
    let written = service
        .operations()
        .upsert(&caller(), upsert("acme", &["the roof is red", "the door is blue"]))
        .await?;
    service.operations().forget(&caller(), forget("acme", &written.records[1..])).await?;
    service.operations().query(&caller(), query("acme", "which colour has the roof")).await?;
    let create: CreateBinding =
        serde_json::from_value(json!({"key": "second", "providerKey": "local-markdown"}))?;
    service.control().create_binding(&caller(), &acme, create).await?;
    let target: SetTarget =
        serde_json::from_value(json!({"agentId": "bob", "bindingKey": "second"}))?;
    service.control().set_target(&caller(), &acme, target).await?;
    let used_as = json!({"kind": "header", "name": "authorization", "prefix": "Bearer"});
    let secret: SetSecret = serde_json::from_value(json!({
        "value": "a secret of eight", "origins": ["https://api.example.com"], "usedAs": used_as,
    }))?;
    service.control().set_secret(&caller(), &acme, "API_KEY", secret).await?;
    let mut refused = query("acme", "nobody answers");
    refused.binding_key = Some(parse("missing"));
    anyhow::ensure!(service.operations().query(&caller(), refused).await.is_err());
    let kinds: Vec<OperationKind> =
        host.operations("acme").await?.iter().map(|operation| operation.kind).collect();
    anyhow::ensure!(kinds.len() == 24, "{kinds:?}");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
