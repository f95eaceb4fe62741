//! Which operations touched a record: in the list of operations, on the command line, and on the
//! record's page.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::cli::Terminal;
use super::company::path;
use super::support::{Api, bind_provider, extracting};
use super::ui_pages::{encode, in_company};

const RUNTIME: &str = "/runtime/v1/companies/acme";

async fn ask(api: &Api, what: &str, mut body: Value) -> Value {
    body["scope"]["companyId"] = json!("acme");
    api.post(&format!("{RUNTIME}/{what}"), &body).await.fine()
}

/// Writes records with these texts, and answers their handles.
async fn written(api: &Api, texts: &[String]) -> Vec<Value> {
    let records: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    let source = json!({"kind": "manual_note", "companyId": "acme"});
    let answer = ask(api, "records", json!({"source": source, "records": records})).await;
    answer["records"].as_array().unwrap().clone()
}

async fn one(api: &Api, text: &str) -> Value {
    written(api, &[text.to_owned()]).await.remove(0)
}

fn naming(handle: &Value) -> String {
    let part = |name: &str| handle[name].as_str().unwrap().to_owned();
    encode(&[
        ("providerRecordId", &part("providerRecordId")),
        ("providerKey", &part("providerKey")),
    ])
}

/// All operations of a company that name a record, two at a time, newest first.
async fn all(api: &Api, company: &str, handle: &Value) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let list = format!(
            "/control/v1/companies/{company}/operations?limit=2&{}{cursor}",
            naming(handle)
        );
        let page = api.get(&list).await;
        found.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page["nextCursor"].as_str() else { return found };
        cursor = format!("&{}", encode(&[("cursor", next)]));
    }
}

