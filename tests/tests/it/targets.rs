//! Whom a binding answers for: targets are listed, a deletion says whose it ends, and changes name
//! only what changes.

use memhost_server::Method;
use serde_json::{Value, json};

use super::cli::Terminal;
use super::company::path;
use super::support::Api;
use super::whose::{bind, host};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_writes_an_entry_for_each_target_that_it_ends() {
    let (_host, api) = host("extracts").await;
    for agent in ["ada", "carol"] {
        api.put(&path("targets"), &json!({"agentId": agent, "bindingKey": "memory"})).await.fine();
    }
    let targets = api.get(&path("targets")).await;
    let wanted = json!([
        {"bindingKey": "memory"},
        {"agentId": "ada", "bindingKey": "memory"},
        {"agentId": "carol", "bindingKey": "memory"},
    ]);
    let mut found = targets["items"].as_array().unwrap().clone();
    found.sort_by_key(|target| target["agentId"].as_str().unwrap_or_default().to_owned());
    assert_eq!(Value::Array(found), wanted);
    api.send(Method::Delete, &path("bindings/memory"), None, &[]).await.fine();
    assert_eq!(api.get(&path("targets")).await["items"], json!([]));
    let activity = api.get(&path("activity")).await;
    let ended = activity["items"].as_array().unwrap().iter().take(4);
    let ended =
        ended.map(|entry| (entry["action"].as_str().unwrap(), entry["subject"].as_str().unwrap()));
    let mut ended: Vec<_> = ended.collect();
    ended.sort_unstable();
    assert_eq!(
        ended,
        [
            ("binding_deleted", "memory"),
            ("target_changed", "the agent ada"),
            ("target_changed", "the agent carol"),
            ("target_changed", "the company"),
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_limits_and_policy_changes_what_it_names() {
    let (_host, api) = host("extracts").await;
    let binding = path("bindings/memory");
    let patch = async |body: Value| api.patch(&binding, &body).await;
    patch(json!({
        "limits": {"callTimeoutMs": 7_000},
        "policy": {"pii": "redact", "mcp": {"aliases": true}},
    }))
    .await
    .fine();
    let after = patch(json!({"limits": {"callsPerSecond": 9}, "policy": {"onBudget": "queue"}}))
        .await
        .fine();
    assert_eq!(
        (&after["limits"]["callTimeoutMs"], &after["limits"]["callsPerSecond"]),
        (&json!(7_000), &json!(9))
    );
    let policy = &after["policy"];
    assert_eq!((&policy["pii"], &policy["onBudget"]), (&json!("redact"), &json!("queue")));
    assert_eq!(policy["mcp"]["aliases"], true);
    let reset = patch(json!({"policy": {"pii": null, "review": {"all": true}}})).await.fine();
    assert_eq!(
        (&reset["policy"]["pii"], &reset["policy"]["review"]["all"]),
        (&json!("allow"), &json!(true))
    );
    assert_eq!(reset["policy"]["onBudget"], "queue");
    let wrong = patch(json!({"policy": {"revew": {}}})).await;
    assert!(wrong.status == 400 && wrong.text.contains("revew"), "{}", wrong.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_asks_before_it_reroutes_a_company_or_deletes() {
    let terminal = Terminal::open(&["extracts"]).await;
    let api = Api::new(&terminal.host);
    for key in ["one", "two"] {
        bind(&api, "acme", key, "extracts", &json!({})).await;
    }
    terminal.fine("binding assign one --agent ada").await;
    // There is no terminal to ask on.
    for line in
        ["binding assign one", "binding assign --none", "binding delete two", "binding delete one"]
    {
        let asked = terminal.run(line).await;
        assert!(asked.code == 2 && asked.err.contains("--yes"), "{line}: {asked:?}");
    }
    assert!(terminal.run("binding delete two").await.err.contains("answers for the whole company"));
    assert!(terminal.run("binding delete one").await.err.contains("answers for ada"));
    assert_eq!(api.get(&path("targets")).await["items"].as_array().unwrap().len(), 2);
    terminal.fine("binding assign two").await;
    terminal.fine("binding assign one --yes").await;
    terminal.fine("binding delete two --yes").await;
    let changed = terminal.fine("binding update one --policy {\"pii\":\"redact\"}").await;
    assert!(
        changed.contains("policy.pii: \"allow\" → \"redact\"") && !changed.contains("onBudget"),
        "{changed}"
    );
}

/// All bindings are in memory and in one answer, so that their number is bounded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_has_room_for_a_thousand_bindings() {
    let host = memhost_tests::TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let binding =
        |number: usize| json!({"key": format!("b{number}"), "providerKey": "local-markdown"});
    for number in 0..1_000 {
        api.post(&path("bindings"), &binding(number)).await.fine();
    }
    let full = api.post(&path("bindings"), &binding(1_000)).await;
    assert_eq!(
        (full.problem(), &full.json["field"]),
        ((400, "invalid_request"), &json!("key")),
        "{}",
        full.text
    );
    assert!(full.text.contains("at most 1000 bindings"), "{}", full.text);
    assert_eq!(api.post(&path("bindings"), &binding(7)).await.problem(), (409, "binding_exists"));
    api.send(Method::Delete, &path("bindings/b7"), None, &[]).await.fine();
    api.post(&path("bindings"), &binding(1_000)).await.fine();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_may_ask_which_binding_answers_learns_what_it_can_do() {
    let (host, operator) = host("extracts").await;
    let plugins = host.service().control().plugins().admitted;
    let shown = operator.get(&path("bindings/memory")).await;
    let described = plugins.iter().map(|plugin| &plugin.inspection.description);
    let mut described = described.filter(|one| shown["providerKey"] == one.provider_key.as_str());
    let wanted = serde_json::to_value(described.next().unwrap().capabilities).unwrap();
    assert_eq!(shown["capabilities"], wanted, "{shown}");
    for role in [
        json!({"name": "admin", "role": "company_administrator"}),
        json!({"name": "ada", "role": "agent", "agentId": "ada"}),
    ] {
        let made = operator.post(&path("tokens"), &role).await.fine();
        let caller = operator.with(made["value"].as_str().unwrap());
        let resolved = caller.get(&path("resolve")).await;
        assert_eq!(resolved["binding"]["capabilities"], wanted, "{resolved}");
    }
}
