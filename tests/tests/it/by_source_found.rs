//! How records are found by their source: once each, by every name of the source, also after a
//! move, and nothing of a record stays behind.

use memhost_server::Method;
use memhost_tests::{TestHost, open_store};
use serde_json::{Value, json};

use super::by_source::{CAPTURE, FORGET, comment, document, material, of, texts};
use super::support::{Api, extracting};

const LIST: &str = "/runtime/v1/companies/acme/sources/list";

async fn found(api: &Api, sources: &Value) -> usize {
    api.post(LIST, &of(sources)).await.fine()["records"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_is_found_once_by_each_name_of_its_source_here_and_where_its_company_goes() {
    let (_host, api) = extracting().await;
    let run = json!({"kind": "run", "companyId": "acme", "issueId": "i2", "runId": "r1"});
    let outside = json!({
        "kind": "external_document", "companyId": "acme", "externalRef": "https://example.com/a",
    });
    for (source, text) in
        [(comment("c1"), "one"), (document("i1"), "two"), (run, "three"), (outside, "four")]
    {
        api.post(CAPTURE, &material(&source, text)).await.fine();
    }
    let export = api.send(Method::Get, "/control/v1/companies/acme/export", None, &[]).await.text;
    let host = TestHost::new(&["extracts"]).await.unwrap();
    let there = Api::new(&host);
    let path = "/control/v1/companies/acme/import?scope=company&acceptGrants=true";
    there.send(Method::Post, path, Some(export), &[]).await.fine();
    for api in [&api, &there] {
        for (sources, count) in [
            (json!([{"commentId": "c1"}]), 1),
            (json!([{"issueId": "i1"}]), 2),
            (json!([{"documentKey": "plan"}, {"documentKey": "plan", "issueId": "i1"}]), 1),
            (json!([{"documentKey": "plan", "issueId": "i2"}]), 0),
            (json!([{"runId": "r1"}, {"issueId": "i2"}]), 1),
            (json!([{"externalRef": "https://example.com/a"}]), 1),
            (
                json!([
                    {"commentId": "c1"}, {"issueId": "i1"},
                    {"issueId": "i1", "kind": "issue_comment"},
                ]),
                2,
            ),
            (json!([{"commentId": "c1", "kind": "run"}]), 0),
        ] {
            assert_eq!(found(api, &sources).await, count, "{sources}");
        }
        let gone =
            api.post(FORGET, &of(&json!([{"commentId": "c1"}, {"issueId": "i1"}]))).await.fine();
        assert_eq!(gone["bindings"][0]["forgotten"], 2, "{gone}");
        assert_eq!(texts(api, "extracts").await, ["four", "three"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_forgotten_record_finds_it() {
    let (mut host, api) = extracting().await;
    api.post(CAPTURE, &material(&comment("c1"), "one")).await.fine();
    let two = api.post(CAPTURE, &material(&comment("c2"), "two")).await.fine();
    api.post(FORGET, &of(&json!([{"issueId": "i1", "kind": "run"}, {"commentId": "c1"}])))
        .await
        .fine();
    let body = json!({"scope": {"companyId": "acme"}, "handles": two["records"]});
    api.post("/runtime/v1/companies/acme/forget", &body).await.fine();
    drop(api);
    host.stop().await;
    assert_eq!(open_store(host.data_dir()).open_tree("record_sources").unwrap().len(), 0);
}

/// Whoever asks for sources is in the log, and keeps to the rate of the bindings that it reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_sources_is_an_operation_with_a_rate() {
    let (_host, api) = extracting().await;
    api.post(CAPTURE, &material(&comment("c1"), "said")).await.fine();
    let agent = api.agent("ada").await;
    let sources = json!([{"commentId": "c1"}]);
    agent.post(LIST, &of(&sources)).await.fine();
    let log = api.get("/control/v1/companies/acme/operations?kind=list").await;
    let (last, count) = (&log["items"][0], log["items"].as_array().unwrap().len());
    assert_eq!(
        (count, &last["principal"], &last["outcome"]),
        (1, &json!("agent:ada"), &json!("succeeded")),
        "{log}"
    );
    assert_eq!(last["recordCount"], 1, "{last}");
    api.patch(
        "/control/v1/companies/acme/bindings/extracts",
        &json!({"limits": {"callsPerSecond": 1}}),
    )
    .await
    .fine();
    // The binding serves with its limit from its next call on.
    api.post(CAPTURE, &material(&comment("c2"), "said too")).await;
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(agent.post(LIST, &of(&sources)).await.status);
    }
    assert!(answers.contains(&429), "{answers:?}");
}
