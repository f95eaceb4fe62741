//! What HTTP costs on top of the library, beside a server that answers the same bytes and does
//! nothing else.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use memhost_core::Audit;
use memhost_server::{AdminToken, router};
use memhost_tests::TestHost;
use memhost_tests::measure::{Timings, ratio, repeat, show, table};
use memhost_tests::{caller, figures, query};
use memhost_types::BindingLimits;

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";
const PATH: &str = "/runtime/v1/companies/acme/query";
const COUNT: usize = 5_000;

/// Serves on one thread of its own, so that no answer waits for another thread to wake.
fn listen(router: Router) -> SocketAddr {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || runtime.block_on(async { axum::serve(listener, router).await }));
    address
}

/// One connection, one request after the other.
fn ask(address: SocketAddr) -> (Timings, Vec<u8>) {
    let agent = ureq::Agent::new_with_defaults();
    let url = format!("http://{address}{PATH}");
    let body = r#"{"scope":{"companyId":"acme"},"query":"hello"}"#;
    let (mut all, mut last) = (Vec::with_capacity(COUNT), Vec::new());
    for n in 0..COUNT + COUNT / 10 {
        let started = Instant::now();
        let request = agent.post(&url).header("authorization", format!("Bearer {TOKEN}"));
        let mut response = request.header("content-type", "application/json").send(body).unwrap();
        last = response.body_mut().read_to_vec().unwrap();
        if n >= COUNT / 10 {
            all.push(started.elapsed());
        }
    }
    (Timings::new(all), last)
}

fn main() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let host = runtime.block_on(async {
        let host =
            TestHost::with(&["echo"], |options| options.audit = Audit::Relaxed).await.unwrap();
        host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
        host
    });
    let ours = listen(router(
        Arc::clone(host.service()),
        AdminToken::known(TOKEN).unwrap(),
        &memhost_server::ServerOptions::default(),
    ));
    let (_, answer) = ask(ours);
    let bare =
        Router::new().route(PATH, post(move |_: axum::body::Bytes| async move { answer.clone() }));
    let bare = listen(bare);
    let library = runtime.block_on(repeat(COUNT, || async {
        assert_eq!(
            host.service()
                .operations()
                .query(&caller(), query("acme", "hello"))
                .await
                .unwrap()
                .snippets
                .len(),
            5
        );
    }));
    let mut rounds: Vec<(Timings, Timings)> = (0..5).map(|_| (ask(bare).0, ask(ours).0)).collect();
    rounds.sort_by_key(|(floor, ours)| ours.p50().saturating_sub(floor.p50()));
    let (floor, ours) = &rounds[2];
    figures::cost("query over HTTP over the same bytes", ours.p50(), floor.p50());
    let row = |name: &str, timings: &Timings, own: Duration| {
        vec![
            name.to_owned(),
            show(timings.p50()),
            show(timings.p99()),
            ratio(timings.p50(), floor.p50()),
            show(own),
        ]
    };
    table(
        "A warm query over HTTP, one connection on loopback, audit relaxed",
        &["what", "p50", "p99", "over the floor", "own time"],
        &[
            row("a server that answers the same bytes (floor)", floor, Duration::ZERO),
            row("memhost over HTTP", ours, ours.p50().saturating_sub(floor.p50())),
            row("memhost in process", &library, library.p50()),
        ],
    );
}
