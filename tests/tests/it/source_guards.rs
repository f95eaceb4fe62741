//! Guards of records by source that only many records, or a provider with lines of its own, show.

use std::time::Duration;

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::by_source::{CAPTURE, FORGET, comment, material, of};
use super::support::{Api, bind_provider, extracting};

const LIST: &str = "/runtime/v1/companies/acme/sources/list";
const RECORDS: &str = "/runtime/v1/companies/acme/records";

async fn found(api: &Api, sources: &Value) -> usize {
    api.post(LIST, &of(sources)).await.fine()["records"].as_array().unwrap().len()
}

fn records(texts: impl Iterator<Item = String>) -> Value {
    let records: Vec<Value> = texts.map(|text| json!({"text": text})).collect();
    json!({"scope": {"companyId": "acme"}, "source": comment("c1"), "records": records})
}

/// The provider only hides these records, so they are found again: without the guard the
/// replacement asks for the first thousand again and again, and never ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replacement_of_more_than_a_thousand_records_asks_for_each_once() {
    let (_host, api) = extracting().await;
    for range in [0..1_000, 1_000..1_005] {
        let indelible = range.map(|number: u32| format!("indelible {number}"));
        api.post(RECORDS, &records(indelible)).await.fine();
    }
    let mut replacing = material(&comment("c1"), "the new revision");
    replacing["replacesSource"] = json!(true);
    let replaced =
        tokio::time::timeout(Duration::from_secs(120), api.post(CAPTURE, &replacing)).await;
    replaced.expect("the replacement does not end").fine();
    let log = api.get("/control/v1/companies/acme/operations?kind=forget").await;
    let counts: Vec<u64> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|forget| forget["recordCount"].as_u64().unwrap())
        .collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (2, 1_005), "{counts:?}");
}

/// The provider takes the lines of its own export, and their rows come with the file: nothing else
/// writes their entries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_import_brings_is_found_by_its_source() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "reference").await;
    api.post(RECORDS, &records(["one", "two"].iter().map(ToString::to_string))).await.fine();
    assert_eq!(found(&api, &json!([{"commentId": "c1"}])).await, 2);
    let export = api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    assert!(export.contains("\"own\""), "{export}");
    let other = TestHost::new(&["reference"]).await.unwrap();
    let there = Api::new(&other);
    let path = "/control/v1/companies/acme/import?scope=company&acceptGrants=true";
    there.send(Method::Post, path, Some(export), &[]).await.fine();
    for sources in [json!([{"commentId": "c1"}]), json!([{"issueId": "i1"}])] {
        assert_eq!(found(&there, &sources).await, 2, "{sources}");
    }
    let gone = there.post(FORGET, &of(&json!([{"issueId": "i1"}]))).await.fine();
    assert_eq!(gone["bindings"][0]["forgotten"], 2, "{gone}");
}

/// The same for lines that come without a company: their rows are made then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lines_of_a_provider_bring_is_found_by_its_source() {
    let host = TestHost::new(&["reference"]).await.unwrap();
    let api = Api::new(&host);
    bind_provider(&api, "acme", "reference").await;
    api.post(RECORDS, &records(["one", "two"].iter().map(ToString::to_string))).await.fine();
    let scope = json!({"companyId": "acme"});
    let (mut parts, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let ask = json!({"scope": scope, "cursor": cursor});
        let part = api.post("/runtime/v1/companies/acme/export", &ask).await.fine();
        parts.push(part["lines"].clone());
        cursor = part["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let gone = api.post(FORGET, &of(&json!([{"commentId": "c1"}]))).await.fine();
    assert_eq!(gone["bindings"][0]["forgotten"], 2, "{gone}");
    let other = TestHost::new(&["reference"]).await.unwrap();
    let there = Api::new(&other);
    bind_provider(&there, "acme", "reference").await;
    for lines in parts {
        there
            .post("/runtime/v1/companies/acme/import", &json!({"scope": scope, "lines": lines}))
            .await
            .fine();
    }
    let comment = json!([{"commentId": "c1"}]);
    assert_eq!((found(&api, &comment).await, found(&there, &comment).await), (0, 2));
}

/// However many of the sources of a request name it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_several_sources_name_is_there_once() {
    let (_host, api) = extracting().await;
    api.post(RECORDS, &records(std::iter::once("one".to_owned()))).await.fine();
    let sources = json!([
        {"commentId": "c1"}, {"issueId": "i1"}, {"commentId": "c1", "kind": "issue_comment"},
        {"issueId": "i1", "kind": "issue_comment"}, {"commentId": "c1"},
    ]);
    assert_eq!(found(&api, &sources).await, 1);
    let gone = api.post(FORGET, &of(&sources)).await.fine();
    assert_eq!(
        (&gone["bindings"][0]["forgotten"], &gone["bindings"][0]["hidden"]),
        (&json!(1), &json!(0)),
        "{gone}"
    );
}
