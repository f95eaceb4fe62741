//! What the host knows of each record beside whose it is: filters, the binding where a record
//! lives, and a company that moves to another host.

use std::collections::BTreeSet;

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::company::path;
use super::support::Api;
use super::whose::{PROVIDERS, agents, ask, bind, host, written};

fn texts(page: &Value, items: &str) -> BTreeSet<String> {
    page[items]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["text"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_filtered_by_what_the_host_knows_with_every_provider() {
    for provider in PROVIDERS {
        let (host, api) = host(provider).await;
        let [ada, carol, _] = agents(&host).await;
        let source = |issue: &str| {
            json!({
                "kind": "issue_comment", "companyId": "acme", "issueId": issue, "commentId": "c1",
            })
        };
        // To `cross-agent` a project is a partition: without it the record would not be listed.
        let project = if provider == "cross-agent" { Value::Null } else { json!("p1") };
        let scope = json!({"companyId": "acme", "projectId": project, "runId": "r1"});
        let beside = json!({"source": source("i1"), "scope": scope});
        written(&ada, "acme", "The valve of the first issue opens at noon", &beside).await;
        written(
            &carol,
            "acme",
            "The valve of the second issue opens at dusk",
            &json!({"source": source("i2")}),
        )
        .await;
        let first = BTreeSet::from(["The valve of the first issue opens at noon".to_owned()]);
        let second = BTreeSet::from(["The valve of the second issue opens at dusk".to_owned()]);
        let both: BTreeSet<String> = first.union(&second).cloned().collect();
        let none = BTreeSet::new();
        for (filter, wanted) in [
            (json!({}), &both),
            (json!({"issueId": "i1"}), &first),
            (json!({"issueId": "NONE"}), &none),
            (json!({"commentId": "c1"}), &both),
            (json!({"documentKey": "x"}), &none),
            (json!({"sourceKind": "issue_comment"}), &both),
            (json!({"sourceKind": "run"}), &none),
            (json!({"projectId": "p1"}), if provider == "cross-agent" { &none } else { &first }),
            (json!({"runId": "r1", "issueId": "i1"}), &first),
            (json!({"runId": "r1", "issueId": "i2"}), &none),
            (json!({"agentId": "carol"}), &second),
            (json!({"subjectId": "u1"}), &none),
            (json!({"since": "2000-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}), &both),
            (json!({"since": "2100-01-01T00:00:00Z"}), &none),
            (json!({"text": "AT DUSK"}), &second),
        ] {
            let listed =
                ask(&api, "acme", "list", json!({"limit": 50, "filter": filter})).await.fine();
            assert_eq!(texts(&listed, "items"), *wanted, "{provider}: {filter}");
            let asked = json!({"query": "valve of the issue opens", "topK": 50, "filter": filter});
            let found = ask(&api, "acme", "query", asked).await.fine();
            assert_eq!(texts(&found, "snippets"), *wanted, "{provider}: {filter}");
        }
        let unknown = ask(&api, "acme", "list", json!({"filter": {"team": "x"}})).await;
        assert_eq!(unknown.status, 400, "{}", unknown.text);
    }
}

/// What fits is behind many records that do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_finds_what_is_behind_many_others() {
    let (_host, api) = host("extracts").await;
    let many: Vec<Value> = (0..200).map(|n| json!({"text": format!("a valve fact {n}")})).collect();
    ask(&api, "acme", "records", json!({"records": many})).await.fine();
    let scope = json!({"companyId": "acme", "issueId": "i9"});
    written(&api, "acme", "a valve fact of the issue", &json!({"scope": scope})).await;
    let filter = json!({"issueId": "i9"});
    let found =
        ask(&api, "acme", "query", json!({"query": "valve", "filter": filter})).await.fine();
    assert_eq!(texts(&found, "snippets").len(), 1, "{found}");
    let (mut seen, mut cursor, mut pages) = (0, Value::Null, 0);
    while pages < 50 {
        let page =
            ask(&api, "acme", "list", json!({"limit": 5, "cursor": cursor, "filter": filter}))
                .await
                .fine();
        (seen, cursor, pages) =
            (seen + texts(&page, "items").len(), page["nextCursor"].clone(), pages + 1);
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, 1);
    assert!(pages < 10, "{pages} pages were read by the client");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handle_finds_the_binding_where_its_record_lives() {
    let (mut host, api) = host("extracts").await;
    bind(&api, "acme", "other", "extracts", &json!({})).await;
    let there =
        written(&api, "acme", "written to the other one", &json!({"bindingKey": "other"})).await;
    let here =
        written(&api, "acme", "written to the first one", &json!({"bindingKey": "memory"})).await;
    // Ada has a binding of her own for a while.
    bind(&api, "acme", "adas", "local-markdown", &json!({})).await;
    let target = |agent: Value, key: Value| json!({"agentId": agent, "bindingKey": key});
    api.put(&path("targets"), &target(Value::Null, json!("other"))).await.fine();
    api.put(&path("targets"), &target(json!("ada"), json!("adas"))).await.fine();
    let [ada, ..] = agents(&host).await;
    let own = written(&ada, "acme", "written to the one of ada", &json!({})).await;
    api.put(&path("targets"), &target(json!("ada"), Value::Null)).await.fine();
    let token = ada.token().to_owned();
    drop((api, ada));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    let ada = api.with(&token);
    for (handle, text) in [(&there, "other one"), (&here, "first one"), (&own, "one of ada")] {
        for caller in [&api, &ada] {
            let got = ask(caller, "acme", "get", json!({"handle": handle})).await.fine();
            assert!(
                got["record"]["text"].as_str().unwrap_or_default().contains(text),
                "{text}: {got}"
            );
        }
    }
    let several = ask(&api, "acme", "forget", json!({"handles": [there, here]})).await;
    assert!(several.status == 400 && several.text.contains("several bindings"), "{}", several.text);
    let patch = json!({"handle": own, "patch": {"record": {"text": "corrected without a name"}}});
    let corrected = ask(&ada, "acme", "correct", patch).await.fine();
    let operations = api.get(&path("operations?kind=correct")).await;
    assert_eq!(operations["items"][0]["bindingKey"], "adas");
    assert_eq!(operations["items"][0]["bindingId"], api.get(&path("bindings/adas")).await["id"]);
    for handle in [&there, &here, &corrected["record"]] {
        let gone = ask(&ada, "acme", "forget", json!({"handles": [handle]})).await.fine();
        assert_eq!(gone["outcomes"][0]["effect"], "hard", "{gone}");
        let got = ask(&api, "acme", "get", json!({"handle": handle})).await;
        assert!(got.json["record"].is_null(), "{}", got.text);
    }
}

/// What each caller is answered, as a set of texts.
async fn answers(api: &Api, agents: &[String]) -> Vec<BTreeSet<String>> {
    let mut all = Vec::new();
    for scope in [
        json!({}),
        json!({"agentId": "ada"}),
        json!({"agentId": "carol"}),
        json!({"subjectId": "u1"}),
    ] {
        let mut whole = json!({"companyId": "acme"});
        whole.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        let listed = ask(api, "acme", "list", json!({"scope": whole, "limit": 100})).await.fine();
        all.push(texts(&listed, "items"));
        let found =
            ask(api, "acme", "query", json!({"scope": whole, "query": "valve", "topK": 100}))
                .await
                .fine();
        all.push(texts(&found, "snippets"));
    }
    for agent in agents {
        let agent = json!({"agentId": agent});
        let filtered =
            ask(api, "acme", "list", json!({"limit": 100, "filter": agent})).await.fine();
        all.push(texts(&filtered, "items"));
    }
    let issue =
        ask(api, "acme", "list", json!({"limit": 100, "filter": {"issueId": "i1"}})).await.fine();
    all.push(texts(&issue, "items"));
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_that_moves_answers_each_agent_as_before_with_every_provider() {
    for provider in PROVIDERS {
        let (source, api) = host(provider).await;
        let [ada, carol, _] = agents(&source).await;
        let of_issue = json!({"source": {"kind": "issue", "companyId": "acme", "issueId": "i1"}});
        written(&ada, "acme", "The valve of everybody opens at noon", &of_issue).await;
        written(&ada, "acme", "The valve of ada opens at dusk", &json!({"visibility": "agent"}))
            .await;
        written(
            &carol,
            "acme",
            "The valve of carol opens at dawn",
            &json!({"visibility": "agent"}),
        )
        .await;
        let person =
            json!({"scope": {"companyId": "acme", "subjectId": "u1"}, "visibility": "person"});
        written(&api, "acme", "The valve of a person opens never", &person).await;
        let names = ["ada".to_owned(), "carol".to_owned()];
        let before = answers(&api, &names).await;
        let export = api.send(Method::Get, &path("export"), None, &[]).await.text;
        let target =
            TestHost::new(&["cross-agent", "facts", "taxonomy", "extracts"]).await.unwrap();
        let there = Api::new(&target);
        let import = path("import?acceptGrants=true");
        there.send(Method::Post, &import, Some(export), &[]).await.fine();
        assert_eq!(answers(&there, &names).await, before, "{provider}");
        let known = async |api: &Api| {
            let listed = ask(api, "acme", "list", json!({"limit": 100})).await.fine();
            let mut all = BTreeSet::new();
            for item in listed["items"].as_array().unwrap() {
                let got = ask(api, "acme", "get", json!({"handle": item["handle"]})).await.fine();
                let row = &got["row"];
                let of = ["visibility", "writtenBy", "createdAt", "operationId"]
                    .map(|field| row[field].to_string());
                all.insert((
                    item["text"].to_string(),
                    of,
                    row["scope"].to_string(),
                    row["source"].to_string(),
                ));
            }
            all
        };
        assert_eq!(known(&there).await, known(&api).await, "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forget_of_many_records_names_all_of_them() {
    let (_host, api) = host("extracts").await;
    let many: Vec<Value> = (0..150).map(|n| json!({"text": format!("a fact {n}")})).collect();
    let records =
        ask(&api, "acme", "records", json!({"records": many})).await.fine()["records"].clone();
    ask(&api, "acme", "forget", json!({"handles": records})).await.fine();
    let operations = api.get(&path("operations?kind=forget")).await;
    assert_eq!(operations["items"][0]["records"].as_array().unwrap().len(), 150);
    assert_eq!(operations["items"][0]["recordCount"], 150);
}

/// Rows go with their records, and with their binding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_go_with_their_records_and_their_binding() {
    let (mut host, api) = host("extracts").await;
    let [ada, ..] = agents(&host).await;
    let private = json!({"visibility": "agent"});
    let one = written(&ada, "acme", "a fact of ada", &private).await;
    written(&ada, "acme", "another fact of ada", &private).await;
    ask(&ada, "acme", "forget", json!({"handles": [one]})).await.fine();
    drop((api, ada));
    let count = async |host: &mut TestHost, table: &str| {
        host.stop().await;
        let store = memhost_tests::open_store(host.data_dir());
        let count = store.open_tree(table).unwrap().len();
        drop(store);
        host.start().await.unwrap();
        count
    };
    assert_eq!(count(&mut host, "records").await, 1);
    assert_eq!(
        count(&mut host, "private_writes").await,
        1,
        "no private write goes on, and ada has private records"
    );
    let api = Api::new(&host);
    api.send(Method::Delete, &path("bindings/memory"), None, &[]).await.fine();
    drop(api);
    assert_eq!(count(&mut host, "records").await, 0);
    assert_eq!(count(&mut host, "private_writes").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_jobs_and_costs_are_filtered_by_agent_issue_run_and_date() {
    let (host, api) = host("extracts").await;
    let [ada, carol, _] = agents(&host).await;
    for (caller, issue, run) in [(&ada, "i1", "r1"), (&carol, "i2", "r2")] {
        let event = json!({
            "hookKind": "post_run_capture", "hookId": issue, "triggeredAt": "2026-11-20T10:00:00Z",
            "waitMs": 20_000,
            "scope": {"companyId": "acme", "issueId": issue, "runId": run},
            "source": {"kind": "run", "companyId": "acme", "runId": run},
            "payload": {"text": "job a fact"},
        });
        caller.post("/runtime/v1/companies/acme/hooks", &event).await.fine();
        let paid = json!({
            "scope": {"companyId": "acme", "issueId": issue, "runId": run},
            "source": {"kind": "run", "companyId": "acme", "runId": run},
            "payload": {"text": "paid 3"},
        });
        ask(caller, "acme", "capture", paid).await.fine();
    }
    for list in ["deliveries", "jobs", "cost-events"] {
        let count = async |query: &str| {
            api.get(&path(&format!("{list}?{query}"))).await["items"].as_array().unwrap().len()
        };
        assert_eq!(count("limit=50").await, 2, "{list}");
        let now = "since=2000-01-01T00:00:00Z&until=2100-01-01T00:00:00Z";
        for (query, wanted) in [
            ("agentId=ada", 1),
            ("agentId=nobody", 0),
            ("issueId=i2", 1),
            ("issueId=NONE", 0),
            ("runId=r1", 1),
            ("runId=r1&agentId=carol", 0),
            (now, 2),
            ("since=2100-01-01T00:00:00Z", 0),
        ] {
            assert_eq!(count(query).await, wanted, "{list}?{query}");
        }
    }
}

/// A row is of a binding of the file, under its own key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_takes_no_row_of_a_binding_that_is_not_its_own() {
    let (source, api) = host("extracts").await;
    let [ada, ..] = agents(&source).await;
    written(&ada, "acme", "a fact of ada", &json!({"visibility": "agent"})).await;
    let id = api.get(&path("bindings/memory")).await["id"].as_str().unwrap().to_owned();
    let other = "01a206b4-3e83-7045-8000-00000145ac37";
    let export = api.send(Method::Get, &path("export"), None, &[]).await.text;
    let target = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&target);
    for table in ["records", "private_writes"] {
        for (also_in_key, said) in [
            (true, "is of a binding that is not in the file"),
            (false, "a key that is not its own"),
        ] {
            let changed = |line: &str| {
                if !line.contains(&format!("\"table\":\"{table}\"")) {
                    return format!("{line}\n");
                }
                let line = line.replace(&id, other);
                let hex = |id: &str| id.replace('-', "");
                format!(
                    "{}\n",
                    if also_in_key { line.replace(&hex(&id), &hex(other)) } else { line }
                )
            };
            let file: String = export.lines().map(changed).collect();
            let import = path("import?acceptGrants=true");
            let refused = there.send(Method::Post, &import, Some(file), &[]).await;
            assert!(
                refused.status == 400 && refused.text.contains(said),
                "{table}: {}",
                refused.text
            );
        }
    }
}
