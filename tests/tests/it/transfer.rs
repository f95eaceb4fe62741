//! Moving a company from one host to another.

use memhost_core::{ImportOptions, ServiceError};
use memhost_server::Method;
use memhost_tests::{TestHost, caller, eventually, parse};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::company::{fill, path};
use super::support::{Api, bind, extracting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_moves_to_another_host() {
    let (_host, api) = extracting().await;
    fill(&api).await;
    api.put(&path("budgets/day"), &json!({"limitCents": 1})).await.fine();
    let export = api.send(Method::Get, &path("export"), None, &[]).await;
    assert_eq!(export.headers["content-type"], "application/x-ndjson");
    let lines: Vec<&str> = export.text.lines().collect();
    assert!(lines[0].contains("\"company\"") && lines.last().unwrap().contains("\"end\""));
    assert!(
        !export.text.contains("a value of eight") && !export.text.contains("digest\":\"")
            || export.text.contains("waits")
    );
    let other = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&other);
    let import = |text: String| {
        let there = there.with_same();
        async move {
            there
                .send(
                    Method::Post,
                    &path("import?acceptGrants=true&scope=company"),
                    Some(text),
                    &[],
                )
                .await
        }
    };
    // If the export is cut off, changed or of another company, nothing is imported.
    let cut = lines[..lines.len() - 1].join("\n");
    let renamed = export.text.replacen("\"acme\"", "\"emca\"", 1);
    let twice = [lines[..2].join("\n"), lines[1..].join("\n")].concat();
    for wrong in [cut, renamed, twice, "not json\n".to_owned(), String::new()] {
        let answer = import(wrong).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(there.get(&path("bindings")).await["items"].as_array().unwrap().is_empty());
    }
    let done = import(export.text.clone()).await.fine();
    assert!(
        done["operations"].as_u64().unwrap() >= 10 && done["records"].as_u64().unwrap() >= 7,
        "{done}"
    );
    assert_eq!(import(export.text.clone()).await.status, 400, "it is there already");
    let lists = [
        "cost-events",
        "cost-events?order=oldest",
        "finance-events",
        "events",
        "budgets",
        "retention",
    ];
    for rest in lists.into_iter().chain(["deliveries", "jobs", "reviews"]) {
        let (here, there) = (api.get(&path(rest)).await, there.get(&path(rest)).await);
        let without = |mut page: Value| {
            page.as_object_mut().map(|page| page.remove("nextCursor"));
            page
        };
        assert_eq!(without(here), without(there), "{rest}");
    }
    for api in [&api, &there] {
        api.send(Method::Delete, &path("budgets/day"), None, &[]).await.fine();
    }
    assert_eq!(there.query("acme", "fact").await.len(), 5);
    let ada = json!({"scope": {"companyId": "acme", "agentId": "ada"}, "query": "person"});
    let found = there.post("/runtime/v1/companies/acme/query", &ada).await.fine();
    assert_eq!(found["snippets"], json!([]), "what waits for a person waits there, too");
    let first = |api: &Api| {
        let api = api.with_same();
        async move {
            api.get(&path("operations?kind=capture&until=2100-01-01T00:00:00Z")).await["items"]
                .as_array()
                .unwrap()
                .last()
                .unwrap()
                .clone()
        }
    };
    assert_eq!(first(&api).await, first(&there).await, "operations keep their ids");
    assert!(other.service().control().verify_store().await.unwrap().is_empty());
}

/// An import that fails removes everything of its company. So it does not begin where something is
/// there already.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_company_had_before_an_import_stays() {
    let (_host, api) = extracting().await;
    api.capture("acme", "a fact").await.fine();
    let export = api.send(Method::Get, &path("export"), None, &[]).await.text;
    let other = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&other);
    there.post(&path("tokens"), &json!({"name": "kept", "role": "auditor"})).await.fine();
    for text in [export.clone(), export.lines().next().unwrap().to_owned()] {
        let refused = there
            .send(Method::Post, &path("import?acceptGrants=true&scope=company"), Some(text), &[])
            .await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert!(
            refused.text.contains("has records in `activity` here already"),
            "{}",
            refused.text
        );
    }
    assert_eq!(there.get(&path("tokens")).await["items"][0]["name"], "kept");
}

