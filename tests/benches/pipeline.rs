//! What the pipeline costs on top of the raw component call, with the raw call in the same run.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark that cannot go on has failed")]

// The program's allocator comes with it.
use memhost_cli as _;

use std::time::Duration;

use memhost_core::Audit;
use memhost_tests::measure::{Timings, paced, peer, processor_time, ratio, repeat, show, table};
use memhost_tests::{TestHost, caller, figures, guest_file, query};
use memhost_types::BindingLimits;

use self::raw::Raw;

#[path = "shared/raw.rs"]
mod raw;

async fn warm_raw(raw: &Raw, count: usize) -> Timings {
    let (mut store, provider) = raw.instance().await;
    let mut all = Vec::with_capacity(count);
    for n in 0..count + count / 10 {
        let started = std::time::Instant::now();
        raw.call(&mut store, &provider).await;
        if n >= count / 10 {
            all.push(started.elapsed());
        }
    }
    Timings::new(all)
}

async fn paced_raw(raw: &Raw) -> Timings {
    let instance = tokio::sync::Mutex::new(raw.instance().await);
    paced(20_000, Duration::from_micros(100), async || {
        let (store, provider) = &mut *instance.lock().await;
        raw.call(store, provider).await;
    })
    .await
}

async fn host(audit: Audit) -> TestHost {
    let host = TestHost::with(&["echo"], |options| options.audit = audit).await.unwrap();
    host.bind("acme", "echo", BindingLimits::default()).await.unwrap();
    host
}

async fn ask(host: &TestHost) {
    let found = host.service().operations().query(&caller(), query("acme", "hello")).await;
    assert_eq!(found.unwrap().snippets.len(), 5);
}

async fn pipeline(host: &TestHost, count: usize) -> Timings {
    repeat(count, || ask(host)).await
}

fn main() {
    // The calls run on a worker, so that they do not include a hand-over between threads.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let raw = Raw::new();
        let relaxed_host = host(Audit::Relaxed).await;
        let durable_host = host(Audit::Durable).await;
        // In turn, so that a change of the machine's speed affects all of them.
        let mut rounds = Vec::new();
        for _ in 0..5 {
            let floor = warm_raw(&raw, 20_000).await;
            let relaxed = pipeline(&relaxed_host, 20_000).await;
            rounds.push((floor, relaxed, peer("MEMHOST_PEER_EXTISM", 20_000)));
        }
        rounds.sort_by_key(|(floor, relaxed, _)| {
            relaxed.p50().as_nanos() * 1_000 / floor.p50().as_nanos().max(1)
        });
        let (floor, relaxed, peer) = &rounds[rounds.len() / 2];
        let durable = pipeline(&durable_host, 2_000).await;
        let before = processor_time();
        pipeline(&relaxed_host, 20_000).await;
        // With those of the warm-up.
        let used = (processor_time() - before) / 22_000;
        let calm = paced(20_000, Duration::from_micros(100), || ask(&relaxed_host)).await;
        let calm_floor = paced_raw(&raw).await;
        figures::cost("warm query in process over the raw call", relaxed.p50(), floor.p50());
        figures::cost(
            "p99 at 10,000 calls a second over that of the raw call",
            calm.p99(),
            calm_floor.p99(),
        );
        let row = |name: &str, timings: &Timings| {
            let own = timings.p50().saturating_sub(floor.p50());
            vec![
                name.to_owned(),
                show(timings.p50()),
                show(timings.p99()),
                ratio(timings.p50(), floor.p50()),
                show(own),
            ]
        };
        table(
            "A warm query, 5 snippets",
            &["what", "p50", "p99", "over the floor", "own time"],
            &[
                row("raw component call (floor)", floor),
                row("the same, 10,000 calls a second", &calm_floor),
                row("library pipeline, audit relaxed", relaxed),
                row("library pipeline, 10,000 calls a second", &calm),
                row("library pipeline, audit durable", &durable),
            ],
        );
        println!("\nProcessor time of a call with audit relaxed, on all threads: {}", show(used));
        if let Some((p50, p99)) = peer {
            let row =
                |name: &str, p50, p99, over| vec![name.to_owned(), show(p50), show(p99), over];
            let over = |ours: &Timings| ratio(*p50, ours.p50());
            table(
                "The same query as an Extism plug-in, in the same rounds",
                &["what", "p50", "p99", "Extism takes"],
                &[
                    row("Extism, JSON both ways", *p50, *p99, "1.00×".to_owned()),
                    row("memhost, audit relaxed", relaxed.p50(), relaxed.p99(), over(relaxed)),
                    row("memhost, audit durable", durable.p50(), durable.p99(), over(&durable)),
                ],
            );
        }
        fresh(&raw).await;
    });
}

/// Every call on a fresh instance.
async fn fresh(raw: &Raw) {
    let floor = repeat(2_000, || async {
        let (mut store, provider) = raw.instance().await;
        raw.call(&mut store, &provider).await;
    })
    .await;
    let sandbox =
        memhost_sandbox::Sandbox::new(memhost_sandbox::SandboxOptions::default()).unwrap();
    let bytes = std::fs::read(guest_file("echo")).unwrap();
    let component = memhost_sandbox::Component::admit(&sandbox, bytes, None).await.unwrap();
    let request = query("acme", "hello");
    let ours = repeat(2_000, || async {
        let setup = memhost_sandbox::InstanceSetup::without_grants(BindingLimits::default());
        let instances = memhost_sandbox::Instances::new(&sandbox, &component, setup);
        assert_eq!(instances.query(&request).await.unwrap().value.snippets.len(), 5);
    })
    .await;
    figures::cost("fresh instance and query over raw", ours.p50(), floor.p50());
    let row = |name: &str, timings: &Timings| {
        vec![
            name.to_owned(),
            show(timings.p50()),
            show(timings.p99()),
            ratio(timings.p50(), floor.p50()),
        ]
    };
    table(
        "A fresh instance and the same query",
        &["what", "p50", "p99", "over the floor"],
        &[row("raw instance and call (floor)", &floor), row("sandbox, limits and log", &ours)],
    );
}
