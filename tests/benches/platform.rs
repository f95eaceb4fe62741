//! The plugin platform: what admission costs beside bare compilation, a swap under load, and ten
//! thousand bindings.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memhost_core::{Audit, CreateBinding};
use memhost_sandbox::{Component, Sandbox, SandboxOptions};
use memhost_tests::measure::{Timings, ratio, show, table};
use memhost_tests::{TestHost, caller, guest_file, parse, query, stamped};
use memhost_types::{BindingLimits, Grants, VersionChoice};
use serde_json::json;

const BINDINGS: usize = 10_000;
const WARM: usize = 1_000;

fn admission() -> Vec<Vec<String>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let sandbox = Sandbox::new(SandboxOptions::default()).unwrap();
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true).max_wasm_stack(512 << 10).async_stack_size(1 << 20);
    let engine = wasmtime::Engine::new(&config).unwrap();
    ["reference", "stamped"]
        .into_iter()
        .map(|guest| {
            let bytes = std::fs::read(guest_file(guest)).unwrap();
            let (mut bare, mut admitted) = (Vec::new(), Vec::new());
            for _ in 0..15 {
                let started = Instant::now();
                wasmtime::component::Component::from_binary(&engine, &bytes).unwrap();
                bare.push(started.elapsed());
                let copy = bytes.clone();
                let started = Instant::now();
                runtime.block_on(Component::admit(&sandbox, copy, None)).unwrap();
                admitted.push(started.elapsed());
            }
            let (bare, admitted) = (Timings::new(bare), Timings::new(admitted));
            let size = format!("{} KiB", bytes.len() >> 10);
            vec![
                guest.to_owned(),
                size,
                show(bare.p50()),
                show(admitted.p50()),
                ratio(admitted.p50(), bare.p50()),
            ]
        })
        .collect()
}

/// Two versions take turns in one file while 200 calls a second go on.
async fn swap() -> Vec<String> {
    const SECONDS: u64 = 5;
    let host = TestHost::new(&[]).await.unwrap();
    let file = host.directory().join("plugins/one.wasm");
    let put = |version: &str| {
        let temporary = host.directory().join("being-written");
        std::fs::write(&temporary, stamped(json!({"key": "stamped", "version": version})).unwrap())
            .unwrap();
        std::fs::rename(temporary, &file).unwrap();
    };
    put("1.0.0");
    host.service().control().scan_plugins().await;
    host.bind("acme", "stamped", BindingLimits::default()).await.unwrap();
    host.query("acme", "x").await.unwrap();
    let service = Arc::clone(host.service());
    let load = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..200 * SECONDS {
            ticks.tick().await;
            let service = Arc::clone(&service);
            calls.spawn(async move {
                let started = Instant::now();
                let answered =
                    service.operations().query(&caller(), query("acme", "x")).await.is_ok();
                (started.elapsed(), answered)
            });
        }
        calls.join_all().await
    });
    for minor in 1..=SECONDS {
        tokio::time::sleep(Duration::from_millis(700)).await;
        put(&format!("1.{minor}.0"));
    }
    let calls = load.await.unwrap();
    let failed = calls.iter().filter(|(_, answered)| !answered).count();
    let timings = Timings::new(calls.iter().map(|(took, _)| *took).collect());
    let serving = host
        .service()
        .control()
        .binding(&parse("acme"), &parse("stamped"))
        .await
        .unwrap()
        .serving
        .unwrap();
    let slowest = show(timings.percentile(100.0));
    vec![
        calls.len().to_string(),
        serving.version.to_string(),
        failed.to_string(),
        show(timings.p99()),
        slowest,
    ]
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

async fn many_bindings() -> Vec<Vec<String>> {
    let host = TestHost::with(&["echo"], |options| options.audit = Audit::Relaxed).await.unwrap();
    let before = resident();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..BINDINGS {
        let service = Arc::clone(host.service());
        tasks.spawn(async move {
            let request = CreateBinding {
                policy: memhost_types::BindingPolicy::default(),
                key: parse("default"),
                provider_key: parse("echo"),
                version: VersionChoice::default(),
                config: Default::default(),
                grants: Some(Grants::default()),
                limits: BindingLimits::default(),
                default: true,
            };
            service
                .control()
                .create_binding(&caller(), &parse(&format!("company-{n}")), request)
                .await
                .unwrap();
        });
        if tasks.len() >= 64 {
            tasks.join_next().await.unwrap().unwrap();
        }
    }
    tasks.join_all().await;
    let registered = resident();
    for n in 0..WARM {
        host.service()
            .operations()
            .query(&caller(), query(&format!("company-{n}"), "x"))
            .await
            .unwrap();
    }
    let warm = resident();
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let each = |more: u64, count: usize| format!("{:.1} KiB", more as f64 / 1024.0 / count as f64);
    vec![
        vec!["a host without bindings (floor)".to_owned(), mib(before), String::new()],
        vec![
            format!("{BINDINGS} bindings"),
            mib(registered),
            each(registered.saturating_sub(before), BINDINGS),
        ],
        vec![
            format!("and {WARM} of them warm"),
            mib(warm),
            each(warm.saturating_sub(registered), WARM),
        ],
    ]
}

fn main() {
    table(
        "Admission beside bare compilation, p50 of 15 in turn",
        &["component", "size", "compilation (floor)", "admission", "over the floor"],
        &admission(),
    );
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    table(
        "Five new versions under 200 calls a second",
        &["calls", "serving at the end", "failed", "p99", "slowest"],
        &[runtime.block_on(swap())],
    );
    table("Resident memory", &["what", "resident", "each"], &runtime.block_on(many_bindings()));
}
