//! How long a host takes to be ready, with 1 and with 50 plugins, compiled cache cold and warm.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memhost_tests::figures;
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, stamped};

/// Different providers from one guest.
fn copies(directory: &std::path::Path, count: usize) {
    for n in 0..count {
        let bytes = stamped(serde_json::json!({"key": format!("stamped-{n}"), "version": "1.0.0"}))
            .unwrap();
        std::fs::write(directory.join(format!("{n}.wasm")), bytes).unwrap();
    }
}

async fn measure(plugins: usize) -> (Duration, Timings) {
    let directory = tempfile::tempdir().unwrap();
    copies(directory.path(), plugins);
    let path = directory.path().to_owned();
    let started = Instant::now();
    let mut host = TestHost::with(&[], |options| options.plugins_dir = Some(path)).await.unwrap();
    let cold = started.elapsed();
    assert_eq!(
        host.service().control().plugins().admitted.len(),
        plugins + 1,
        "{:?}",
        host.service().control().plugins().refused
    );
    let mut warm = Vec::new();
    for _ in 0..10 {
        host.stop().await;
        let started = Instant::now();
        host.start().await.unwrap();
        warm.push(started.elapsed());
    }
    (cold, Timings::new(warm))
}

/// How long the program takes from its start with a new data directory and nothing compiled until
/// its built-in provider has stored a record.
fn first_start() -> Duration {
    let binary = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("memhost");
    let directory = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let mut child = Command::new(binary)
        .args(["serve", "--listen", "127.0.0.1:0", "--token", TOKEN, "--data-dir"])
        .arg(directory.path().join("data"))
        .env("MEMHOST_CACHE_DIR", directory.path().join("cache"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let url = { lines }.find_map(|line| Some(line[line.find("http://")?..].to_owned())).unwrap();
    let body = r#"{"scope":{"companyId":"acme"},"records":[{"text":"the first one"}]}"#;
    loop {
        let request = ureq::post(format!("{url}/runtime/v1/companies/acme/records"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json");
        match request.send(body) {
            Err(ureq::Error::StatusCode(503)) if started.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(5));
            }
            answer => break drop(answer.unwrap()),
        }
    }
    let took = started.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    took
}

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "a-token-of-sixteen-characters-or-more";

fn main() {
    let first = Timings::new((0..3).map(|_| first_start()).collect());
    println!(
        "First start until the built-in provider has stored a record, of 3: {}",
        show(first.p50())
    );
    figures::note("first start until the built-in answers, in seconds", first.p50().as_secs_f64());
    if figures::are_wanted() {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (cold_1, warm_1) = runtime.block_on(measure(1));
    let (cold_50, warm_50) = runtime.block_on(measure(50));
    let row = |plugins: &str, cold: Duration, warm: &Timings| {
        vec![
            plugins.to_owned(),
            show(cold),
            show(warm.p50()),
            show(warm.percentile(100.0)),
            ratio(warm.p50(), warm_1.p50()),
        ]
    };
    table(
        "Ready after a start",
        &[
            "plugins beside the built-in one",
            "cache cold",
            "cache warm, p50 of 10",
            "cache warm, slowest",
            "over one plugin",
        ],
        &[row("1", cold_1, &warm_1), row("50", cold_50, &warm_50)],
    );
}
