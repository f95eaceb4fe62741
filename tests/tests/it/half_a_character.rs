//! Half a character in JSON, as JavaScript writes a text that it cut inside an emoji: everything
//! around it is taken, at each entrance.

use memhost_server::Method;
use memhost_tests::TestHost;
use serde_json::{Value, json};

use super::mcp_http;
use super::support::Api;

const CUT: &str = r"the cat \ud83d";
const READ: &str = "the cat \u{fffd}";

/// JSON in which `CUT` stands as JavaScript writes it.
fn cut(body: &Value) -> String {
    body.to_string().replace("CUT", CUT)
}

async fn post(api: &Api, what: &str, body: &Value) -> Value {
    let path = format!("/runtime/v1/companies/acme/{what}");
    api.send(Method::Post, &path, Some(cut(body)), &[]).await.fine()
}

async fn texts(api: &Api) -> Vec<String> {
    let body = json!({"scope": {"companyId": "acme"}, "limit": 100});
    let page = api.post("/runtime/v1/companies/acme/list", &body).await.fine();
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| item["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_with_half_a_character_is_taken_whole() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let event = |id: &str, text: &str| {
        json!({
            "hookKind": "manual_capture", "hookId": id, "triggeredAt": "2026-11-20T10:00:00Z",
            "scope": {"companyId": "acme"}, "source": {"kind": "issue_comment", "companyId": "acme",
                "issueId": "i1", "commentId": id},
            "payload": {"text": text},
        })
    };
    let batch = json!({"events": [event("h1", "CUT"), event("h2", "a whole one")]});
    let answer = post(&api, "hooks/batch", &batch).await;
    assert_eq!(answer["accepted"], 2, "{answer}");
    memhost_tests::eventually("both are captured", async || texts(&api).await.len() == 2).await;
    let mut found = texts(&api).await;
    found.sort();
    assert_eq!(found, ["a whole one", READ]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_and_its_metadata_are_written_and_found() {
    let host = TestHost::new(&[]).await.unwrap();
    let api = Api::new(&host);
    let body = json!({
        "scope": {"companyId": "acme"}, "records": [{"text": "CUT", "metadata": {"by": "CUT"}}],
    });
    let written = post(&api, "records", &body).await;
    let get = json!({"scope": {"companyId": "acme"}, "handle": written["records"][0]});
    let record = api.post("/runtime/v1/companies/acme/get", &get).await.fine()["record"].clone();
    assert_eq!((&record["text"], &record["metadata"]["by"]), (&json!(READ), &json!(READ)));
    let query = json!({"scope": {"companyId": "acme"}, "query": "CUT"});
    let found = post(&api, "query", &query).await;
    assert_eq!(found["snippets"][0]["text"], READ);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_tool_is_taken() {
    let (host, address) = mcp_http::host(&[]).await;
    let agent = mcp_http::agent(&host, address).await;
    let call = |id: u32| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "memory_note", "arguments": {"text": "CUT", "metadata": {"by": "CUT"}},
        }})
    };
    for body in [call(1), json!([call(2), call(3)])] {
        let answer = agent.send("POST", cut(&body)).await;
        assert_eq!(answer.status, 200, "{}", answer.json);
        let first = answer.json.get(0).unwrap_or(&answer.json).clone();
        assert_eq!(first["result"]["isError"], false, "{first}");
    }
    assert_eq!(texts(&Api::new(&host)).await, [READ; 3]);
}

/// The provider answers the metadata `{"half":"\ud800"}`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_providers_metadata_is_shown() {
    let host = TestHost::new(&["bad-json"]).await.unwrap();
    host.bind("acme", "bad-json", memhost_types::BindingLimits::default()).await.unwrap();
    let found = host.query("acme", "surrogate").await.unwrap();
    assert_eq!(found[0].metadata.as_ref().unwrap()["half"], "\u{fffd}");
}
