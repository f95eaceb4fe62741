//! What requests in progress make the host hold: forms whose browser has gone, and answers that
//! nobody reads.

use std::sync::Arc;

use axum::body::Body;
use memhost_server::{InProcess, Method, Request};
use memhost_tests::{TestHost, eventually, query};
use memhost_types::BindingLimits;
use serde_json::json;

use super::mcp_http::{ACCEPT, token};
use super::support::{Api, bind_provider};
use super::ui_pages::{encode, operator};

/// A browser that goes does not take back what its form holds: the form is worked on until it is
/// answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_counts_until_it_is_answered_also_without_its_browser() {
    let host = TestHost::new(&["sleeps"]).await.unwrap();
    let host = host.surfaces(|surfaces| surfaces.connections.max_bodies_bytes = 200_000);
    let limits = BindingLimits { concurrent_calls: 1, queued_calls: 1, ..BindingLimits::default() };
    host.bind("acme", "sleeps", limits).await.unwrap();
    let api = Api::new(&host);
    let visitor = operator(&api).await;
    let usage = async || {
        host.usage("acme", "sleeps").await.map(|usage| (usage.calls_in_flight, usage.calls_waiting))
    };
    // The binding's only call sleeps, so that a form waits behind it.
    let service = Arc::clone(host.service());
    let sleeping = tokio::spawn(async move {
        service.operations().query(&memhost_tests::caller(), query("acme", "x")).await
    });
    eventually("the call sleeps", async || usage().await == Some((1, 0))).await;
    let body = encode(&[("csrf", &visitor.csrf), ("text", &"x".repeat(199_000))]);
    let send = async || {
        let cookie = [("cookie", visitor.session.as_str())];
        visitor
            .api
            .with("nobody's")
            .send(Method::Post, "/c/acme/new-record", Some(body.clone()), &cookie)
            .await
    };
    tokio::select! {
        answer = send() => panic!("the form did not wait: {} {}", answer.status, answer.text),
        () = eventually("the form waits", async || usage().await == Some((1, 1))) => {}
    }
    let refused = send().await;
    assert!(
        refused.status == 503 && refused.text.contains("max_bodies_bytes"),
        "{} {}",
        refused.status,
        refused.text
    );
    sleeping.abort();
}

/// What a client asked for and did not read yet is held, for each company up to its share.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_have_one_bound() {
    const LIST: &str = "/runtime/v1/companies/acme/list";
    let host = TestHost::new(&[]).await.unwrap();
    let host = host.surfaces(|surfaces| surfaces.connections.max_bodies_bytes = 4 << 20);
    let api = Api::new(&host);
    bind_provider(&api, "acme", "local-markdown").await;
    let write = |number: u32| {
        let text = format!("{number} {}", "memory is a list of words ".repeat(4_000));
        json!({"scope": {"companyId": "acme"}, "records": [{"text": text}]}).to_string()
    };
    let mine = token(&host, "acme", json!({"name": "ada", "role": "company_administrator"})).await;
    let http: InProcess = host.in_process();
    let ask = async |path: &str, body: &str| {
        let mut headers =
            vec![("authorization", format!("Bearer {mine}")), ("accept", ACCEPT.to_owned())];
        headers.push(("host", "localhost".to_owned()));
        let request = Request {
            method: Method::Post,
            path: path.to_owned(),
            body: Some(body.to_owned()),
            headers,
        };
        http.stream(request).await
    };
    for number in 0..8 {
        assert_eq!(ask("/runtime/v1/companies/acme/records", &write(number)).await.status(), 200);
    }
    let written = read(ask("/runtime/v1/companies/acme/records", &write(8)).await).await;
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let list = json!({"scope": {"companyId": "acme"}, "limit": 100}).to_string();
    let mut unread = Vec::new();
    let refused = loop {
        let answer = ask(LIST, &list).await;
        if answer.status() != 200 {
            break answer;
        }
        unread.push(answer);
        assert!(unread.len() < 20, "nothing is refused");
    };
    assert!(
        refused.status() == 503 && refused.headers()["retry-after"] == "1" && unread.len() >= 2,
        "{refused:?}"
    );
    assert!(read(refused).await.contains("max_bodies_bytes"));
    // What a message at `/mcp` does is in its body only.
    let mcp = |method: &str, params: serde_json::Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let id = written["records"][0]["providerRecordId"].as_str().unwrap();
    let resource = mcp("resources/read", json!({"uri": format!("memory://local-markdown/{id}")}));
    let mut found = Vec::new();
    let refused = loop {
        let answer = ask("/mcp", &resource).await;
        if answer.status() != 200 {
            break answer;
        }
        found.push(answer);
        assert!(found.len() < 50, "no resource is refused");
    };
    let refused = read(refused).await;
    assert!(refused.contains("too_many_bodies"), "after {} answers: {refused}", found.len());
    let note =
        mcp("tools/call", json!({"name": "memory.note", "arguments": {"text": "a short note"}}));
    let noted = read(ask("/mcp", &note).await).await;
    assert!(noted.contains("\"result\""), "{noted}");
    assert_eq!(
        ask("/runtime/v1/companies/acme/records", &write(9)).await.status(),
        200,
        "a write is answered"
    );
    unread.clear();
    found.clear();
    assert!(
        read(ask(LIST, &list).await).await.contains("memory is a list"),
        "what is gone is free"
    );
}

async fn read(answer: http::Response<Body>) -> String {
    let bytes = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