/// The same, as their kinds and who asked.
async fn kinds(api: &Api, handle: &Value) -> Vec<String> {
    let said = |operation: &Value| {
        format!(
            "{} {}",
            operation["kind"].as_str().unwrap(),
            operation["principal"].as_str().unwrap()
        )
    };
    all(api, "acme", handle).await.iter().map(said).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_that_touched_a_record_is_found_by_it() {
    let mut host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    for company in ["acme", "zeta"] {
        bind_provider(&api, company, "local-markdown").await;
    }
    let (ada, bob) = (api.agent("ada").await, api.agent("bob").await);
    let gate = one(&ada, "the gate code is 17").await;
    let wall = one(&ada, "the wall is grey").await;
    let neighbours = json!({
        "scope": {"companyId": "zeta"}, "source": {"kind": "manual_note", "companyId": "zeta"},
        "records": [{"text": "the gate code is 17"}],
    });
    api.post("/runtime/v1/companies/zeta/records", &neighbours).await.fine();
    ask(&bob, "query", json!({"query": "gate code", "topK": 1})).await;
    ask(&bob, "query", json!({"query": "wall grey", "topK": 1})).await;
    ask(&bob, "get", json!({"handle": gate})).await;
    let source = json!({"kind": "run", "companyId": "acme", "runId": "r1"});
    let cites = json!({
        "source": source, "payload": {"text": "asked at the gate"},
        "metadata": {"citedRecords": [gate]},
    });
    ask(&ada, "capture", cites).await;
    ask(
        &ada,
        "correct",
        json!({"handle": gate, "patch": {"record": {"text": "the gate code is 18"}}}),
    )
    .await;
    ask(&api, "list", json!({})).await;
    ask(&bob, "forget", json!({"handles": [gate]})).await;
    let expected = [
        "forget agent:bob",
        "list operator",
        "correct agent:ada",
        "capture agent:ada",
        "get agent:bob",
        "query agent:bob",
        "record_upsert agent:ada",
    ];
    assert_eq!(kinds(&api, &gate).await, expected);
    assert_eq!(
        kinds(&api, &wall).await,
        ["list operator", "query agent:bob", "record_upsert agent:ada"]
    );

    // With another filter, and as another handle, company or caller has it.
    let found =
        api.get(&path(&format!("operations?{}&kind=query&agentId=bob", naming(&gate)))).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    let others = json!({"providerKey": "facts", "providerRecordId": gate["providerRecordId"]});
    assert!(
        all(&api, "acme", &others).await.is_empty(),
        "another provider's record of the same name"
    );
    assert!(all(&api, "zeta", &gate).await.is_empty());
    let id = encode(&[("providerRecordId", gate["providerRecordId"].as_str().unwrap())]);
    assert_eq!(
        api.get(&path(&format!("operations?{id}"))).await["items"].as_array().unwrap().len(),
        expected.len()
    );
    let called = api.get(&path("operations?providerKey=local-markdown&kind=query")).await;
    assert_eq!(called["items"].as_array().unwrap().len(), 2, "{called}");
    assert!(
        api.get(&path("operations?providerKey=facts")).await["items"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let list = path(&format!("operations?{}", naming(&gate)));
    for caller in [&ada, &bob] {
        assert_eq!(caller.send(Method::Get, &list, None, &[]).await.problem(), (403, "forbidden"));
    }
    let token = async |company: &str| {
        let body = json!({"name": "auditor", "role": "auditor"});
        let made = api.post(&format!("/control/v1/companies/{company}/tokens"), &body).await.fine();
        api.with(made["value"].as_str().unwrap())
    };
    assert_eq!(kinds(&token("acme").await, &gate).await, expected);
    assert_eq!(token("zeta").await.send(Method::Get, &list, None, &[]).await.status, 403);
    let wrong = api.send(Method::Get, &path("operations?providerRecordId=%00"), None, &[]).await;
    assert_eq!(
        (wrong.status, wrong.text.contains("providerRecordId")),
        (400, true),
        "{}",
        wrong.text
    );
    // The cursor of one record is not one of another.
    let next = api.get(&format!("{list}&limit=1")).await["nextCursor"].as_str().unwrap().to_owned();
    let other = path(&format!("operations?{}&{}", naming(&wall), encode(&[("cursor", &next)])));
    assert_eq!(api.send(Method::Get, &other, None, &[]).await.json["field"], "cursor");
    // No text of what was forgotten.
    let told = Value::from(all(&api, "acme", &gate).await).to_string();
    assert!(!told.contains("gate code") && !told.contains("the gate"), "{told}");

    drop((api, ada, bob));
    host.stop().await;
    host.start().await.unwrap();
    let api = Api::new(&host);
    assert_eq!(kinds(&api, &gate).await, expected, "after a restart");
    assert!(host.service().control().verify_store().await.unwrap().is_empty());
    // They go with the operations.
    memhost_tests::eventually("the rest is gone", async || {
        api.put(&path("retention"), &json!({"operationsMaxCount": 1})).await.fine();
        kinds(&api, &wall).await.is_empty()
    })
    .await;
    assert_eq!(kinds(&api, &gate).await, ["forget agent:bob"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_names_every_record_of_its_request() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "local-markdown").await;
    let texts: Vec<String> = (0..150).map(|n| format!("fact number {n}")).collect();
    let handles = written(&api, &texts).await;
    assert_eq!(handles.len(), 150);
    ask(&api, "forget", json!({"handles": handles})).await;
    for handle in &handles {
        assert_eq!(
            kinds(&api, handle).await,
            ["forget operator", "record_upsert operator"],
            "{handle}"
        );
    }
    let forget = &all(&api, "acme", &handles[149]).await[0];
    assert_eq!(
        (forget["recordCount"].as_u64(), forget["records"].as_array().unwrap().len()),
        (Some(150), 150)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_job_left_is_found_and_moves_with_the_company() {
    let (_host, api) = extracting().await;
    api.capture("acme", "job makes a record").await.fine();
    api.until(&path("jobs"), |jobs| jobs["items"][0]["status"] == "succeeded").await;
    let left = api.get(&path("operations?kind=extraction&outcome=succeeded")).await;
    let records = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|one| one["records"].as_array().unwrap().iter());
    let handle = records.last().unwrap().clone();
    let before: Vec<Value> =
        all(&api, "acme", &handle).await.iter().map(|one| one["id"].clone()).collect();
    assert!(!before.is_empty());
    let lines = api.send(Method::Get, &path("export"), None, &[]).await.text;

    let host = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&host);
    let answer = there.send(Method::Post, &path("import"), Some(lines), &[]).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    let after: Vec<Value> =
        all(&there, "acme", &handle).await.iter().map(|one| one["id"].clone()).collect();
    assert_eq!(after[after.len() - before.len()..], before, "{after:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_records_page_lists_them_however_long_ago_they_were() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "local-markdown").await;
    let (gate, wall) =
        (one(&api, "the gate code is 17").await, one(&api, "the wall is grey").await);
    ask(&api, "query", json!({"query": "gate code", "topK": 1})).await;
    // More than a page of the list, and more than the latest of the binding.
    for _ in 0..310 {
        ask(&api, "get", json!({"handle": wall})).await;
    }
    let admin = in_company(&api, "acme", "company_administrator").await;
    let page_of = |handle: &Value| {
        let id = handle["providerRecordId"].as_str().unwrap();
        format!("/c/acme/records/local-markdown/{}", encode(&[("", id)]).trim_start_matches('='))
    };
    let page = admin.page(&page_of(&gate)).await;
    let panel = |page: &str| {
        page.split("id=\"operations\"")
            .nth(1)
            .unwrap()
            .split("</section>")
            .next()
            .unwrap()
            .to_owned()
    };
    let told = panel(&page);
    assert!(told.contains("record upsert") && told.contains("query"), "{told}");
    let told = panel(&admin.page(&page_of(&wall)).await);
    assert!(
        told.contains("record upsert") && !told.contains(">get<"),
        "it was only read since: {told}"
    );
    let link = told.split("href=\"").find(|part| part.starts_with("/c/acme/operations?")).unwrap();
    let first = admin.page(&link.split('"').next().unwrap().replace("&amp;", "&")).await;
    let rows = |page: &str| page.matches("<tr data-key").count();
    assert_eq!(rows(&first), 50, "{first}");
    let next = first
        .split("data-next href=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    assert_eq!(rows(&admin.page(&next).await), 50);
    // Also where the record is gone, and not for those who may not see operations.
    ask(&api, "forget", json!({"handles": [gate]})).await;
    let gone = admin.get(&page_of(&gate)).await;
    assert!(gone.status == 404 && panel(&gone.text).contains(">forget<"), "{}", gone.text);
    let ada = super::ui_pages::Visitor::sign_in(&api, api.agent("ada").await.token()).await;
    let page = ada.page(&page_of(&wall)).await;
    assert!(page.contains("the wall is grey") && !page.contains("id=\"operations\""), "{page}");
    assert_eq!(ada.get("/c/acme/operations?providerRecordId=x").await.status, 403);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_lists_them() {
    let terminal = Terminal::open(&[]).await;
    let noted = terminal.json("note 'Deploys are frozen on Fridays'").await;
    terminal.fine("note 'The wall is grey'").await;
    let id = noted["records"][0]["providerRecordId"].as_str().unwrap();
    terminal.fine("search 'when may I deploy'").await;
    let found =
        terminal.json(&format!("operation list --record {id} --provider local-markdown")).await;
    let kinds: Vec<&str> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.len() >= 2 && kinds[0] == "query", "{found}");
    assert_eq!(
        found["items"].as_array().unwrap().last().unwrap()["id"],
        noted["operationId"],
        "{found}"
    );
    assert!(
        terminal.json(&format!("operation list --record {id} --provider facts")).await["items"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
