//! A query of a provider in front of a service, beside a bare client that asks the same server the
//! same over a connection that it keeps. The service is a stand-in for mem0's own server, so that
//! its time is small.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use axum::routing::post;
use axum::{Json, Router};
use memhost_core::CreateBinding;
use memhost_tests::measure::{repeat, show, table};
use memhost_tests::{TestHost, caller, parse, query};
use memhost_types::{BindingLimits, BindingPolicy, Grants, HttpGrant, QueryRequest, VersionChoice};
use serde_json::{Value, json};

const CALLS: usize = 2_000;

fn memories() -> Value {
    let memory = |n: usize| {
        json!({
            "id": format!("00000000-0000-4000-8000-{n:012}"),
            "memory": format!("Gate {n} is green and leads to the garden behind the old mill"),
            "user_id": "memhost-acme", "metadata": {}, "score": 0.5,
            "created_at": "2026-11-23T13:57:02+00:00",
        })
    };
    json!({"results": (0..10).map(memory).collect::<Vec<_>>()})
}

async fn measure() {
    let answer = memories();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let answers = move |_: Json<Value>| async move { Json(answer) };
    tokio::spawn(
        axum::serve(listener, Router::new().route("/search", post(answers))).into_future(),
    );

    let agent = ureq::Agent::new_with_defaults();
    let address = format!("{origin}/search");
    let body = json!({
        "query": "which gate is green", "filters": {"user_id": "memhost-acme"}, "top_k": 10,
    });
    let bare = repeat(CALLS, || async {
        let (agent, address, body) = (agent.clone(), address.clone(), body.clone());
        let ask = move || {
            agent.post(&address).send_json(&body).unwrap().body_mut().read_json::<Value>().unwrap()
        };
        let found = tokio::task::spawn_blocking(ask).await.unwrap();
        assert_eq!(found["results"].as_array().map(Vec::len), Some(10));
    })
    .await;

    let host = TestHost::new(&["mem0"]).await.unwrap();
    let grant = HttpGrant {
        origin: origin.parse().unwrap(),
        methods: Vec::new(),
        private_ranges: vec!["127.0.0.0/8".parse().unwrap()],
    };
    let grants = Grants { http: vec![grant], storage_bytes: 64 << 20, ..Grants::default() };
    let limits =
        BindingLimits { outgoing_requests_per_minute: 1_000_000, ..BindingLimits::default() };
    let binding = CreateBinding {
        policy: BindingPolicy::default(),
        key: parse("default"),
        provider_key: parse("mem0"),
        version: VersionChoice::default(),
        config: serde_json::from_value(
            json!({"url": origin, "api": "self-hosted", "withoutKey": true}),
        )
        .unwrap(),
        grants: Some(grants),
        limits,
        default: true,
    };
    host.service().control().create_binding(&caller(), &parse("acme"), binding).await.unwrap();
    let ours = repeat(CALLS, || async {
        let request = QueryRequest { top_k: Some(10), ..query("acme", "which gate is green") };
        let found = host.service().operations().query(&caller(), request).await.unwrap();
        assert_eq!(found.snippets.len(), 10);
    })
    .await;
    let row = |name: &str, timings: &memhost_tests::measure::Timings| {
        let beyond = show(timings.p50().saturating_sub(bare.p50()));
        vec![name.to_owned(), show(timings.p50()), show(timings.p99()), beyond]
    };
    let rows = [
        row("a client that keeps its connection (floor)", &bare),
        row("a query of the provider mem0 through the host", &ours),
    ];
    table("Ten memories from a service", &["what", "p50", "p99", "beyond the floor"], &rows);
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}