/// A call during the import is told to wait, and uses none of the company's sequence numbers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_cannot_be_used_while_it_is_imported() {
    let (_host, api) = extracting().await;
    api.capture("acme", "a fact").await.fine();
    let export = api.send(Method::Get, &path("export"), None, &[]).await.text;
    let other = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&other);
    let (lines, receiver) = mpsc::channel(1_000);
    let options = ImportOptions { accepts_grants: true, accepts_unscoped: true };
    let service = std::sync::Arc::clone(other.service());
    let importing = tokio::spawn(async move {
        service.transfer().import(&caller(), &parse("acme"), options, receiver).await
    });
    let mut rest = export.lines().map(|line| format!("{line}\n"));
    lines.send(Ok(rest.next().unwrap())).await.unwrap();
    let listed = async || there.send(Method::Get, &path("bindings"), None, &[]).await;
    eventually("the import has begun", async || listed().await.status == 503).await;
    assert_eq!(listed().await.problem(), (503, "importing"));
    assert_eq!(there.capture("acme", "too early").await.problem(), (503, "importing"));
    // A refusal would take the number of an imported operation.
    let asked = json!({"name": "o", "role": "operator", "operations": ["view"]});
    let foreign = there
        .with(there.post("/control/v1/tokens", &asked).await.fine()["value"].as_str().unwrap());
    assert_eq!(foreign.capture("acme", "not mine").await.problem(), (503, "importing"));
    let second = there.send(Method::Post, &path("import"), Some(export.clone()), &[]).await;
    assert_eq!(second.problem(), (503, "importing"));
    // What comes after it would be stored behind the erasure.
    let erased = there.post(&path("erase"), &json!({"confirm": "acme"})).await;
    assert_eq!(erased.problem(), (503, "importing"));
    for line in rest {
        lines.send(Ok(line)).await.unwrap();
    }
    drop(lines);
    importing.await.unwrap().unwrap();
    assert_eq!(there.query("acme", "fact").await, ["a fact"]);
}

/// If the host ended during an import, the next start removes the part, and the company can be
/// imported again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_import_leaves_nothing() {
    let (mut host, api) = extracting().await;
    api.capture("acme", "half of a company").await.fine();
    bind(&api, "other", "extracts", &json!({})).await;
    drop(api);
    host.stop().await;
    let db = memhost_tests::open_store(host.data_dir());
    db.open_tree("host").unwrap().insert(b"importing\0acme", b"").unwrap();
    db.flush().unwrap();
    drop(db);
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert!(host.operations("acme").await.unwrap().is_empty());
    assert_eq!(api.get(&path("bindings")).await["items"], json!([]));
    assert_eq!(
        api.get("/control/v1/companies/other/bindings").await["items"].as_array().unwrap().len(),
        1
    );
    bind(&api, "acme", "extracts", &json!({})).await;
    assert!(api.query("acme", "half").await.is_empty());
}

/// A provider whose list never ends stops neither an export without a reason, nor an erasure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_never_ends_ends_an_export_with_the_reason() {
    for (text, reason) in [
        ("list in circles", "leads back to a page that it has answered before"),
        ("list on the spot", "answers the cursor that it was asked with"),
    ] {
        let (_host, api) = extracting().await;
        api.capture("acme", text).await.fine();
        let export = api.send(Method::Get, &path("export"), None, &[]).await;
        assert_eq!(export.status, 500, "the body is cut off: {}", export.text);
        for told in [reason, "`extracts`", "report it to the provider's author"] {
            assert!(export.text.contains(told), "{told}: {}", export.text);
        }
        let lists = api.get(&path("operations?kind=list&limit=1000")).await;
        let lists = lists["items"].as_array().unwrap().len();
        // One of them before the first line, to say what cannot be exported.
        assert!((2..=4).contains(&lists), "{text}: {lists} pages were read");
        let erased = api.post(&path("erase"), &json!({"confirm": "acme"})).await.fine();
        assert_eq!(erased["forgotten"]["extracts"], 1, "{erased}");
    }
}

/// The caller of an import may go away at any time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_company_whose_import_was_given_up_can_be_imported_again() {
    let host = TestHost::new(&[]).await.unwrap();
    let (company, caller) = (parse("acme"), caller());
    let import = |lines| {
        host.service().transfer().import(&caller, &company, ImportOptions::default(), lines)
    };
    let (_sender, lines) = mpsc::channel(1);
    let (_other, others) = mpsc::channel(1);
    let mut first = Box::pin(import(lines));
    let waits = tokio::select! {
        biased;
        ended = &mut first => panic!("nothing was sent: {ended:?}"),
        second = import(others) => second,
    };
    assert!(matches!(waits, Err(ServiceError::Importing { .. })), "{waits:?}");
    drop(first);
    let (sender, lines) = mpsc::channel(1);
    drop(sender);
    let again = import(lines).await;
    assert!(!matches!(again, Err(ServiceError::Importing { .. })), "{again:?}");
    assert!(again.is_err(), "nothing was sent");
}
