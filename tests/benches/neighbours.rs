//! The latency of one binding while another one's guest misbehaves.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use memhost_core::Audit;
use memhost_tests::figures;
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, caller, query};
use memhost_types::BindingLimits;

/// Every guest that misbehaves in a query; the others are refused before.
const GUESTS: [&str; 22] = [
    "answers-100-mb",
    "answers-foreign",
    "answers-nan",
    "answers-too-many",
    "bad-json",
    "deep-json",
    "dials-out",
    "eats-memory",
    "escapes-directory",
    "floods-directory",
    "floods-headers",
    "floods-log",
    "floods-storage",
    "grows-table",
    "hoards-handles",
    "large-arguments",
    "loops-in-call",
    "reads-environment",
    "remembers",
    "sleeps",
    "spins-cpu",
    "traps",
];

/// How long the innocent binding is served, quiet and beside each guest.
const TIME: Duration = Duration::from_secs(2);

async fn innocent(host: &TestHost, time: Duration) -> Timings {
    let service = Arc::clone(host.service());
    tokio::spawn(async move {
        let until = Instant::now() + time;
        let mut all = Vec::new();
        while Instant::now() < until {
            let started = Instant::now();
            service.operations().query(&caller(), query("innocent", "hello")).await.unwrap();
            all.push(started.elapsed());
            // As a caller would: not back to back.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Timings::new(all)
    })
    .await
    .unwrap()
}

async fn beside(guest: &str, audit: Audit) -> (Timings, Timings) {
    let host = TestHost::with(&[guest, "echo"], |options| options.audit = audit).await.unwrap();
    let limits = BindingLimits {
        memory_bytes: 64 << 20,
        call_timeout_ms: 1_000,
        call_cpu_ms: 500,
        transfer_bytes: 16 << 20,
        concurrent_calls: 1,
        ..BindingLimits::default()
    };
    host.bind("hostile", guest, limits).await.unwrap();
    host.bind("innocent", "echo", BindingLimits::default()).await.unwrap();
    let quiet = innocent(&host, TIME).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (service, stopped) = (Arc::clone(host.service()), Arc::clone(&stop));
    let storm = tokio::spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            let _ = service.operations().query(&caller(), query("hostile", "600000")).await;
        }
    });
    let loud = innocent(&host, TIME).await;
    stop.store(true, Ordering::Relaxed);
    storm.await.unwrap();
    (quiet, loud)
}

/// Guests that compute without end, each in a company of its own.
const COMPUTING: [&str; 4] = ["one", "two", "three", "four"];

/// A neighbour in process and over HTTP, quiet and beside four guests that compute without end, on
/// half as many threads.
fn beside_four() -> [(&'static str, Timings, Timings); 2] {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let host = TestHost::with(&["spins-cpu", "echo"], |options| options.audit = Audit::Relaxed);
        let host = host.await.unwrap();
        for company in COMPUTING {
            host.bind(company, "spins-cpu", BindingLimits::default()).await.unwrap();
        }
        host.bind("innocent", "echo", BindingLimits::default()).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/runtime/v1/companies/innocent/query",
            listener.local_addr().unwrap()
        );
        let router = memhost_server::router(
            Arc::clone(host.service()),
            memhost_server::AdminToken::known(TOKEN).unwrap(),
            &memhost_server::ServerOptions::default(),
        );
        tokio::spawn(async { axum::serve(listener, router).await });
        let both = async || {
            let inside = innocent(&host, TIME).await;
            let url = url.clone();
            let outside = tokio::task::spawn_blocking(move || over_http(&url)).await.unwrap();
            [inside, outside]
        };
        let quiet = both().await;
        let computing = COMPUTING.map(|company| {
            let service = Arc::clone(host.service());
            let asked = query(company, "600000");
            tokio::spawn(async move { service.operations().query(&caller(), asked).await })
        });
        let loud = both().await;
        assert!(computing.iter().all(|guest| !guest.is_finished()), "a guest has ended meanwhile");
        let ([inside, outside], [loud_inside, loud_outside]) = (quiet, loud);
        [("in process", inside, loud_inside), ("over HTTP", outside, loud_outside)]
    })
}

const TOKEN: &str = "a-token-of-sixteen-characters-or-more";

fn over_http(url: &str) -> Timings {
    let (agent, until) = (ureq::Agent::new_with_defaults(), Instant::now() + TIME);
    let mut all = Vec::new();
    while Instant::now() < until {
        let started = Instant::now();
        let request = agent.post(url).header("authorization", format!("Bearer {TOKEN}"));
        let request = request.header("content-type", "application/json");
        let body = r#"{"scope":{"companyId":"innocent"},"query":"hello"}"#;
        request.send(body).unwrap().body_mut().read_to_vec().unwrap();
        all.push(started.elapsed());
        // As a caller would: not back to back.
        std::thread::sleep(Duration::from_millis(1));
    }
    Timings::new(all)
}

fn row(name: &str, quiet: &Timings, loud: &Timings) -> Vec<String> {
    let over = ratio(loud.p99(), quiet.p99());
    let times = [quiet.p50(), loud.p50(), quiet.p99(), loud.p99()].map(show);
    [name.to_owned()].into_iter().chain(times).chain([over]).collect()
}

fn main() {
    let four = beside_four().map(|(name, quiet, loud)| {
        figures::note(
            &format!("neighbour {name} beside four guests that compute, p99 in ms"),
            loud.p99().as_secs_f64() * 1e3,
        );
        row(name, &quiet, &loud)
    });
    table(
        "A neighbour beside four guests that compute without end, audit relaxed",
        &["neighbour", "quiet p50", "p50", "quiet p99 (floor)", "p99", "over the floor"],
        &four,
    );
    if figures::are_wanted() {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let mut rows = Vec::new();
    let named: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for guest in
        GUESTS.iter().filter(|guest| named.is_empty() || named.iter().any(|name| name == *guest))
    {
        let (quiet, loud) = runtime.block_on(beside(guest, Audit::Relaxed));
        rows.push(row(guest, &quiet, &loud));
    }
    table(
        "An innocent query beside one misbehaving binding, audit relaxed",
        &["guest", "quiet p50", "p50", "quiet p99 (floor)", "p99", "over the floor"],
        &rows,
    );
}
