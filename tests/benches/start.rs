//! How long a host takes to be ready, with 1 and with 50 plugins, compiled cache cold and warm.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

use std::time::{Duration, Instant};

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

fn main() {
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
